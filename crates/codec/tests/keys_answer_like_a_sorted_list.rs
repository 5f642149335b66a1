//! For every key codec and both types: blocks of keys answer and change like a sorted list, and damaged ones do no
//! harm.

use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_codec::*;

/// So many cases, unless `PROPTEST_CASES` says otherwise.
fn cases(count: u32) -> ProptestConfig {
    let wanted = std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok());
    ProptestConfig { cases: wanted.unwrap_or(count), failure_persistence: None, ..ProptestConfig::default() }
}

/// More than any codec takes for a full block.
const ROOM: usize = 4096;

/// A key from 64 bits, of which a shorter one takes the lowest.
trait TestKey: Key {
    const MAX: Self;
    fn from_bits(bits: u64) -> Self;
    fn bits(self) -> u64;
}

impl TestKey for u32 {
    const MAX: u32 = u32::MAX;
    fn from_bits(bits: u64) -> u32 {
        bits as u32
    }
    fn bits(self) -> u64 {
        self.into()
    }
}

impl TestKey for u64 {
    const MAX: u64 = u64::MAX;
    fn from_bits(bits: u64) -> u64 {
        bits
    }
    fn bits(self) -> u64 {
        self
    }
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    /// One after the other, from anywhere.
    Dense,
    /// Differences of up to so many bits, zero among them: some keys occur twice.
    Steps(u32),
    /// Dense, with a gap here and there.
    Gaps,
    /// Anywhere.
    Sparse,
    /// The least and the greatest keys, and few between.
    Extremes,
    /// One key, again and again.
    Equal,
}

fn any_shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::Dense),
        (1..40u32).prop_map(Shape::Steps),
        Just(Shape::Gaps),
        Just(Shape::Sparse),
        Just(Shape::Extremes),
        Just(Shape::Equal),
    ]
}

fn any_count() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0usize), Just(1), Just(2), 3..40usize, 120..135usize, 0..=KEYS_MAX, Just(KEYS_MAX)]
}

fn keys<K: TestKey>(shape: Shape, count: usize, random: &mut SmallRng) -> Vec<K> {
    let mut next = random.random::<u64>() >> random.random_range(8..60);
    let mut keys: Vec<K> = (0..count)
        .map(|_| {
            next = match shape {
                Shape::Dense => next.wrapping_add(1),
                Shape::Steps(width) => next.wrapping_add(random.random::<u64>() >> (64 - width)),
                Shape::Gaps => next.wrapping_add(if random.random_range(0..20) == 0 { 70_000 } else { 1 }),
                Shape::Sparse => random.random(),
                Shape::Extremes => match random.random_range(0..3) {
                    0 => random.random_range(0..3),
                    1 => u64::MAX - random.random_range(0..3),
                    _ => 1 << random.random_range(0..64),
                },
                Shape::Equal => next,
            };
            K::from_bits(next)
        })
        .collect();
    keys.sort_unstable();
    keys
}

/// A block with its room.
#[derive(Clone)]
struct Held<K> {
    codec: KeyCodec,
    descriptor: KeyDescriptor<K>,
    room: Vec<u8>,
}

impl<K: TestKey> Held<K> {
    /// These keys, with so many bytes to grow.
    fn new(codec: KeyCodec, keys: &[K], slack: usize) -> Held<K> {
        let mut room = Vec::new();
        let descriptor = codec.encode(keys, &mut room).unwrap();
        assert_eq!(descriptor.byte_len, room.len());
        room.resize(room.len() + slack, 0xa5);
        Held { codec, descriptor, room }
    }

    fn block(&self) -> KeyBlock<'_, K> {
        KeyBlock::open(self.codec, self.descriptor, &self.room).unwrap()
    }

    fn change(&mut self) -> KeyBlockMut<'_, K> {
        KeyBlockMut::open(self.codec, &mut self.descriptor, &mut self.room).unwrap()
    }

    /// Everything that can be asked, against the list.
    fn check(&self, model: &[K], random: &mut SmallRng) {
        let what = || format!("{} of {model:?}", self.codec.name());
        let block = self.block();
        let KeyDescriptor { first, last, count, byte_len } = self.descriptor;
        assert_eq!(count, model.len(), "{}", what());
        assert_eq!((first, last), (*model.first().unwrap_or(&first), *model.last().unwrap_or(&last)), "{}", what());
        assert!(byte_len <= self.room.len() && (count > 0 || byte_len == 0));
        let mut out = [K::MAX; KEYS_MAX];
        assert_eq!(block.decode(&mut out), model, "{}", what());
        let step = model.len() / 20 + 1;
        for index in (random.random_range(0..step)..model.len()).step_by(step) {
            assert_eq!(block.select(index), model[index], "key {index}, {}", what());
        }
        let near = |random: &mut SmallRng| match model.get(random.random_range(0..=model.len())) {
            Some(key) => K::from_bits(key.bits().wrapping_add(random.random_range(0..3)).wrapping_sub(1)),
            None => K::from_bits(random.random::<u64>() >> random.random_range(0..64)),
        };
        let sought: Vec<K> = (0..12).map(|_| near(random)).chain([K::default(), K::MAX]).collect();
        for key in sought {
            let at = model.partition_point(|one| *one < key);
            let expected = model.get(at).map(|found| (at, *found));
            assert_eq!(block.lower_bound(key), expected, "from {key} on, {}", what());
        }
    }

    /// Inserts a key into both; returns whether there was room.
    fn insert(&mut self, key: K, model: &mut Vec<K>) -> bool {
        let at = model.partition_point(|one| *one < key);
        let before = self.clone();
        let change = self.change().insert(key);
        let what = format!("{key} into {} of {model:?}", self.codec.name());
        let refused = self.descriptor == before.descriptor
            && self.room[..before.descriptor.byte_len] == before.room[..before.descriptor.byte_len];
        match change {
            KeyChange::Present(index) => {
                assert!((index, Some(&key)) == (at, model.get(at)) && refused, "{what}: {index}")
            }
            KeyChange::Full => assert!(model.len() == KEYS_MAX && model.get(at) != Some(&key) && refused, "{what}"),
            KeyChange::NoRoom(needed) => assert!(needed > self.room.len() && refused, "{what} needs {needed}"),
            KeyChange::Done(index) => {
                assert!(index == at && model.get(at) != Some(&key) && model.len() < KEYS_MAX, "{what} at {index}");
                model.insert(at, key);
            }
        }
        !matches!(change, KeyChange::NoRoom(_))
    }

    /// Deletes a key from both, if there is room.
    fn delete(&mut self, index: usize, model: &mut Vec<K>) {
        let before = self.clone();
        match self.change().delete(index) {
            KeyChange::Done(at) => {
                assert_eq!(at, index);
                model.remove(index);
            }
            KeyChange::NoRoom(needed) => {
                assert!(!self.codec.is_delete_stable() && needed > self.room.len(), "{}", self.codec.name());
                assert_eq!((self.descriptor, &self.room), (before.descriptor, &before.room));
            }
            change => panic!("{change:?} of key {index}"),
        }
        let shrank = self.descriptor.byte_len <= before.descriptor.byte_len;
        assert!(shrank || !self.codec.is_delete_stable(), "{} grew without key {index}", self.codec.name());
    }
}

fn answers<K: TestKey>(shape: Shape, count: usize, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let model: Vec<K> = keys(shape, count, &mut random);
    for &codec in KEY_CODECS {
        Held::new(codec, &model, 3).check(&model, &mut random);
    }
}

fn changes<K: TestKey>(shape: Shape, count: usize, seed: u64) {
    for &codec in KEY_CODECS {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut model: Vec<K> = keys(shape, count, &mut random);
        let slack = [0, 3, 40, ROOM][random.random_range(0..4)];
        let mut held = Held::new(codec, &model, slack);
        let deletes = random.random_range(0..100);
        for _ in 0..60 {
            if random.random_range(0..100) < deletes && !model.is_empty() {
                let index = match random.random_range(0..4) {
                    0 => 0,
                    1 => model.len() - 1,
                    _ => random.random_range(0..model.len()),
                };
                held.delete(index, &mut model);
            } else {
                let others = keys::<K>(shape, 4, &mut random);
                let key = match (random.random_range(0..4), model.get(random.random_range(0..=model.len()))) {
                    (0, _) | (_, None) => others[1],
                    (1, Some(_)) => K::from_bits(held.descriptor.last.bits().saturating_add(random.random_range(0..9))),
                    (_, Some(key)) => K::from_bits(key.bits().wrapping_add(random.random_range(0..5)).wrapping_sub(2)),
                };
                if !held.insert(key, &mut model) && random.random() {
                    held.room.resize(held.room.len() + 200, 0x5a);
                }
            }
        }
        held.check(&model, &mut random);
    }
}

fn built_one_by_one<K: TestKey>(shape: Shape, seed: u64) {
    for &codec in KEY_CODECS {
        let mut random = SmallRng::seed_from_u64(seed);
        let (mut held, mut model) = (Held::<K>::new(codec, &[], ROOM), Vec::new());
        while model.len() < KEYS_MAX {
            let key = match random.random_range(0..8) {
                0 => K::from_bits(random.random()),
                _ => keys::<K>(shape, 1, &mut random)[0],
            };
            let count = model.len();
            assert!(held.insert(key, &mut model));
            if model.len() == count {
                // It was there: dense keys near others run out.
                held.insert(K::from_bits(random.random()), &mut model);
            }
        }
        held.check(&model, &mut random);
        let unseen = (0..).map(K::from_bits).find(|key| !model.contains(key)).unwrap();
        assert_eq!(held.change().insert(unseen), KeyChange::Full);
        assert_eq!(held.change().insert(model[7]), KeyChange::Present(7));
        assert_eq!(held.change().append(K::MAX), KeyChange::Full);
        while !model.is_empty() {
            held.delete(random.random_range(0..model.len()), &mut model);
            if model.len() % 64 == 1 {
                held.check(&model, &mut random);
            }
        }
        assert_eq!(held.descriptor, KeyDescriptor::default());
    }
}

/// Asks and changes a block that may be damaged. Errors and wrong answers are fine.
fn interrogate<K: TestKey>(codec: KeyCodec, descriptor: KeyDescriptor<K>, bytes: &[u8], random: &mut SmallRng) {
    let Ok(block) = KeyBlock::open(codec, descriptor, bytes) else { return };
    let mut out = [K::MAX; KEYS_MAX];
    block.decode(&mut out);
    let count = descriptor.count;
    (0..count).for_each(|index| _ = block.select(index));
    let somewhere = |random: &mut SmallRng| {
        let (first, last) = (descriptor.first.bits(), descriptor.last.bits());
        K::from_bits(random.random_range(first..=last))
    };
    for _ in 0..10 {
        if let Some((index, _)) = block.lower_bound(somewhere(random)) {
            assert!(index < count);
        }
    }
    for change in 0..6 {
        let (mut descriptor, mut room) = (descriptor, bytes.to_vec());
        room.resize(bytes.len() + [0, 1, 7, ROOM][random.random_range(0..4)], 0x33);
        let mut times = 0;
        while times < 4
            && let Ok(mut block) = KeyBlockMut::open(codec, &mut descriptor, &mut room)
        {
            times += 1;
            let count = block.as_block().descriptor().count;
            match change {
                0 => _ = block.append(block.as_block().descriptor().last),
                1 => _ = block.append(K::MAX),
                2 | 3 => _ = block.insert(somewhere(random)),
                _ if count > 0 => _ = block.delete(random.random_range(0..count)),
                _ => {}
            }
        }
    }
}

fn damage<K: TestKey>(shape: Shape, count: usize, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let keys: Vec<K> = keys(shape, count, &mut random);
    for &codec in KEY_CODECS {
        let Held { descriptor, room, .. } = Held::new(codec, &keys, 0);
        for len in 0..room.len() {
            assert!(matches!(KeyBlock::open(codec, descriptor, &room[..len]), Err(Error::Damaged { .. })));
        }
        for _ in 0..10 {
            let (mut bytes, mut descriptor) = (room.clone(), descriptor);
            for _ in 0..random.random_range(1..5) {
                match random.random_range(0..8) {
                    0 => {
                        let more = descriptor.count.wrapping_add(1);
                        descriptor.count = [0, 1, KEYS_MAX, KEYS_MAX + 1, usize::MAX, more][random.random_range(0..6)]
                    }
                    1 => descriptor.byte_len = random.random_range(0..=bytes.len() + 1),
                    2 => descriptor.first = K::from_bits(random.random()),
                    3 => descriptor.last = K::from_bits(random.random()),
                    _ if bytes.is_empty() => {}
                    4 => bytes.fill([0, 0xff, 0x80, 0x7f][random.random_range(0..4)]),
                    _ => {
                        let reach = if random.random() { bytes.len().min(4) } else { bytes.len() };
                        bytes[random.random_range(0..reach)] =
                            [0, 1, 0x7f, 0x80, 0xff, random.random()][random.random_range(0..6)];
                    }
                }
            }
            interrogate(codec, descriptor, &bytes, &mut random);
        }
        // Nothing but noise, of a length that may be right.
        let count = random.random_range(1..=KEYS_MAX);
        let (first, last) =
            (K::from_bits(random.random::<u64>() >> 33), K::from_bits(random.random::<u64>() | 1 << 31));
        let mut noise: Vec<u8> = (0..random.random_range(count..ROOM)).map(|_| random.random()).collect();
        let width = random.random_range(0..=size_of::<K>() * 8);
        noise[0] = width as u8;
        let byte_len = [
            noise.len(),
            count - 1,
            5 * count,
            count * size_of::<K>(),
            16 * (count.div_ceil(16) * width).div_ceil(8) + 1,
        ][random.random_range(0..5)];
        noise.resize(noise.len().max(byte_len), 0xff);
        interrogate(codec, KeyDescriptor { first, last, count, byte_len }, &noise, &mut random);
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn every_codec_answers_like_the_list(shape in any_shape(), count in any_count(), seed: u64) {
        answers::<u32>(shape, count, seed);
        answers::<u64>(shape, count, seed);
    }

    #[test]
    fn every_codec_changes_like_the_list(shape in any_shape(), count in any_count(), seed: u64) {
        changes::<u32>(shape, count, seed);
        changes::<u64>(shape, count, seed);
    }

    #[test]
    fn damaged_blocks_do_no_harm(shape in any_shape(), count in any_count(), seed: u64) {
        damage::<u32>(shape, count, seed);
        damage::<u64>(shape, count, seed);
    }
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn a_block_is_filled_and_emptied_key_by_key(shape in any_shape(), seed: u64) {
        built_one_by_one::<u32>(shape, seed);
        built_one_by_one::<u64>(shape, seed);
    }
}

/// A block of `varint_gb` whose last group was said to have no bytes had the length of an appended key noted behind its
/// room. Whatever a block says first, no change goes further than there is room.
#[test]
fn any_first_byte_does_no_harm() {
    for &codec in KEY_CODECS {
        for count in 1..=9 {
            any_first_byte_of::<u32>(codec, count);
            any_first_byte_of::<u64>(codec, count);
        }
    }
}

fn any_first_byte_of<K: TestKey>(codec: KeyCodec, count: usize) {
    let keys: Vec<K> = (0..count as u64).map(|key| K::from_bits(3 * key)).collect();
    for slack in [0, 1, 2, 3, 7, ROOM] {
        for byte in 0..=u8::MAX {
            let mut damaged = Held::new(codec, &keys, slack);
            if let Some(first) = damaged.room.first_mut() {
                *first = byte;
            }
            if KeyBlock::open(codec, damaged.descriptor, &damaged.room).is_err() {
                continue;
            }
            damaged.clone().change().append(keys[count - 1]);
            damaged.clone().change().insert(keys[count / 2]);
            damaged.clone().change().insert(K::from_bits(1));
            damaged.clone().change().delete(count / 2);
        }
    }
}

#[test]
fn what_no_block_holds_is_refused() {
    for &codec in KEY_CODECS {
        let mut bytes = Vec::new();
        assert_eq!(codec.encode(&[1u32, 5, 4], &mut bytes), Err(Error::Unsorted { index: 2 }));
        let many = [7u64; KEYS_MAX + 1];
        let refused = Err(Error::TooLarge { what: "keys", found: KEYS_MAX + 1, limit: KEYS_MAX });
        assert_eq!(codec.encode(&many, &mut bytes), refused);
        assert_eq!(codec.encode::<u32>(&[], &mut bytes), Ok(KeyDescriptor::default()));
        assert!(bytes.is_empty());
    }
}

#[test]
fn tags_and_names_are_given_once() {
    for (index, &codec) in KEY_CODECS.iter().enumerate() {
        assert!(KEY_CODECS[..index].iter().all(|one| one.tag() < codec.tag() && one.name() != codec.name()));
        assert_eq!((key_codec_by_tag(codec.tag()), key_codec_by_name(codec.name())), (Some(codec), Ok(codec)));
    }
    assert!(key_codec_by_name("zip").is_err() && key_codec_by_tag(99).is_none());
}

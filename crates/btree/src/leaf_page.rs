//! A leaf as the payload of a page (docs/format/tree.md).
//!
//! ```text
//!  0      1      2       3        4            6        8      12          16             20             24
//!  | form | kind | codec | bounds | block keys | blocks | keys | key bytes | record width | record bytes |
//!  low | high | what is beside each block | blocks | ends of variable records | records
//! ```
//!
//! Undo is not written: a leaf goes to a page as it is after one commit.

use crate::input::{Damage, Input};
use crate::keys::{KeyList, KeyShape, LEN_MAX, TreeKey, lent};
use crate::leaf::{Leaf, LeafShape};
use crate::records::{RecordShape, Records};
use sinter_codec::key_codec_by_tag;

/// Bytes before the bounds.
pub(crate) const HEADER_BYTES: usize = 24;

/// The form that is written.
const FORM: u8 = 1;

const HAS_LOW: u8 = 1;
const HAS_HIGH: u8 = 2;

/// Appends the leaf's bytes.
pub(crate) fn write<K: TreeKey + ?Sized>(leaf: &Leaf<K>, out: &mut Vec<u8>) {
    let (keys, records) = (leaf.keys(), leaf.records());
    let shape = keys.shape();
    let bounds = [(leaf.low(), HAS_LOW), (leaf.high(), HAS_HIGH)];
    let flags = bounds.iter().map(|(bound, flag)| if bound.is_some() { *flag } else { 0 }).sum();
    out.extend([FORM, K::List::KIND, shape.codec.tag(), flags]);
    out.extend((shape.block_len as u16).to_le_bytes());
    out.extend((keys.block_count() as u16).to_le_bytes());
    out.extend((keys.len() as u32).to_le_bytes());
    out.extend((keys.byte_len() as u32).to_le_bytes());
    out.extend(records.shape().width().to_le_bytes());
    out.extend((records.byte_len() as u32).to_le_bytes());
    for (bound, _) in bounds {
        if let Some(bound) = bound {
            K::List::write_key(lent(bound), out);
        }
    }
    keys.write(out);
    records.write(out);
}

/// The leaf that these bytes are, of a tree of this shape.
///
/// # Errors
/// What is wrong with them. Whatever they are, the leaf can be read and changed.
pub(crate) fn read<K: TreeKey + ?Sized>(bytes: &[u8], shape: &LeafShape) -> Result<Leaf<K>, Damage> {
    let mut input = Input::new(bytes);
    let form = input.u8()?;
    if form != FORM {
        return Err(format!("a leaf of form {form}; this build knows {FORM}"));
    }
    let kind = input.u8()?;
    if kind != K::List::KIND {
        return Err(format!("keys of kind {kind}, where the tree has {}", K::List::KIND));
    }
    let tag = input.u8()?;
    let codec = key_codec_by_tag(tag).ok_or_else(|| format!("key codec {tag} is unknown"))?;
    let flags = input.u8()?;
    if flags & !(HAS_LOW | HAS_HIGH) != 0 {
        return Err(format!("bounds are {flags:#04x}"));
    }
    let block_len = usize::from(input.u16()?);
    let block_count = usize::from(input.u16()?);
    let (len, byte_len) = (input.u32()? as usize, input.u32()? as usize);
    if len > LEN_MAX || byte_len > LEN_MAX {
        return Err(format!("{len} keys in {byte_len} bytes; {LEN_MAX} are possible"));
    }
    let records = RecordShape::of_width(input.u32()?);
    if records != shape.records {
        return Err(format!("records are {records:?}, where the tree has {:?}", shape.records));
    }
    let record_byte_len = input.u32()? as usize;
    let mut bound = |flag| if flags & flag != 0 { K::List::read_key(&mut input).map(Some) } else { Ok(None) };
    let (low, high) = (bound(HAS_LOW)?, bound(HAS_HIGH)?);
    let keys = K::List::read(&KeyShape { codec, block_len }, [block_count, len, byte_len], &mut input)?;
    let records = Records::read(records, len, record_byte_len, &mut input)?;
    input.end()?;
    Leaf::of_parts(keys, records, low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_page::{example, hex};
    use crate::keys::{DecodedKeys, Listed};
    use crate::test_keys::TestKey;
    use proptest::prelude::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};
    use sinter_codec::{KEY_CODECS, KeyCodec};

    fn shape(codec: KeyCodec, records: RecordShape) -> LeafShape {
        LeafShape { keys: KeyShape { codec, block_len: 16 }, records, size_max: 4 << 10 }
    }

    fn random_leaf<K: TestKey + ?Sized>(shape: &LeafShape, random: &mut SmallRng) -> Leaf<K> {
        let mut leaf = Leaf::<K>::new(shape);
        for _ in 0..random.random_range(0..60) {
            let len = match shape.records {
                RecordShape::Fixed(width) => width,
                RecordShape::Variable => random.random_range(0..10),
            };
            leaf.put(lent(&K::of(random.random_range(0..1000))), &vec![7; len], usize::MAX).unwrap();
        }
        if random.random_range(0..2) == 0 && leaf.len() > 4 {
            let (_, upper) = leaf.split(lent(&K::of(0)), usize::MAX);
            leaf = upper;
            let _ = leaf.split(lent(&K::of(0)), usize::MAX);
        }
        leaf
    }

    fn entries<K: TreeKey + ?Sized>(leaf: &Leaf<K>) -> Vec<(K::Owned, Vec<u8>)> {
        let mut block = <K::List as KeyList<K>>::Block::default();
        let mut entries = Vec::new();
        for block_index in 0..leaf.keys().block_count() {
            leaf.keys().decode(block_index, &mut block);
            for (within, index) in leaf.keys().indices_of(block_index).enumerate() {
                entries.push((block.key(within).to_owned(), leaf.record(index).to_vec()));
            }
        }
        entries
    }

    fn comes_back<K: TestKey + ?Sized>(shape: &LeafShape, seed: u64) {
        let mut random = SmallRng::seed_from_u64(seed);
        let leaf = random_leaf::<K>(shape, &mut random);
        let mut bytes = Vec::new();
        write(&leaf, &mut bytes);
        let read_again = read::<K>(&bytes, shape).unwrap();
        assert_eq!((read_again.low(), read_again.high()), (leaf.low(), leaf.high()));
        assert!(entries(&read_again) == entries(&leaf));
        for end in 0..bytes.len() {
            assert!(read::<K>(&bytes[..end], shape).is_err(), "the first {end} bytes");
        }
        for _ in 0..300 {
            let mut damaged = bytes.clone();
            for _ in 0..random.random_range(1..4) {
                let at = random.random_range(0..damaged.len());
                damaged[at] ^= 1 << random.random_range(0..8);
            }
            let Ok(mut leaf) = read::<K>(&damaged, shape) else { continue };
            let mut last = None;
            for (key, _) in entries(&leaf) {
                assert!(last.is_none_or(|last| last < key), "keys are in order");
                last = Some(key);
            }
            for _ in 0..20 {
                let key = K::of(random.random_range(0..1000));
                let record = vec![1; if let RecordShape::Fixed(width) = shape.records { width } else { 3 }];
                let _ = leaf.put(lent(&key), &record, 8 << 10);
                let _ = leaf.remove(lent(&K::of(random.random_range(0..1000))), 8 << 10);
            }
            leaf.vacuum(1);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn a_leaf_comes_back_and_damage_is_found_or_harmless(seed in any::<u64>()) {
            for records in [RecordShape::Fixed(0), RecordShape::Fixed(8), RecordShape::Variable] {
                for &codec in KEY_CODECS {
                    comes_back::<u32>(&shape(codec, records), seed);
                    comes_back::<u64>(&shape(codec, records), seed);
                }
                comes_back::<[u8]>(&shape(KeyCodec::None, records), seed);
            }
        }
    }

    fn page_hex<K: TreeKey + ?Sized>(leaf: &Leaf<K>) -> String {
        let mut bytes = Vec::new();
        write(leaf, &mut bytes);
        hex(&bytes)
    }

    #[test]
    fn the_format_page_shows_what_is_written() {
        let keys = KeyShape { codec: KeyCodec::Vbyte, block_len: 2 };
        let shape = LeafShape { keys, records: RecordShape::Fixed(2), size_max: 1 << 10 };
        let mut leaf = Leaf::<u32>::new(&shape);
        leaf.put(&1, &[0, 0], usize::MAX).unwrap();
        let (_, mut leaf) = leaf.split(&512, usize::MAX);
        for (key, record) in [(1000, [1, 2]), (1003, [3, 4]), (1300, [5, 6])] {
            leaf.put(&key, &record, usize::MAX).unwrap();
        }
        assert_eq!(page_hex(&leaf), example("Integers"));
        let keys = KeyShape { codec: KeyCodec::None, block_len: 16 };
        let shape = LeafShape { keys, records: RecordShape::Variable, size_max: 1 << 10 };
        let mut leaf = Leaf::<[u8]>::new(&shape);
        for (key, record) in [("ab", &[][..]), ("abcdefghijklmnopqrst", &[7]), ("b", &[8, 9])] {
            leaf.put(key.as_bytes(), record, usize::MAX).unwrap();
        }
        assert_eq!(page_hex(&leaf), example("Keys of bytes"));
    }

    #[test]
    fn kinds_are_those_of_the_format_page() {
        let kinds = [<u32 as Listed>::List::KIND, <u64 as Listed>::List::KIND, <[u8] as Listed>::List::KIND];
        assert_eq!(kinds, [4, 8, 16]);
    }
}

//! A block that any version wrote reads as it did on the day that it was written: every scheme, with every type that it
//! holds, and every key codec. What the file of golden blocks is, and how it grows, is told in `golden/mod.rs`.
//!
//! Nothing is said here of what is written today: encoders may become better.

mod columns;
mod golden;

use columns::Column;
use golden::{KEY_SHAPES, LOSSES, Wanted, generator, wanted};
use sinter_codec::*;
use std::collections::BTreeMap;

/// What to do where a golden block is missing.
const REMEDY: &str = "run `SINTER_WRITE_GOLDEN=1 cargo test --release -p sinter-codec --test golden_blocks_read_as_ever` \
                      once and commit golden/codec-v1.blocks";

/// The blocks of the file, those that were missing appended if that was asked for.
fn blocks() -> BTreeMap<String, Vec<u8>> {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let found = golden::read();
    let count = found.len();
    let mut blocks: BTreeMap<String, Vec<u8>> = found.into_iter().collect();
    assert_eq!(blocks.len(), count, "a name is there twice");
    if std::env::var_os("SINTER_WRITE_GOLDEN").is_some() {
        let values = wanted().into_iter().map(|wanted| (wanted.name(), written(&wanted)));
        for (name, block) in values.chain(written_keys()) {
            blocks.entry(name.clone()).or_insert_with(|| {
                golden::append(&name, &block);
                block
            });
        }
    }
    blocks
}

/// The golden block as it is written today. Values that make the scheme give way to another are of no use.
fn written(wanted: &Wanted) -> Vec<u8> {
    let column = generator::column(&wanted.request, wanted.physical, wanted.shape);
    let mut bytes = Vec::new();
    let choice = Choice::Forced(wanted.request.clone());
    encode(column.values.as_values(), column.validity.as_ref(), &choice, &mut bytes).unwrap();
    assert_scheme(&Block::open(&bytes).unwrap(), &wanted.request, &wanted.name());
    bytes
}

fn assert_scheme(block: &Block<'_>, request: &str, what: &str) {
    let scheme = request.split('(').next().unwrap();
    let described = block.describe();
    let outermost = described.split(['(', '[']).next().unwrap().trim_end_matches(char::is_numeric);
    assert_eq!(outermost, scheme, "{what}: it gave way; golden/generator.rs should make values that suit the scheme");
}

/// The column as it should be read: where something was let go of, as it reads today.
fn expected(wanted: &Wanted) -> Column {
    let Column { values, validity } = generator::column(&wanted.request, wanted.physical, wanted.shape);
    if !LOSSES.contains(&&wanted.request[..]) {
        return Column { values, validity };
    }
    let (mut bytes, mut rounded) = (Vec::new(), ValuesBuf::new(wanted.physical));
    encode(values.as_values(), validity.as_ref(), &Choice::Forced(wanted.request.clone()), &mut bytes).unwrap();
    Block::open(&bytes).unwrap().decode(0..values.len(), &mut rounded).unwrap();
    Column { values: rounded, validity }
}

fn check(wanted: &Wanted, bytes: &[u8]) {
    let (name, column) = (wanted.name(), expected(wanted));
    let len = column.values.len();
    let block = Block::open(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(
        (block.byte_len(), block.value_count(), block.physical()),
        (bytes.len(), len, wanted.physical),
        "{name}"
    );
    assert_scheme(&block, &wanted.request, &name);
    let mut values = ValuesBuf::new(wanted.physical);
    block.decode(0..len, &mut values).unwrap();
    assert_eq!(values.len(), len, "{name}");
    column.assert_rows(0, &values, &name);

    let positions: Vec<u16> = (0..len as u16).step_by(7).collect();
    block.gather(0, &positions, &mut values).unwrap();
    for (index, position) in positions.iter().map(|position| usize::from(*position)).enumerate() {
        let (found, is_present) = (columns::bits(&values, index), column.is_present(position));
        assert!(!is_present || found == columns::bits(&column.values, position), "{name}, row {position} alone");
    }
    let (mut present, rows) = (Bitmap::default(), 0..len);
    let some_null = block.validity(rows.clone(), &mut present).unwrap();
    assert!(rows.clone().all(|row| !some_null || present.get(row) == column.is_present(row)), "{name}");
    assert_eq!(some_null, column.validity.is_some(), "{name}");

    let mut passing = Bitmap::default();
    for row in [0, len / 3, len - 1] {
        let predicate = Predicate::Compare(CompareOp::LessOrEqual, columns::scalar(&column.values, row));
        block.filter(rows.clone(), &predicate, &mut passing).unwrap();
        let passes = Bitmap::from_bools(rows.clone().map(|row| column.passes(row, &predicate)));
        assert_eq!(passing, passes, "{name}, {predicate:?}");
    }

    // Statistics, but for the estimate, which may be made otherwise.
    let mut today = Vec::new();
    let mut stats = encode(column.values.as_values(), column.validity.as_ref(), &Choice::Raw, &mut today).unwrap();
    stats.distinct_estimate = block.stats().distinct_estimate;
    assert_eq!(block.stats(), &stats, "{name}");
}

#[test]
fn every_scheme_reads_its_golden_blocks() {
    let blocks = blocks();
    for wanted in wanted() {
        let name = wanted.name();
        let bytes = blocks.get(&name).unwrap_or_else(|| panic!("there is no golden block '{name}'; {REMEDY}"));
        check(&wanted, bytes);
    }
}

#[test]
fn every_scheme_that_takes_a_parameter_is_among_the_losses() {
    for entry in SCHEMES {
        let Err(Error::NoSuchParameter { takes, .. }) = Request::parse(&format!("{}(?)", entry.name)) else {
            panic!("{} takes anything", entry.name)
        };
        let is_listed = LOSSES.iter().any(|loss| loss.starts_with(&format!("{}(", entry.name)));
        assert!(takes == "none" || is_listed, "{}: give LOSSES in golden/mod.rs an example, then {REMEDY}", entry.name);
    }
}

/// A golden block of a name that nobody asks for is one that nobody reads.
#[test]
fn there_is_no_golden_block_that_nobody_reads() {
    let names: Vec<String> = wanted().iter().map(Wanted::name).chain(written_keys().map(|(name, _)| name)).collect();
    for (name, bytes) in blocks() {
        if let Err(error @ Error::NotInThisBuild { .. }) = Block::open(&bytes) {
            let scheme = name.split([' ', '(']).next().unwrap();
            assert!(error.to_string().contains(&format!("`{scheme}` is not in this build")), "{name}: {error}");
            continue;
        }
        assert!(names.contains(&name), "'{name}' is in golden/codec-v1.blocks, and no scheme or key codec has it now");
    }
}

/// Golden blocks of keys by their names, as they are written today.
fn written_keys() -> impl Iterator<Item = (String, Vec<u8>)> {
    fn encoded<K: Key + TryFrom<u64>>(codec: KeyCodec, shape: &str) -> (String, Vec<u8>) {
        let mut bytes = Vec::new();
        codec.encode(&keys::<K>(shape), &mut bytes).unwrap();
        (key_name::<K>(codec, shape), bytes)
    }
    let shapes = KEY_CODECS.iter().flat_map(|codec| KEY_SHAPES.map(|shape| (*codec, shape)));
    shapes.flat_map(|(codec, shape)| [encoded::<u32>(codec, shape), encoded::<u64>(codec, shape)])
}

fn key_name<K>(codec: KeyCodec, shape: &str) -> String {
    format!("key {} u{} {shape}", codec.name(), 8 * size_of::<K>())
}

fn keys<K: Key + TryFrom<u64>>(shape: &str) -> Vec<K> {
    let keys = generator::keys(shape, 8 * size_of::<K>() as u32);
    keys.into_iter().map(|key| K::try_from(key).unwrap_or_else(|_| panic!("{key} is too great"))).collect()
}

fn check_keys<K: Key + TryFrom<u64>>(blocks: &BTreeMap<String, Vec<u8>>) {
    for (codec, shape) in KEY_CODECS.iter().flat_map(|codec| KEY_SHAPES.map(|shape| (*codec, shape))) {
        let (name, keys) = (key_name::<K>(codec, shape), keys::<K>(shape));
        let bytes = blocks.get(&name).unwrap_or_else(|| panic!("there is no golden block '{name}'; {REMEDY}"));
        let (first, last) = (keys[0], keys[keys.len() - 1]);
        let descriptor = KeyDescriptor { first, last, count: keys.len(), byte_len: bytes.len() };
        let block = KeyBlock::open(codec, descriptor, bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut out = [K::default(); KEYS_MAX];
        assert_eq!(block.decode(&mut out), keys, "{name}");
        for (index, key) in keys.iter().enumerate() {
            assert_eq!(block.select(index), *key, "{name}, key {index}");
            let at = keys.partition_point(|other| other < key);
            assert_eq!(block.lower_bound(*key), Some((at, *key)), "{name}, key {index}");
        }
    }
}

#[test]
fn every_key_codec_reads_its_golden_blocks() {
    let blocks = blocks();
    check_keys::<u32>(&blocks);
    check_keys::<u64>(&blocks);
}

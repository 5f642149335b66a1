//! Whatever Arrow hands in comes back out of a segment: every type, every scheme, sliced arrays, ranges and picks.

use crate::support::random::{self, Random};
use arrow::array::*;
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{cast, filter};
use arrow::datatypes::*;
use sinter_codec::{Bitmap, Block, Choice, SCHEMES, VALUE_COUNT_MAX};
use sinter_exec::{LogicalType, Pinned, edge};
use std::sync::Arc;

/// Encodes, decodes all, a range, and some rows of a range; compares with Arrow's own cast to our output type.
fn check(array: &ArrayRef, choice: &Choice) {
    let ty = edge::logical_type(array.data_type()).unwrap_or_else(|| panic!("no type for {}", array.data_type()));
    let expected = cast(array, &edge::arrow_type(&ty)).expect("arrow casts to our output type");
    let mut bytes = b"before".to_vec();
    let stats = match edge::encode_segment(array, &ty, choice, &mut bytes) {
        Ok(stats) => stats,
        Err(error) => panic!("{choice:?} for {ty}: {error}"),
    };
    assert_eq!(stats.value_count, array.len());
    assert_eq!(stats.null_count, array.logical_null_count());
    bytes.extend(b"after");
    let segment = Pinned::from_vec(bytes).slice(6..6).expect("inside");
    assert!(edge::decode_segment(&segment, &ty, 0..0, None).is_err(), "an empty segment is damaged");
    let mut bytes = Vec::new();
    edge::encode_segment(array, &ty, choice, &mut bytes).expect("it did before");
    let segment = Pinned::from_vec(bytes);
    let rows = array.len();
    let mut random = Random(rows as u64);
    for _ in 0..4 {
        let start = random.below(rows + 1);
        let end = start + random.below(rows - start + 1);
        for range in [0..rows, start..end] {
            let decoded = edge::decode_segment(&segment, &ty, range.clone(), None).expect("decodes");
            let slice = expected.slice(range.start, range.len());
            assert_eq!(&decoded, &slice, "{choice:?} {ty} {range:?}");
            let percent = *random.pick(&[0, 3, 50, 100]);
            let keep = Bitmap::from_bools((0..range.len()).map(|_| random.chance(percent)));
            let picked = edge::decode_segment(&segment, &ty, range.clone(), Some(&keep)).expect("decodes");
            let mask = BooleanArray::from((0..range.len()).map(|row| keep.get(row)).collect::<Vec<_>>());
            assert_eq!(
                &picked,
                &filter(&slice, &mask).expect("arrow filters"),
                "{choice:?} {ty} {range:?} {percent} %"
            );
        }
    }
    assert!(edge::decode_segment(&segment, &ty, 0..rows + 1, None).is_err());
}

fn every_choice(array: &ArrayRef) {
    check(array, &Choice::Raw);
    check(array, &Choice::Auto);
    let ty = edge::logical_type(array.data_type()).expect("a type of ours");
    if let Some(physical) = ty.physical() {
        for scheme in SCHEMES.iter().filter(|scheme| scheme.holds(physical)) {
            let choice = Choice::Forced(scheme.name.into());
            // A scheme may refuse values it was not made for; what it takes it must give back.
            if edge::encode_segment(array, &ty, &choice, &mut Vec::new()).is_ok() {
                check(array, &choice);
            }
        }
    }
}

fn plain_types() -> Vec<LogicalType> {
    use sinter_exec::TimeUnit::*;
    vec![
        LogicalType::Boolean,
        LogicalType::Int8,
        LogicalType::Int16,
        LogicalType::Int32,
        LogicalType::Int64,
        LogicalType::UInt8,
        LogicalType::UInt16,
        LogicalType::UInt32,
        LogicalType::UInt64,
        LogicalType::Float32,
        LogicalType::Float64,
        LogicalType::Decimal { precision: 7, scale: 2 },
        LogicalType::Decimal { precision: 15, scale: 2 },
        LogicalType::Decimal { precision: 38, scale: 10 },
        LogicalType::Date,
        LogicalType::Time(Microsecond),
        LogicalType::Time(Nanosecond),
        LogicalType::Timestamp(Microsecond, None),
        LogicalType::Timestamp(Nanosecond, Some("Europe/Berlin".into())),
        LogicalType::Interval,
        LogicalType::Utf8,
        LogicalType::Binary,
        LogicalType::Uuid,
    ]
}

#[test]
fn every_plain_type_in_every_scheme() {
    let mut random = Random(1);
    for ty in plain_types() {
        for (style, nulls, rows) in [(0, 0, 3000), (2, 20, 2500), (1, 100, 70), (2, 5, 1), (0, 0, 0)] {
            let values = random::column(&mut random, &ty, rows, style, nulls);
            every_choice(&random::array(&values, &ty));
        }
    }
}

#[test]
fn slices_start_anywhere() {
    let mut random = Random(2);
    for ty in plain_types() {
        let values = random::column(&mut random, &ty, 700, 2, 20);
        let array = random::array(&values, &ty);
        check(&array.slice(13, 333), &Choice::Raw);
        check(&array.slice(64, 0), &Choice::Raw);
    }
}

#[test]
fn arrows_other_spellings_come_in() {
    let mut random = Random(3);
    let words = random::array(&random::column(&mut random, &LogicalType::Utf8, 500, 2, 10), &LogicalType::Utf8);
    let key = |key| DataType::Dictionary(Box::new(key), Box::new(DataType::Utf8));
    for ty in [DataType::LargeUtf8, DataType::Utf8View, key(DataType::Int16), key(DataType::UInt32)] {
        every_choice(&cast(&words, &ty).expect("a cast of text").slice(7, 400));
    }
    for ty in [DataType::LargeBinary, DataType::BinaryView, DataType::Binary] {
        every_choice(&cast(&words, &ty).expect("a cast of text").slice(3, 99));
    }
    let numbers: ArrayRef = Arc::new((0..300).map(|i| (i % 7 > 0).then_some(i * 1001)).collect::<Int64Array>());
    use TimeUnit::*;
    for ty in [
        DataType::Timestamp(Second, Some("UTC".into())),
        DataType::Timestamp(Millisecond, None),
        DataType::Timestamp(Microsecond, None),
        DataType::Timestamp(Nanosecond, None),
        DataType::Time64(Nanosecond),
    ] {
        every_choice(&cast(&numbers, &ty).expect("a cast of numbers").slice(5, 200));
    }
    let small = cast(&numbers, &DataType::Int32).expect("they fit");
    for ty in [DataType::Time32(Second), DataType::Time32(Millisecond)] {
        every_choice(&cast(&small, &ty).expect("a cast of numbers"));
    }
    every_choice(&(Arc::new(IntervalYearMonthArray::from(vec![Some(-3), None, Some(14)])) as ArrayRef));
    let days = vec![Some(IntervalDayTime::new(-2, 86_400_001)), None];
    every_choice(&(Arc::new(IntervalDayTimeArray::from(days)) as ArrayRef));
    every_choice(&cast(&numbers, &DataType::Decimal128(20, 0)).expect("they fit"));
    let wide = FixedSizeBinaryArray::try_from_iter((0..50u8).map(|i| [i; 5])).expect("all alike");
    every_choice(&(Arc::new(wide) as ArrayRef));
}

#[test]
fn too_late_a_time_is_an_error_and_no_wrap() {
    let late: ArrayRef = Arc::new(TimestampSecondArray::from(vec![Some(i64::MAX), None]));
    let ty = edge::logical_type(late.data_type()).expect("a timestamp");
    let error = edge::encode_segment(&late, &ty, &Choice::Auto, &mut Vec::new()).expect_err("it cannot fit");
    assert_eq!(error.to_string(), "9223372036854775807 is out of range for TIMESTAMP; cast an operand to a wider type");
}

/// Lists of structs of lists, with NULLs at every level.
fn nested(rows: usize, seed: u64) -> ArrayRef {
    let mut random = Random(seed);
    let mut lengths = |rows: usize| (0..rows).map(|_| random.below(5)).collect::<Vec<_>>();
    let outer_lengths = lengths(rows);
    let structs = outer_lengths.iter().sum::<usize>();
    let inner_lengths = lengths(structs);
    let words = inner_lengths.iter().sum::<usize>();
    let mut nulls = |len: usize| Some(NullBuffer::from((0..len).map(|_| !random.chance(20)).collect::<Vec<_>>()));
    let inner_nulls = nulls(structs);
    let struct_nulls = nulls(structs);
    let outer_nulls = nulls(rows);
    let word_values = random::column(&mut random, &LogicalType::Utf8, words, 2, 15);
    let words = cast(&random::array(&word_values, &LogicalType::Utf8), &DataType::Utf8View).expect("text");
    let number_values = random::column(&mut random, &LogicalType::Int64, structs, 2, 15);
    let numbers = random::array(&number_values, &LogicalType::Int64);
    let word_field = Arc::new(Field::new("item", DataType::Utf8View, true));
    let inner = ListArray::new(word_field, OffsetBuffer::from_lengths(inner_lengths), words, inner_nulls);
    let fields = Fields::from(vec![
        Field::new("words", inner.data_type().clone(), true),
        Field::new("number", DataType::Int64, true),
    ]);
    let parts = StructArray::new(fields, vec![Arc::new(inner), numbers], struct_nulls);
    let part_field = Arc::new(Field::new("item", parts.data_type().clone(), true));
    Arc::new(ListArray::new(part_field, OffsetBuffer::from_lengths(outer_lengths), Arc::new(parts), outer_nulls))
}

#[test]
fn trees_keep_nulls_at_every_level() {
    for (rows, seed) in [(0, 1), (1, 2), (50, 3), (3000, 4)] {
        every_choice(&nested(rows, seed));
    }
    every_choice(&nested(600, 5).slice(100, 417));
    let numbers: ArrayRef = Arc::new((0..60).map(|i| (i % 5 > 0).then_some(i)).collect::<Int32Array>());
    let field = Arc::new(Field::new("item", DataType::Int32, true));
    let nulls = Some(NullBuffer::from((0..20).map(|i| i % 4 != 1).collect::<Vec<_>>()));
    let fixed: ArrayRef = Arc::new(FixedSizeListArray::new(field, 3, numbers, nulls));
    every_choice(&fixed);
    every_choice(&fixed.slice(3, 11));
    every_choice(
        &cast(&fixed, &DataType::LargeList(Arc::new(Field::new("item", DataType::Int32, true)))).expect("lists"),
    );
}

fn item(ty: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", ty, true))
}

/// Lists of these lengths over small numbers, some of them NULL.
fn lists_of(lengths: Vec<usize>) -> ArrayRef {
    let elements = lengths.iter().sum::<usize>();
    let numbers: Int8Array = (0..elements).map(|row| (row % 11 > 0).then_some((row % 101) as i8)).collect();
    Arc::new(ListArray::new(item(DataType::Int8), OffsetBuffer::from_lengths(lengths), Arc::new(numbers), None))
}

/// What `tell` says of each block of a segment.
fn of_each_block<T>(array: &ArrayRef, tell: impl Fn(&Block<'_>) -> T) -> Vec<T> {
    let ty = edge::logical_type(array.data_type()).expect("a type of ours");
    let mut bytes = Vec::new();
    edge::encode_segment(array, &ty, &Choice::Auto, &mut bytes).expect("encodes");
    let (mut rest, mut told) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let block = Block::open(rest).expect("a block");
        told.push(tell(&block));
        rest = &rest[block.byte_len()..];
    }
    told
}

fn value_counts(array: &ArrayRef) -> Vec<usize> {
    of_each_block(array, |block| block.value_count())
}

#[test]
fn parts_of_trees_have_schemes_of_their_own() {
    let mut random = Random(8);
    let lengths: Vec<usize> = (0..20_000).map(|_| random.below(3)).collect();
    let elements = lengths.iter().sum::<usize>();
    let days: Int32Array = (0..elements).map(|_| Some(8000 + random.below(2500) as i32)).collect();
    let modes: StringArray = (0..elements).map(|_| Some(*random.pick(&["AIR", "MAIL", "SHIP"]))).collect();
    let fields =
        Fields::from(vec![Field::new("day", DataType::Int32, false), Field::new("mode", DataType::Utf8, false)]);
    let pairs = StructArray::new(fields, vec![Arc::new(days), Arc::new(modes)], None);
    let item = item(pairs.data_type().clone());
    let array: ArrayRef = Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(lengths), Arc::new(pairs), None));
    let schemes = of_each_block(&array, |block| block.describe());
    for (part, begins) in [("lengths", "bitpack[2]"), ("day", "for[12]"), ("mode", "dict(bitpack[2], ")] {
        assert!(schemes.iter().any(|scheme| scheme.starts_with(begins)), "{part} in {begins}: {schemes:?}");
    }
}

#[test]
fn elements_of_lists_are_cut_into_pieces_where_they_pass_a_block() {
    const MAX: usize = VALUE_COUNT_MAX;
    // Sixteen elements a row fill a block to the brim; seventeen do not fit.
    let rows = MAX / 16;
    assert_eq!(value_counts(&lists_of(vec![16; rows])), [rows, MAX]);
    assert_eq!(value_counts(&lists_of(vec![17; rows])), [rows, MAX, MAX / 16]);
    for lengths in [
        vec![16; rows],
        vec![17; rows],
        vec![2 * MAX],
        vec![2 * MAX + 1],
        vec![0, MAX - 1, 0, 1, 0, 0, MAX, 3, MAX + 5],
        (0..3000).map(|row| row % 1500).collect(),
    ] {
        let lists = lists_of(lengths);
        check(&lists, &Choice::Auto);
        check(&lists.slice(1, lists.len() - 1), &Choice::Raw);
    }
}

#[test]
fn pieces_of_trees_are_trees() {
    // Lists of structs of a number and of lists of words: cut by structs, and within their pieces by words.
    let structs = VALUE_COUNT_MAX + 1000;
    let words: usize = (0..structs).map(|row| row % 4).sum();
    assert!(words > VALUE_COUNT_MAX);
    let word = |row: usize| (row % 7 != 1).then_some(["here", "a word of more than twelve bytes", ""][row % 3]);
    let words: StringViewArray = (0..words).map(word).collect();
    let lists = ListArray::new(
        item(DataType::Utf8View),
        OffsetBuffer::from_lengths((0..structs).map(|row| row % 4)),
        Arc::new(words),
        Some(NullBuffer::from((0..structs).map(|row| row % 9 > 0).collect::<Vec<_>>())),
    );
    let numbers: Int32Array = (0..structs as i32).map(|row| (row % 5 > 0).then_some(row / 100)).collect();
    let fields = Fields::from(vec![
        Field::new("number", DataType::Int32, true),
        Field::new("words", lists.data_type().clone(), true),
    ]);
    let parts = StructArray::new(
        fields,
        vec![Arc::new(numbers), Arc::new(lists)],
        Some(NullBuffer::from((0..structs).map(|row| row % 13 > 0).collect::<Vec<_>>())),
    );
    let rows = 5000;
    let lengths = (0..rows).map(|row| structs / rows + usize::from(row < structs % rows));
    let outer = ListArray::new(
        item(parts.data_type().clone()),
        OffsetBuffer::from_lengths(lengths),
        Arc::new(parts),
        Some(NullBuffer::from((0..rows).map(|row| row % 17 > 0).collect::<Vec<_>>())),
    );
    check(&(Arc::new(outer) as ArrayRef), &Choice::Auto);
}

#[test]
fn rows_past_a_block_are_an_error() {
    let values: ArrayRef = Arc::new(Int8Array::from(vec![1; VALUE_COUNT_MAX + 1]));
    edge::encode_segment(&values, &LogicalType::Int8, &Choice::Auto, &mut Vec::new()).expect_err("too many");
}

#[test]
fn a_missing_piece_is_damage() {
    let array = lists_of(vec![17; VALUE_COUNT_MAX / 16]);
    let ty = edge::logical_type(array.data_type()).expect("lists");
    let mut bytes = Vec::new();
    edge::encode_segment(&array, &ty, &Choice::Auto, &mut bytes).expect("encodes");
    let lengths = Block::open(&bytes).expect("lengths").byte_len();
    let first = Block::open(&bytes[lengths..]).expect("a piece").byte_len();
    for damaged in [bytes[..lengths + first].to_vec(), [&bytes[..lengths], &bytes[lengths + first..]].concat()] {
        assert!(edge::decode_segment(&Pinned::from_vec(damaged), &ty, 0..10, None).is_err());
    }
}

/// What the blocks of the segment say, and what is said of the rows before they are encoded.
fn check_row_bytes(array: &ArrayRef) {
    let ty = edge::logical_type(array.data_type()).expect("a type of ours");
    let mut bytes = Vec::new();
    edge::encode_segment(array, &ty, &Choice::Raw, &mut bytes).expect("encodes");
    let (mut rest, mut plain_bytes) = (&bytes[..], 0);
    while !rest.is_empty() {
        let block = Block::open(rest).expect("a block");
        plain_bytes += block.stats().plain_bytes as u64;
        rest = &rest[block.byte_len()..];
    }
    let rows = edge::row_bytes(array, &ty).expect("it was encoded");
    assert_eq!((rows.len(), rows.iter().sum::<u64>()), (array.len(), plain_bytes), "{}", array.data_type());
}

#[test]
fn bytes_of_rows_are_those_of_blocks() {
    let mut random = Random(11);
    for ty in plain_types() {
        let values = random::column(&mut random, &ty, 700, 2, 20);
        let array = random::array(&values, &ty);
        check_row_bytes(&array);
        check_row_bytes(&array.slice(13, 333));
        check_row_bytes(&array.slice(0, 0));
    }
    let words = random::array(&random::column(&mut random, &LogicalType::Utf8, 500, 2, 10), &LogicalType::Utf8);
    let key = |key| DataType::Dictionary(Box::new(key), Box::new(DataType::Utf8));
    for ty in [DataType::LargeUtf8, DataType::Utf8View, DataType::BinaryView, key(DataType::Int16)] {
        check_row_bytes(&cast(&words, &ty).expect("a cast of text").slice(7, 400));
    }
    check_row_bytes(&nested(600, 5).slice(100, 417));
    assert_eq!(
        edge::row_bytes(&lists_of(vec![0, 3, 70]), &edge::logical_type(lists_of(vec![]).data_type()).unwrap()).unwrap(),
        [4, 7, 74]
    );
}

#[test]
fn types_are_nested_so_deep_and_no_deeper() {
    let nested = |depth| (0..depth).fold(DataType::Int8, |ty, _| DataType::List(item(ty)));
    assert_eq!(edge::logical_type(&nested(32)).map(|ty| ty.depth()), Some(LogicalType::DEPTH_MAX));
    assert_eq!(edge::logical_type(&nested(33)), None);
}

#[test]
fn damaged_segments_are_errors() {
    let array = nested(500, 9);
    let ty = edge::logical_type(array.data_type()).expect("a tree");
    let mut bytes = Vec::new();
    edge::encode_segment(&array, &ty, &Choice::Auto, &mut bytes).expect("encodes");
    for len in (0..bytes.len()).step_by(7) {
        assert!(edge::decode_segment(&Pinned::from_vec(bytes[..len].to_vec()), &ty, 0..500, None).is_err(), "{len}");
    }
    let mut random = Random(10);
    for _ in 0..2000 {
        let mut broken = bytes.clone();
        let at = random.below(broken.len());
        broken[at] ^= 1 << random.below(8);
        // Either an error or other values; never a panic.
        let _ = edge::decode_segment(&Pinned::from_vec(broken), &ty, 0..500, None);
    }
}

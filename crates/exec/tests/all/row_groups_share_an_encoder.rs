//! Row groups that are pressed one after the other come back as they were, whatever the one before was like.

use crate::support::random::{self, Random};
use arrow::array::{Array, ArrayRef, ListArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{Field, Fields};
use sinter_codec::Choice;
use sinter_exec::edge::{self, SegmentEncoder};
use sinter_exec::{LogicalType, Pinned};
use std::sync::Arc;

/// Rows, style and percents of NULLs of row groups that follow each other.
const GROUPS: [(usize, usize, usize); 7] =
    [(3000, 0, 0), (2900, 0, 0), (2500, 2, 20), (2500, 2, 0), (70, 1, 100), (0, 0, 5), (1, 2, 5)];

fn check(array: &ArrayRef, encoder: &mut SegmentEncoder, ty: &LogicalType) {
    let mut bytes = Vec::new();
    let stats = encoder.encode(array, &mut bytes).expect("encodes");
    assert_eq!((stats.value_count, stats.null_count), (array.len(), array.logical_null_count()));
    let decoded = edge::decode_segment(&Pinned::from_vec(bytes), ty, 0..array.len(), None).expect("decodes");
    assert_eq!(&decoded, &cast(array, &edge::arrow_type(ty)).expect("arrow casts to our output type"));
}

#[test]
fn row_groups_of_a_flat_column_come_back() {
    let mut random = Random(5);
    for ty in [LogicalType::Int64, LogicalType::Float64, LogicalType::Utf8, LogicalType::Boolean] {
        for choice in [Choice::Auto, Choice::Raw, Choice::Forced("dict".into())] {
            let mut encoder = SegmentEncoder::new(&ty, &choice);
            for (rows, style, nulls) in GROUPS {
                let values = random::column(&mut random, &ty, rows, style, nulls);
                check(&random::array(&values, &ty), &mut encoder, &ty);
            }
        }
    }
}

/// Lists of pairs: each row group has lengths, presence, and two columns of elements.
#[test]
fn row_groups_of_a_nested_column_come_back() {
    let mut random = Random(6);
    let mut encoder = None;
    for (rows, style, nulls) in GROUPS {
        let lengths: Vec<usize> = (0..rows).map(|_| random.below(4)).collect();
        let elements = lengths.iter().sum();
        let parts = [LogicalType::Int32, LogicalType::Utf8].map(|ty| {
            let array = random::array(&random::column(&mut random, &ty, elements, style, nulls), &ty);
            cast(&array, &edge::arrow_type(&ty)).expect("arrow casts to our output type")
        });
        let fields = Fields::from_iter(parts.iter().map(|part| Field::new("part", part.data_type().clone(), true)));
        let pairs = StructArray::new(fields, parts.to_vec(), None);
        let item = Arc::new(Field::new("item", pairs.data_type().clone(), true));
        let present = NullBuffer::from_iter((0..rows).map(|_| !random.chance(nulls)));
        let offsets = OffsetBuffer::from_lengths(lengths);
        let array: ArrayRef = Arc::new(ListArray::new(item, offsets, Arc::new(pairs), Some(present)));
        let ty = edge::logical_type(array.data_type()).expect("a type of ours");
        check(&array, encoder.get_or_insert_with(|| SegmentEncoder::new(&ty, &Choice::Auto)), &ty);
    }
}

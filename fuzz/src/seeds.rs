//! Writes what the fuzzers begin with, a folder for each target and scheme or key codec in the lists, and prints these, one
//! a line: `seeds FOLDER`.

use arrow::array::{Array, ArrayRef, Int32Array, Int64Array, ListArray, StringArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::Field;
use sinter_codec::{Block, Choice, KEY_CODECS, KEYS_MAX, Physical, SCHEMES, encode};
use sinter_exec::edge;
use sinter_fuzz::{nested_types, scheme_of, values_from};
use std::fs::{create_dir_all, write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Numbers that look like a column's: few different ones, ascending ones, narrow ones with outliers, multiples, anything.
fn bytes_of(shape: u64, count: u64, width: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(shape + 1);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut bytes = Vec::new();
    for index in 0..count {
        let value = match shape {
            0 => 7,
            1 => next() % 5,
            2 => 3 * index + next() % 3,
            3 if index % 40 == 0 => next() << 20,
            3 => 100 + next() % 20,
            4 => index / 30,
            5 => 1000 * (next() % 60),
            _ => next() ^ next() << 31,
        };
        let upper = if shape == 6 && width == 16 { u128::from(next() % 1000) << 64 } else { 0 };
        let value = (upper | u128::from(value)).to_le_bytes();
        bytes.extend(&value[..width]);
    }
    bytes
}

/// Floats of some kind: decimals, parts of 4096, close to one, singles, a sine, and any others.
fn floats(shape: u64, count: u64, width: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let any = bytes_of(6, count, 8);
    for (index, any) in any.as_chunks::<8>().0.iter().enumerate() {
        let any = u64::from_le_bytes(*any);
        let value = match shape {
            0 => (any % 10_000) as f64 / 100.0,
            1 => (any % 10_000) as f64 / 4096.0,
            2 => f64::from_bits(1.0_f64.to_bits() | any % (1 << 40)),
            3 => f64::from((any % 10_000) as f32 / 3.0),
            4 => (index as f64 / 50.0).sin(),
            5 if index % 30 > 0 => index as f64 / 8.0,
            _ => f64::from_bits(any),
        };
        match width {
            4 => bytes.extend((value as f32).to_le_bytes()),
            _ => bytes.extend(value.to_le_bytes()),
        }
    }
    bytes
}

/// Words with their length before them.
fn strings(shape: u64, count: u64) -> Vec<u8> {
    let words = ["", "a", "special requests", "slyly", "Customer#000000017", "0123456789abcdef0123456789abcdef"];
    let mut bytes = Vec::new();
    for index in 0..count {
        let word = words[(index * (shape + 1) % words.len() as u64) as usize];
        bytes.push(word.len() as u8);
        bytes.extend(word.bytes());
    }
    bytes
}

/// Arrays of the nested types, in their order: lists of no to six elements, some of which are NULL.
fn nested_arrays(rows: usize) -> Vec<ArrayRef> {
    let lengths = || OffsetBuffer::from_lengths((0..rows).map(|row| row % 7));
    let count = (0..rows).map(|row| row % 7).sum::<usize>();
    let numbers =
        |count: usize| (0..count as i64).map(|number| (number % 5 > 0).then_some(number)).collect::<Int64Array>();
    let texts = |count: usize| (0..count).map(|number| Some(format!("text {}", number % 11))).collect::<StringArray>();
    let pairs = |count: usize| -> ArrayRef {
        let a = (0..count as i32).map(|number| (number % 3 > 0).then_some(number)).collect::<Int32Array>();
        let a: ArrayRef = Arc::new(a);
        let b: ArrayRef = Arc::new(texts(count));
        let field = |name: &str, array: &ArrayRef| Arc::new(Field::new(name, array.data_type().clone(), true));
        Arc::new(StructArray::from(vec![(field("a", &a), a.clone()), (field("b", &b), b)]))
    };
    let list = |values: ArrayRef, lengths: OffsetBuffer<i32>| -> ArrayRef {
        let nulls = NullBuffer::from_iter((0..lengths.len() - 1).map(|row| row % 9 > 0));
        let item = Arc::new(Field::new("item", values.data_type().clone(), true));
        Arc::new(ListArray::new(item, lengths, values, Some(nulls)))
    };
    let inner = OffsetBuffer::from_lengths((0..count).map(|row| row % 3));
    let words = (0..count).map(|row| row % 3).sum();
    vec![
        list(Arc::new(numbers(count)), lengths()),
        list(list(Arc::new(texts(words)), inner), lengths()),
        pairs(rows),
        list(pairs(count), lengths()),
    ]
}

/// Segments of these, behind the byte that says of which type they are.
fn write_segments(folder: &Path) {
    create_dir_all(folder).expect("the folder can be written");
    for rows in [1, 130, 1100] {
        for (kind, (array, ty)) in nested_arrays(rows).iter().zip(nested_types()).enumerate() {
            let mut bytes = vec![kind as u8];
            edge::encode_segment(array, &ty, &Choice::Auto, &mut bytes).expect("the array is of the type");
            write(folder.join(format!("{kind}-{rows}")), bytes).expect("the folder can be written");
        }
    }
}

/// Blocks of sorted keys in every codec, behind what the target wants to know of them.
fn write_keys(folder: &Path) {
    for (number, codec) in KEY_CODECS.iter().enumerate() {
        let folder = folder.join(format!("keys-{}", codec.name()));
        create_dir_all(&folder).expect("the folder can be written");
        for count in [1, 100, KEYS_MAX] {
            // Two that follow each other are at least one apart.
            for step in [3, 300, 70_000] {
                let keys: Vec<u64> = (0..count as u64).map(|key| 1000 + key * step + key % 3).collect();
                let narrow: Vec<u32> = keys.iter().map(|&key| key as u32).collect();
                let (mut wide_bytes, mut narrow_bytes) = (Vec::new(), Vec::new());
                codec.encode(&keys, &mut wide_bytes).expect("they ascend");
                codec.encode(&narrow, &mut narrow_bytes).expect("they ascend");
                for (width, bytes) in [narrow_bytes, wide_bytes].into_iter().enumerate() {
                    let mut seed = vec![number as u8, width as u8, (count - 1) as u8, (count + width) as u8];
                    seed.extend(keys[0].to_le_bytes());
                    seed.extend(keys[count - 1].to_le_bytes());
                    seed.extend(bytes);
                    let name = format!("{width}-{count}-{step}");
                    write(folder.join(name), seed).expect("the folder can be written");
                }
            }
        }
        println!("keys {}", codec.name());
    }
}

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("usage: seeds FOLDER"));
    for entry in SCHEMES {
        let of_scheme = folder.join(format!("decode-{}", entry.name));
        create_dir_all(&of_scheme).expect("the folder can be written");
        let mut seeds_in_scheme = 0;
        for physical in Physical::ALL.into_iter().filter(|physical| entry.holds(*physical)) {
            for shape in 0..7 {
                for count in [1, 130, 1100] {
                    let bytes = match physical.value_bytes() {
                        Some(width) if matches!(physical, Physical::F32 | Physical::F64) => floats(shape, count, width),
                        Some(width) => bytes_of(shape, count, width),
                        None => strings(shape, count),
                    };
                    let mut block = Vec::new();
                    let choice = Choice::Forced(entry.name.to_owned());
                    encode(values_from(physical, &bytes).as_values(), None, &choice, &mut block)
                        .expect("the type is one that the scheme holds");
                    let written = Block::open(&block).expect("it was just written");
                    seeds_in_scheme += usize::from(scheme_of(&written) == entry.name);
                    let name = format!("{}-{shape}-{count}", physical.name());
                    write(of_scheme.join(name), &block).expect("the folder can be written");
                }
            }
        }
        assert!(seeds_in_scheme > 0, "the decoder of {} would be given nothing of its own", entry.name);
        println!("decode {0}\nround_trip {0}", entry.name);
    }
    write_segments(&folder.join("segments-nested"));
    println!("segments nested");
    write_keys(&folder);
}

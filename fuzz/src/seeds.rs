//! Writes what the fuzzers begin with, a folder for each scheme in the list, and prints the names of the schemes:
//! `seeds FOLDER`.

use sinter_codec::{Choice, Physical, SCHEMES, encode};
use sinter_fuzz::values_from;
use std::fs::{create_dir_all, write};
use std::path::PathBuf;

/// Numbers that look like a column's: few different ones, ascending ones, narrow ones with outliers, anything.
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
            _ => next() ^ next() << 31,
        };
        let value = u128::from(value).to_le_bytes();
        bytes.extend(&value[..width]);
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

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("usage: seeds FOLDER"));
    for entry in SCHEMES {
        let of_scheme = folder.join(entry.name);
        create_dir_all(&of_scheme).expect("the folder can be written");
        for physical in Physical::ALL.into_iter().filter(|physical| entry.holds(*physical)) {
            for shape in 0..6 {
                for count in [1, 130, 1100] {
                    let bytes = match physical.value_bytes() {
                        Some(width) => bytes_of(shape, count, width),
                        None => strings(shape, count),
                    };
                    let mut block = Vec::new();
                    let choice = Choice::Forced(entry.name.to_owned());
                    encode(values_from(physical, &bytes).as_values(), None, &choice, &mut block)
                        .expect("the type is one that the scheme holds");
                    let name = format!("{}-{shape}-{count}", physical.name());
                    write(of_scheme.join(name), block).expect("the folder can be written");
                }
            }
        }
        println!("{}", entry.name);
    }
}

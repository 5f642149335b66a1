//! Bytes that mean harm lead to errors: no panic, no endless loop, in any format.

use super::{file, options, read};
use crate::{ReadOptions, WriteOptions, create};
use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::record_batch::RecordBatch;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

#[test]
fn random_text_is_read_or_refused() {
    let mut random = SmallRng::seed_from_u64(7);
    let pieces: [&[u8]; 24] = [
        b",",
        b"\"",
        b"\n",
        b"\r\n",
        b"\r",
        b";",
        b"|",
        b"\t",
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b"\\",
        b"1",
        b"-2.5",
        b"NA",
        b"\"a\"",
        b"null",
        b"\xFF",
        b"2024-01-01",
        b" ",
        b"\xEF\xBB\xBF",
        b"\\u00",
    ];
    for round in 0..500 {
        let count = random.random_range(0..60);
        let bytes: Vec<u8> = (0..count).flat_map(|_| pieces[random.random_range(0..pieces.len())].to_vec()).collect();
        for name in ["r.csv", "r.txt", "r.json", "r.jsonl"] {
            let (_keep, path) = file(name, &bytes);
            for settings in [ReadOptions::default(), options(&[("on_error", "skip")])] {
                // Only that it ends is asked for; the round is for repeating a failure.
                let _ = (round, read(&path, &settings));
            }
        }
    }
}

#[test]
fn changed_and_cut_bytes_of_binary_formats_are_read_or_refused() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..500));
    let words: ArrayRef = Arc::new(StringArray::from_iter_values((0..500).map(|n| format!("word {n}"))));
    let batch = RecordBatch::try_from_iter([("n", numbers), ("w", words)]).unwrap();
    let mut random = SmallRng::seed_from_u64(11);
    for name in ["x.parquet", "x.arrow"] {
        let (_keep, path) = file(name, "");
        let mut writer = create(&path, batch.schema(), &WriteOptions::default()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        let whole = std::fs::read(&path).unwrap();
        for _ in 0..150 {
            let mut bytes = whole.clone();
            if random.random_bool(0.3) {
                bytes.truncate(random.random_range(0..whole.len()));
            } else {
                let at = random.random_range(0..whole.len());
                bytes[at] ^= random.random_range(1..=255u8);
            }
            std::fs::write(&path, &bytes).unwrap();
            let _ = read(&path, &ReadOptions::default());
        }
        let half = &whole[..whole.len() / 2];
        std::fs::write(&path, half).unwrap();
        let error = read(&path, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}

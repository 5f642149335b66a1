//! How fast a tree in memory is: `cargo run --release -p sinter-btree --example tree_speed -- KEYS RECORD_BYTES [CODEC]`.

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use sinter_btree::{Condition, Numbered, RecordShape, Tree, TreeOptions};
use sinter_codec::{KEY_CODECS, key_codec_by_name};
use sinter_storage::CommitNumber;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

fn clustered(keys: &mut Vec<u64>, count: u64, from: u64, to: u64, random: &mut SmallRng) {
    let range = to - from;
    if range == count {
        return keys.extend(from..to);
    }
    if count <= 10 {
        return uniform(keys, count, from, to, random);
    }
    let lower = count / 2;
    let cut = from + lower + random.random_range(0..range - count);
    match random.random_range(0..4) {
        0 => {
            uniform(keys, lower, from, cut, random);
            clustered(keys, count - lower, cut, to, random);
        }
        1 => {
            clustered(keys, lower, from, cut, random);
            uniform(keys, count - lower, cut, to, random);
        }
        _ => {
            clustered(keys, lower, from, cut, random);
            clustered(keys, count - lower, cut, to, random);
        }
    }
}

fn uniform(keys: &mut Vec<u64>, count: u64, from: u64, to: u64, random: &mut SmallRng) {
    let start = keys.len();
    let mut left = count;
    for key in from..to {
        if random.random_range(0..to - key) < left {
            keys.push(key);
            left -= 1;
        }
    }
    assert_eq!(keys.len() - start, count as usize);
}

fn timed<T>(what: &str, count: u64, run: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = run();
    let ns = begun.elapsed().as_secs_f64() * 1e9 / count as f64;
    print!("  {what} {ns:.1}");
    result
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().map_or(1_000_000, |text| text.parse().unwrap());
    let width: usize = arguments.next().map_or(0, |text| text.parse().unwrap());
    let codecs = match arguments.next() {
        Some(name) => vec![key_codec_by_name(&name).unwrap()],
        None => KEY_CODECS.to_vec(),
    };
    let mut random = SmallRng::seed_from_u64(1);
    let mut keys = Vec::new();
    clustered(&mut keys, count, 0, count * 9 / 8, &mut random);
    let mut shuffled = keys.clone();
    shuffled.shuffle(&mut random);
    let record = vec![7_u8; width];
    println!("{count} keys, records of {width} bytes; ns each");
    let visible = AtomicU64::new(0);
    let place = || {
        let commit = CommitNumber(visible.fetch_add(1, Ordering::AcqRel) + 1);
        Ok::<_, Infallible>(Numbered { commit, horizon: commit })
    };
    let at = || CommitNumber(visible.load(Ordering::Acquire));
    for codec in codecs {
        print!("{:18}", codec.name());
        macro_rules! run {
            ($key:ty) => {{
                for order in [&keys, &shuffled] {
                    let tree = Tree::<$key>::new(TreeOptions::new(codec, RecordShape::Fixed(width)));
                    timed("insert", count, || {
                        for &key in order {
                            tree.change(&(key as $key), Some(&record), Condition::Always, place).unwrap();
                        }
                    });
                    let shape = tree.shape();
                    print!("  key bytes {:.3}", shape.key_bytes as f64 / count as f64);
                    let found = timed("get", count, || {
                        shuffled.iter().filter(|key| tree.get(&(**key as $key), at, |record| record.is_some())).count()
                    });
                    assert_eq!(found, keys.len());
                    let sum = timed("sum", count, || {
                        let mut sum = 0_u128;
                        tree.for_each_block(.., at(), &mut |keys: &[$key]| {
                            sum += u128::from(keys.iter().map(|key| *key as u64).sum::<u64>());
                        });
                        sum
                    });
                    assert_eq!(sum, keys.iter().map(|key| u128::from(*key)).sum());
                    let walked = timed("cursor", count, || {
                        let mut cursor = tree.cursor(at());
                        let (mut walked, mut entry) = (0_u64, cursor.first().map(|(key, _)| *key));
                        while let Some(key) = entry {
                            walked = walked.wrapping_add(key as u64);
                            entry = cursor.next().map(|(key, _)| *key);
                        }
                        walked
                    });
                    assert_eq!(walked, sum as u64);
                    print!(" |");
                }
                println!();
            }};
        }
        run!(u32);
        print!("{:18}", "  u64");
        run!(u64);
    }
}

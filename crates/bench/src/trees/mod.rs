//! Key-value trees as in the Upscaledb paper, section 4.3: keys without records, in each codec, and what that costs beside
//! keys as they are (`none`).
//!
//! Figures 8 to 11 and table 2: bytes a key, look-ups of all keys in no order, a cursor from the first to the last, the sum
//! of all keys, inserts in order, `AVERAGE(key) WHERE key > MAX(keys) / 2`; blocks of 128 and of 256 keys. All in memory
//! and on one thread. Codecs take turns, and the median of the rounds counts. Sums and counts are held to those of the keys
//! themselves.

use crate::{Failure, machine};
use serde_json::{Value, json};
use sinter_btree::{Condition, IntegerKey, RecordShape, Tree, TreeOptions};
use sinter_codec::{KEY_CODECS, KeyCodec, key_codec_by_name};
use sinter_storage::{CommitNumber, Numbered};
use sinter_stores_benchmark::keys::{self, Distribution};
use std::cell::Cell;
use std::fmt::Write as _;
use std::time::Instant;

/// What is to be measured.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// How many keys; one tree for each.
    #[arg(long, value_delimiter = ',', default_value = "10000,100000,1000000,10000000")]
    pub keys: Vec<u64>,
    /// Which keys.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "cluster,uniform")]
    pub distributions: Vec<Distribution>,
    /// Their types: 32 and 64 bits.
    #[arg(long, value_delimiter = ',', default_value = "32,64")]
    pub bits: Vec<u32>,
    /// Keys of a block.
    #[arg(long, value_delimiter = ',', default_value = "128,256")]
    pub block_lens: Vec<usize>,
    /// Only these codecs, beside `none`.
    #[arg(long, value_delimiter = ',')]
    pub codecs: Vec<String>,
    /// Rounds, of which the median counts.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Of the keys.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// What is measured of a tree, by name; in nanoseconds a key.
const OPERATIONS: [&str; 5] = ["insert", "look up", "cursor", "sum", "average"];

/// One tree's figures.
#[derive(Debug, Clone)]
struct Measured {
    codec: KeyCodec,
    block_len: usize,
    bytes_a_key: f64,
    /// Of each operation, in each round.
    ns: [Vec<f64>; OPERATIONS.len()],
}

impl Measured {
    fn median(&self, operation: usize) -> f64 {
        let mut ns = self.ns[operation].clone();
        ns.sort_by(f64::total_cmp);
        ns[ns.len() / 2]
    }
}

/// Measures and returns a table for people, and a record.
///
/// # Errors
/// A codec that there is not; answers that are wrong.
pub fn measure(settings: &Settings) -> Result<(String, Value), Failure> {
    let mut codecs = vec![KeyCodec::None];
    match settings.codecs.is_empty() {
        true => codecs.extend(KEY_CODECS.iter().filter(|codec| **codec != KeyCodec::None)),
        false => {
            for name in &settings.codecs {
                codecs.push(key_codec_by_name(name)?);
            }
        }
    }
    let machine = machine::describe();
    let (mut text, mut records) = (String::new(), Vec::new());
    for &distribution in &settings.distributions {
        for &count in &settings.keys {
            let sorted = keys::sorted(distribution, count, settings.seed);
            let shuffled = keys::shuffled(&sorted, settings.seed);
            for &bits in &settings.bits {
                eprintln!("{distribution:?}, {count} keys of {bits} bits");
                let measured = match bits {
                    32 => measure_type(settings, &codecs, &sorted, &shuffled, |key| key as u32)?,
                    64 => measure_type(settings, &codecs, &sorted, &shuffled, |key| key)?,
                    _ => return Err(format!("keys have 32 or 64 bits, not {bits}").into()),
                };
                let name = format!("{distribution:?}").to_lowercase();
                table(&mut text, &format!("{name}, {count} keys of {bits} bits"), &measured)?;
                records.extend(measured.iter().map(|measured| record(&name, count, bits, measured)));
            }
        }
    }
    let versions = json!({ "sinterdb": env!("CARGO_PKG_VERSION") });
    let record = json!({
        "suite": "trees", "machine": machine, "commit": machine::commit(), "versions": versions, "threads": 1,
        "rounds": settings.rounds, "seed": settings.seed, "results": records,
    });
    Ok((text, record))
}

fn measure_type<K: IntegerKey + Into<u64>>(
    settings: &Settings,
    codecs: &[KeyCodec],
    sorted: &[u64],
    shuffled: &[u64],
    of: impl Fn(u64) -> K + Copy,
) -> Result<Vec<Measured>, Failure> {
    let sorted: Vec<K> = sorted.iter().map(|key| of(*key)).collect();
    let shuffled: Vec<K> = shuffled.iter().map(|key| of(*key)).collect();
    let mut measured: Vec<Measured> = Vec::new();
    for &codec in codecs {
        for &block_len in &settings.block_lens {
            measured.push(Measured { codec, block_len, bytes_a_key: 0.0, ns: Default::default() });
        }
    }
    for _ in 0..settings.rounds {
        for one in &mut measured {
            one.measure(&sorted, &shuffled, of)?;
        }
    }
    Ok(measured)
}

impl Measured {
    /// One round: a new tree, and all operations on it.
    fn measure<K: IntegerKey + Into<u64>>(
        &mut self,
        sorted: &[K],
        shuffled: &[K],
        of: impl Fn(u64) -> K,
    ) -> Result<(), Failure> {
        let options = TreeOptions { block_len: self.block_len, ..TreeOptions::new(self.codec, RecordShape::Fixed(0)) };
        let tree = Tree::<K>::new(options);
        let last = Cell::new(0);
        let place = || {
            last.set(last.get() + 1);
            let commit = CommitNumber(last.get());
            Ok::<_, sinter_btree::Error>(Numbered { commit, horizon: commit })
        };
        let at = || CommitNumber(last.get());
        let count = sorted.len() as f64;
        let mut timed = |operation: usize, run: &mut dyn FnMut() -> Result<u128, sinter_btree::Error>| {
            let begun = Instant::now();
            let answer = run()?;
            self.ns[operation].push(begun.elapsed().as_secs_f64() * 1e9 / count);
            Ok::<_, sinter_btree::Error>(answer)
        };
        timed(0, &mut || {
            for key in sorted {
                tree.change(key, Some(&[]), Condition::Always, place)?;
            }
            Ok(0)
        })?;
        let found = timed(1, &mut || {
            shuffled.iter().map(|key| tree.get(key, at, |record| u128::from(record.is_some()))).sum()
        })?;
        let walked = timed(2, &mut || {
            let (mut cursor, mut sum) = (tree.cursor(at()), 0_u128);
            let mut entry = cursor.first()?.map(|(key, _)| *key);
            while let Some(key) = entry {
                sum += u128::from(key.into());
                entry = cursor.next()?.map(|(key, _)| *key);
            }
            Ok(sum)
        })?;
        let sum_of = |keys: &[K]| u128::from(keys.iter().map(|key| (*key).into()).sum::<u64>());
        let sum = timed(3, &mut || {
            let mut sum = 0;
            tree.for_each_block(.., at(), &mut |keys| sum += sum_of(keys))?;
            Ok(sum)
        })?;
        let average = timed(4, &mut || {
            let greatest = tree.cursor(at()).last()?.map_or(0, |(key, _)| (*key).into());
            let (mut sum, mut count) = (0, 0);
            tree.for_each_block(of(greatest / 2 + 1).., at(), &mut |keys| {
                sum += sum_of(keys);
                count += keys.len() as u128;
            })?;
            Ok(sum / count.max(1))
        })?;
        let sum_expected: u128 = sorted.iter().map(|key| u128::from((*key).into())).sum();
        let half = sorted.last().map_or(0, |key| (*key).into()) / 2;
        let upper: Vec<u128> =
            sorted.iter().map(|key| (*key).into()).filter(|key| *key > half).map(u128::from).collect();
        let average_expected = upper.iter().sum::<u128>() / (upper.len() as u128).max(1);
        if [found, walked, sum, average] != [sorted.len() as u128, sum_expected, sum_expected, average_expected] {
            return Err(format!("{} in blocks of {}: an answer is wrong", self.codec.name(), self.block_len).into());
        }
        self.bytes_a_key = tree.shape().key_bytes as f64 / count;
        Ok(())
    }
}

/// Figures as they are of keys as they are, and beside them of all others.
fn table(text: &mut String, title: &str, measured: &[Measured]) -> Result<(), Failure> {
    writeln!(text, "{title}; ns a key, and times as long as none in blocks of as many")?;
    write!(text, "{:18} {:>5} {:>11}", "codec", "block", "bytes a key")?;
    OPERATIONS.iter().try_for_each(|operation| write!(text, " {operation:>15}"))?;
    writeln!(text)?;
    for one in measured {
        let plain = measured.iter().find(|other| other.codec == KeyCodec::None && other.block_len == one.block_len);
        write!(text, "{:18} {:>5} {:>11.3}", one.codec.name(), one.block_len, one.bytes_a_key)?;
        for operation in 0..OPERATIONS.len() {
            let ns = one.median(operation);
            let ratio = ns / plain.map_or(ns, |plain| plain.median(operation));
            write!(text, " {ns:>8.2} ({ratio:.2})")?;
        }
        writeln!(text)?;
    }
    writeln!(text)?;
    Ok(())
}

fn record(distribution: &str, count: u64, bits: u32, measured: &Measured) -> Value {
    let ns: serde_json::Map<String, Value> =
        OPERATIONS.iter().zip(&measured.ns).map(|(operation, ns)| ((*operation).to_owned(), json!(ns))).collect();
    json!({
        "distribution": distribution, "keys": count, "bits": bits, "codec": measured.codec.name(),
        "block_len": measured.block_len, "bytes_a_key": measured.bytes_a_key, "ns": ns,
    })
}

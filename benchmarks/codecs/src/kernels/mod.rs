//! Sum and filter on pressed values beside the best loops over plain ones, all from memory.
//!
//! Numbers of 32 / k or 64 / k bits are packed by `bitpack`, so they are k times as many in as many bytes. Memory holds
//! a few row groups again and again: making gigabytes of values costs more than reading them.

mod plain;

use crate::Failure;
use crate::mark::Mark;
use crate::race::{Effort, Run, race};
use crate::random::Random;
use plain::Plain;
use serde_json::{Value, json};
use sinter_codec::{
    Bitmap, Block, Choice, CompareOp, Predicate, ROW_GROUP_LEN, Scalar, Scratch, VECTOR_LEN, Values, encode,
};
use std::hint::black_box;
use std::thread;

/// How many times smaller than plain.
const RATIOS: [u32; 3] = [2, 4, 8];

/// Percent of the rows that pass: those below 1, 2, 3 and 4.
const SELECTIVITIES: [f64; 4] = [0.1, 1.0, 10.0, 50.0];
const CONSTANTS: [u64; 4] = [1, 2, 3, 4];

/// What ours should reach of k times the plain loop's speed.
const SHARE_OF_K: f64 = 0.6;

/// Row groups that are really different.
const GROUPS: usize = 8;

/// Rows of a group that a sum is asked about: all but a vector, so that statistics do not answer.
const SUMMED: usize = ROW_GROUP_LEN - VECTOR_LEN;

/// What was measured of one kernel at one ratio.
struct Measured {
    type_name: &'static str,
    ratio: u32,
    threads: usize,
    kernel: String,
    plain_gb_s: f64,
    gb_s: f64,
}

impl Measured {
    fn speed_up(&self) -> f64 {
        self.gb_s / self.plain_gb_s
    }

    fn share_of_k(&self) -> f64 {
        self.speed_up() / f64::from(self.ratio)
    }

    fn print(&self) {
        println!(
            "{:<4} {:>2} {:>8}  {:<13} {:>11.1} {:>11.1} {:>9.2} {:>11.2}",
            self.type_name,
            self.ratio,
            self.threads,
            self.kernel,
            self.plain_gb_s,
            self.gb_s,
            self.speed_up(),
            self.share_of_k()
        );
    }

    /// Which point it is.
    fn place(&self) -> String {
        format!("{} k = {}, {} threads, {}", self.type_name, self.ratio, self.threads, self.kernel)
    }

    fn record(&self) -> Value {
        json!({
            "type": self.type_name, "k": self.ratio, "threads": self.threads, "kernel": self.kernel,
            "plain_gb_s": self.plain_gb_s, "gb_s": self.gb_s, "speed_up": self.speed_up(),
        })
    }
}

/// Measures, prints, and returns the record.
///
/// # Errors
/// Where a kernel's answer is not that of the plain loop.
pub fn run(effort: Effort) -> Result<Value, Failure> {
    let effort = Effort { rounds: if effort.is_quick { 2 } else { 7 }, ..effort };
    println!("Kernels from memory: GB/s of plain values; {} MB of pressed ones", effort.memory_bytes >> 20);
    println!(
        "{:<4} {:>2} {:>8}  {:<13} {:>11} {:>11} {:>9} {:>11}",
        "type", "k", "threads", "kernel", "plain GB/s", "ours GB/s", "speed-up", "speed-up/k"
    );
    let mut measured = Vec::new();
    for ratio in RATIOS {
        eprintln!("kernels: u32 at k = {ratio}");
        measured.extend(measure::<u32>("u32", 32 / ratio, ratio, |values| Values::U32(values), effort)?);
        eprintln!("kernels: u64 at k = {ratio}");
        measured.extend(measure::<u64>("u64", 64 / ratio, ratio, |values| Values::U64(values), effort)?);
    }
    let least = |figure: fn(&Measured) -> f64, mark: f64, text: &str| {
        Mark::at_least(text.to_owned(), mark, measured.iter().map(|one| (one.place(), figure(one))))
    };
    let marks = [
        least(Measured::share_of_k, SHARE_OF_K, "speed-up / k, at least 0.6"),
        least(Measured::speed_up, 1.0, "speed-up, never slower"),
    ];
    marks.iter().flatten().for_each(|mark| println!("{}", mark.line()));
    Ok(json!({
        "measured": measured.iter().map(Measured::record).collect::<Vec<_>>(),
        "marks": marks.iter().flatten().map(Mark::record).collect::<Vec<_>>(),
    }))
}

/// Plain and pressed memory: row groups again and again.
struct Memory<T> {
    plain: Vec<T>,
    pressed: Vec<u8>,
    /// Bytes of each copy of all groups.
    stride: usize,
    /// Where groups start in a copy.
    starts: Vec<usize>,
}

impl<T: Plain> Memory<T> {
    fn new(groups: &[T], as_values: fn(&[T]) -> Values<'_>, effort: Effort) -> Result<Memory<T>, Failure> {
        let (mut pressed, mut starts) = (Vec::new(), Vec::new());
        for group in groups.chunks(ROW_GROUP_LEN) {
            starts.push(pressed.len());
            encode(as_values(group), None, &Choice::Forced("bitpack".to_owned()), &mut pressed)?;
        }
        let stride = pressed.len();
        let copies = effort.memory_bytes.div_ceil(stride);
        pressed.reserve_exact((copies - 1) * stride);
        (1..copies).for_each(|_| pressed.extend_from_within(..stride));
        // Plain arrays need not be as long as what is pressed: speeds are compared, not times.
        let copies = (effort.memory_bytes + effort.memory_bytes / 2).div_ceil(size_of_val(groups));
        Ok(Memory { plain: groups.repeat(copies), pressed, stride, starts })
    }

    fn blocks(&self) -> Result<Vec<Block<'_>>, Failure> {
        let copies = self.pressed.chunks_exact(self.stride);
        let blocks = copies.flat_map(|copy| self.starts.iter().map(|start| Block::open(&copy[*start..])));
        Ok(blocks.collect::<Result<_, _>>()?)
    }
}

fn measure<T: Plain + TryFrom<u64>>(
    type_name: &'static str,
    bit_width: u32,
    ratio: u32,
    as_values: fn(&[T]) -> Values<'_>,
    effort: Effort,
) -> Result<Vec<Measured>, Failure> {
    let mut random = Random::new(bit_width.into());
    let number = |value: u64| T::try_from(value).ok().expect("it has so few bits");
    let groups = (0..GROUPS * ROW_GROUP_LEN).map(|_| number(skewed(&mut random, bit_width)));
    let groups: Vec<T> = groups.collect();
    let memory = Memory::new(&groups, as_values, effort)?;
    let blocks = memory.blocks()?;
    check(&groups, &blocks, &CONSTANTS.map(number))?;
    let plain_bytes = size_of_val(&memory.plain[..]) as f64;
    let bytes = (blocks.len() * ROW_GROUP_LEN * size_of::<T>()) as f64;
    let mut measured = Vec::new();
    for threads in [1, 2] {
        let part = blocks.len().div_ceil(threads);
        let plain_part = (memory.plain.len() / ROW_GROUP_LEN).div_ceil(threads) * ROW_GROUP_LEN;
        let mut runs: Vec<Run<'_>> = vec![
            Box::new(|| in_parallel(&memory.plain, plain_part, |part| sum_plain(part))),
            Box::new(|| in_parallel(&blocks, part, |part| sum(part))),
            Box::new(|| in_parallel(&memory.plain, plain_part, |part| filter_plain(part, number(CONSTANTS[1])))),
        ];
        for constant in &CONSTANTS {
            runs.push(Box::new(|| in_parallel(&blocks, part, |part| filter(part, *constant))));
        }
        let times: Vec<f64> = race(&mut runs, effort).iter().map(|times| times.min.as_secs_f64() * 1e9).collect();
        let one = |kernel: String, plain_gb_s, gb_s| Measured { type_name, ratio, threads, kernel, plain_gb_s, gb_s };
        let summed = bytes * SUMMED as f64 / ROW_GROUP_LEN as f64;
        measured.push(one("sum".to_owned(), plain_bytes / times[0], summed / times[1]));
        for (percent, time) in SELECTIVITIES.iter().zip(&times[3..]) {
            measured.push(one(format!("filter {percent} %"), plain_bytes / times[2], bytes / time));
        }
    }
    measured.iter().for_each(Measured::print);
    Ok(measured)
}

/// A number of at most so many bits, which has at least four: small ones as often as selectivities want, the rest
/// uniform.
fn skewed(random: &mut Random, bit_width: u32) -> u64 {
    let percent = random.below(1_000_000) as f64 / 10_000.0;
    let small = SELECTIVITIES.iter().position(|&selectivity| percent < selectivity);
    small.map_or_else(|| 4 + random.below((1 << bit_width) - 4), |small| small as u64)
}

/// Runs `work` on stretches of so many items, each in a thread of its own.
fn in_parallel<T: Sync>(items: &[T], part: usize, work: impl Fn(&[T]) + Sync) {
    if part >= items.len() {
        return work(items);
    }
    thread::scope(|scope| items.chunks(part).for_each(|part| drop(scope.spawn(|| work(part)))));
}

fn sum_plain<T: Plain>(values: &[T]) {
    for group in values.chunks(ROW_GROUP_LEN) {
        black_box(T::sum(group));
    }
}

fn filter_plain<T: Plain>(values: &[T], constant: T) {
    let mut words = vec![0; ROW_GROUP_LEN / 64];
    for group in values.chunks(ROW_GROUP_LEN) {
        T::less(group, constant, &mut words);
        black_box(&words);
    }
}

fn sum(blocks: &[Block<'_>]) {
    for block in blocks {
        black_box(block.sum(&(0..SUMMED).into()).expect("it was just encoded"));
    }
}

fn filter(blocks: &[Block<'_>], constant: u64) {
    let less = less_than(constant);
    let (mut scratch, mut passed) = (Scratch::default(), Bitmap::default());
    for block in blocks {
        let prepared = block.prepare(&less).expect("it was just encoded");
        let rows = 0..block.value_count();
        block.filter_prepared(rows, &prepared, &mut scratch, &mut passed).expect("it was just encoded");
        black_box(&passed);
    }
}

fn less_than(constant: u64) -> Predicate {
    Predicate::Compare(CompareOp::Less, Scalar::Int(constant.into()))
}

/// Compares the answers on the groups that are really different.
fn check<T: Plain>(groups: &[T], blocks: &[Block<'_>], constants: &[T]) -> Result<(), Failure> {
    for (group, block) in groups.chunks(ROW_GROUP_LEN).zip(blocks) {
        let expected = T::sum(&group[..SUMMED]);
        if block.sum(&(0..SUMMED).into())?.to_scalar() != Some(Scalar::Int(expected.into())) {
            return Err("a sum is not that of the plain loop".into());
        }
        for &constant in constants {
            let (mut words, mut passed) = (vec![0; ROW_GROUP_LEN / 64], Bitmap::default());
            T::less(group, constant, &mut words);
            block.filter(0..ROW_GROUP_LEN, &less_than(constant.into()), &mut passed)?;
            if passed.words() != words {
                return Err("a filter is not that of the plain loop".into());
            }
        }
    }
    Ok(())
}

//! What the chooser promises for the columns of real files, and what is then written.
//!
//! `cargo run --release -p sinter-files --example estimates -- FOLDER [--columns]` reads every CSV, JSON, Parquet and
//! Arrow file of a folder, encodes each block of its columns in every scheme that was weighed, and prints for the schemes
//! taken, for those that could have been and for each by itself: how many columns were promised within 5 % of what was
//! written, promised and written bytes of all together, and the worst. What a block takes above the smallest that any
//! scheme makes of it is the price of the choice, with what the speed of decoding is worth in it.

use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use sinter_codec::{Bitmap, Block, Choice, ROW_GROUP_LEN, ValuesBuf, candidates};
use sinter_exec::edge;
use sinter_files::{ReadOptions, open};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

/// What was promised for some columns, and written.
#[derive(Clone, Copy, Debug, Default)]
struct Promise {
    promised: usize,
    written: usize,
}

impl Promise {
    fn add(&mut self, other: Promise) {
        self.promised += other.promised;
        self.written += other.written;
    }

    /// By which part of what was written too much was promised, or too little.
    fn error(self) -> f64 {
        self.promised as f64 / self.written.max(1) as f64 - 1.0
    }

    fn is_near(self) -> bool {
        self.error().abs() <= 0.05
    }
}

/// All blocks of a column, or of one part of a nested one.
#[derive(Debug, Default)]
struct Column {
    name: String,
    chosen: Promise,
    /// The schemes of the first block.
    description: String,
    /// The least that any scheme makes of each block.
    least: usize,
    /// All schemes that were weighed.
    weighed: BTreeMap<&'static str, Promise>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("estimates wants a folder of files")?);
    let with_columns = arguments.any(|argument| argument == "--columns");
    let mut files = Vec::new();
    collect(&folder, &mut files)?;
    let mut columns = Vec::new();
    for file in files {
        match of_file(&file, &folder) {
            Ok(found) => columns.extend(found),
            Err(error) => eprintln!("{} is left out: {error}", file.display()),
        }
    }
    // The smallest by bytes first, as what is wrong of few bytes matters little.
    columns.sort_by_key(|column| column.chosen.promised.abs_diff(column.chosen.written));
    if with_columns {
        columns.iter().for_each(print);
    }
    summary("the schemes taken", columns.iter().map(|column| column.chosen));
    summary("all weighed", columns.iter().flat_map(|column| column.weighed.values().copied()));
    let names: std::collections::BTreeSet<_> = columns.iter().flat_map(|column| column.weighed.keys()).collect();
    for name in names {
        summary(name, columns.iter().filter_map(|column| column.weighed.get(name).copied()));
    }
    let sum = |of: fn(&Column) -> usize| columns.iter().map(of).sum::<usize>() as f64;
    let price = sum(|column| column.chosen.written) / sum(|column| column.least) - 1.0;
    println!("the choice costs {:.2} % above the least of each block", price * 100.0);
    println!("the worst by bytes:");
    columns.iter().rev().filter(|column| !column.chosen.is_near()).take(25).for_each(print);
    Ok(())
}

/// The files below a folder, in order.
fn collect(folder: &Path, out: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut paths = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, out)?;
        } else if path.extension().is_some_and(|extension| extension != "txt" && extension != "md") {
            out.push(path);
        }
    }
    Ok(())
}

fn of_file(file: &Path, folder: &Path) -> Result<Vec<Column>, Box<dyn Error>> {
    let mut options = ReadOptions::default();
    options.set("on_error", "skip")?;
    let mut reader = open(&[file.to_owned()], &options, None)?;
    let schema = reader.schema().clone();
    let mut columns: BTreeMap<(usize, usize), Column> = BTreeMap::new();
    let (mut pending, mut rows) = (vec![Vec::new(); schema.fields().len()], 0);
    loop {
        let batch = reader.next().transpose()?;
        let is_last = batch.is_none();
        if let Some(batch) = batch {
            rows += batch.num_rows();
            pending.iter_mut().zip(batch.columns()).for_each(|(parts, column)| parts.push(column.clone()));
        }
        while rows >= ROW_GROUP_LEN || is_last && rows > 0 {
            let taken = rows.min(ROW_GROUP_LEN);
            for (index, parts) in pending.iter_mut().enumerate() {
                let all = concat(&parts.iter().map(|part| part as &dyn Array).collect::<Vec<_>>())?;
                of_row_group(index, &all.slice(0, taken), &mut columns)?;
                *parts = vec![all.slice(taken, rows - taken)];
            }
            rows -= taken;
        }
        if is_last {
            break;
        }
    }
    let name = file.strip_prefix(folder).unwrap_or(file).display();
    for ((index, part), column) in &mut columns {
        let part = if *part > 0 { format!(" part {part}") } else { String::new() };
        column.name = format!("{name} {}{part}", schema.field(*index).name());
    }
    Ok(columns.into_values().filter(|column| !column.weighed.is_empty()).collect())
}

/// Adds what is promised and written for the blocks of a column's segment.
fn of_row_group(
    index: usize,
    array: &ArrayRef,
    columns: &mut BTreeMap<(usize, usize), Column>,
) -> Result<(), Box<dyn Error>> {
    let Some(ty) = edge::logical_type(array.data_type()) else { return Ok(()) };
    let mut segment = Vec::new();
    edge::encode_segment(array, &ty, &Choice::Raw, &mut segment)?;
    let mut rest: &[u8] = &segment;
    for part in 0.. {
        if rest.is_empty() {
            break;
        }
        let block = Block::open(rest)?;
        let (mut values, mut validity) = (ValuesBuf::new(block.physical()), Bitmap::default());
        block.decode(0..block.value_count(), &mut values)?;
        let has_nulls = block.validity(0..block.value_count(), &mut validity)?;
        let found = candidates(values.as_values(), has_nulls.then_some(&validity))?;
        let column = columns.entry((index, part)).or_default();
        column.least += found.iter().filter_map(|candidate| candidate.bytes).min().unwrap_or(0);
        for candidate in found {
            let Some(written) = candidate.bytes else { continue };
            // Where all values are the same, nothing is promised and nothing is wrong.
            let promise = Promise { promised: candidate.estimated_bytes.unwrap_or(written), written };
            if candidate.estimated_bytes.is_some() {
                column.weighed.entry(candidate.scheme).or_default().add(promise);
            }
            if candidate.is_chosen {
                column.chosen.add(promise);
                if column.description.is_empty() {
                    column.description = candidate.description;
                }
            }
        }
        rest = &rest[block.byte_len()..];
    }
    Ok(())
}

fn print(column: &Column) {
    let Promise { promised, written } = column.chosen;
    let error = column.chosen.error() * 100.0;
    let above = (written as f64 / column.least.max(1) as f64 - 1.0) * 100.0;
    let Column { name, description, .. } = column;
    println!(
        "{promised:>10} promised {written:>10} written {error:>+7.1} % {above:>5.1} % above  {name}: {description}"
    );
}

fn summary(what: &str, promises: impl Iterator<Item = Promise>) {
    let (mut total, mut count, mut near) = (Promise::default(), 0, 0);
    for promise in promises {
        total.add(promise);
        count += 1;
        near += usize::from(promise.is_near());
    }
    let Promise { promised, written } = total;
    println!(
        "{what:<18} {near:>4} of {count:>4} columns within 5 %, {promised:>11} promised {written:>11} written \
         ({:+.2} %)",
        total.error() * 100.0
    );
}

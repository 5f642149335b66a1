//! `sinter check` and `sinter inspect`: databases looked at without opening them.

use crate::args::LookArgs;
use crate::failure::{Failure, Result};
use crate::notice;
use crate::output::{Mode, Screen, counted};
use crate::progress::Bar;
use sinterdb::arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use sinterdb::{Config, Finding, Inspection, Report};
use std::io::{BufWriter, IsTerminal, Write};
use std::sync::Arc;

/// Names what is damaged, a line each, and sums up.
///
/// # Errors
/// [`Failure::Damaged`] where something is; [`Failure::Unseen`] where nothing could be looked at.
pub(crate) fn check(args: &LookArgs) -> Result<()> {
    let mut bar = Bar::new(!args.no_progress && std::io::stderr().is_terminal());
    let report =
        sinterdb::check_with(&args.file, &Config::default(), &mut |done, total| bar.set("checking", done, total));
    bar.finish();
    let report = report.map_err(Failure::Unseen)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    match args.format.mode() {
        Mode::Table => {
            for finding in &report.findings {
                writeln!(out, "{finding}")?;
            }
        }
        mode => write(mode, &table_of(&report.findings)?, &mut out)?,
    }
    out.flush()?;
    drop(out);
    report.notes.iter().for_each(|note| notice::note(note));
    notice::note(&looked_at(&report));
    match report.damaged {
        0 => {
            notice::note(&format!("{}: nothing is damaged", args.file.display()));
            Ok(())
        }
        damaged => {
            let places = counted(damaged as usize, "place");
            Err(Failure::Damaged(format!("{}: damaged in {places}", args.file.display())))
        }
    }
}

/// What was looked at, in one line.
fn looked_at(report: &Report) -> String {
    let Report { pages, bytes, tables, segments, logs, commits, unused, .. } = report;
    let count = |number: &u64, noun: &str| counted(*number as usize, noun);
    let free: u64 = unused.iter().map(|unused| unused.end - unused.start).sum();
    format!(
        "{bytes} bytes in {}, {} in {}, {} in {}; {free} bytes in {} are unused",
        count(pages, "page"),
        count(segments, "segment"),
        count(tables, "table"),
        count(commits, "commit"),
        count(logs, "log"),
        counted(unused.len(), "stretch").replace("stretchs", "stretches")
    )
}

fn table_of(findings: &[Finding]) -> Result<RecordBatch> {
    let text = |of: &dyn Fn(&Finding) -> Option<String>| -> ArrayRef {
        Arc::new(findings.iter().map(of).collect::<StringArray>())
    };
    let number = |of: &dyn Fn(&Finding) -> Option<u64>| -> ArrayRef {
        Arc::new(findings.iter().map(of).collect::<UInt64Array>())
    };
    Ok(RecordBatch::try_from_iter_with_nullable([
        ("file", text(&|finding| Some(finding.file.display().to_string())), false),
        ("kind", text(&|finding| Some(finding.kind.clone())), false),
        ("page", number(&|finding| finding.page), true),
        ("offset", number(&|finding| Some(finding.offset)), false),
        ("table", text(&|finding| finding.table.clone()), true),
        ("columns", text(&|finding| (!finding.columns.is_empty()).then(|| finding.columns.join(", "))), true),
        ("first_row_id", number(&|finding| finding.rows.as_ref().map(|rows| rows.start)), true),
        ("last_row_id", number(&|finding| finding.rows.as_ref().map(|rows| rows.end.saturating_sub(1))), true),
        ("rows", number(&|finding| finding.rows.as_ref().map(|_| finding.row_count)), true),
        ("what", text(&|finding| Some(finding.what.clone())), false),
        ("remedy", text(&|finding| Some(finding.remedy.clone())), false),
    ])?)
}

/// Shows what the file is made of.
///
/// # Errors
/// [`Failure::Unseen`] where nothing could be looked at.
pub(crate) fn inspect(args: &LookArgs) -> Result<()> {
    let Inspection { tables, remarks } = sinterdb::inspect(&args.file, &Config::default()).map_err(Failure::Unseen)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mode = args.format.mode();
    for (index, (title, table)) in tables.iter().enumerate() {
        // One JSON object for programs; titles for people.
        match mode {
            Mode::Json => write!(out, "{}\"{title}\": ", if index == 0 { "{" } else { ", " })?,
            _ => writeln!(out, "{}{title}", if index == 0 { "" } else { "\n" })?,
        }
        write(mode, table, &mut out)?;
    }
    if mode == Mode::Json {
        writeln!(out, "}}")?;
    }
    out.flush()?;
    remarks.iter().for_each(|remark| notice::note(remark));
    Ok(())
}

fn write(mode: Mode, table: &RecordBatch, out: &mut dyn Write) -> Result<()> {
    let mut writer = mode.writer(&table.schema(), Screen::stdout());
    writer.write(table, out)?;
    writer.finish(out)
}

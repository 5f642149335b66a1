//! What a running statement tells while it runs: how far it is, and what the user should know.

use sinter_exec::{LeftOut, LeftOutOfTable, OnDamage};
use std::sync::{Arc, Mutex, PoisonError};

/// Reasons that a note tells in full.
const REASONS_MAX: usize = 3;

/// How far the running statement is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// What is going on, such as `pressing lineitem`; of a query, nothing.
    pub label: String,
    /// Units done: rows, row groups, or of a query vectors of tables.
    pub done: u64,
    /// Units in all, where known.
    pub total: Option<u64>,
}

/// Remarks gathered on the way, such as rows that were skipped. Clones share one list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    texts: Arc<Mutex<Vec<String>>>,
    /// Row groups that could not be read, and were passed over because the user wants it so.
    left_out: Arc<LeftOut>,
}

impl Notes {
    pub(crate) fn add(&self, note: String) {
        let mut notes = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Everything noted since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut texts = std::mem::take(&mut *self.texts.lock().unwrap_or_else(PoisonError::into_inner));
        texts.extend(self.left_out.take().iter().map(in_words));
        texts
    }

    /// Makes scans leave out what they cannot read, and note it here.
    pub(crate) fn leaving_out(&self) -> OnDamage {
        OnDamage::LeaveOut(Arc::clone(&self.left_out))
    }
}

fn in_words(left_out: &LeftOutOfTable) -> String {
    let LeftOutOfTable { table, groups, rows, reasons } = left_out;
    let told = reasons.iter().take(REASONS_MAX).map(String::as_str).collect::<Vec<_>>().join("; ");
    let more = match reasons.len().saturating_sub(REASONS_MAX) {
        0 => String::new(),
        more => format!("; and {more} more such places, which `sinter check` lists"),
    };
    let (group, were) = if *groups == 1 { ("row group", "was") } else { ("row groups", "were") };
    format!("{groups} {group} ({} rows) of table {table} {were} left out: {told}{more}", grouped(*rows))
}

/// `262,144`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_counted() {
        let reasons = ["one", "two", "three", "four"].map(str::to_owned).to_vec();
        let left_out = LeftOutOfTable { table: "t".to_owned(), groups: 4, rows: 262_144, reasons };
        assert_eq!(
            in_words(&left_out),
            "4 row groups (262,144 rows) of table t were left out: one; two; three; and 1 more such places, which `sinter \
             check` lists"
        );
        assert_eq!((grouped(7), grouped(1000)), ("7".to_owned(), "1,000".to_owned()));
    }
}

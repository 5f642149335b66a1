//! How many bytes a query touched, read from the answer of EXPLAIN ANALYZE.

use crate::failure::Result;
use crate::output::Cells;
use sinterdb::arrow::array::RecordBatch;

/// Bytes that a query touched, over all its scans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Touched {
    /// Read in compressed form.
    pub(super) compressed: u64,
    /// Made by decoding.
    pub(super) decoded: u64,
}

/// Adds up every `bytes compressed` and `bytes decoded` of the plan; `None` where it has neither.
pub(super) fn touched(plan: &[RecordBatch]) -> Result<Option<Touched>> {
    let mut text = String::new();
    for batch in plan {
        let schema = batch.schema();
        let cells = Cells::new(batch, &schema)?;
        for row in 0..cells.row_count() {
            for column in 0..cells.column_count() {
                cells.write(column, row, &mut text)?;
                text.push('\n');
            }
        }
    }
    let (compressed, decoded) = (sum(&text, "bytes compressed"), sum(&text, "bytes decoded"));
    Ok((compressed.is_some() || decoded.is_some())
        .then(|| Touched { compressed: compressed.unwrap_or(0), decoded: decoded.unwrap_or(0) }))
}

/// The sum of the numbers behind each `label`, which stand as `label: 1,234`, `label=1234` or `label 1234`.
fn sum(text: &str, label: &str) -> Option<u64> {
    let text = text.replace('_', " ");
    let behind = text.match_indices(label).map(|(position, _)| &text[position + label.len()..]);
    let numbers = behind.filter_map(|rest| {
        let digits = rest.trim_start_matches([':', '=', ' ', '\n']);
        let end = digits.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(digits.len());
        digits[..end].replace(',', "").parse::<u64>().ok()
    });
    numbers.reduce(|sum, number| sum.saturating_add(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sinterdb::arrow::array::{ArrayRef, StringArray};
    use std::sync::Arc;

    fn plan(text: &str) -> Vec<RecordBatch> {
        let plan: ArrayRef = Arc::new(StringArray::from(vec![text]));
        vec![RecordBatch::try_from_iter([("plan", plan)]).unwrap()]
    }

    #[test]
    fn scans_are_added_up() {
        let text = "Scan a, bytes compressed: 1,200, bytes decoded: 7\n Scan b bytes_compressed=34, bytes_decoded=5";
        assert_eq!(touched(&plan(text)).unwrap(), Some(Touched { compressed: 1234, decoded: 12 }));
    }

    #[test]
    fn a_plan_without_counters_says_nothing() {
        assert_eq!(touched(&plan("Projection")).unwrap(), None);
    }
}

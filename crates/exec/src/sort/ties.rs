//! Rows whose heads are equal, by their values.

use super::SortKey;
use crate::expr::float_key;
use crate::store::RowStore;
use sinter_codec::Values;
use std::cmp::Ordering;

/// A key that heads may not have whole.
#[derive(Debug)]
pub(super) struct TieKey {
    /// Of the store.
    column: usize,
    descending: bool,
    nulls_first: bool,
}

impl TieKey {
    pub(super) fn new(column: usize, key: &SortKey) -> TieKey {
        TieKey { column, descending: key.descending, nulls_first: key.nulls_first }
    }

    fn compare(&self, (one, one_row): (&RowStore, usize), (other, other_row): (&RowStore, usize)) -> Ordering {
        let is_there = |store: &RowStore, row: usize| store.validity(self.column).is_none_or(|bits| bits.get(row));
        match (is_there(one, one_row), is_there(other, other_row)) {
            (true, true) => {
                let order = compare_values((one.values(self.column), one_row), (other.values(self.column), other_row));
                if self.descending { order.reverse() } else { order }
            }
            (false, false) => Ordering::Equal,
            (is_there, _) => {
                if is_there == self.nulls_first {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
        }
    }
}

/// Which of two rows comes first, by these keys.
pub(super) fn compare(keys: &[TieKey], one: (&RowStore, usize), other: (&RowStore, usize)) -> Ordering {
    let mut orders = keys.iter().map(|key| key.compare(one, other));
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// In which order two values of a type stand.
pub(crate) fn compare_values((one, one_row): (Values<'_>, usize), (other, other_row): (Values<'_>, usize)) -> Ordering {
    macro_rules! compare {
        ($($variant:ident),*) => {
            match (one, other) {
                $((Values::$variant(one), Values::$variant(other)) => one[one_row].cmp(&other[other_row]),)*
                (Values::F32(one), Values::F32(other)) => {
                    float_key(one[one_row].into()).cmp(&float_key(other[other_row].into()))
                }
                (Values::F64(one), Values::F64(other)) => float_key(one[one_row]).cmp(&float_key(other[other_row])),
                (Values::Bytes(one), Values::Bytes(other)) => one.get(one_row).cmp(other.get(other_row)),
                _ => Ordering::Equal,
            }
        };
    }
    compare!(I8, I16, I32, I64, I128, U8, U16, U32, U64)
}

//! Row ids as vectors: a base and small distances, whatever they are kept as.

use crate::{RowIds, Vector};
use sinter_codec::{Encoded, Narrow, ValuesBuf};

/// Writes the ids of `len` rows from `start` on over `out`.
pub(super) fn load(ids: &RowIds, start: usize, len: usize, out: &mut Vector) {
    (out.validity, out.dictionary, out.nested) = (None, None, None);
    out.values = match ids {
        RowIds::From(first) => {
            let deltas = Narrow::U16((0..len as u16).collect());
            Encoded::BaseDelta { base: i128::from(*first) + start as i128, deltas }
        }
        RowIds::Listed(ids) => {
            let ids = &ids[start..start + len];
            let base = ids.first().copied().unwrap_or(0);
            let deltas = ids.iter().map(|id| u32::try_from(id.wrapping_sub(base))).collect::<Result<Vec<_>, _>>();
            match deltas {
                Ok(deltas) => Encoded::BaseDelta { base: base.into(), deltas: Narrow::U32(deltas) },
                Err(_) => Encoded::Flat(ValuesBuf::U64(ids.to_vec())),
            }
        }
    };
}

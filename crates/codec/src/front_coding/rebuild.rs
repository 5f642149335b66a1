//! Rebuilding: shared prefixes and suffixes become strings again.

use super::shared_at;
use crate::values::DECODED_BYTES_MAX;
use crate::{BytesBuf, BytesView, Error, Result};

/// Prefixes, and suffixes up to this length, are copied by so many bytes, whatever their length: two instructions in
/// place of a call.
const BLIND_COPY_BYTES: usize = 16;

/// Appends strings to `out`: those of `shared` and `suffixes`, as many of each, the first of which stands at a restart
/// point, without the first `skipped`.
///
/// # Errors
/// [`Error::Damaged`] where a string shares more than the one before has, or the strings pass 1 GiB; `out` has then as
/// many strings as before.
pub(crate) fn rebuild(shared: &[u32], suffixes: BytesView<'_>, skipped: usize, out: &mut BytesBuf) -> Result<()> {
    let (start, first_offset) = (out.data.len(), out.offsets.len());
    let measured = measure(shared, suffixes, start, out);
    let Ok(end) = measured else {
        out.offsets.truncate(first_offset);
        return measured.map(drop);
    };
    out.data.resize(end + BLIND_COPY_BYTES, 0);
    let data = &mut out.data[..];
    let (mut previous, mut at) = (start, start);
    for (row, &shared) in shared.iter().enumerate() {
        let (from, to) = (suffixes.offsets[row] as usize, suffixes.offsets[row + 1] as usize);
        let (string, shared, len) = (at, shared_at(row, shared), to - from);
        // What is read ends before what is written, but for bytes that do not count.
        for copied in (0..shared).step_by(BLIND_COPY_BYTES) {
            data.copy_within(previous + copied..previous + copied + BLIND_COPY_BYTES, at + copied);
        }
        at += shared;
        match suffixes.data.get(from..from + BLIND_COPY_BYTES) {
            Some(source) if len <= BLIND_COPY_BYTES => data[at..at + BLIND_COPY_BYTES].copy_from_slice(source),
            _ => data[at..at + len].copy_from_slice(&suffixes.data[from..to]),
        }
        at += len;
        previous = string;
    }
    out.data.truncate(end);
    if skipped > 0 {
        let first = out.offsets[first_offset + skipped - 1] as usize;
        out.data.drain(start..first);
        out.offsets.drain(first_offset..first_offset + skipped);
        out.offsets[first_offset..].iter_mut().for_each(|offset| *offset -= (first - start) as u32);
    }
    Ok(())
}

/// Appends where each string will end, counted from `start` on, and returns where the last does.
fn measure(shared: &[u32], suffixes: BytesView<'_>, start: usize, out: &mut BytesBuf) -> Result<usize> {
    let (mut len, mut end) = (0, start);
    out.offsets.reserve(shared.len());
    for (row, (&shared, ends)) in shared.iter().zip(suffixes.offsets.windows(2)).enumerate() {
        let shared = shared_at(row, shared);
        if shared > len {
            return Err(Error::damaged("front", format!("a string shares {shared} bytes with one of {len}")));
        }
        len = shared + (ends[1] - ends[0]) as usize;
        end += len;
        out.offsets.push(end as u32);
    }
    if end > DECODED_BYTES_MAX {
        return Err(Error::damaged("front", format!("{end} bytes decoded at once pass the limit of 1 GiB")));
    }
    Ok(end)
}

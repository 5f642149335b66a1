//! Copies many short strings from here and there: what decoding a dictionary of strings is.

use crate::values::DECODED_BYTES_MAX;
use crate::{BytesBuf, BytesView, Error, Result};

/// Strings up to this length are copied as so many bytes, whatever their length: two instructions in place of a call.
const BLIND_COPY_BYTES: usize = 16;

/// Appends the values at `indices`, all of which `view` has. An error of `place` where they pass 1 GiB.
pub(crate) fn pick<I: Copy + Into<u32>>(
    view: BytesView<'_>,
    indices: &[I],
    out: &mut BytesBuf,
    place: &'static str,
) -> Result<()> {
    let start = out.data.len();
    let first_offset = out.offsets.len();
    let mut end = start;
    out.offsets.extend(indices.iter().map(|&index| {
        let index = index.into() as usize;
        end += (view.offsets[index + 1] - view.offsets[index]) as usize;
        end as u32
    }));
    if end > DECODED_BYTES_MAX {
        out.offsets.truncate(first_offset);
        return Err(Error::damaged(place, format!("{end} bytes decoded at once pass the limit of 1 GiB")));
    }
    out.data.resize(end + BLIND_COPY_BYTES, 0);
    let mut at = start;
    for &index in indices {
        let index = index.into() as usize;
        let (from, to) = (view.offsets[index] as usize, view.offsets[index + 1] as usize);
        let len = to - from;
        match view.data.get(from..from + BLIND_COPY_BYTES) {
            Some(source) if len <= BLIND_COPY_BYTES => out.data[at..at + BLIND_COPY_BYTES].copy_from_slice(source),
            _ => out.data[at..at + len].copy_from_slice(&view.data[from..to]),
        }
        at += len;
    }
    out.data.truncate(end);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_short_strings_come_in_the_order_asked_for() {
        let strings = ["", "a", "sixteen bytes...", "more than sixteen bytes", "last"];
        let all: BytesBuf = strings.iter().map(|string| string.as_bytes()).collect();
        let mut picked = BytesBuf::default();
        picked.push(b"before");
        pick(all.view(), &[4u8, 3, 0, 2, 1, 4], &mut picked, "test").unwrap();
        let expected: BytesBuf = ["before", strings[4], strings[3], strings[0], strings[2], strings[1], strings[4]]
            .iter()
            .map(|s| s.as_bytes())
            .collect();
        assert_eq!(picked, expected);
    }
}

//! Raw: plain values, little-endian. The scheme that holds everything and is quickest to write.
//!
//! Input: any type, any count. Output: docs/format/codecs/raw.md. Cost: a copy.

use crate::encoder::Encoder;
use crate::fixed::{Fixed, for_fixed};
use crate::node::{Node, PAYLOAD_AT};
use crate::sample::Sample;
use crate::scheme::{DecodeCost, Reader, Scheme};
use crate::scratch::Scratch;
use crate::values_mut::ValuesMut;
use crate::{BytesBuf, Error, Physical, Result, Values};
use std::ops::Range;

/// The scheme.
#[derive(Debug)]
pub(crate) struct Raw;

/// Bytes of an offset.
const OFFSET_BYTES: usize = 4;

impl Scheme for Raw {
    fn name(&self) -> &'static str {
        "raw"
    }

    fn holds(&self, _physical: Physical) -> bool {
        true
    }

    fn decode_rank(&self) -> u32 {
        1
    }

    fn decode_cost(&self, physical: Physical) -> DecodeCost {
        match physical {
            Physical::Bytes => DecodeCost { value: 1.5, byte: 0.025 },
            _ => DecodeCost::of_value(0.25),
        }
    }

    fn estimate(&self, sample: &Sample<'_>, _encoder: &Encoder<'_>) -> Option<usize> {
        let payload_bytes = match sample.values() {
            Values::Bytes(view) => OFFSET_BYTES * (sample.whole_count() + 1) + sample.scale(view.data_bytes()),
            values => values.physical().value_bytes()? * sample.whole_count(),
        };
        Some(PAYLOAD_AT + payload_bytes)
    }

    fn encode(&self, values: Values<'_>, _encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        fn fixed<T: Fixed>(values: &[T], out: &mut Vec<u8>) {
            out.reserve(values.len() * T::BYTES);
            values.iter().for_each(|value| value.write(out));
        }
        for_fixed!(Values, values, values => fixed(values, out), view => {
            let first = view.offsets[0];
            for offset in view.offsets {
                out.extend_from_slice(&(offset - first).to_le_bytes());
            }
            let last = view.offsets[view.offsets.len() - 1];
            out.extend_from_slice(&view.data[first as usize..last as usize]);
        });
        Ok(())
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        let mut cursor = node.cursor();
        match node.physical.value_bytes() {
            Some(bytes) => {
                let values = cursor.take(bytes * node.value_count, "values")?;
                cursor.finish()?;
                Ok(Box::new(RawFixed { values }))
            }
            None => {
                let offsets = cursor.take(OFFSET_BYTES * (node.value_count + 1), "offsets")?;
                let reader = RawBytes { offsets, data: cursor.rest() };
                if reader.offset(node.value_count) != reader.data.len() || reader.offset(0) != 0 {
                    let (found, last) = (reader.data.len(), reader.offset(node.value_count));
                    return Err(cursor.damaged(format!("its offsets end at {last}, its data at {found}")));
                }
                Ok(Box::new(reader))
            }
        }
    }
}

#[derive(Debug)]
struct RawFixed<'a> {
    values: &'a [u8],
}

impl Reader for RawFixed<'_> {
    fn describe(&self) -> String {
        "raw".to_owned()
    }

    fn decode(&self, range: Range<usize>, out: ValuesMut<'_>, _scratch: &mut Scratch) -> Result<()> {
        fn fixed<T: Fixed>(values: &[u8], start: usize, out: &mut [T]) {
            let values = &values[start * T::BYTES..(start + out.len()) * T::BYTES];
            for (out, value) in out.iter_mut().zip(values.chunks_exact(T::BYTES)) {
                *out = T::read(value);
            }
        }
        for_fixed!(ValuesMut, out, out => fixed(self.values, range.start, out), _ => unreachable!("bytes have a reader of their own"));
        Ok(())
    }

    fn gather(&self, rows: &[u32], out: ValuesMut<'_>, _scratch: &mut Scratch) -> Result<()> {
        fn fixed<T: Fixed>(values: &[u8], rows: &[u32], out: &mut [T]) {
            for (out, &row) in out.iter_mut().zip(rows) {
                *out = T::read(&values[row as usize * T::BYTES..]);
            }
        }
        for_fixed!(ValuesMut, out, out => fixed(self.values, rows, out), _ => unreachable!("bytes have a reader of their own"));
        Ok(())
    }
}

#[derive(Debug)]
struct RawBytes<'a> {
    offsets: &'a [u8],
    data: &'a [u8],
}

impl RawBytes<'_> {
    fn offset(&self, index: usize) -> usize {
        u32::read(&self.offsets[index * OFFSET_BYTES..]) as usize
    }

    fn value(&self, row: usize) -> Result<&[u8]> {
        let (start, end) = (self.offset(row), self.offset(row + 1));
        self.data.get(start..end).ok_or_else(|| self.misplaced(row))
    }

    fn misplaced(&self, row: usize) -> Error {
        let (start, end) = (self.offset(row), self.offset(row + 1));
        Error::damaged("raw", format!("value {row} lies at {start}..{end} of {} bytes", self.data.len()))
    }

    /// Ascending offsets let a whole range be copied at once.
    fn decode_range(&self, range: Range<usize>, buf: &mut BytesBuf) -> Result<()> {
        let (first, last) = (self.offset(range.start), self.offset(range.end));
        let data = self.data.get(first..last).ok_or_else(|| self.misplaced(range.start))?;
        let base = buf.data.len();
        let mut previous = first;
        for row in range.clone() {
            let end = self.offset(row + 1);
            if end < previous || end > last {
                return Err(self.misplaced(row));
            }
            previous = end;
            buf.offsets.push((base + end - first) as u32);
        }
        buf.data.extend_from_slice(data);
        Ok(())
    }
}

impl Reader for RawBytes<'_> {
    fn describe(&self) -> String {
        "raw".to_owned()
    }

    fn decode(&self, range: Range<usize>, out: ValuesMut<'_>, _scratch: &mut Scratch) -> Result<()> {
        let ValuesMut::Bytes(buf) = out else { unreachable!("only for bytes") };
        let start = buf.offsets.len();
        let decoded = self.decode_range(range, buf);
        if decoded.is_err() {
            buf.offsets.truncate(start);
        }
        decoded
    }

    fn gather(&self, rows: &[u32], out: ValuesMut<'_>, _scratch: &mut Scratch) -> Result<()> {
        let ValuesMut::Bytes(buf) = out else { unreachable!("only for bytes") };
        for &row in rows {
            buf.push_decoded(self.value(row as usize)?, "raw")?;
        }
        Ok(())
    }
}

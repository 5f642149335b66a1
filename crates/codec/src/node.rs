//! A node: values in one scheme, with a small header; the brick that blocks are built from.
//!
//! ```text
//! +--------+----------+-------------+---------------+---------------------+
//! | scheme | physical | value_count | payload_bytes | payload ...         |
//! |   u8   |    u8    |     u32     |      u32      | may hold more nodes |
//! +--------+----------+-------------+---------------+---------------------+
//! ```
//!
//! The layout is in docs/format/block.md; a test holds the page and the constants here together.

use crate::condition::{Condition, Prepared};
use crate::scheme::{DecodeCost, Reader};
use crate::schemes::{SchemeEntry, scheme_by_tag};
use crate::scratch::Scratch;
use crate::values_mut::ValuesMut;
use crate::{Bitmap, Error, Physical, ROW_GROUP_LEN, Result, ValuesBuf};
use std::ops::Range;

pub(crate) const SCHEME_AT: usize = 0;
pub(crate) const PHYSICAL_AT: usize = SCHEME_AT + 1;
pub(crate) const VALUE_COUNT_AT: usize = PHYSICAL_AT + 1;
pub(crate) const PAYLOAD_BYTES_AT: usize = VALUE_COUNT_AT + 4;
pub(crate) const PAYLOAD_AT: usize = PAYLOAD_BYTES_AT + 4;

/// Nodes inside nodes, the outermost counted. Three nestings: `rle(dict(fsst(bitpack)))`.
pub(crate) const LEVELS_MAX: usize = 4;

/// No block claims more values. Constants and runs say much in few bytes; this bounds what a hostile one can ask for.
/// [`crate::encode`] refuses more, so that nothing is written that cannot be read.
pub const VALUE_COUNT_MAX: usize = 16 * ROW_GROUP_LEN;

/// The header of a node and its payload, not yet opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    pub(crate) entry: &'static SchemeEntry,
    pub(crate) physical: Physical,
    pub(crate) value_count: usize,
    pub(crate) payload: &'a [u8],
    /// 1 for the outermost.
    pub(crate) level: usize,
}

impl<'a> Node<'a> {
    /// Reads the header at the start of `bytes`; returns the node and its length in bytes, header included.
    pub(crate) fn parse(bytes: &'a [u8], level: usize) -> Result<(Node<'a>, usize)> {
        let mut cursor = Cursor { place: "node header", bytes, level };
        let tag = cursor.u8("scheme")?;
        let physical = cursor.u8("physical type")?;
        let value_count = cursor.u32("value count")? as usize;
        let payload_bytes = cursor.u32("payload length")? as usize;
        let entry = scheme_by_tag(tag)?;
        let physical = Physical::from_tag(physical)
            .ok_or_else(|| Error::damaged("node header", format!("there is no physical type {physical}")))?;
        if !entry.holds(physical) {
            let what = format!("it claims {} values, which the scheme cannot hold", physical.name());
            return Err(Error::damaged(entry.name, what));
        }
        if value_count > VALUE_COUNT_MAX {
            let what = format!("it claims {value_count} values, at most {VALUE_COUNT_MAX} are possible");
            return Err(Error::damaged(entry.name, what));
        }
        if level > LEVELS_MAX {
            return Err(Error::damaged(entry.name, format!("it is nested deeper than {LEVELS_MAX} levels")));
        }
        cursor.place = entry.name;
        let payload = cursor.take(payload_bytes, "payload")?;
        Ok((Node { entry, physical, value_count, payload, level }, PAYLOAD_AT + payload_bytes))
    }

    /// Checks the payload.
    pub(crate) fn open(self) -> Result<Opened<'a>> {
        let Node { entry, physical, value_count, payload, .. } = self;
        Ok(Opened { entry, physical, value_count, payload_bytes: payload.len(), reader: entry.scheme.open(self)? })
    }

    /// A cursor over the payload.
    pub(crate) fn cursor(&self) -> Cursor<'a> {
        Cursor { place: self.entry.name, bytes: self.payload, level: self.level }
    }
}

/// An opened node with its scheme, type and count.
#[derive(Debug)]
pub(crate) struct Opened<'a> {
    pub(crate) entry: &'static SchemeEntry,
    pub(crate) physical: Physical,
    pub(crate) value_count: usize,
    pub(crate) payload_bytes: usize,
    pub(crate) reader: Box<dyn Reader + 'a>,
}

impl Opened<'_> {
    /// About how long it takes to decode all values, parts included, in nanoseconds.
    pub(crate) fn decode_nanos(&self) -> f64 {
        let DecodeCost { value, byte } = self.entry.scheme.decode_cost(self.physical);
        let own = value * self.value_count as f64 + byte * self.own_bytes() as f64;
        own + self.reader.parts().into_iter().map(Opened::decode_nanos).sum::<f64>()
    }

    /// Bytes of the payload without its parts, whose headers are theirs.
    fn own_bytes(&self) -> usize {
        let parts = self.reader.parts();
        self.payload_bytes - parts.iter().map(|part| PAYLOAD_AT + part.payload_bytes).sum::<usize>()
    }

    /// [`Reader::decode`] into a buffer.
    pub(crate) fn decode_into(&self, range: Range<usize>, out: &mut ValuesBuf, scratch: &mut Scratch) -> Result<()> {
        let out = ValuesMut::over(out, self.physical, range.len());
        self.reader.decode(range, out, scratch)
    }

    /// [`Reader::prepare`], unless the condition decides by itself.
    pub(crate) fn prepare(&self, condition: &Condition, scratch: &mut Scratch) -> Result<Prepared> {
        match condition {
            Condition::Never | Condition::Always => Ok(Prepared::plain(condition.clone())),
            condition => self.reader.prepare(condition, scratch),
        }
    }

    /// [`Reader::filter`], unless the condition decides by itself or [`Reader::decides`] spares it.
    pub(crate) fn filter(
        &self,
        range: Range<usize>,
        prepared: &Prepared,
        out: &mut Bitmap,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        match prepared.condition {
            Condition::Never | Condition::Always => {
                out.extend_with(range.len(), prepared.condition == Condition::Always);
                Ok(true)
            }
            _ => match self.reader.decides(range.clone(), prepared)? {
                Some(passes) => {
                    out.extend_with(range.len(), passes);
                    Ok(true)
                }
                None => self.reader.filter(range, prepared, self.physical, out, scratch),
            },
        }
    }
}

/// Appends a node header, lets `write` append the payload, and fills in its length.
///
/// # Panics
/// When the payload passes 4 GiB: what is encoded is bounded before.
pub(crate) fn write_node(
    tag: u8,
    physical: Physical,
    value_count: usize,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let start = out.len();
    out.push(tag);
    out.push(physical as u8);
    out.extend_from_slice(&(value_count as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    write(out)?;
    let payload_bytes = u32::try_from(out.len() - start - PAYLOAD_AT).expect("a node holds less than 4 GiB");
    out[start + PAYLOAD_BYTES_AT..start + PAYLOAD_AT].copy_from_slice(&payload_bytes.to_le_bytes());
    Ok(())
}

/// Reads a payload from front to back; everything missing is an error that names the place.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    pub(crate) place: &'static str,
    pub(crate) bytes: &'a [u8],
    pub(crate) level: usize,
}

impl<'a> Cursor<'a> {
    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: usize, what: &str) -> Result<&'a [u8]> {
        if len > self.bytes.len() {
            let what = format!("{what} needs {len} bytes, {} are there", self.bytes.len());
            return Err(Error::damaged(self.place, what));
        }
        let (taken, rest) = self.bytes.split_at(len);
        self.bytes = rest;
        Ok(taken)
    }

    /// The next byte.
    pub(crate) fn u8(&mut self, what: &str) -> Result<u8> {
        Ok(self.take(1, what)?[0])
    }

    /// The next four bytes as a number.
    pub(crate) fn u32(&mut self, what: &str) -> Result<u32> {
        let taken = self.take(4, what)?;
        Ok(u32::from_le_bytes([taken[0], taken[1], taken[2], taken[3]]))
    }

    /// All that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// The next node: a part of this payload that holds values itself.
    pub(crate) fn part(&mut self) -> Result<Opened<'a>> {
        let (node, len) = Node::parse(self.bytes, self.level + 1)?;
        self.bytes = &self.bytes[len..];
        node.open()
    }

    /// An error unless all was read.
    pub(crate) fn finish(self) -> Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        Err(Error::damaged(self.place, format!("{} bytes are left over at its end", self.bytes.len())))
    }

    /// An error of this place.
    pub(crate) fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(self.place, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes::SCHEMES;
    use crate::{Block, BytesBuf, Choice, Values, encode};

    const ROWS: usize = 3000;

    /// Paths in order: what each shares with the one before, and what is left of it, are parts.
    fn paths() -> BytesBuf {
        let mut paths = BytesBuf::default();
        for row in 0..ROWS {
            paths.push(format!("/usr/share/doc/package-{:05}/file{:02}.html", row / 7, row % 7 * 5).as_bytes());
        }
        paths
    }

    fn written(scheme: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let choice = Choice::Forced(scheme.to_owned());
        encode(Values::Bytes(paths().view()), None, &choice, &mut bytes).unwrap();
        bytes
    }

    /// The bytes of a node and of its parts, all that are their own, and the headers between.
    fn counted(node: &Opened<'_>) -> usize {
        let parts = node.reader.parts();
        node.own_bytes() + parts.into_iter().map(|part| PAYLOAD_AT + counted(part)).sum::<usize>()
    }

    #[test]
    fn each_byte_of_a_cascade_is_decoded_once() {
        for entry in SCHEMES.iter().filter(|entry| entry.holds(Physical::Bytes)) {
            let bytes = written(entry.name);
            let block = Block::open(&bytes).unwrap();
            assert_eq!(counted(&block.values), block.values.payload_bytes, "{}", block.describe());
        }
    }

    #[test]
    fn a_node_costs_what_its_own_bytes_do_and_its_parts() {
        for (scheme, has_own_bytes) in [("raw", true), ("fsst", true), ("front", false), ("dict", false)] {
            let bytes = written(scheme);
            let block = Block::open(&bytes).unwrap();
            let (node, layout) = (&block.values, block.describe());
            assert_eq!(node.entry.name, scheme, "{layout}");
            assert_eq!(node.own_bytes() > 0, has_own_bytes, "{layout}");
            let parts = node.reader.parts();
            assert_eq!(node.own_bytes() == node.payload_bytes, parts.is_empty(), "{layout}");
            let DecodeCost { value, byte } = node.entry.scheme.decode_cost(Physical::Bytes);
            let own = value * ROWS as f64 + byte * node.own_bytes() as f64;
            let all = own + parts.into_iter().map(Opened::decode_nanos).sum::<f64>();
            assert_eq!(block.decode_nanos(), all, "{layout}");
        }
    }
}

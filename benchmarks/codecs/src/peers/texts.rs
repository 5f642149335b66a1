//! Peers for strings: fsst-rs, and codecs of bytes over all strings together.
//!
//! What a library leaves to its user, the lengths of strings, is added in our packed form, and undone with it.

use super::byte_codecs::ByteCodec;
use crate::Failure;
use crate::codec::{Codec, Opened};
use sinter_codec::{Block, BytesBuf, BytesView, Choice, Values, ValuesBuf, encode};
use std::mem::MaybeUninit;

/// Lengths in our packed form, after their own length in bytes.
fn write_lengths(texts: BytesView<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
    let lengths: Vec<u32> = texts.iter().map(|text| text.len() as u32).collect();
    let mut packed = Vec::new();
    encode(Values::U32(&lengths), None, &Choice::Forced("for".to_owned()), &mut packed)?;
    out.extend_from_slice(&(packed.len() as u64).to_le_bytes());
    out.extend_from_slice(&packed);
    Ok(())
}

/// The lengths, and the bytes behind them.
fn open_lengths(bytes: &[u8]) -> Result<(Block<'_>, &[u8]), Failure> {
    let (length, rest) = bytes.split_at(8);
    let (packed, rest) = rest.split_at(u64::from_le_bytes(length.try_into()?) as usize);
    Ok((Block::open(packed)?, rest))
}

/// Room for all strings together, with their ends set.
fn room<'o>(lengths: &Block<'_>, out: &'o mut ValuesBuf) -> &'o mut Vec<u8> {
    let mut buf = ValuesBuf::U32(Vec::new());
    lengths.decode(0..lengths.value_count(), &mut buf).expect("it was just encoded");
    let (ValuesBuf::U32(lengths), ValuesBuf::Bytes(BytesBuf { offsets, data })) = (buf, out) else {
        panic!("strings and their lengths")
    };
    let mut end = 0;
    offsets.clear();
    offsets.push(0);
    offsets.extend(lengths.iter().map(|length| {
        end += length;
        end
    }));
    data.resize(end as usize, 0);
    data
}

fn texts(values: Values<'_>) -> Result<BytesView<'_>, Failure> {
    match values {
        Values::Bytes(view) => Ok(view),
        other => Err(format!("{} values are no strings", other.physical().name()).into()),
    }
}

/// Crate fsst-rs: a table of 255 symbols for all strings of a block (Boncz, Neumann and Leis, VLDB 2020).
pub struct Fsst;

impl Codec for Fsst {
    fn name(&self) -> String {
        "fsst-rs".to_owned()
    }

    fn encode(&mut self, values: Values<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let view = texts(values)?;
        write_lengths(view, out)?;
        let lines: Vec<&[u8]> = view.iter().collect();
        let compressor = fsst::Compressor::train(&lines);
        let symbols = compressor.symbol_table();
        out.push(symbols.len() as u8);
        out.extend_from_slice(compressor.symbol_lengths());
        symbols.iter().for_each(|symbol| out.extend_from_slice(&symbol.to_u64().to_le_bytes()));
        compressor.compress_bulk(&lines).iter().for_each(|line| out.extend_from_slice(line));
        Ok(())
    }

    fn open<'b>(&self, bytes: &'b [u8], _value_count: usize) -> Result<Box<dyn Opened + 'b>, Failure> {
        let (lengths, rest) = open_lengths(bytes)?;
        let (count, rest) = rest.split_at(1);
        let (symbol_lengths, rest) = rest.split_at(count[0].into());
        let (symbols, codes) = rest.split_at(8 * usize::from(count[0]));
        let mut table = ([fsst::Symbol::ZERO; 255], [0; 255]);
        for (place, (symbol, &length)) in symbols.as_chunks::<8>().0.iter().zip(symbol_lengths).enumerate() {
            (table.0[place], table.1[place]) = (fsst::Symbol::from_slice(symbol), length);
        }
        Ok(Box::new(Coded { lengths, table, codes }))
    }
}

struct Coded<'b> {
    lengths: Block<'b>,
    /// Symbols and their lengths.
    table: ([fsst::Symbol; 255], [u8; 255]),
    codes: &'b [u8],
}

impl Opened for Coded<'_> {
    fn whole(&self, out: &mut ValuesBuf) {
        let data = room(&self.lengths, out);
        let length = data.len();
        let decompressor = fsst::Decompressor::new(&self.table.0, &self.table.1);
        data.clear();
        data.reserve(decompressor.max_decompression_capacity(self.codes) + 8);
        let written = decompressor.decompress_into(self.codes, data.spare_capacity_mut());
        assert_eq!(written, length, "fsst-rs lost bytes");
        set_written(data, written);
    }
}

/// Takes over what the library wrote behind the end of `data`.
fn set_written(data: &mut Vec<u8>, written: usize) {
    let _: &[MaybeUninit<u8>] = &data.spare_capacity_mut()[..written];
    // SAFETY: `decompress_into` returns how many bytes it wrote from the start of the spare capacity, which was empty.
    #[expect(unsafe_code, reason = "fsst-rs writes to memory that nobody has set")]
    unsafe {
        data.set_len(data.len() + written);
    }
}

/// A codec of bytes over all strings together.
pub(crate) struct Joined<C> {
    codec: C,
}

impl<C: ByteCodec> Joined<C> {
    pub(crate) fn new(codec: C) -> Joined<C> {
        Joined { codec }
    }
}

impl<C: ByteCodec> Codec for Joined<C> {
    fn name(&self) -> String {
        self.codec.name().to_owned()
    }

    fn encode(&mut self, values: Values<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let view = texts(values)?;
        write_lengths(view, out)?;
        self.codec.press(view.data, out)
    }

    fn open<'b>(&self, bytes: &'b [u8], _value_count: usize) -> Result<Box<dyn Opened + 'b>, Failure> {
        let (lengths, pressed) = open_lengths(bytes)?;
        Ok(Box::new(Pressed { codec: self.codec.clone(), lengths, pressed }))
    }
}

struct Pressed<'b, C> {
    codec: C,
    lengths: Block<'b>,
    pressed: &'b [u8],
}

impl<C: ByteCodec> Opened for Pressed<'_, C> {
    fn whole(&self, out: &mut ValuesBuf) {
        self.codec.restore(self.pressed, room(&self.lengths, out)).expect("it was just encoded");
    }
}

/// Copies strings.
pub struct CopyTexts;

impl Codec for CopyTexts {
    fn name(&self) -> String {
        "memcpy".to_owned()
    }

    fn encode(&mut self, values: Values<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let view = texts(values)?;
        out.extend_from_slice(bytemuck::cast_slice(view.offsets));
        out.extend_from_slice(view.data);
        Ok(())
    }

    fn open<'b>(&self, bytes: &'b [u8], value_count: usize) -> Result<Box<dyn Opened + 'b>, Failure> {
        let (offsets, data) = bytes.split_at(4 * (value_count + 1));
        Ok(Box::new(PlainTexts { offsets: bytemuck::cast_slice(offsets), data }))
    }
}

struct PlainTexts<'b> {
    offsets: &'b [u32],
    data: &'b [u8],
}

impl Opened for PlainTexts<'_> {
    fn whole(&self, out: &mut ValuesBuf) {
        let ValuesBuf::Bytes(BytesBuf { offsets, data }) = out else { panic!("a buffer for strings") };
        offsets.clear();
        data.clear();
        offsets.extend_from_slice(self.offsets);
        data.extend_from_slice(self.data);
    }
}

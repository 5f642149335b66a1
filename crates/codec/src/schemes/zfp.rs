//! ZFP: floats of smooth curves, four at a time as integers under one exponent, decorrelated, and only the bits of them
//! that differ from zero.
//!
//! Lindstrom, IEEE TVCG 2014; the reversible mode of zfp 1.0, which gives back every bit. We take each vector as one
//! array of one dimension, so that any vector is read without the others. Where the paper bounds the error while it
//! cuts off bits, `zfp(0.01)` rounds values to multiples of a power of two before ([`crate::loss`]) and keeps those
//! exactly: bits that rounding made zero cost nothing here either, the bound holds for each value, and pressing again
//! loses no more.
//!
//! Streams are written and read by the crate zfp-rs, which has no C in it. They are 64-bit words, little-endian on disk
//! whatever the host is. Bytes from disk may be anything: zfp-rs gets a copy of the words of just one stream, reads
//! zeros behind its end and then says that it did, and its work is bounded by the values to fill, not by what a stream
//! says. What is left to check here are lengths: no stream is longer than that of a whole vector can be, and values
//! that end before their stream does are an error as much as those that end behind it.
//!
//! Input: `f32`, `f64`. Output: docs/format/codecs/zfp.md. Never chosen unasked, since builds without the feature could
//! not read it. Cost: some 30 to 60 million values a second, half as many to encode, and all of a vector for one of its
//! values. In one dimension ZFP has little to work on: on all curves that we tried (sines and walks of several steps,
//! in both widths) what is chosen unasked takes fewer bytes for the same bits, `quantise` fewer for the same bound, and
//! both decode some fifty times as fast. It is here to be compared with, and for who must keep what zfp keeps.

use crate::encoder::Encoder;
use crate::fixed::Fixed;
use crate::loss::Loss;
use crate::node::Node;
use crate::sample::Sample;
use crate::scaled::Point;
use crate::scheme::{DecodeCost, Reader, Scheme, unsuitable};
use crate::scratch::Scratch;
use crate::values_mut::{Native, ValuesMut};
use crate::{Error, Physical, Result, VECTOR_LEN, Values};
use std::marker::PhantomData;
use std::ops::Range;
use zfp_rs::{ZfpBitStream, ZfpBitStreamRef, ZfpConfig, ZfpField, ZfpFieldMut, ZfpScalar};

/// A stream has at most so many times the bytes of a whole vector, plain. What zfp writes has 1.15 times as many at
/// most.
const STREAM_BOUND: usize = 2;

/// The scheme.
#[derive(Debug)]
pub(crate) struct Zfp;

impl Scheme for Zfp {
    fn name(&self) -> &'static str {
        "zfp"
    }

    fn holds(&self, physical: Physical) -> bool {
        matches!(physical, Physical::F32 | Physical::F64)
    }

    fn decode_rank(&self) -> u32 {
        60
    }

    fn decode_cost(&self, _physical: Physical) -> DecodeCost {
        DecodeCost::of_value(35.0)
    }

    fn is_direct(&self) -> bool {
        false
    }

    fn parameter(&self) -> Option<&'static str> {
        Some("the distance that values may read back at, above zero, such as zfp(0.01)")
    }

    fn loss(&self, parameter: &str) -> Option<Loss> {
        let bound: f64 = parameter.parse().ok()?;
        Some(Loss::Steps(Point::of_step(power_of_two_within(2.0 * bound)?)?))
    }

    fn estimate(&self, _sample: &Sample<'_>, _encoder: &Encoder<'_>) -> Option<usize> {
        None // only where it is asked for
    }

    fn encode(&self, values: Values<'_>, _encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        let written = match values {
            Values::F32(values) => write(values, out),
            Values::F64(values) => write(values, out),
            _ => None,
        };
        written.ok_or_else(|| unsuitable(self, values.physical()))
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        let mut cursor = node.cursor();
        let directory = cursor.take(node.value_count.div_ceil(VECTOR_LEN) * u32::BYTES, "lengths of streams")?;
        let value_bytes = node.physical.value_bytes().unwrap_or_default();
        let stream_bytes_max = STREAM_BOUND * VECTOR_LEN * value_bytes;
        let mut ends = Vec::with_capacity(directory.len() / u32::BYTES);
        let mut end = 0usize;
        for stream_bytes in directory.chunks_exact(u32::BYTES).map(|bytes| u32::read(bytes) as usize) {
            if stream_bytes == 0 || !stream_bytes.is_multiple_of(u64::BYTES) || stream_bytes > stream_bytes_max {
                let right = format!("multiples of 8 up to {stream_bytes_max}");
                return Err(cursor.damaged(format!("a stream of {stream_bytes} bytes, where lengths are {right}")));
            }
            end = end.saturating_add(stream_bytes);
            ends.push(end);
        }
        let streams = cursor.take(end, "streams")?;
        cursor.finish()?;
        let value_count = node.value_count;
        Ok(match node.physical {
            Physical::F32 => Box::new(ZfpReader { ends, streams, value_count, native: PhantomData::<f32> }),
            _ => Box::new(ZfpReader { ends, streams, value_count, native: PhantomData::<f64> }),
        })
    }
}

/// The greatest power of two that is not above `limit`; `None` where that is no normal number.
fn power_of_two_within(limit: f64) -> Option<f64> {
    const FRACTION: u64 = (1 << 52) - 1;
    (limit.is_normal() && limit > 0.0).then(|| f64::from_bits(limit.to_bits() & !FRACTION))
}

/// Appends the lengths of all streams, then the streams. `None` where values would not come back to the bit.
fn write<T: Native + ZfpScalar>(values: &[T], out: &mut Vec<u8>) -> Option<()> {
    let config = ZfpConfig::reversible();
    let capacity = config.maximum_size(T::SCALAR_TYPE, [values.len().min(VECTOR_LEN)])?;
    let mut stream = ZfpBitStream::new(capacity).ok()?;
    let mut streams = Vec::new();
    let mut read_back = [T::default(); VECTOR_LEN];
    for vector in values.chunks(VECTOR_LEN) {
        stream.rewind();
        stream.compress(&config, &ZfpField::new(vector, [vector.len()]).ok()?).ok()?;
        let read_back = &mut read_back[..vector.len()];
        decompress(stream.as_words(), read_back).ok()?;
        if vector.iter().zip(&*read_back).any(|(value, read)| value.bits() != read.bits()) {
            return None;
        }
        let begun = streams.len();
        for word in stream.as_words() {
            word.write(&mut streams);
        }
        u32::try_from(streams.len() - begun).ok()?.write(out);
    }
    out.extend_from_slice(&streams);
    Some(())
}

/// Fills `out` from a stream, which may be anything.
fn decompress<T: Native + ZfpScalar>(stream: &[u64], out: &mut [T]) -> Result<()> {
    let (len, stream_bytes) = (out.len(), stream.len() * u64::BYTES);
    let damaged = |what: String| Error::damaged("zfp", format!("a stream of {stream_bytes} bytes: {what}"));
    let mut field = ZfpFieldMut::new(out, [len]).map_err(|error| damaged(error.to_string()))?;
    let taken = ZfpBitStreamRef::from_words(stream).decompress(&ZfpConfig::reversible(), &mut field);
    match taken {
        Ok(taken) if taken == stream_bytes => Ok(()),
        Ok(taken) => Err(damaged(format!("its {len} values end after {taken}"))),
        Err(error) => Err(damaged(error.to_string())),
    }
}

/// Streams, one for each vector.
#[derive(Debug)]
struct ZfpReader<'a, T> {
    /// Where each ends among them.
    ends: Vec<usize>,
    streams: &'a [u8],
    value_count: usize,
    native: PhantomData<T>,
}

/// Room for one vector on its way.
struct Vector<'v, T> {
    /// The words of its stream.
    words: &'v mut Vec<u64>,
    /// Its values.
    values: &'v mut Vec<T>,
}

impl<T: Native + ZfpScalar> ZfpReader<'_, T> {
    /// Unpacks all values of a vector into `room`.
    fn unpack(&self, vector: usize, room: &mut Vector<'_, T>) -> Result<()> {
        let start = vector.checked_sub(1).map_or(0, |before| self.ends[before]);
        let stream = &self.streams[start..self.ends[vector]];
        room.words.clear();
        room.words.extend(stream.chunks_exact(u64::BYTES).map(u64::read));
        room.values.resize((self.value_count - vector * VECTOR_LEN).min(VECTOR_LEN), T::default());
        decompress(room.words, room.values)
    }

    fn decode_with(&self, range: Range<usize>, mut out: &mut [T], room: &mut Vector<'_, T>) -> Result<()> {
        let mut start = range.start;
        while start < range.end {
            let (vector, first) = (start / VECTOR_LEN, start % VECTOR_LEN);
            self.unpack(vector, room)?;
            let len = (room.values.len() - first).min(range.end - start);
            let (part, rest) = std::mem::take(&mut out).split_at_mut(len);
            part.copy_from_slice(&room.values[first..first + len]);
            (out, start) = (rest, start + len);
        }
        Ok(())
    }

    /// Returns how many values were unpacked for it.
    fn gather_with(&self, rows: &[u32], out: &mut [T], room: &mut Vector<'_, T>) -> Result<usize> {
        let (mut unpacked, mut unpacked_count) = (None, 0);
        for (out, &row) in out.iter_mut().zip(rows) {
            let (vector, index) = (row as usize / VECTOR_LEN, row as usize % VECTOR_LEN);
            if unpacked != Some(vector) {
                self.unpack(vector, room)?;
                unpacked = Some(vector);
                unpacked_count += room.values.len();
            }
            *out = room.values[index];
        }
        Ok(unpacked_count)
    }
}

/// Calls `work` with room for a vector.
fn with_room<T: Native, R>(scratch: &mut Scratch, work: impl FnOnce(&mut Vector<'_, T>) -> R) -> R {
    let mut words = scratch.take_values(u64::PHYSICAL);
    let mut values = scratch.take_values(T::PHYSICAL);
    let result = work(&mut Vector { words: u64::vec_mut(&mut words), values: T::vec_mut(&mut values) });
    scratch.give_values(words);
    scratch.give_values(values);
    result
}

impl<T: Native + ZfpScalar> Reader for ZfpReader<'_, T> {
    fn describe(&self) -> String {
        "zfp".to_owned()
    }

    fn decode(&self, range: Range<usize>, out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        with_room(scratch, |room| self.decode_with(range, T::slice_mut(out), room))
    }

    fn gather(&self, rows: &[u32], out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        let unpacked = with_room(scratch, |room| self.gather_with(rows, T::slice_mut(out), room))?;
        scratch.decoded_values += unpacked;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, BlockStats, Choice, ValuesBuf, encode};
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    fn encoded(values: &[f64], request: &str) -> (Vec<u8>, BlockStats) {
        let mut bytes = Vec::new();
        let stats = encode(Values::F64(values), None, &Choice::Forced(request.to_owned()), &mut bytes).unwrap();
        (bytes, stats)
    }

    #[test]
    fn a_smooth_curve_becomes_small_and_smaller_where_bits_may_go() {
        let curve: Vec<f64> = (0..5000).map(|row| (f64::from(row) / 300.0).sin() * 20.0).collect();
        let (exact, _) = encoded(&curve, "zfp");
        let (rounded, stats) = encoded(&curve, "zfp(0.001)");
        assert!(exact.len() < 8 * 5000 && rounded.len() < 8 * 1500, "{} and {} bytes", exact.len(), rounded.len());
        let mut values = ValuesBuf::new(Physical::F64);
        Block::open(&rounded).unwrap().decode(0..5000, &mut values).unwrap();
        let ValuesBuf::F64(values) = values else { unreachable!() };
        assert!(curve.iter().zip(&values).all(|(value, read)| (value - read).abs() <= 0.001));
        assert_eq!(encoded(&values, "zfp").1, stats);
        assert_eq!(encoded(&values, "zfp(0.001)").0, rounded, "rounding twice is rounding once");
    }

    #[test]
    fn every_bit_comes_back_from_what_is_no_number() {
        let odd = [
            f64::NAN,
            f64::from_bits(0xfff8_0000_0000_0001),
            f64::from_bits(0x7ff0_0000_0000_0001),
            f64::INFINITY,
            f64::NEG_INFINITY,
            -0.0,
            0.0,
            5e-324,
            -1e-310,
            f64::MAX,
            f64::MIN_POSITIVE,
            0.1,
        ];
        for seed in 0..200usize {
            let values: Vec<f64> =
                (0..9 + seed % 7).map(|row| odd[(row * row + seed * (row + 3)) % odd.len()]).collect();
            let (bytes, _) = encoded(&values, "zfp");
            let block = Block::open(&bytes).unwrap();
            assert_eq!(block.describe(), "zfp");
            let mut read = ValuesBuf::new(Physical::F64);
            block.decode(0..values.len(), &mut read).unwrap();
            let ValuesBuf::F64(read) = read else { unreachable!() };
            assert!(values.iter().zip(&read).all(|(value, read)| value.to_bits() == read.to_bits()), "{values:?}");
        }
    }

    /// What does not come back to the bit is not written.
    #[test]
    fn whatever_bits_floats_have_they_are_held() {
        let mut random = SmallRng::seed_from_u64(3);
        for round in 0..300 {
            let words = noise(&mut random, 1 + round % 40);
            let doubles: Vec<f64> = words.iter().map(|word| f64::from_bits(*word)).collect();
            let singles: Vec<f32> = words.iter().map(|word| f32::from_bits(*word as u32)).collect();
            assert!(write(&doubles, &mut Vec::new()).is_some(), "{doubles:?}");
            assert!(write(&singles, &mut Vec::new()).is_some(), "{singles:?}");
        }
    }

    /// Words that are mostly zeros, mostly ones, or neither.
    fn noise(random: &mut SmallRng, len: usize) -> Vec<u64> {
        let density = random.random_range(0..5);
        let mut word = || match (random.random::<u64>(), random.random::<u64>(), random.random::<u64>()) {
            (a, b, c) if density == 0 => a & b & c,
            (a, b, _) if density == 1 => a & b,
            (a, _, _) if density == 2 => a,
            (a, b, _) if density == 3 => a | b,
            (a, b, c) => a | b | c,
        };
        (0..len).map(|_| word()).collect()
    }

    #[test]
    fn words_that_nobody_wrote_are_values_or_an_error() {
        fn check<T: Native + ZfpScalar>(stream: &[u64], len: usize, read: &mut [usize; 2]) {
            let mut values = vec![T::default(); len];
            let decoded = decompress(stream, &mut values);
            assert!(decoded.is_ok() || matches!(decoded, Err(Error::Damaged { .. })));
            read[usize::from(decoded.is_ok())] += 1;
        }
        let mut random = SmallRng::seed_from_u64(1);
        let mut read = [0; 2];
        for round in 0..20_000 {
            let len = [1, 2, 4, 5, 31, VECTOR_LEN - 1, VECTOR_LEN][round % 7];
            let stream_max = if len < 32 { 20 } else { STREAM_BOUND * VECTOR_LEN };
            let stream_len = random.random_range(0..=stream_max);
            let stream = noise(&mut random, stream_len);
            check::<f32>(&stream, len, &mut read);
            check::<f64>(&stream, len, &mut read);
        }
        for word in [0, u64::MAX, 1, 2, 3, 1 << 63] {
            for stream_len in [0, 1, 2, 3, STREAM_BOUND * VECTOR_LEN] {
                check::<f32>(&vec![word; stream_len], VECTOR_LEN, &mut read);
                check::<f64>(&vec![word; stream_len], VECTOR_LEN, &mut read);
            }
        }
        assert!(read[0] > 1000 && read[1] > 1000, "{read:?} errors and values");
    }

    #[test]
    fn a_stream_that_ends_too_early_or_too_late_is_an_error() {
        fn check<T: Native + ZfpScalar>(values: &[T]) {
            let mut bytes = Vec::new();
            write(values, &mut bytes).unwrap();
            let stream: Vec<u64> = bytes[u32::BYTES..].chunks_exact(u64::BYTES).map(u64::read).collect();
            let mut read = vec![T::default(); values.len()];
            decompress(&stream, &mut read).unwrap();
            for len in 0..stream.len() {
                let error = decompress(&stream[..len], &mut read).unwrap_err();
                assert!(matches!(error, Error::Damaged { .. }), "{len} words of {}: {error}", stream.len());
            }
            for more in [0, u64::MAX] {
                let longer: Vec<u64> = stream.iter().copied().chain([more]).collect();
                let message = format!("its {} values end after {}", values.len(), bytes.len() - u32::BYTES);
                assert!(decompress(&longer, &mut read).unwrap_err().to_string().ends_with(&message));
            }
        }
        let mut random = SmallRng::seed_from_u64(2);
        for len in [1, 3, 4, 5, 100, VECTOR_LEN] {
            let curve: Vec<f64> = (0..len).map(|row| (row as f64 / 9.0).sin()).collect();
            check(&curve);
            check(&curve.iter().map(|value| *value as f32).collect::<Vec<f32>>());
            check(&noise(&mut random, len).into_iter().map(f64::from_bits).collect::<Vec<f64>>());
            check(&vec![0.0; len]);
        }
    }

    #[test]
    fn lengths_that_no_stream_has_are_refused() {
        let values = [0.1, 0.7, -3.0, 1e100];
        let (bytes, _) = encoded(&values, "zfp");
        let mut payload = Vec::new();
        write(&values, &mut payload).unwrap();
        assert!(bytes.ends_with(&payload) && payload.len() > u32::BYTES + 8);
        let at = bytes.len() - payload.len();
        for (length, message) in [
            (0, "a stream of 0 bytes, where lengths are multiples of 8 up to 16384"),
            (12, "a stream of 12 bytes, where lengths are multiples of 8 up to 16384"),
            (16_392, "a stream of 16392 bytes, where lengths are multiples of 8 up to 16384"),
            (u32::MAX, "a stream of 4294967295 bytes, where lengths are multiples of 8 up to 16384"),
            (16_384, "streams needs 16384 bytes"),
            (8, "bytes are left over at its end"),
        ] {
            let mut damaged = bytes.clone();
            damaged[at..at + 4].copy_from_slice(&u32::to_le_bytes(length));
            let error = Block::open(&damaged).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    /// Were the bound of a length less than what is written, values would be written that nobody reads.
    #[test]
    fn no_stream_is_longer_than_its_bound() {
        let bound = |ty| ZfpConfig::reversible().maximum_size(ty, [VECTOR_LEN]).unwrap();
        assert!(bound(f32::SCALAR_TYPE) <= STREAM_BOUND * VECTOR_LEN * f32::BYTES);
        assert!(bound(f64::SCALAR_TYPE) <= STREAM_BOUND * VECTOR_LEN * f64::BYTES);
    }

    #[test]
    fn nobody_chooses_it_unasked() {
        let curve: Vec<f64> = (0..3000).map(|row| (f64::from(row) / 300.0).sin()).collect();
        let mut bytes = Vec::new();
        encode(Values::F64(&curve), None, &Choice::Auto, &mut bytes).unwrap();
        assert!(!Block::open(&bytes).unwrap().describe().contains("zfp"));
    }
}

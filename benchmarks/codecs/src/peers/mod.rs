//! Other libraries behind one trait, and which of them stand beside which scheme.

mod bitpacking;
mod byte_codecs;
mod fastlanes;
mod packed_vectors;
mod pco;
mod stream_vbyte;
mod texts;

use crate::codec::{Entrant, Kin};
use ::bitpacking::{BitPacker4x, BitPacker8x};
use byte_codecs::{ByteCodec, Bytes, Copy, Lz4, Lzo, Lzrw1, Zstd};
use fastlanes::FastLanes;
use pco::Pco;
use sinter_codec::Physical;
use stream_vbyte::StreamVByte;
use streamvbyte64::{Coder1234, Coder1248};
use texts::{CopyTexts, Fsst, Joined};

pub use bitpacking::{Bitpacking, Form as BitpackingForm};
pub use fastlanes::Form as FastLanesForm;

/// Who stands beside a scheme for values of a type.
pub fn beside(scheme: &str, physical: Physical) -> Vec<Entrant> {
    let is_wide = matches!(physical.value_bytes(), Some(4 | 8));
    let is_unsigned_word = physical == Physical::U32;
    let mut entrants = Vec::new();
    match scheme {
        _ if physical == Physical::I128 => {} // nobody else packs these
        "bitpack" => {
            entrants.push(fastlanes(FastLanesForm::Packed, physical));
            if is_unsigned_word {
                entrants.push(Entrant::family(Bitpacking::<BitPacker4x>::new(BitpackingForm::Packed)));
                entrants.push(Entrant::family(Bitpacking::<BitPacker8x>::new(BitpackingForm::Packed)));
            }
        }
        "for" => entrants.push(fastlanes(FastLanesForm::Based, physical)),
        "pfor" => entrants.push(fastlanes(FastLanesForm::Patched, physical)),
        "delta" | "pfor_delta" if physical.is_integer() => {
            entrants.push(fastlanes(FastLanesForm::Delta, physical));
            if is_unsigned_word {
                entrants.push(Entrant::family(Bitpacking::<BitPacker4x>::new(BitpackingForm::D1)));
                entrants.push(Entrant::family(Bitpacking::<BitPacker8x>::new(BitpackingForm::D1)));
                entrants.push(Entrant::other(Bitpacking::<BitPacker4x>::new(BitpackingForm::D4)));
            }
            entrants.push(Entrant { kin: Kin::Other, ..fastlanes(FastLanesForm::DeltaTransposed, physical) });
        }
        "rle" if physical != Physical::Bytes => entrants.push(fastlanes(FastLanesForm::Runs, physical)),
        "fsst" => entrants.push(Entrant::family(Fsst)),
        _ => {}
    }
    if is_wide && physical.is_integer() && matches!(scheme, "bitpack" | "for" | "pfor" | "delta" | "pfor_delta") {
        let is_delta = matches!(scheme, "delta" | "pfor_delta");
        entrants.push(match physical.value_bytes() {
            Some(4) => Entrant::other(StreamVByte::<Coder1234>::new(is_delta)),
            _ => Entrant::other(StreamVByte::<Coder1248>::new(is_delta)),
        });
    }
    entrants.extend(general(physical));
    entrants
}

/// What stands beside every scheme.
fn general(physical: Physical) -> Vec<Entrant> {
    if physical == Physical::Bytes {
        return vec![Entrant::other(Joined::new(Lz4)), Entrant::other(Joined::new(Zstd)), Entrant::other(CopyTexts)];
    }
    let pco = match physical {
        Physical::I128 => None,
        Physical::F32 | Physical::F64 => Some(Entrant::family(Pco::new(physical))),
        _ => Some(Entrant::other(Pco::new(physical))),
    };
    let bytes = [Entrant::other(Bytes::new(Lz4)), Entrant::other(Bytes::new(Zstd)), copy(physical)];
    pco.into_iter().chain(bytes).collect()
}

/// Copying, which is the ceiling.
pub fn copy(physical: Physical) -> Entrant {
    Entrant::other(Copy::new(physical))
}

/// Crate fastlanes for numbers as wide as this type.
pub fn fastlanes(form: FastLanesForm, physical: Physical) -> Entrant {
    let is_signed = matches!(physical, Physical::I8 | Physical::I16 | Physical::I32 | Physical::I64);
    match physical.value_bytes() {
        Some(1) => Entrant::family(FastLanes::<u8>::new(form, is_signed)),
        Some(2) => Entrant::family(FastLanes::<u16>::new(form, is_signed)),
        Some(4) => Entrant::family(FastLanes::<u32>::new(form, is_signed)),
        _ => Entrant::family(FastLanes::<u64>::new(form, is_signed)),
    }
}

/// The LZ codecs of the X100 paper's time, then today's.
pub fn lempel_ziv(physical: Physical) -> Vec<Entrant> {
    fn of<C: ByteCodec>(codec: C, physical: Physical) -> Entrant {
        match physical {
            Physical::Bytes => Entrant::other(Joined::new(codec)),
            _ => Entrant::other(Bytes::new(codec)),
        }
    }
    vec![of(Lzrw1, physical), of(Lzo, physical), of(Lz4, physical), of(Zstd, physical)]
}

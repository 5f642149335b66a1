//! Memory that decoding needs on the way, kept between calls so that hot loops allocate nothing.

use crate::{Bitmap, Encoded, Physical, VECTOR_LEN, ValuesBuf};
use std::cell::RefCell;

/// Reusable working memory for decoding and filtering. Belongs to one thread at a time; holds no results.
#[derive(Debug)]
pub struct Scratch {
    pub(crate) unpacked: Box<Unpacked>,
    spare: Vec<ValuesBuf>,
    spare_bits: Vec<Bitmap>,
    pub(crate) rows: Vec<u32>,
    pub(crate) present: Bitmap,
    pub(crate) codes: Encoded,
    /// Values that kernels decoded because the scheme had no way of its own, and others that were decoded for those that
    /// were asked for, since somebody set it to zero.
    pub(crate) decoded_values: usize,
}

/// Room for one vector of unpacked numbers in each width. Only held while no other reader runs.
#[derive(Debug)]
pub(crate) struct Unpacked {
    pub(crate) bytes: [u8; VECTOR_LEN],
    pub(crate) halves: [u16; VECTOR_LEN],
    pub(crate) words: [u32; VECTOR_LEN],
    pub(crate) doubles: [u64; VECTOR_LEN],
}

impl Default for Scratch {
    fn default() -> Self {
        let unpacked = Unpacked {
            bytes: [0; VECTOR_LEN],
            halves: [0; VECTOR_LEN],
            words: [0; VECTOR_LEN],
            doubles: [0; VECTOR_LEN],
        };
        Scratch {
            unpacked: Box::new(unpacked),
            spare: Vec::new(),
            spare_bits: Vec::new(),
            rows: Vec::new(),
            present: Bitmap::default(),
            codes: Encoded::default(),
            decoded_values: 0,
        }
    }
}

/// Buffers kept for reuse; a tree of schemes holds at most a few at once.
const SPARE_MAX: usize = 8;

impl Scratch {
    /// A buffer of this type with unspecified content; hand it back with [`Scratch::give_values`].
    pub(crate) fn take_values(&mut self, physical: Physical) -> ValuesBuf {
        match self.spare.iter().position(|buf| buf.physical() == physical) {
            Some(index) => self.spare.swap_remove(index),
            None => ValuesBuf::new(physical),
        }
    }

    /// Keeps a buffer for the next [`Scratch::take_values`].
    pub(crate) fn give_values(&mut self, buf: ValuesBuf) {
        if self.spare.len() == SPARE_MAX {
            self.spare.remove(0);
        }
        self.spare.push(buf);
    }

    /// An empty bitmap; hand it back with [`Scratch::give_bits`].
    pub(crate) fn take_bits(&mut self) -> Bitmap {
        let mut bits = self.spare_bits.pop().unwrap_or_default();
        bits.reset(0, false);
        bits
    }

    /// Keeps a bitmap for the next [`Scratch::take_bits`].
    pub(crate) fn give_bits(&mut self, bits: Bitmap) {
        if self.spare_bits.len() < SPARE_MAX {
            self.spare_bits.push(bits);
        }
    }

    /// Runs `work` with this thread's own scratch: for callers that have none at hand. Work within work has one of its own.
    #[inline]
    pub(crate) fn with<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
        thread_local! {
            static OF_THREAD: RefCell<Scratch> = RefCell::default();
        }
        OF_THREAD.with(|scratch| match scratch.try_borrow_mut() {
            Ok(mut scratch) => work(&mut scratch),
            Err(_) => work(&mut Scratch::default()),
        })
    }
}

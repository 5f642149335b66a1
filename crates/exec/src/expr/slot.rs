//! Where a program keeps what it has computed, and how its kernels read it.

use super::case::CaseScratch;
use super::entries::EntriesScratch;
use super::guarded::GuardedScratch;
use arrow::array::ArrayRef;
use sinter_codec::{Bitmap, BytesBuf, Values, ValuesBuf};

/// The result of one instruction for the rows at hand; its memory is reused from vector to vector.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The values, unless the result is a truth value or nested.
    pub(crate) values: ValuesBuf,
    /// Truth values: 1 where true; always 0 where NULL.
    pub(crate) truth: Bitmap,
    /// 1 where present; meaningful when `has_nulls`.
    pub(crate) validity: Bitmap,
    /// Some row may be NULL.
    pub(crate) has_nulls: bool,
    /// Least and greatest of the values, those at NULLs too, where they are integers and whoever made them knows.
    pub(crate) bounds: Option<(i64, i64)>,
    /// Lists and structs.
    pub(crate) nested: Option<ArrayRef>,
    /// What only some instructions need beside their result.
    pub(crate) scratch: Scratch,
}

/// Memory that belongs to one instruction.
#[derive(Debug, Default)]
pub(crate) enum Scratch {
    #[default]
    None,
    Case(Box<CaseScratch>),
    Guarded(Box<GuardedScratch>),
    Entries(Box<EntriesScratch>),
}

impl Default for Slot {
    fn default() -> Self {
        Slot {
            values: ValuesBuf::Bytes(BytesBuf::default()),
            truth: Bitmap::default(),
            validity: Bitmap::default(),
            has_nulls: false,
            bounds: None,
            nested: None,
            scratch: Scratch::None,
        }
    }
}

impl Slot {
    pub(crate) fn validity(&self) -> Option<&Bitmap> {
        self.has_nulls.then_some(&self.validity)
    }

    /// Sets the validity of a result that is NULL where any operand is.
    pub(crate) fn set_strict(&mut self, operands: &[Input<'_>], rows: usize) {
        self.has_nulls = false;
        for operand in operands {
            if operand.null_constant {
                self.has_nulls = true;
                self.validity.reset(rows, false);
                return;
            }
            if let Some(validity) = operand.validity {
                self.and_validity(validity);
            }
        }
    }

    fn and_validity(&mut self, validity: &Bitmap) {
        if self.has_nulls {
            self.validity.and(validity);
        } else {
            self.validity.clone_from(validity);
            self.has_nulls = true;
        }
    }

    /// True when no row has a value.
    pub(crate) fn all_null(&self) -> bool {
        self.has_nulls && !self.validity.any()
    }
}

/// An operand: values of all rows, or one value that stands for all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a> {
    pub(crate) values: Values<'a>,
    /// `values` holds one value, for every row.
    pub(crate) constant: bool,
    /// The constant is NULL.
    pub(crate) null_constant: bool,
    pub(crate) validity: Option<&'a Bitmap>,
    /// As [`Slot::bounds`].
    pub(crate) bounds: Option<(i64, i64)>,
}

/// Values of `T`, one per row: from a slice, or the same for all.
pub(crate) trait Lane<T> {
    fn at(&self, row: usize) -> T;

    /// Those of the first `rows` rows.
    fn cut(self, rows: usize) -> Self
    where
        Self: Sized,
    {
        let _ = rows;
        self
    }
}

/// One value per row, widened on the way.
#[derive(Clone, Copy)]
pub(crate) struct Each<'a, S>(pub(crate) &'a [S]);

impl<S: Copy + Into<T>, T> Lane<T> for Each<'_, S> {
    #[inline(always)]
    fn at(&self, row: usize) -> T {
        self.0[row].into()
    }

    #[inline(always)]
    fn cut(self, rows: usize) -> Self {
        Each(&self.0[..rows])
    }
}

/// The same value for every row.
#[derive(Clone, Copy)]
pub(crate) struct Same<T>(pub(crate) T);

impl<T: Copy> Lane<T> for Same<T> {
    #[inline(always)]
    fn at(&self, _row: usize) -> T {
        self.0
    }
}

impl Lane<i128> for Same<i64> {
    #[inline(always)]
    fn at(&self, _row: usize) -> i128 {
        self.0.into()
    }
}

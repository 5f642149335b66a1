//! Least and greatest of values.

use super::span::Rows;
use super::walk::walk;
use crate::condition::{float_of_order, float_order};
use crate::fixed::{Fixed, Integer, for_integers};
use crate::kernels::bounds;
use crate::scheme::Reader;
use crate::scratch::Scratch;
use crate::{BytesView, Physical, Result, Scalar, VECTOR_LEN, Values};

/// Least and greatest of the values seen so far; `Null` before the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) least: Scalar,
    pub(crate) greatest: Scalar,
}

impl Bounds {
    /// Takes in values.
    pub(crate) fn widen(&mut self, values: Values<'_>) {
        if values.is_empty() {
            return;
        }
        match values {
            Values::F32(values) => self.widen_floats(values),
            Values::F64(values) => self.widen_floats(values),
            Values::Bytes(view) => self.widen_bytes(view),
            values => for_integers!(Values, values, values => {
                let (least, greatest) = bounds(values);
                self.widen_integers(least.wide(), greatest.wide());
            }, _ => unreachable!("floats and bytes are above")),
        }
    }

    /// Takes in integers between these, both of which are among them.
    pub(crate) fn widen_integers(&mut self, least: i128, greatest: i128) {
        if !matches!(self.least, Scalar::Int(before) if before <= least) {
            self.least = Scalar::Int(least);
        }
        if !matches!(self.greatest, Scalar::Int(before) if before >= greatest) {
            self.greatest = Scalar::Int(greatest);
        }
    }

    /// Whether integers between these would change nothing.
    pub(crate) fn hold(&self, least: i128, greatest: i128) -> bool {
        matches!((&self.least, &self.greatest), (Scalar::Int(low), Scalar::Int(high)) if *low <= least && greatest <= *high)
    }

    fn widen_floats<T: Fixed + Into<f64>>(&mut self, values: &[T]) {
        let mut orders = [0; VECTOR_LEN];
        for vector in values.chunks(VECTOR_LEN) {
            let orders = &mut orders[..vector.len()];
            orders.iter_mut().zip(vector).for_each(|(order, &value)| *order = float_order(value.into()));
            let (least, greatest) = bounds(orders);
            if !matches!(self.least, Scalar::Float(before) if float_order(before) <= least) {
                self.least = Scalar::Float(float_of_order(least));
            }
            if !matches!(self.greatest, Scalar::Float(before) if float_order(before) >= greatest) {
                self.greatest = Scalar::Float(float_of_order(greatest));
            }
        }
    }

    fn widen_bytes(&mut self, view: BytesView<'_>) {
        let (mut least, mut greatest) = (view.get(0), view.get(0));
        for value in view.iter() {
            least = least.min(value);
            greatest = greatest.max(value);
        }
        if !matches!(&self.least, Scalar::Bytes(before) if &before[..] <= least) {
            self.least = Scalar::Bytes(least.to_vec());
        }
        if !matches!(&self.greatest, Scalar::Bytes(before) if &before[..] >= greatest) {
            self.greatest = Scalar::Bytes(greatest.to_vec());
        }
    }
}

/// [`Reader::bounds`] of a scheme that has none.
pub(crate) fn bounds_decoded<R: Reader + ?Sized>(
    reader: &R,
    rows: &Rows<'_>,
    physical: Physical,
    found: &mut Bounds,
    scratch: &mut Scratch,
) -> Result<()> {
    walk(reader, rows, physical, scratch, &mut |values| {
        found.widen(values);
        Ok(())
    })
}

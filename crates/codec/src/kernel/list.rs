//! The one list of kernels. Property tests, the table of `sinter codecs --kernels` and the benchmark go through it.

use super::answers::Sum;
use super::moments::Moments;
use super::span::Span;
use super::tally::Histogram;
use crate::{Bitmap, Block, CompareOp, Pattern, PatternPart, Physical, Predicate, Result, Scalar, ValuesBuf};

/// A kernel in the list.
#[derive(Debug)]
pub struct KernelEntry {
    /// Its name in `sinter codecs --kernels`.
    pub name: &'static str,
    takes: fn(Physical) -> bool,
    run: fn(&Block<'_>, &Span<'_>, &Scalar) -> Result<Answer>,
}

/// What a kernel answers.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "what they hold is in the docs of the kernels")]
pub enum Answer {
    Count(usize),
    Sum(Sum),
    Value(Scalar),
    Values(Vec<Scalar>),
    Mean(Option<f64>),
    Moments(Option<Moments>),
    Row(Option<usize>),
    Rows(Bitmap),
    Histogram(Histogram),
    Gathered(ValuesBuf),
}

impl KernelEntry {
    /// Whether it can be asked of values of this type.
    pub fn takes(&self, physical: Physical) -> bool {
        (self.takes)(physical)
    }

    /// Asks it of `block`. `constant`, which has the type of the block, is for those that compare with one; those that
    /// answer about each row of the range, or search it, pass over the selection.
    ///
    /// # Errors
    /// As the method of [`Block`].
    pub fn run(&self, block: &Block<'_>, span: &Span<'_>, constant: &Scalar) -> Result<Answer> {
        (self.run)(block, span, constant)
    }
}

fn any(_: Physical) -> bool {
    true
}

fn numbers(physical: Physical) -> bool {
    physical != Physical::Bytes
}

fn bytes(physical: Physical) -> bool {
    physical == Physical::Bytes
}

macro_rules! kernels {
    ($($name:literal, $takes:ident, |$block:pat_param, $span:pat_param, $constant:pat_param| $run:expr;)*) => {
        /// Every kernel.
        pub static KERNELS: &[KernelEntry] =
            &[$(KernelEntry { name: $name, takes: $takes, run: |$block, $span, $constant| $run }),*];
    };
}

kernels! { // name, types, how it is asked
    "compare", any, |block, span, constant| filter(block, span, Predicate::Compare(CompareOp::Less, constant.clone()));
    "equal", any, |block, span, constant| filter(block, span, Predicate::Compare(CompareOp::Equal, constant.clone()));
    "range", any, |block, span, constant| filter(block, span, Predicate::Between(constant.clone(), above(constant)));
    "in", any, |block, span, constant| filter(block, span, Predicate::In(vec![constant.clone(), above(&above(constant))]));
    "prefix", bytes, |block, span, constant| filter(block, span, Predicate::Prefix(half(constant)));
    "contains", bytes, |block, span, constant| filter(block, span, Predicate::Contains(middle(constant)));
    "like", bytes, |block, span, constant| filter(block, span, like(constant));
    "is null", any, |block, span, _| is_null(block, span);
    "count", any, |block, span, _| Ok(Answer::Count(block.count(span)?));
    "sum", numbers, |block, span, _| Ok(Answer::Sum(block.sum(span)?));
    "min", any, |block, span, _| Ok(Answer::Value(block.min(span)?));
    "max", any, |block, span, _| Ok(Answer::Value(block.max(span)?));
    "argmin", any, |block, span, _| Ok(Answer::Row(block.argmin(span)?));
    "argmax", any, |block, span, _| Ok(Answer::Row(block.argmax(span)?));
    "mean", numbers, |block, span, _| Ok(Answer::Mean(block.mean(span)?));
    "deviation", numbers, |block, span, _| Ok(Answer::Moments(block.moments(span)?));
    "histogram", any, |block, span, _| Ok(Answer::Histogram(block.histogram(span)?));
    "distinct", any, |block, span, _| Ok(Answer::Count(block.distinct(span)?));
    "percentiles", any, |block, span, _| Ok(Answer::Values(block.percentiles(span, &[0.9, 0.0, 0.5, 1.0])?));
    "lower bound", any, |block, span, constant| Ok(Answer::Row(Some(block.lower_bound(span.range.clone(), constant)?)));
    "gather", any, |block, span, _| gather(block, span);
}

fn filter(block: &Block<'_>, span: &Span<'_>, predicate: Predicate) -> Result<Answer> {
    let mut passing = Bitmap::default();
    block.filter(span.range.clone(), &predicate, &mut passing)?;
    Ok(Answer::Rows(passing))
}

fn is_null(block: &Block<'_>, span: &Span<'_>) -> Result<Answer> {
    let mut rows = Bitmap::default();
    if block.validity(span.range.clone(), &mut rows)? {
        rows.invert();
    } else {
        rows.reset(span.range.len(), false);
    }
    Ok(Answer::Rows(rows))
}

fn gather(block: &Block<'_>, span: &Span<'_>) -> Result<Answer> {
    let mut values = ValuesBuf::new(block.physical());
    block.gather_span(span, &mut values)?;
    Ok(Answer::Gathered(values))
}

/// A constant somewhat greater.
pub(super) fn above(constant: &Scalar) -> Scalar {
    match constant {
        Scalar::Null => Scalar::Null,
        Scalar::Int(value) => Scalar::Int(value.saturating_add(value.unsigned_abs().isqrt() as i128 + 1)),
        Scalar::Float(value) => Scalar::Float(value + value.abs() / 16.0),
        Scalar::Bytes(bytes) => Scalar::Bytes([bytes, &b"~"[..]].concat()),
    }
}

/// `%a%b%c`, of a constant of bytes: some of its middle, more of it, and its end. Of a long one, an equality.
pub(super) fn like(constant: &Scalar) -> Predicate {
    let middle = middle(constant);
    let end = match constant {
        Scalar::Bytes(bytes) => &bytes[bytes.len() - bytes.len() / 8..],
        _ => &[],
    };
    let texts = [&middle[..middle.len() / 2], &middle[middle.len() - middle.len() / 4..], end];
    let parts = texts.iter().flat_map(|text| {
        std::iter::once(PatternPart::AnyBytes).chain(text.iter().map(|&byte| PatternPart::Byte(byte)))
    });
    Pattern::new(parts).map_or_else(|| Predicate::Compare(CompareOp::Equal, constant.clone()), Predicate::Like)
}

/// The middle of a constant of bytes.
pub(super) fn middle(constant: &Scalar) -> Vec<u8> {
    match constant {
        Scalar::Bytes(bytes) => bytes[bytes.len() / 4..bytes.len() - bytes.len() / 4].to_vec(),
        _ => Vec::new(),
    }
}

/// The beginning of a constant of bytes.
pub(super) fn half(constant: &Scalar) -> Vec<u8> {
    match constant {
        Scalar::Bytes(bytes) => bytes[..bytes.len().div_ceil(2)].to_vec(),
        _ => Vec::new(),
    }
}

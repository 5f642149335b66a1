//! Values as text: judging what a text may be, parsing it into Arrow's types, and printing it back.
//!
//! CSV and JSON share this: [`guess`] collects what all texts of a column can be, [`column`] fills arrays from texts,
//! [`print`] is the way back. Parsing works on bytes and makes no string of a field.

pub(crate) mod calendar;
pub(crate) mod column;
pub(crate) mod guess;
pub(crate) mod number;
pub(crate) mod pattern;
pub(crate) mod print;
pub(crate) mod temporal;

//! Values as text: judging what a text may be, parsing it into Arrow's types, and printing it back.
//!
//! CSV and JSON share this: [`guess`] collects what all texts of a column can be, [`column`] fills arrays from texts,
//! [`print`] is the way back. Parsing works on bytes and makes no string of a field.

pub(in crate::files) mod calendar;
pub(in crate::files) mod column;
pub(in crate::files) mod guess;
pub(in crate::files) mod number;
pub(in crate::files) mod pattern;
pub(in crate::files) mod print;
pub(in crate::files) mod temporal;

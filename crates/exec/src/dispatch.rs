//! From a physical type known at run time to code compiled for it.

/// `$body` once per number type with `$values` bound to the slice or vector of natives; `$bytes_body` for bytes.
macro_rules! each_type {
    ($enum:ident, $subject:expr, $values:ident => $body:expr, $bytes:ident => $bytes_body:expr) => {
        match $subject {
            $enum::I8($values) => $body,
            $enum::I16($values) => $body,
            $enum::I32($values) => $body,
            $enum::I64($values) => $body,
            $enum::I128($values) => $body,
            $enum::U8($values) => $body,
            $enum::U16($values) => $body,
            $enum::U32($values) => $body,
            $enum::U64($values) => $body,
            $enum::F32($values) => $body,
            $enum::F64($values) => $body,
            $enum::Bytes($bytes) => $bytes_body,
        }
    };
}

/// `$body` once per width of small numbers.
macro_rules! each_narrow {
    ($subject:expr, $numbers:ident => $body:expr) => {
        match $subject {
            sinter_codec::Narrow::U8($numbers) => $body,
            sinter_codec::Narrow::U16($numbers) => $body,
            sinter_codec::Narrow::U32($numbers) => $body,
        }
    };
}

pub(crate) use {each_narrow, each_type};

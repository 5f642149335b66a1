//! One value, owned: constants in predicates, minima and maxima.

/// One value of any physical type. Integers of every width are held as `i128`, floats as `f64`.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Scalar {
    /// No value.
    #[default]
    Null,
    /// Any integer type.
    Int(i128),
    /// `F32` (exactly representable) and `F64`.
    Float(f64),
    /// Strings and binary.
    Bytes(Vec<u8>),
}

impl Scalar {
    /// True for [`Scalar::Null`].
    pub fn is_null(&self) -> bool {
        matches!(self, Scalar::Null)
    }
}

//! What the targets share: values out of bytes, and questions to a block.

use sinter_codec::{
    Bitmap, Block, CompareOp, Encoded, KERNELS, Pattern, PatternPart, Physical, Predicate, Scalar, Span, VECTOR_LEN,
    ValuesBuf,
};

use sinter_exec::{Field, LogicalType};
use std::sync::Arc;

/// The scheme or key codec under test, from `SINTER_SCHEME`; `None` where all are.
pub fn scheme_name() -> Option<&'static str> {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var("SINTER_SCHEME").ok()).as_deref()
}

/// The scheme that the values of a block are in, by its name in the list: fsst is described with the width of its codes.
pub fn scheme_of(block: &Block<'_>) -> String {
    let description = block.describe();
    let outermost = description.split(['(', '[', ' ']).next().unwrap_or_default();
    outermost.trim_end_matches(char::is_numeric).to_owned()
}

/// Values of a type, of any bits that `bytes` have. Strings take a length byte each.
pub fn values_from(physical: Physical, bytes: &[u8]) -> ValuesBuf {
    macro_rules! fixed {
        ($variant:ident, $ty:ty) => {{
            let (chunks, _) = bytes.as_chunks::<{ size_of::<$ty>() }>();
            ValuesBuf::$variant(chunks.iter().map(|chunk| <$ty>::from_le_bytes(*chunk)).collect())
        }};
    }
    match physical {
        Physical::I8 => fixed!(I8, i8),
        Physical::I16 => fixed!(I16, i16),
        Physical::I32 => fixed!(I32, i32),
        Physical::I64 => fixed!(I64, i64),
        Physical::I128 => fixed!(I128, i128),
        Physical::U8 => fixed!(U8, u8),
        Physical::U16 => fixed!(U16, u16),
        Physical::U32 => fixed!(U32, u32),
        Physical::U64 => fixed!(U64, u64),
        Physical::F32 => fixed!(F32, f32),
        Physical::F64 => fixed!(F64, f64),
        Physical::Bytes => {
            let (mut strings, mut rest) = (Vec::new(), bytes);
            while let Some((len, more)) = rest.split_first() {
                let (string, after) = more.split_at(more.len().min(usize::from(*len)));
                strings.push(string);
                rest = after;
            }
            ValuesBuf::Bytes(strings.into_iter().collect())
        }
    }
}

/// Types of segments that are trees of blocks: lists and structs, one in the other.
pub fn nested_types() -> Vec<LogicalType> {
    let field = |name: &str, ty: LogicalType| Field { name: name.to_owned(), ty, nullable: true };
    let list = |ty: LogicalType| LogicalType::List(Arc::new(field("item", ty)));
    let pair = LogicalType::Struct([field("a", LogicalType::Int32), field("b", LogicalType::Utf8)].into());
    vec![list(LogicalType::Int64), list(list(LogicalType::Utf8)), pair.clone(), list(pair)]
}

/// Asks a block everything there is to ask. Errors and wrong answers are fine; what is not, stops the process.
pub fn interrogate(block: &Block<'_>) {
    let _ = block.describe();
    let len = block.value_count();
    let mut values = ValuesBuf::new(block.physical());
    let mut bits = Bitmap::default();
    let mut form = Encoded::default();
    for start in [0, len / 2, len.saturating_sub(300)] {
        let range = start..len.min(start + VECTOR_LEN);
        let _ = block.decode(range.clone(), &mut values);
        let _ = block.load(range.clone(), &mut form);
        let _ = block.validity(range.clone(), &mut bits);
        let positions: Vec<u16> = (0..range.len() as u16).step_by(7).collect();
        let _ = block.gather(start, &positions, &mut values);
        let _ = block.characters(range.clone(), None, &mut Vec::new());
        let _ = block.characters(range.clone(), Some(&positions), &mut Vec::new());
        for predicate in predicates(block) {
            let _ = block.filter(range.clone(), &predicate, &mut bits);
        }
        let some: Vec<u32> = (0..range.len() as u32).step_by(3).collect();
        for kernel in KERNELS.iter().filter(|kernel| kernel.takes(block.physical())) {
            let _ = kernel.run(block, &range.clone().into(), &constant(block));
            let _ = kernel.run(block, &Span::at(range.clone(), &some), &constant(block));
        }
    }
    let _ = block.dictionary();
}

/// What its values are compared with.
fn constant(block: &Block<'_>) -> Scalar {
    match block.physical() {
        Physical::F32 | Physical::F64 => Scalar::Float(1.5),
        Physical::Bytes => Scalar::Bytes(b"ab".to_vec()),
        _ => match &block.stats().max {
            Scalar::Null => Scalar::Int(7),
            max => max.clone(),
        },
    }
}

fn predicates(block: &Block<'_>) -> Vec<Predicate> {
    let constant = constant(block);
    let ops = [CompareOp::Equal, CompareOp::Less, CompareOp::GreaterOrEqual];
    let mut all: Vec<Predicate> = ops.map(|op| Predicate::Compare(op, constant.clone())).into();
    all.push(Predicate::Between(Scalar::Null, constant.clone()));
    // Few are compared with, many that lie close are marked in a bitmap, others searched for.
    for (count, step) in [(3, 2), (20, 3), (20, 1 << 40)] {
        let constants = (0..count).map(|index| match &constant {
            Scalar::Int(value) => Scalar::Int(value.saturating_sub(index * step)),
            Scalar::Float(value) => Scalar::Float(value + (index * step) as f64),
            Scalar::Bytes(text) => Scalar::Bytes([&text[..], &index.to_le_bytes()].concat()),
            Scalar::Null => Scalar::Int(index * step),
        });
        all.push(Predicate::In(constants.collect()));
    }
    if block.physical() == Physical::Bytes {
        use PatternPart::{AnyBytes, AnyChar, Byte};
        let patterns = [vec![AnyBytes, Byte(b'a'), AnyBytes, Byte(b'b')], vec![Byte(b's'), AnyChar, AnyBytes, AnyChar]];
        all.extend([Predicate::Prefix(b"a".to_vec()), Predicate::Contains(b"bc".to_vec())]);
        all.extend(patterns.into_iter().filter_map(Pattern::new).map(Predicate::Like));
    }
    all
}

/// Whether two columns are the same bit for bit.
pub fn is_same(one: &ValuesBuf, other: &ValuesBuf) -> bool {
    match (one, other) {
        (ValuesBuf::F32(one), ValuesBuf::F32(other)) => {
            one.iter().map(|value| value.to_bits()).eq(other.iter().map(|value| value.to_bits()))
        }
        (ValuesBuf::F64(one), ValuesBuf::F64(other)) => {
            one.iter().map(|value| value.to_bits()).eq(other.iter().map(|value| value.to_bits()))
        }
        _ => one == other,
    }
}

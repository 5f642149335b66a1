//! Front coding: strings without the prefix that each shares with the one before.
//!
//! Witten, Moffat and Bell, *Managing Gigabytes*, 1999, section 4.1; LevelDB's blocks do the same
//! (`table/block_builder.cc`). Every [`RESTART_LEN`] strings one stands whole, a *restart point*, so that no string
//! waits for more than those between. [`Cut`] makes prefix lengths and suffixes of strings, [`rebuild`] strings of
//! them, and [`Comparison`] compares strings with constants without rebuilding any.

mod compare;
mod cut;
mod rebuild;

pub(crate) use compare::Comparison;
pub(crate) use cut::Cut;
pub(crate) use rebuild::rebuild;

/// Strings from one restart point to the next. On sorted URLs the suffixes of 8 are 6 % larger than those of 16, and of
/// 32 3 % smaller, but twice as many strings are rebuilt for a single one.
pub(crate) const RESTART_LEN: usize = 16;

/// Bytes that the string at a row, counted from a restart point, takes from the one before, where `shared` stands for
/// it.
#[inline]
pub(crate) fn shared_at(row: usize, shared: u32) -> usize {
    if row.is_multiple_of(RESTART_LEN) { 0 } else { shared as usize }
}

/// Bytes that both have in common at the start.
#[inline]
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let len = a.len().min(b.len());
    let (a, b) = (&a[..len], &b[..len]);
    let (words_a, words_b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    for (index, (word_a, word_b)) in words_a.iter().zip(words_b).enumerate() {
        let differing = u64::from_le_bytes(*word_a) ^ u64::from_le_bytes(*word_b);
        if differing != 0 {
            return 8 * index + differing.trailing_zeros() as usize / 8;
        }
    }
    let whole = 8 * words_a.len();
    whole + a[whole..].iter().zip(&b[whole..]).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::BytesCondition;
    use crate::needle::Needle;
    use crate::{BytesBuf, CompareOp, Pattern, PatternPart};
    use proptest::prelude::*;

    #[test]
    fn prefixes_of_every_length_are_found() {
        let text = b"furiously ironic deposits";
        for shared in 0..text.len() {
            let mut other = text.to_vec();
            other[shared] ^= 1;
            assert_eq!(common_prefix(text, &other), shared);
            assert_eq!(common_prefix(text, &text[..shared]), shared);
        }
    }

    #[test]
    fn prefixes_longer_than_the_string_before_are_damage() {
        let suffixes: BytesBuf = [&b"ab"[..], b"c"].into_iter().collect();
        let mut out = BytesBuf::default();
        rebuild(&[0, 2], suffixes.view(), 0, &mut out).unwrap();
        assert!(out.view().iter().eq([&b"ab"[..], b"abc"]));
        let error = rebuild(&[0, 3], suffixes.view(), 0, &mut out).unwrap_err();
        assert_eq!(error.to_string(), "damaged block, front: a string shares 3 bytes with one of 2");
        assert_eq!(out.view().len(), 2);
    }

    fn strings() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let string = prop::collection::vec(prop_oneof![6 => 0u8..2, 1 => any::<u8>()], 0..40);
        (prop::collection::vec(string, 1..80), any::<bool>()).prop_map(|(mut strings, sorted)| {
            if sorted {
                strings.sort();
            }
            strings
        })
    }

    proptest! {
        #[test]
        fn strings_come_back_from_any_row_on(strings in strings(), skipped in 0usize..16) {
            let plain: BytesBuf = strings.iter().map(|string| &string[..]).collect();
            let Cut { shared, suffixes } = Cut::of(plain.view());
            let mut out = BytesBuf::default();
            out.push(b"before");
            let skipped = skipped.min(strings.len());
            rebuild(&shared, suffixes.view(), skipped, &mut out).unwrap();
            prop_assert!(out.view().iter().skip(1).eq(strings[skipped..].iter().map(|string| &string[..])));
        }

        #[test]
        fn comparisons_need_no_strings(strings in strings(), low in 0usize..80, high in 0usize..80) {
            let plain: BytesBuf = strings.iter().map(|string| &string[..]).collect();
            let Cut { shared, suffixes } = Cut::of(plain.view());
            let (low, high) = (strings[low % strings.len()].clone(), strings[high % strings.len()].clone());
            let mut conditions = vec![
                BytesCondition::Prefix(low[..low.len() / 2].to_vec()),
                BytesCondition::Between(Some(low.clone()), Some(high.clone())),
                BytesCondition::Between(None, Some(high.clone())),
                BytesCondition::OneOf(vec![low.clone(), high.clone()]),
            ];
            for condition in &mut conditions {
                if let BytesCondition::OneOf(constants) = condition {
                    constants.sort();
                }
            }
            let middle = low.get(low.len() / 3..low.len() / 2 + 1).unwrap_or_default();
            if !middle.is_empty() {
                conditions.push(BytesCondition::Contains(Needle::new(middle), Pattern::containing(middle)));
            }
            let bytes = |text: &[u8]| text.iter().copied().map(PatternPart::Byte).collect::<Vec<_>>();
            let wild = [PatternPart::AnyChar, PatternPart::AnyBytes];
            let (begin, end) = (bytes(&low[..low.len() / 2]), bytes(&high[high.len() / 2..]));
            conditions.extend(Pattern::new([&begin[..], &wild, &end].concat()).map(BytesCondition::Like));
            for op in [CompareOp::Equal, CompareOp::NotEqual, CompareOp::Less, CompareOp::GreaterOrEqual] {
                conditions.push(BytesCondition::Compare(op, low[..low.len() / 2].to_vec()));
                conditions.push(BytesCondition::Compare(op, low.clone()));
            }
            for condition in &conditions {
                let mut comparison = Comparison::new(condition).unwrap();
                for (row, (string, suffix)) in strings.iter().zip(suffixes.view().iter()).enumerate() {
                    let shared = shared_at(row, shared[row]);
                    prop_assert_eq!(comparison.passes(shared, suffix), condition.passes(string), "{:?}", condition);
                }
            }
        }
    }
}

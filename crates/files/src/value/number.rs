//! Numbers from text.

/// The value of `-?[0-9]+` or `+[0-9]+` within `i128`, or `None`.
pub(crate) fn integer(text: &[u8]) -> Option<i128> {
    let (negative, digits) = signed(text);
    if digits.is_empty() || digits.len() > 39 {
        return None;
    }
    if digits.len() <= 18 {
        let mut value = 0i64;
        for &byte in digits {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + i64::from(digit);
        }
        return Some(i128::from(if negative { -value } else { value }));
    }
    let mut value = 0i128;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // Negative throughout, because that side reaches one further.
        value = value.checked_mul(10)?.checked_sub(i128::from(digit))?;
    }
    if negative { Some(value) } else { value.checked_neg() }
}

/// The same within `i64`; the fast way for the commonest column.
pub(crate) fn bigint(text: &[u8]) -> Option<i64> {
    let (negative, digits) = signed(text);
    if digits.is_empty() || digits.len() > 18 {
        return integer(text).and_then(|value| i64::try_from(value).ok());
    }
    let mut value = 0i64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

/// The sign, `true` for minus, and what follows it.
fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

/// Powers of ten that `f64` holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// The double nearest to a decimal number with optional fraction and exponent, or to `nan`, `inf`, `infinity`.
///
/// Short numbers take Clinger's fast path (PLDI 1990): a whole number below 2^53 divided by an exact power of ten is
/// rounded once and therefore right. The rest go to the standard library.
pub(crate) fn double(text: &[u8]) -> Option<f64> {
    let (negative, digits) = signed(text);
    let mut mantissa = 0u64;
    let mut fraction_digits = 0usize;
    let mut seen_point = false;
    if digits.len() <= 16 {
        for &byte in digits {
            let digit = byte.wrapping_sub(b'0');
            if digit <= 9 {
                mantissa = mantissa * 10 + u64::from(digit);
                fraction_digits += usize::from(seen_point);
            } else if byte == b'.' && !seen_point {
                seen_point = true;
            } else {
                return slow_double(text);
            }
        }
        if digits.len() > usize::from(seen_point) && mantissa < 1 << 53 {
            let value = mantissa as f64 / EXACT_POWERS[fraction_digits];
            return Some(if negative { -value } else { value });
        }
    }
    slow_double(text)
}

fn slow_double(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The nearest single; rounded once, from the text.
pub(crate) fn single(text: &[u8]) -> Option<f32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A decimal number as a whole number of `10^-scale`, or `None` where it is no number or has more than `precision`
/// digits. Further digits are rounded half away from zero, as PostgreSQL does.
pub(crate) fn decimal(text: &[u8], precision: u8, scale: i8) -> Option<i128> {
    let (negative, digits) = signed(text);
    let (digits, exponent) = match digits.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&digits[..at], i64::try_from(integer(&digits[at + 1..])?).ok()?),
        None => (digits, 0),
    };
    let point = digits.iter().position(|&byte| byte == b'.');
    let fraction_digits = point.map_or(0, |at| digits.len() - at - 1) as i64;
    if digits.len() == usize::from(point.is_some()) || !(-400..=400).contains(&exponent) {
        return None;
    }
    // How many of the digits as written stand before the last place that is kept; may be negative or beyond the end.
    let kept = digits.len() as i64 - i64::from(point.is_some()) - fraction_digits + exponent + i64::from(scale);
    let limit = 10i128.pow(u32::from(precision));
    let mut value = 0i128;
    let mut place = 0i64;
    let mut round_up = false;
    for (at, &byte) in digits.iter().enumerate() {
        if Some(at) == point {
            continue;
        }
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        if place < kept {
            value = value.checked_mul(10)?.checked_add(i128::from(digit)).filter(|value| *value < limit)?;
        } else if place == kept {
            round_up = digit >= 5;
        }
        place += 1;
    }
    while place < kept && value != 0 {
        value = value.checked_mul(10).filter(|value| *value < limit)?;
        place += 1;
    }
    value = (value + i128::from(round_up)).min(limit);
    (value < limit).then_some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        assert_eq!(bigint(b"-42"), Some(-42));
        assert_eq!(bigint(b"+7"), Some(7));
        assert_eq!(bigint(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(bigint(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(bigint(b"9223372036854775808"), None);
        assert_eq!(integer(b"-170141183460469231731687303715884105728"), Some(i128::MIN));
        assert_eq!(integer(b"170141183460469231731687303715884105728"), None);
        for wrong in ["", "-", "1a", "1.0", " 1", "--1", "１"] {
            assert_eq!(bigint(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn doubles_are_those_of_the_standard_library() {
        for text in [
            "0.1",
            "-0",
            "1.",
            ".5",
            "123456789.123456",
            "9007199254740993",
            "1e22",
            "1.7976931348623157e308",
            "5e-324",
            "0.000001",
            "39744.1201851852",
            "-072.637078",
            "99999999999999.9",
            "1234567890123456",
            "1e400",
        ] {
            let expected: f64 = text.parse().unwrap();
            assert_eq!(double(text.as_bytes()).map(f64::to_bits), Some(expected.to_bits()), "{text}");
        }
        for wrong in ["", "-", ".", "1e", "1.2.3", "1,5", "0x1"] {
            assert_eq!(double(wrong.as_bytes()), None, "{wrong}");
        }
        assert!(double(b"NaN").unwrap().is_nan());
    }

    #[test]
    fn decimals_are_rounded_half_away_from_zero() {
        let cases: [(&str, Option<i128>); 13] = [
            ("1.5", Some(150)),
            ("-1.005", Some(-101)),
            ("1.004", Some(100)),
            ("99999999.99", Some(9_999_999_999)),
            ("99999999.995", None),
            ("100000000", None),
            (".5", Some(50)),
            ("5.", Some(500)),
            ("1.5e2", Some(15_000)),
            ("1e-3", Some(0)),
            ("5e-3", Some(1)),
            ("", None),
            (".", None),
        ];
        for (text, expected) in cases {
            assert_eq!(decimal(text.as_bytes(), 10, 2), expected, "{text}");
        }
        assert_eq!(decimal("9".repeat(38).as_bytes(), 38, 0), Some(10i128.pow(38) - 1));
        assert_eq!(decimal("9".repeat(39).as_bytes(), 38, 0), None);
        assert_eq!(decimal(b"1e400", 38, 0), None);
        assert_eq!(decimal(b"0e400", 38, 0), Some(0));
    }
}

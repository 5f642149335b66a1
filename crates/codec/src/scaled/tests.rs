use super::*;
use crate::VECTOR_LEN;
use crate::condition::{Condition, IntegerCondition, float_order};
use crate::isa::forms;
use proptest::prelude::*;

/// Scales of both kinds and all magnitudes.
fn scales() -> Vec<Scale> {
    let steps = [0.02 * 0.984_375, 1.0 / 3.0, 0.5f64.powi(40), 1e-300, 1e300];
    let tenths = (0..=Scale::TENTHS_MAX).map(Scale::tenths);
    tenths.chain([3, 10].map(Scale::tens)).chain(steps.map(Scale::step)).collect()
}

/// Sends values to integers and back, on each instruction set.
fn comes_back<F: Float>(values: &[F], scale: Scale) {
    let mut of_scalar: Option<(Vec<F::Integer>, [u8; VECTOR_LEN])> = None;
    forms(|isa| {
        let mut integers = vec![<F::Integer>::default(); values.len()];
        let mut flags = [0; VECTOR_LEN];
        let any = scale.integers(values, &mut integers, &mut flags);
        let mut back = vec![F::default(); values.len()];
        scale.values(&integers, &mut back);
        for (position, (back, value)) in back.iter().zip(values).enumerate() {
            assert!(flags[position] == 1 || back.is_same(*value), "{isa}, {scale:?}: {value:?} became {back:?}");
        }
        let misses = flags.iter().filter(|flag| **flag == 1).count();
        assert_eq!((scale.survey(values).misses, misses > 0), (misses, any), "{isa}, {scale:?}");
        for (integer, _) in integers.iter_mut().zip(flags).filter(|(_, flag)| *flag == 1) {
            *integer = <F::Integer>::default();
        }
        let found = (integers, flags);
        match &of_scalar {
            None => of_scalar = Some(found),
            Some(of_scalar) => assert_eq!(*of_scalar, found, "{isa}, {scale:?}"),
        }
    });
}

const SPECIAL: [f64; 21] = [
    0.0,
    -0.0,
    f64::NAN,
    -f64::NAN,
    f64::from_bits(0x7FF0_0000_0000_0001),
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MIN,
    f64::MAX,
    f64::MIN_POSITIVE,
    5e-324,
    -5e-324,
    f64::EPSILON,
    9_007_199_254_740_993.0,
    2_251_799_813_685_248.0,
    -2_251_799_813_685_248.0,
    6_755_399_441_055_744.0,
    1e22,
    1e23,
    0.1,
    1.0 / 3.0,
];

#[test]
fn special_values_come_back_or_are_told_apart() {
    let singles: Vec<f32> = SPECIAL.iter().map(|&value| value as f32).chain([1e-45, f32::MAX, 16_777_217.0]).collect();
    for scale in scales() {
        comes_back(&SPECIAL, scale);
        comes_back(&singles, scale);
        let mut flags = [0; VECTOR_LEN];
        scale.integers(&SPECIAL, &mut [0; 21], &mut flags);
        assert_eq!(flags[1..7], [1; 6], "{scale:?} takes -0.0, NaN or an infinity");
    }
}

#[test]
fn two_multiplications_are_a_division() {
    // Quotients next to the middle between two doubles are where they could differ.
    for exponent in 1..=Scale::TENTHS_MAX {
        let Scale::Tenths(tenths) = Scale::tenths(exponent) else { unreachable!("it is not zero") };
        let power = 10f64.powi(exponent as i32);
        let mut state = exponent as u64;
        let mut numbers: Vec<i64> = (0..VECTOR_LEN)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 13) as i64 >> (state % 50)
            })
            .collect();
        numbers[..4].copy_from_slice(&[1 << 51, -(1 << 51), 0, 1]);
        forms(|isa| {
            let mut found = vec![0f64; numbers.len()];
            super::kernels::values(tenths, &numbers, &mut found);
            for (found, number) in found.iter().zip(&numbers) {
                assert_eq!(found.to_bits(), (*number as f64 / power).to_bits(), "{isa}: {number} / 10^{exponent}");
            }
        });
    }
}

#[test]
fn no_quotient_is_near_the_middle_between_two_doubles() {
    // The bound that `Tenths::value` relies on.
    for exponent in 1..=Scale::TENTHS_MAX as i32 {
        let power = 10f64.powi(exponent);
        let inverse = 1.0 / power;
        let missing = (-power).mul_add(inverse, 1.0) / power;
        // The remainder 1 - power * inverse is exact, so `missing` is right to a rounding; two roundings of it count.
        let wrong = 2.0 * (missing * power).abs() * 2f64.powi(-53);
        let nearest = 2f64.powi(-54) * 5f64.powi(-exponent);
        assert!(wrong < nearest, "10^{exponent}: {wrong:e} is not below {nearest:e}");
        let expected = format!("Tenths(Tenths {{ power: {power:?}, inverse: {inverse:?}, missing: {missing:?} }})");
        assert_eq!(format!("{:?}", Scale::tenths(exponent as usize)), expected);
    }
}

#[test]
fn conditions_on_floats_are_conditions_on_integers() {
    fn agree<F: Float>(scale: Scale) {
        let integers: Vec<F::Integer> = (-600..600).map(|n| F::cut(n * 13)).collect();
        let mut values = vec![F::default(); integers.len()];
        scale.values(&integers, &mut values);
        let order = |value: F| i128::from(float_order(value.wide()));
        let constants = [values[0], values[700], values[701], F::nearest(0.0), F::nearest(f64::NAN)].map(order);
        let mut conditions = [constants.to_vec(), vec![5]]
            .map(|mut constants| {
                constants.sort_unstable();
                IntegerCondition::OneOf(constants.into())
            })
            .to_vec();
        for low in constants {
            for high in constants.map(|high| high + 1) {
                conditions.extend([IntegerCondition::Within(low, high), IntegerCondition::Outside(low, high)]);
            }
        }
        for condition in conditions {
            let Some(on_integers) = scale.on_integers::<F>(&condition) else { continue };
            for (integer, value) in integers.iter().zip(&values) {
                let passes = match &on_integers {
                    Condition::Never => false,
                    Condition::Always => true,
                    Condition::Integers(condition) => condition.passes(crate::fixed::Integer::wide(*integer)),
                    other => panic!("{other:?}"),
                };
                assert_eq!(passes, condition.passes(order(*value)), "{scale:?}, {condition:?} on {value:?}");
            }
        }
    }
    for scale in scales() {
        agree::<f64>(scale);
        agree::<f32>(scale);
    }
}

proptest! {
    #[test]
    fn any_bits_come_back_or_are_told_apart(bits in prop::collection::vec(any::<u64>(), 0..100)) {
        for scale in scales() {
            comes_back(&bits.iter().map(|&bits| f64::from_bits(bits)).collect::<Vec<_>>(), scale);
            comes_back(&bits.iter().map(|&bits| f32::from_bits(bits as u32)).collect::<Vec<_>>(), scale);
        }
    }

    #[test]
    fn any_decimal_of_fifteen_digits_has_its_integer(digits in -999_999_999_999_999i64..=999_999_999_999_999, places in 0usize..=22) {
        prop_assume!(digits != 0 || places == 0);
        let value: f64 = format!("{digits}e-{places}").parse().unwrap();
        let (mut integer, mut flags) = ([0], [0; VECTOR_LEN]);
        prop_assert!(!Scale::tenths(places).integers(&[value], &mut integer, &mut flags));
        prop_assert_eq!(integer, [digits]);
    }

    #[test]
    fn rounding_stays_within_the_bound_and_goes_no_further(bits in prop::collection::vec(any::<u64>(), 1..100), at in 0usize..30) {
        let scale = scales()[at];
        for bound in [scale.unit() / 2.0, scale.unit() * 0.51, 0.0] {
            let values: Vec<f64> = bits.iter().enumerate().map(|(row, &bits)| match row % 2 {
                0 => f64::from_bits(bits),
                _ => (bits as i64 >> (bits % 60)) as f64 * scale.unit() * 0.37,
            }).collect();
            forms(|isa| {
                let mut rounded = values.clone();
                scale.round(bound, &mut rounded);
                for (rounded, value) in rounded.iter().zip(&values) {
                    let distance = (rounded - value).abs();
                    assert!(distance <= bound || rounded.is_same(*value), "{isa}, {scale:?}: {value} became {rounded}");
                }
                let mut again = rounded.clone();
                scale.round(bound, &mut again);
                assert!(again.iter().zip(&rounded).all(|(again, rounded)| again.is_same(*rounded)), "{isa}, {scale:?}");
            });
        }
    }
}

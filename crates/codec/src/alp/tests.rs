use super::*;
use proptest::prelude::*;

/// Sends `values` through integers under the chosen exponent and returns it with the number of exceptions.
fn comes_back<F: Float + Default>(values: &[F], bits: fn(F) -> u64) -> (Exponent, usize) {
    let exponent = choose(values, Exponent::ZERO);
    for tried in Exponent::all().chain([exponent]) {
        let (mut integers, mut exceptions) = (Vec::new(), Vec::new());
        encode(values, tried, &mut integers, &mut exceptions);
        let mut decoded = vec![F::default(); values.len()];
        decode(&integers, tried, &mut decoded);
        for exception in &exceptions {
            decoded[usize::from(exception.position)] = exception.value;
        }
        assert!(decoded.iter().zip(values).all(|(a, b)| bits(*a) == bits(*b)), "{tried:?}");
    }
    let mut exceptions = Vec::new();
    encode(values, exponent, &mut Vec::new(), &mut exceptions);
    (exponent, exceptions.len())
}

fn doubles_come_back(values: &[f64]) -> (Exponent, usize) {
    comes_back(values, f64::to_bits)
}

fn singles_come_back(values: &[f32]) -> (Exponent, usize) {
    comes_back(values, |value| u64::from(value.to_bits()))
}

fn exponent(number: i8) -> Exponent {
    Exponent::from_byte(number as u8).unwrap()
}

#[test]
fn decimals_have_no_exceptions() {
    let prices: Vec<f64> = (0..1024).map(|i| f64::from(i * 7919 % 100_003) / 100.0).collect();
    assert_eq!(doubles_come_back(&prices), (exponent(2), 0));
    let coordinates: Vec<f64> = (0..1024).map(|i| (f64::from(i) * 11_111_111.0 - 9e9) / 1e8).collect();
    assert_eq!(doubles_come_back(&coordinates), (exponent(8), 0));
    let thousands: Vec<f64> = (0..1024).map(|i| f64::from(i) * 1000.0).collect();
    assert_eq!(doubles_come_back(&thousands), (exponent(-3), 0));
    let temperatures: Vec<f32> = (0..1024).map(|i| (i as f32 - 300.0) / 10.0).collect();
    assert_eq!(singles_come_back(&temperatures), (exponent(1), 0));
}

#[test]
fn every_special_value_comes_back() {
    let doubles = [
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
    doubles_come_back(&doubles);
    let singles: Vec<f32> = doubles.iter().map(|&value| value as f32).chain([1e-45, f32::MAX, 16_777_217.0]).collect();
    singles_come_back(&singles);
}

#[test]
fn an_exception_widens_nothing() {
    let mut values = vec![100.25; 1024];
    values[0] = f64::NAN;
    values[500] = 1e300;
    let (mut integers, mut exceptions) = (Vec::new(), Vec::new());
    encode(&values, exponent(2), &mut integers, &mut exceptions);
    assert!(integers.iter().all(|&integer| integer == 10_025));
    assert_eq!(exceptions.iter().map(|exception| exception.position).collect::<Vec<_>>(), [0, 500]);
}

#[test]
fn an_exponent_is_kept_where_another_is_no_better() {
    assert_eq!(choose(&[0.0; 1024], exponent(4)), exponent(4));
    assert_eq!(choose::<f64>(&[], exponent(4)), exponent(4));
}

#[test]
fn sensors_read_in_turn_do_not_hide_from_the_choice() {
    let values: Vec<f64> = (0..1024).map(|i| if i % 8 == 0 { 1.5 } else { f64::from(i) + 0.123_456 }).collect();
    assert_eq!(doubles_come_back(&values), (exponent(6), 0));
}

#[test]
fn only_exponents_in_range_have_a_number() {
    assert_eq!((0..=255).filter(|&byte| Exponent::from_byte(byte).is_some()).count(), Exponent::all().count());
    assert!(Exponent::all().all(|exponent| Exponent::from_byte(exponent.to_byte()) == Some(exponent)));
}

proptest! {
    #[test]
    fn any_bits_come_back(bits in prop::collection::vec(any::<u64>(), 0..100)) {
        doubles_come_back(&bits.iter().map(|&bits| f64::from_bits(bits)).collect::<Vec<_>>());
        singles_come_back(&bits.iter().map(|&bits| f32::from_bits(bits as u32)).collect::<Vec<_>>());
    }

    #[test]
    fn any_decimal_of_fifteen_digits_needs_no_exception(digits in -999_999_999_999_999i64..=999_999_999_999_999, places in 0i8..=22) {
        prop_assume!(digits != 0 || places == 0);
        let value: f64 = format!("{digits}e-{places}").parse().unwrap();
        prop_assert_eq!(value.to_integer(exponent(places)), Some(digits));
    }
}

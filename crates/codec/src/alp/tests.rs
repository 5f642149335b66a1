use super::*;
use crate::scaled::Float;

fn exponent(number: i8) -> Exponent {
    Exponent::from_byte(number as u8).unwrap()
}

/// The exponent chosen, and how many exceptions there are with it.
fn chosen<F: Float>(values: &[F]) -> (Exponent, usize) {
    let exponent = choose(values, Exponent::ZERO);
    (exponent, exponent.scale().survey(values).misses)
}

#[test]
fn decimals_have_no_exceptions() {
    let prices: Vec<f64> = (0..1024).map(|i| f64::from(i * 7919 % 100_003) / 100.0).collect();
    assert_eq!(chosen(&prices), (exponent(2), 0));
    let coordinates: Vec<f64> = (0..1024).map(|i| (f64::from(i) * 11_111_111.0 - 9e9) / 1e8).collect();
    assert_eq!(chosen(&coordinates), (exponent(8), 0));
    let thousands: Vec<f64> = (0..1024).map(|i| f64::from(i) * 1000.0).collect();
    assert_eq!(chosen(&thousands), (exponent(-3), 0));
    let temperatures: Vec<f32> = (0..1024).map(|i| (i as f32 - 300.0) / 10.0).collect();
    assert_eq!(chosen(&temperatures), (exponent(1), 0));
}

#[test]
fn an_exponent_is_kept_where_another_is_no_better() {
    assert_eq!(choose(&[0.0; 1024], exponent(4)), exponent(4));
    assert_eq!(choose::<f64>(&[], exponent(4)), exponent(4));
}

#[test]
fn fewer_digits_are_found_though_more_would_do() {
    let tens: Vec<f64> = (0..1024).map(|i| f64::from(i * 10)).collect();
    assert_eq!(choose(&tens, exponent(7)), exponent(-1));
    let mut nearly = tens;
    nearly[0] = 0.125;
    assert_eq!(choose(&nearly, exponent(7)), exponent(-1), "one exception is cheaper than three digits");
}

#[test]
fn sensors_read_in_turn_do_not_hide_from_the_choice() {
    let values: Vec<f64> = (0..1024).map(|i| if i % 8 == 0 { 1.5 } else { f64::from(i) + 0.123_456 }).collect();
    assert_eq!(chosen(&values), (exponent(6), 0));
}

#[test]
fn only_exponents_in_range_have_a_number() {
    assert_eq!((0..=255).filter(|&byte| Exponent::from_byte(byte).is_some()).count(), Exponent::all().count());
    assert!(Exponent::all().all(|exponent| Exponent::from_byte(exponent.to_byte()) == Some(exponent)));
}

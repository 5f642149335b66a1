//! A loss that a user asked for stays within its bound, and everything else is told of the values as they read back.

mod columns;

use columns::{Column, Shape, cases, column, predicates};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use sinter_codec::*;

/// The values as they read back, and their statistics.
fn read_back(column: &Column, choice: &Choice) -> (Column, BlockStats) {
    let mut bytes = Vec::new();
    let stats = encode(column.values.as_values(), column.validity.as_ref(), choice, &mut bytes).unwrap();
    let block = Block::open(&bytes).unwrap();
    let mut values = ValuesBuf::new(block.physical());
    block.decode(0..block.value_count(), &mut values).unwrap();
    assert_eq!(block.stats(), &stats);
    (Column { values, validity: column.validity.clone() }, stats)
}

/// Checks what holds for all losses, and returns the values as they read back.
fn check(column: &Column, request: &str, seed: u64) -> Column {
    let choice = Choice::Forced(request.to_owned());
    let (found, stats) = read_back(column, &choice);

    // Statistics and filters are those of what is read.
    let (_, of_found) = read_back(&found, &Choice::Raw);
    assert_eq!(stats, of_found, "{request}");
    let mut bytes = Vec::new();
    encode(column.values.as_values(), column.validity.as_ref(), &choice, &mut bytes).unwrap();
    let block = Block::open(&bytes).unwrap();
    let mut passed = Bitmap::default();
    for predicate in predicates(&found, &mut SmallRng::seed_from_u64(seed)) {
        for start in (0..found.values.len()).step_by(VECTOR_LEN) {
            let range = start..found.values.len().min(start + VECTOR_LEN);
            block.filter(range.clone(), &predicate, &mut passed).unwrap();
            let expected = Bitmap::from_bools(range.map(|row| found.passes(row, &predicate)));
            assert_eq!(passed, expected, "{request} as {}, {predicate:?}", block.describe());
        }
    }

    // What waits to be pressed reads alike, and pressing it again loses no more.
    let (plain, stats_of_plain) = read_back(column, &choice.raw());
    assert_eq!(stats_of_plain, stats, "{request}");
    plain.assert_rows(0, &found.values, request);
    let (again, _) = read_back(&plain, &choice);
    again.assert_rows(0, &found.values, request);
    found
}

fn floats() -> impl Strategy<Value = (Column, u64)> {
    let shape =
        prop::sample::select(&[Shape::Runs, Shape::Narrow, Shape::Ascending, Shape::Outliers, Shape::Anything][..]);
    let physical = prop::sample::select(&[Physical::F32, Physical::F64][..]);
    (physical, shape, 0usize..3000, prop::sample::select(&[0u32, 30][..]), any::<u64>())
        .prop_map(|(physical, shape, len, nulls, seed)| (column(physical, shape, len, nulls, seed), seed))
}

/// Value and what became of it, as doubles, with whether all bits are the same.
fn pairs(before: &Column, after: &Column) -> Vec<(f64, f64, bool)> {
    let pair = |row: usize| match (&before.values, &after.values) {
        (ValuesBuf::F32(before), ValuesBuf::F32(after)) => {
            (f64::from(before[row]), f64::from(after[row]), before[row].to_bits() == after[row].to_bits())
        }
        (ValuesBuf::F64(before), ValuesBuf::F64(after)) => {
            (before[row], after[row], before[row].to_bits() == after[row].to_bits())
        }
        other => panic!("{other:?}"),
    };
    (0..before.values.len()).filter(|row| before.is_present(*row)).map(pair).collect()
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn quantised_floats_are_no_further_away_than_asked((column, seed) in floats(), bound in prop_oneof![
        Just(0.01), Just(1e-300), Just(1e300), Just(3.0), 1e-9..1e9f64,
    ]) {
        let found = check(&column, &format!("quantise({bound:e})"), seed);
        for (before, after, same) in pairs(&column, &found) {
            prop_assert!(same || (before - after).abs() <= bound, "{before} became {after}, bound {bound}");
        }
    }

    #[test]
    fn fixed_points_are_half_a_step_away((column, seed) in floats(), step in prop::sample::select(&[
        0.01, 1e-5, 1e-22, 1.0, 1000.0, 0.25, 0.000_976_562_5, 1_048_576.0,
    ][..])) {
        let found = check(&column, &format!("fixed_point({step:?})"), seed);
        for (before, after, same) in pairs(&column, &found) {
            prop_assert!(same || (before - after).abs() <= step * 0.500_001, "{before} became {after}, step {step}");
            if step == 0.01 && column.values.physical() == Physical::F64 && !same {
                let decimal: f64 = format!("{after:.2}").parse().unwrap();
                prop_assert!(decimal.to_bits() == (after + 0.0).to_bits(), "{after} has more digits");
            }
        }
    }

    #[cfg(feature = "zfp")]
    #[test]
    fn floats_of_zfp_are_no_further_away_than_asked((column, seed) in floats(), bound in prop_oneof![
        Just(0.01), Just(0.5), Just(3.0), 1e-9..1e6f64,
    ]) {
        let found = check(&column, &format!("zfp({bound:e})"), seed);
        for (before, after, same) in pairs(&column, &found) {
            prop_assert!(same || (before - after).abs() <= bound, "{before} became {after}, bound {bound}");
        }
    }

    #[test]
    fn singles_are_a_rounding_away((column, seed) in floats()) {
        if column.values.physical() == Physical::F32 {
            return Ok(());
        }
        let found = check(&column, "single(lossy)", seed);
        for (before, after, same) in pairs(&column, &found) {
            let bound = (before.abs() / f64::from(1 << 24)).max(f64::from(f32::from_bits(1)) / 2.0);
            prop_assert!(same || (before - after).abs() <= bound, "{before} became {after}");
        }
    }

    #[test]
    fn values_of_one_window_stay_in_it(
        physical in prop::sample::select(&Physical::ALL[..9]),
        shape in prop::sample::select(&[Shape::Narrow, Shape::Ascending, Shape::Anything][..]),
        window in prop::sample::select(&[1i128, 60, 1000, 60_000_000, i128::MAX][..]),
        nulls in prop::sample::select(&[0u32, 30][..]),
        len in 0usize..3000,
        seed: u64,
    ) {
        let column = column(physical, shape, len, nulls, seed);
        let found = check(&column, &format!("base_delta({window})"), seed);
        for row in (0..len).filter(|row| column.is_present(*row)) {
            let (Scalar::Int(before), Scalar::Int(after)) =
                (columns::scalar(&column.values, row), columns::scalar(&found.values, row)) else { unreachable!() };
            prop_assert_eq!(before.div_euclid(window), after.div_euclid(window), "{} became {}", before, after);
            prop_assert!(after == before || after.rem_euclid(window) == 0);
        }
    }
}

#[test]
fn nan_infinities_and_what_is_beyond_are_kept() {
    let values = vec![
        f64::NAN,
        -f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1e300,
        -1e300,
        f64::from_bits(0x7ff0_0000_0000_0001),
    ];
    let column = Column { values: ValuesBuf::F64(values), validity: None };
    for request in ["quantise(0.01)", "fixed_point(0.01)", "fixed_point(0.5)", "single(lossy)"] {
        let (found, _) = read_back(&column, &Choice::Forced(request.to_owned()));
        column.assert_rows(0, &found.values, request);
    }
}

#[test]
fn noise_takes_the_bits_that_its_bound_needs() {
    let mut state = 1_u64;
    let noise: Vec<f64> = (0..20_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        })
        .collect();
    for (request, bits) in [("quantise(0.001)", 9.2), ("fixed_point(0.001)", 10.2), ("single(lossy)", 32.2)] {
        let mut bytes = Vec::new();
        encode(Values::F64(&noise), None, &Choice::Forced(request.to_owned()), &mut bytes).unwrap();
        let found = bytes.len() as f64 * 8.0 / noise.len() as f64;
        assert!(found < bits, "{request}: {found} bits a value as {}", Block::open(&bytes).unwrap().describe());
    }
}

#[test]
fn a_parameter_says_what_is_lost_or_is_an_error() {
    for text in ["quantise(0.01)", " fixed_point ( 1e-3 ) ", "single(lossy)", "base_delta(60)"] {
        assert!(Request::parse(text).unwrap().is_lossy(), "{text}");
    }
    for entry in SCHEMES {
        assert!(!Request::parse(entry.name).unwrap().is_lossy(), "{}", entry.name);
    }
    let error = |text: &str| Request::parse(text).unwrap_err().to_string();
    assert_eq!(
        error("quantise(-1)"),
        "scheme 'quantise' does not take '-1' in parentheses; it takes the distance that values may read back at, above \
         zero, such as quantise(0.01)"
    );
    assert_eq!(error("for(3)"), "scheme 'for' does not take '3' in parentheses; it takes none");
    for text in [
        "quantise()",
        "quantise(0)",
        "quantise(NaN)",
        "quantise(inf)",
        "quantise(1",
        "quantise(1) or so",
        "fixed_point(0.03)",
        "fixed_point(-0.01)",
        "single(0.1)",
        #[cfg(feature = "zfp")]
        "zfp(0)",
        #[cfg(feature = "zfp")]
        "zfp(nan)",
        "base_delta(0)",
        "base_delta(-5)",
        "base_delta(1.5)",
    ] {
        assert!(matches!(Request::parse(text), Err(Error::NoSuchParameter { .. })), "{text}");
    }
    assert!(matches!(Request::parse("quantize(1)"), Err(Error::NoSuchScheme { .. })));
    let mut bytes = Vec::new();
    let choice = Choice::Forced("quantise(0.01)".to_owned());
    let error = encode(Values::I64(&[1, 2]), None, &choice, &mut bytes).unwrap_err();
    assert!(matches!(error, Error::NotApplicable { scheme: "quantise", physical: "i64" }) && bytes.is_empty());
    assert_eq!(Choice::Forced("for".to_owned()).raw(), Choice::Raw);
    assert_eq!(Choice::Auto.raw(), Choice::Raw);
    let unknown = Choice::Forced("of_another_build(0.01)".to_owned()).raw();
    let error = encode(Values::F64(&[0.5]), None, &unknown, &mut bytes).unwrap_err();
    assert!(matches!(error, Error::NoSuchScheme { .. }), "what comes to such a column is not kept as it is: {error}");
}

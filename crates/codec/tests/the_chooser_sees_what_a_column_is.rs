//! Which scheme is found for the columns that databases are full of, and when it is looked for again.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_codec::*;

fn random() -> SmallRng {
    SmallRng::seed_from_u64(3)
}

/// The scheme as text, and bits a value.
fn chosen(values: Values<'_>) -> (String, f64) {
    let mut bytes = Vec::new();
    encode(values, None, &Choice::Auto, &mut bytes).unwrap();
    let block = Block::open(&bytes).unwrap();
    (block.describe(), bytes.len() as f64 * 8.0 / values.len() as f64)
}

/// The scheme of the next block of a column as text, and its bytes.
fn next_block(chooser: &mut Chooser, values: Values<'_>) -> (String, usize) {
    let mut bytes = Vec::new();
    chooser.encode(values, None, &mut bytes).unwrap();
    (Block::open(&bytes).unwrap().describe(), bytes.len())
}

#[test]
fn sorted_keys_with_repeats_take_three_bits() {
    let mut random = random();
    let mut keys: Vec<i64> = Vec::new();
    for order in 0.. {
        let key = order / 8 * 32 + order % 8 + 1; // as TPC-H numbers its orders
        keys.extend(std::iter::repeat_n(key, random.random_range(1..=7)));
        if keys.len() >= ROW_GROUP_LEN {
            break;
        }
    }
    let (scheme, bits) = chosen(Values::I64(&keys[..ROW_GROUP_LEN]));
    assert!(bits < 3.0, "{bits} bits as {scheme}");
}

#[test]
fn dates_take_a_frame_of_reference() {
    let mut random = random();
    let dates: Vec<i32> = (0..ROW_GROUP_LEN).map(|_| random.random_range(8036..10_562)).collect();
    let (scheme, bits) = chosen(Values::I32(&dates));
    assert!(scheme == "for[12]" && bits < 12.2, "{bits} bits as {scheme}");
}

#[test]
fn few_different_strings_take_a_dictionary() {
    let mut random = random();
    let modes = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"];
    let values: BytesBuf = (0..ROW_GROUP_LEN).map(|_| modes[random.random_range(0..7)].as_bytes()).collect();
    let (scheme, bits) = chosen(Values::Bytes(values.view()));
    assert!(scheme.starts_with("dict(bitpack[3], ") && bits < 3.2, "{bits} bits as {scheme}");
}

#[test]
fn outliers_are_patched() {
    let mut random = random();
    let delays: Vec<i64> = (0..ROW_GROUP_LEN)
        .map(|_| {
            if random.random_range(0..100) == 0 {
                random.random_range(-100_000..1_000_000)
            } else {
                random.random_range(-20..40)
            }
        })
        .collect();
    let (scheme, bits) = chosen(Values::I64(&delays));
    assert!(scheme.starts_with("pfor[") && bits < 7.5, "{bits} bits as {scheme}");
}

#[test]
fn noise_stays_raw() {
    let mut random = random();
    let noise: Vec<u64> = (0..10_000).map(|_| random.random()).collect();
    assert_eq!(chosen(Values::U64(&noise)).0, "raw");
}

#[test]
fn a_block_of_one_value_is_small() {
    let mut bytes = Vec::new();
    encode(Values::I32(&[-5]), None, &Choice::Raw, &mut bytes).unwrap();
    assert!(bytes.len() <= 40, "{} bytes", bytes.len());
}

#[test]
fn a_choice_is_kept_until_it_no_longer_suits() {
    let mut random = random();
    let mut chooser = Chooser::new(Choice::Auto);
    let mut describe = |values: &[i64]| next_block(&mut chooser, Values::I64(values));
    let mut uniform = |reach: i64| -> Vec<i64> { (0..20_000).map(|_| random.random_range(0..reach)).collect() };
    assert_eq!(describe(&uniform(1000)).0, "bitpack[10]");
    assert_eq!(describe(&uniform(900)).0, "bitpack[10]");
    let ascending: Vec<i64> = (0..20_000).map(|row| row * 1000).collect();
    let (scheme, bytes) = describe(&ascending);
    assert_eq!((&scheme[..], bytes < 1000), ("delta[0]", true));
}

#[test]
fn a_choice_is_made_anew_where_a_better_one_is_likely() {
    let mut random = random();
    let mut chooser = Chooser::new(Choice::Auto);
    let mut encoded = |values: &[i64]| next_block(&mut chooser, Values::I64(values));
    let mut uniform: Vec<i64> = (0..20_000).map(|_| random.random_range(0..1000)).collect();
    assert_eq!(encoded(&uniform).0, "bitpack[10]");
    // Ten bits would still do.
    uniform.sort_unstable();
    let (scheme, bytes) = encoded(&uniform);
    assert!(bytes < 6000, "{bytes} bytes as {scheme}");
    let runs: Vec<i64> = (0..20_000).map(|row| uniform[(row / 100 * 7919) % 20_000]).collect();
    let (scheme, bytes) = encoded(&runs);
    assert!(scheme.starts_with("rle(") && bytes < 600, "{bytes} bytes as {scheme}");
}

#[test]
fn a_choice_is_made_anew_when_its_ratio_decays() {
    let mut random = random();
    let mut chooser = Chooser::new(Choice::Auto);
    let mut encoded = |values: &[i64]| next_block(&mut chooser, Values::I64(values));
    let near: Vec<i64> = (0..20_000).map(|_| random.random_range(0..1000)).collect();
    assert_eq!(encoded(&near).0, "bitpack[10]");
    // As many different values, runs and breaks of order, but each takes 42 bits.
    let far: Vec<i64> = near.iter().map(|value| value * 0x00_fd_b9_75_31).collect();
    let (scheme, bytes) = encoded(&far);
    assert!(!scheme.starts_with("bitpack") && bytes < 40_000, "{bytes} bytes as {scheme}");
}

#[test]
fn a_choice_that_still_serves_is_looked_at_again_after_64_blocks() {
    let mut random = random();
    let mut chooser = Chooser::new(Choice::Auto);
    let mut describe = |values: &[i64]| next_block(&mut chooser, Values::I64(values)).0;
    let uniform: Vec<i64> = (0..20_000).map(|_| random.random_range(0..1000)).collect();
    assert_eq!(describe(&uniform), "bitpack[10]");
    // Ten bits still do, and nothing else that is known without a choice differs by much.
    let outliers: Vec<i64> =
        uniform.iter().enumerate().map(|(row, value)| if row % 20 == 0 { *value } else { value % 16 }).collect();
    for block in 1..64 {
        assert_eq!(describe(&outliers), "bitpack[10]", "block {block}");
    }
    let (scheme, best) = (describe(&outliers), chosen(Values::I64(&outliers)).0);
    assert!(scheme == best && !scheme.starts_with("bitpack"), "{scheme}; by itself {best}");
}

#[test]
fn schemes_are_nested_three_deep_and_no_deeper() {
    let mut random = random();
    let words = ["furiously", "regular", "deposits", "packages", "requests", "carefully", "ironic", "express"];
    let mut text = || (0..6).map(|_| words[random.random_range(0..8)]).collect::<Vec<_>>().join(" ");
    let texts: Vec<String> = (0..600).map(|_| text()).collect();
    let runs: Vec<usize> = (0..4000).map(|run| run * 7919 % texts.len()).collect();
    let values: BytesBuf =
        runs.iter().enumerate().flat_map(|(run, text)| vec![texts[*text].as_bytes(); 10 + run % 7]).collect();
    let mut deepest = 0;
    for scheme in ["auto", "rle", "dict", "pdict"] {
        let choice = if scheme == "auto" { Choice::Auto } else { Choice::Forced(scheme.into()) };
        let (mut bytes, mut decoded) = (Vec::new(), ValuesBuf::new(Physical::Bytes));
        encode(Values::Bytes(values.view()), None, &choice, &mut bytes).unwrap();
        let block = Block::open(&bytes).unwrap();
        assert!(scheme == "auto" || block.describe().starts_with(scheme), "{scheme}: {}", block.describe());
        block.decode(0..values.view().len(), &mut decoded).unwrap();
        assert!(decoded == ValuesBuf::Bytes(values.clone()), "{scheme}");
        let (mut open, mut parts) = (0, 0);
        for letter in block.describe().chars() {
            open += i32::from(letter == '(') - i32::from(letter == ')');
            parts = parts.max(open);
        }
        deepest = deepest.max(parts);
    }
    assert_eq!(deepest, 3);
}

#[test]
fn the_parts_of_a_forced_scheme_are_chosen_anew_when_they_decay() {
    let mut random = random();
    let mut chooser = Chooser::new(Choice::Forced("dict".into()));
    let mut encoded = |values: &[u32]| next_block(&mut chooser, Values::U32(values)).0;
    // Their counts and their order are the same, and the second has less than twice as many runs.
    let runs = |lengths: [usize; 10], random: &mut SmallRng| -> Vec<u32> {
        let cycle = lengths.into_iter().cycle();
        let values = cycle.flat_map(|len| vec![random.random_range(0..50) * 77_777; len]);
        values.take(20_000).collect()
    };
    let first = encoded(&runs([1, 2, 3, 1, 2, 3, 1, 2, 3, 2], &mut random));
    assert!(first.starts_with("dict(rle("), "{first}");
    let next = encoded(&runs([1, 1, 1, 1, 1, 1, 1, 1, 1, 2], &mut random));
    assert!(next.starts_with("dict(bitpack[6], "), "{next}");
}

#[test]
fn following_blocks_share_a_dictionary_until_it_does_not_suit_them() {
    let mut random = random();
    let mut chooser = Chooser::new(Choice::Forced("dict".into()));
    let mut entries = |from: i64, to: i64| {
        let values: Vec<i64> = (0..30_000).map(|_| random.random_range(from..to) << 33).collect();
        let mut bytes = Vec::new();
        chooser.encode(Values::I64(&values), None, &mut bytes).unwrap();
        let dictionary = Block::open(&bytes).unwrap().dictionary().unwrap().unwrap();
        let ValuesBuf::I64(entries) = dictionary else { panic!("{dictionary:?}") };
        assert!(entries.is_sorted());
        entries.len()
    };
    assert_eq!(entries(0, 250), 250);
    // Ten are not used; a hundred are too many.
    assert_eq!(entries(10, 250), 250);
    assert_eq!(entries(100, 250), 150);
    assert_eq!(entries(90, 250), 160);
}

#[test]
fn a_last_block_of_few_rows_has_a_dictionary_that_suits_them() {
    for scheme in ["dict", "pdict"] {
        let mut chooser = Chooser::new(Choice::Forced(scheme.into()));
        for len in [4000, 114, 100, 99, 3] {
            let values: Vec<i64> = (0..len).map(|row| (row % 114) << 40).collect();
            let (mut bytes, mut decoded) = (Vec::new(), ValuesBuf::new(Physical::I64));
            chooser.encode(Values::I64(&values), None, &mut bytes).unwrap();
            let block = Block::open(&bytes).unwrap_or_else(|error| panic!("{scheme}, {len} rows: {error}"));
            block.decode(0..values.len(), &mut decoded).unwrap();
            assert_eq!(decoded, ValuesBuf::I64(values), "{scheme}");
        }
    }
}

#[test]
fn candidates_say_what_they_promised_and_why_one_is_taken() {
    let mut random = random();
    let dates: Vec<i32> = (0..ROW_GROUP_LEN).map(|_| random.random_range(8036..10_562)).collect();
    let found = candidates(Values::I32(&dates), None).unwrap();
    let holding = SCHEMES.iter().filter(|entry| entry.holds(Physical::I32)).count();
    assert_eq!((found.len(), found.iter().filter(|candidate| candidate.is_chosen).count()), (holding, 1));
    let first = &found[0];
    assert!(first.is_chosen && first.scheme == "for" && first.description == "for[12]", "{first:?}");
    let mut block = Vec::new();
    encode(Values::I32(&dates), None, &Choice::Auto, &mut block).unwrap();
    assert!(first.bytes.unwrap() <= block.len() && first.bytes.unwrap() + 64 > block.len(), "{first:?}");
    for candidate in &found {
        if let (Some(estimated), Some(bytes)) = (candidate.estimated_bytes, candidate.bytes) {
            let error = (estimated as f64 / bytes as f64 - 1.0).abs();
            assert!(error < 0.05, "{candidate:?}");
        }
    }
    let constant = found.iter().find(|candidate| candidate.scheme == "constant").unwrap();
    assert_eq!((constant.bytes, constant.why.as_str()), (None, "cannot hold these values"));
    let same = candidates(Values::I32(&[5; 3000]), None).unwrap();
    assert_eq!((same[0].scheme, same[0].why.as_str()), ("constant", "all values are the same"));
    let none = candidates(Values::I32(&[]), None).unwrap();
    assert_eq!(none[0].scheme, "raw");
}

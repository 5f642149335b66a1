use super::*;
use crate::{BytesBuf, Error, Pattern, PatternPart};
use proptest::prelude::*;

const WIDTHS: [Width; 2] = [Width::Narrow, Width::Wide];

fn buf(values: &[&[u8]]) -> BytesBuf {
    values.iter().copied().collect()
}

/// Packed codes of `values`, and how many codes each has.
fn encode(table: &SymbolTable, values: &[&[u8]]) -> (Vec<u8>, Vec<u32>) {
    let (mut codes, mut counts) = (Vec::new(), Vec::new());
    table.encoder().encode(buf(values).view(), &mut codes, &mut counts);
    let mut packed = Vec::new();
    pack(table.width(), &codes, &mut packed);
    assert_eq!(packed.len(), packed_bytes(table.width(), codes.len()));
    assert!(codes.iter().enumerate().all(|(index, &code)| code_at(table.width(), &packed, index) == code));
    (packed, counts)
}

/// Trains both widths on `sample`, sends the table through its bytes and `values` through the table, whole and singly.
fn comes_back(sample: &[&[u8]], values: &[&[u8]]) {
    for width in WIDTHS {
        let mut bytes = Vec::new();
        let trained = SymbolTable::train_width(width, buf(sample).view(), 4.0);
        trained.write(&mut bytes);
        assert_eq!(bytes.len(), trained.serialized_bytes());
        let (table, table_bytes) = SymbolTable::read(&bytes).unwrap();
        assert_eq!(table_bytes, bytes.len());

        let (packed, counts) = encode(&table, values);
        let mut decoded = BytesBuf::default();
        table.decode(&packed, 0, &counts, &mut decoded).unwrap();
        assert!(decoded.view().iter().eq(values.iter().copied()));

        let mut next_code = 0;
        for (value, count) in values.iter().zip(counts) {
            decoded.clear();
            next_code = table.decode(&packed, next_code, &[count], &mut decoded).unwrap();
            assert_eq!(decoded.view().get(0), *value);
        }
    }
}

fn words(count: usize) -> Vec<Vec<u8>> {
    const WORDS: [&str; 8] =
        ["furiously ", "ironic ", "deposits ", "sleep ", "above ", "the ", "packages ", "quickly "];
    let mut state = 7_u64;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        WORDS[(state >> 61) as usize]
    };
    (0..count).map(|_| [word(), word(), word()].concat().into_bytes()).collect()
}

fn slices(values: &[Vec<u8>]) -> Vec<&[u8]> {
    values.iter().map(Vec::as_slice).collect()
}

#[test]
fn frequent_words_become_symbols() {
    let words = words(2000);
    let values = slices(&words);
    let text_bytes: usize = values.iter().map(|value| value.len()).sum();
    let table = SymbolTable::train(buf(&values).view(), text_bytes);
    let packed_bytes = encode(&table, &values).0.len() + table.serialized_bytes();
    assert!(packed_bytes * 5 < text_bytes, "{packed_bytes} of {text_bytes} bytes");
}

/// The codes of `value` as the format page has them: the longest symbol that matches, or an escape.
fn codes_by_the_book(table: &SymbolTable, value: &[u8]) -> Vec<u16> {
    let symbols: Vec<Symbol> = table.symbols().collect();
    let mut codes = Vec::new();
    let mut rest = value;
    while let Some((&byte, after)) = rest.split_first() {
        let fitting = (0..symbols.len()).filter(|&code| rest.starts_with(symbols[code].as_slice()));
        match fitting.max_by_key(|&code| symbols[code].len) {
            Some(code) => {
                codes.push(code as u16);
                rest = &rest[usize::from(symbols[code].len)..];
            }
            None => {
                codes.extend([ESCAPE, u16::from(byte)]);
                rest = after;
            }
        }
    }
    codes
}

#[test]
fn bytes_without_a_zero_bit_are_like_others() {
    // Symbols of three bytes and less, so that steps on from there are asked for in vain.
    let (table, _) = SymbolTable::read(&[12, 1, 0, 0x20, 255, 255, 255]).unwrap();
    for value in [vec![255; 40], [vec![255; 2], vec![0; 30]].concat(), vec![0; 40]] {
        assert_eq!(table.encoder().encode_one(&value), codes_by_the_book(&table, &value));
    }
}

#[test]
fn each_form_takes_the_longest_symbol() {
    let mut state = 3_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    // Letters that are few have symbols of all lengths, and zeros are what is behind the end of a text.
    let mut texts: Vec<Vec<u8>> = Vec::new();
    for row in 0..3000 {
        let (letters, first) = ([1, 2, 3, 30][row % 4], [0, 255][row / 4 % 2]);
        texts.push((0..random(60)).map(|_| first ^ random(letters) as u8).collect());
    }
    texts.extend(words(3000).into_iter().enumerate().map(|(row, text)| text[row % 5..text.len() - row % 3].to_vec()));
    texts.push(words(9000).concat());
    let texts = buf(&slices(&texts));
    for width in WIDTHS {
        let table = SymbolTable::train_width(width, texts.view().slice(0..4000), 100.0);
        let expected: Vec<Vec<u16>> = texts.view().iter().map(|text| codes_by_the_book(&table, text)).collect();
        crate::isa::forms(|isa| {
            let (mut codes, mut counts) = (Vec::new(), Vec::new());
            table.encoder().encode(texts.view(), &mut codes, &mut counts);
            assert_eq!(codes, expected.concat(), "{isa}");
            assert!(counts.iter().map(|&count| count as usize).eq(expected.iter().map(Vec::len)), "{isa}");
        });
    }
}

#[test]
fn what_is_awkward_comes_back() {
    let all_bytes: Vec<u8> = (0..=255).collect();
    let one_byte = vec![b'a'; 100_000];
    let zeros = vec![0; 1000];
    let long: Vec<u8> = words(40_000).concat();
    let values: Vec<&[u8]> = vec![b"", &all_bytes, b"", b"\0", &zeros, &one_byte, b"a", &long, b"\xFF\xFF\xFF", b""];
    comes_back(&values, &values);
    comes_back(&[], &values);
    comes_back(&[b""], &values);
    comes_back(&[&zeros, b"\0\0", b"a\0"], &values);
}

#[test]
fn noise_grows_by_no_more_than_its_codes() {
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(100_000)
    .collect();
    let table = SymbolTable::train(sample(std::iter::once(&noise[..]), 16 << 10).view(), noise.len());
    let packed_bytes = encode(&table, &[&noise]).0.len();
    assert!(packed_bytes < noise.len() * 8 / 7, "{packed_bytes} of {} bytes", noise.len());
}

#[test]
fn a_sample_is_a_bounded_even_part() {
    let words = words(10_000);
    let part = sample(words.iter().map(Vec::as_slice), 32 << 10);
    let part_bytes = part.view().data_bytes();
    assert!((30 << 10..34 << 10).contains(&part_bytes), "{part_bytes}");
    let long = words.concat();
    assert!(sample(std::iter::once(&long[..]), 32 << 10).view().len() > 20);
}

#[test]
fn each_truncated_table_is_an_error() {
    let words = words(500);
    for width in WIDTHS {
        let mut bytes = Vec::new();
        SymbolTable::train_width(width, buf(&slices(&words)).view(), 4.0).write(&mut bytes);
        for len in 0..bytes.len() {
            assert!(matches!(SymbolTable::read(&bytes[..len]), Err(Error::Damaged { .. })), "{len} of {}", bytes.len());
        }
    }
}

#[test]
fn tables_that_no_writer_writes_are_rejected() {
    let message = |bytes: &[u8]| SymbolTable::read(bytes).err().unwrap().to_string();
    for (bytes, expected) in [
        (&[9, 0, 0][..], "codes of 9 bits, not 8 or 12"),
        (&[8, 0, 1], "256 symbols where 8-bit codes have 255"),
        (&[12, 1, 0, 0x00, b'a'], "symbol 0 is a single byte, which 12-bit codes imply"),
        (&[8, 1, 0, 0x01, b'a'], "symbol 0 shares 1 bytes with one of 0"),
        (&[8, 2, 0, 0x00, b'b', 0x00, b'a'], "symbol 1 does not order after the one before it"),
        (&[8, 2, 0, 0x00, b'b', 0x00, b'b'], "symbol 1 does not order after the one before it"),
        (&[8, 2, 0, 0x10, b'a', b'b', 0xF2], "symbol 1 has 18 bytes, more than 16"),
        (&[8, 1, 0, 0x10, b'a'], "the bytes end within symbol 0"),
    ] {
        assert_eq!(message(bytes), format!("damaged block, fsst, symbol table: {expected}"));
    }
}

#[test]
fn codes_that_no_encoder_writes_are_rejected() {
    let (narrow, _) = SymbolTable::read(&[8, 1, 0, 0x10, b'a', b'b']).unwrap();
    let mut out = BytesBuf::default();
    assert_eq!(narrow.decode(&[0, 255, b'c', 0], 0, &[1, 2, 1], &mut out), Ok(4));
    assert_eq!(out.data, b"abcab");
    assert!(narrow.decode(&[1], 0, &[1], &mut out).is_err(), "a code without a symbol");
    assert!(narrow.decode(&[255, 0], 0, &[1, 1], &mut out).is_err(), "an escape at the end of a string");
    assert!(narrow.decode(&[0, 0], 1, &[2], &mut out).is_err(), "more codes than there are");
    assert!(narrow.decode(&[0, 0], usize::MAX, &[1], &mut out).is_err(), "far behind the end");
    let (wide, _) = SymbolTable::read(&[12, 0, 0]).unwrap();
    assert!(wide.decode(&[0, 1, 0], 0, &[2], &mut out).is_err(), "code 256 of an empty table");
    assert!(wide.decode(&[0, 0], 0, &[2], &mut out).is_err(), "half a code");
}

#[test]
fn escapes_and_strings_end_anywhere_in_a_batch() {
    let (narrow, _) = SymbolTable::read(&[8, 1, 0, 0x10, b'a', b'b']).unwrap();
    for plain in 500..530 {
        let codes = [vec![0; plain], vec![255, b'c', 0]].concat();
        let mut out = BytesBuf::default();
        let counts = [0, plain as u32, 2, 0, 1, 0];
        assert_eq!(narrow.decode(&codes, 0, &counts, &mut out), Ok(plain + 3));
        let expected = [vec![], b"ab".repeat(plain), b"c".to_vec(), vec![], b"ab".to_vec(), vec![]];
        assert!(out.view().iter().eq(slices(&expected)), "{plain} codes before the escape");
        let counts = [plain as u32 + 1, 2];
        assert!(narrow.decode(&codes, 0, &counts, &mut out).is_err(), "{plain} codes before half an escape");
    }
}

proptest! {
    #[test]
    fn any_strings_come_back(
        values in prop::collection::vec(prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..60), 0..200),
        trained in 0usize..200,
    ) {
        let values = slices(&values);
        comes_back(&values[..trained.min(values.len())], &values);
    }

    #[test]
    fn equal_strings_and_no_others_have_equal_codes(
        values in prop::collection::vec(prop::collection::vec(0u8..3, 0..12), 2..60),
    ) {
        let values = slices(&values);
        for width in WIDTHS {
            let table = SymbolTable::train_width(width, buf(&values).view(), 100.0);
            let mut encoder = table.encoder();
            let encoded: Vec<Vec<u16>> = values.iter().map(|value| encoder.encode_one(value)).collect();
            for (a, codes_a) in values.iter().zip(&encoded) {
                for (b, codes_b) in values.iter().zip(&encoded) {
                    prop_assert_eq!(a == b, codes_a == codes_b);
                }
            }
        }
    }

    #[test]
    fn patterns_are_found_in_codes_alone(
        values in prop::collection::vec(prop::collection::vec(0u8..3, 0..30), 2..60),
        needle in prop::collection::vec(0u8..4, 1..6),
    ) {
        let values = slices(&values);
        for width in WIDTHS {
            // Half of the values are strange to the table, so that there are escapes.
            let table = SymbolTable::train_width(width, buf(&values[..values.len() / 2]).view(), 100.0);
            let search = table.search(&Pattern::containing(&needle).unwrap());
            let start: Vec<PatternPart> = needle.iter().map(|&byte| PatternPart::Byte(byte)).collect();
            let at_start = Pattern::new(start.into_iter().chain([PatternPart::AnyChar, PatternPart::AnyBytes])).unwrap();
            let at_start = table.search(&at_start);
            let (packed, counts) = encode(&table, &values);
            let mut first_code = 0;
            for (value, count) in values.iter().zip(counts) {
                let expected = value.windows(needle.len()).any(|window| window == needle);
                prop_assert_eq!(search.is_in(&packed, first_code, count as usize), expected, "{:?} in {:?}", &needle, value);
                let expected = value.starts_with(&needle) && value.len() > needle.len();
                let found = at_start.is_in(&packed, first_code, count as usize);
                prop_assert_eq!(found, expected, "{:?} before a byte in {:?}", &needle, value);
                first_code += count as usize;
            }
        }
    }

    #[test]
    fn any_bytes_are_a_table_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400), codes in prop::collection::vec(any::<u8>(), 0..200)) {
        for bits in [8, 12] {
            let mut bytes = bytes.clone();
            if bytes.len() > 2 {
                bytes[0] = bits;
                bytes[2] &= 1;
            }
            let Ok((table, _)) = SymbolTable::read(&bytes) else { continue };
            let mut out = BytesBuf::default();
            let counts = vec![3; codes.len() / 3];
            if table.decode(&codes, 0, &counts, &mut out).is_ok() {
                prop_assert!(out.data.len() <= codes.len() * SYMBOL_BYTES);
                prop_assert_eq!(out.view().len(), counts.len());
            }
        }
    }
}

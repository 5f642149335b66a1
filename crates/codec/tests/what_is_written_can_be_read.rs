//! Readers hold blocks to limits; what passes them is refused when it is written, and nothing of it is left.

use sinter_codec::*;

#[test]
fn as_many_values_as_a_reader_takes_and_no_more() {
    for choice in [Choice::Auto, Choice::Raw, Choice::Forced("bitpack".into())] {
        let mut values: Vec<u32> = (0..VALUE_COUNT_MAX as u32).map(|row| row % 5).collect();
        let mut bytes = Vec::new();
        encode(Values::U32(&values), None, &choice, &mut bytes).unwrap();
        let (block, mut decoded) = (Block::open(&bytes).unwrap(), ValuesBuf::new(Physical::U32));
        block.decode(0..values.len(), &mut decoded).unwrap();
        assert_eq!(decoded, ValuesBuf::U32(values.clone()));

        values.push(7);
        let mut bytes = b"before".to_vec();
        let error = encode(Values::U32(&values), None, &choice, &mut bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a block of 2097153 values is larger than the 2097152 allowed; cut it into several"
        );
        assert_eq!(bytes, b"before");
    }
}

#[test]
fn as_many_bytes_as_are_decoded_at_once_and_no_more() {
    // Zeros that nobody looks at take no memory.
    let data = vec![0; (1 << 30) + 1];
    let offsets = [0, 5, data.len() as u32];
    let view = BytesView { offsets: &offsets, data: &data };
    let error = encode(Values::Bytes(view), None, &Choice::Auto, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, Error::TooLarge { found: 1_073_741_825, limit: 1_073_741_824, .. }), "{error}");
}

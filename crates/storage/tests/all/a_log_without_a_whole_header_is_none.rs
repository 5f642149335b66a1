//! A log that was cut by exactly one byte of its header: that byte, the last of the checksum, is zero in one log of 256,
//! and the checksum of what is left, with a zero for the missing byte, is right then. It is damaged all the same.

use crate::support::{found, newest_log, unclosed};

#[test]
fn a_log_without_the_last_byte_of_its_header() {
    for round in 0..3000 {
        let (fs, _) = unclosed(2, 10);
        let log = newest_log(&fs);
        let bytes = fs.bytes(&log);
        fs.put(&log, bytes[..63].to_vec());
        if let Ok((_, notes)) = found(&fs) {
            panic!("round {round}, checksum ends with {}: {notes:?}", bytes[63]);
        }
    }
}

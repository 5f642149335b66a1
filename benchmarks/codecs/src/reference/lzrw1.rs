//! LZRW1 (Williams, "An extremely fast Ziv-Lempel data compression algorithm", DCC 1991).
//!
//! ```text
//! +----------------+---------------------------------------+--------
//! | 16 flags (u16) | 16 items: a byte, or with a set flag  | next
//! |                | a copy: length - 1 and distance (u16) | group ...
//! +----------------+---------------------------------------+--------
//! ```
//!
//! A table without collision lists says where the same three bytes were seen last. A copy is of 3 to 16 bytes, from a
//! distance of 1 to 4095. The first byte of all says whether what follows is pressed or, where that would be no
//! smaller, plain.

const TABLE_LEN: usize = 4096;
const DISTANCE_MAX: usize = 4095;
const COPY_MAX: usize = 16;
const COPY_MIN: usize = 3;
const ITEMS: usize = 16;

const PRESSED: u8 = 0;
const PLAIN: u8 = 1;

/// The hash of three bytes.
fn slot(bytes: [u8; 3]) -> usize {
    let mixed = (u32::from(bytes[0]) << 8) ^ (u32::from(bytes[1]) << 4) ^ u32::from(bytes[2]);
    (40543u32.wrapping_mul(mixed) >> 4) as usize & (TABLE_LEN - 1)
}

/// Appends `bytes`, pressed, to `out`.
pub fn press(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.push(PRESSED);
    let mut seen = [0u32; TABLE_LEN];
    let mut at = 0;
    while at < bytes.len() {
        let flags_at = out.len();
        out.extend_from_slice(&[0, 0]);
        let mut flags = 0u16;
        for item in 0..ITEMS {
            if at == bytes.len() {
                break;
            }
            let length = match bytes.get(at..at + 3) {
                Some(&[a, b, c]) => {
                    let entry = &mut seen[slot([a, b, c])];
                    let from = *entry as usize;
                    *entry = at as u32;
                    let limit = COPY_MAX.min(bytes.len() - at);
                    let distance = at - from;
                    let is_near = (1..=DISTANCE_MAX).contains(&distance);
                    let length = if is_near { equal_prefix(&bytes[from..], &bytes[at..at + limit]) } else { 0 };
                    if length >= COPY_MIN {
                        flags |= 1 << item;
                        let copy = ((length - 1) << 12 | distance) as u16;
                        out.extend_from_slice(&copy.to_le_bytes());
                        length
                    } else {
                        out.push(a);
                        1
                    }
                }
                _ => {
                    out.push(bytes[at]);
                    1
                }
            };
            at += length;
        }
        out[flags_at..flags_at + 2].copy_from_slice(&flags.to_le_bytes());
    }
    if out.len() - start > bytes.len() {
        out.truncate(start);
        out.push(PLAIN);
        out.extend_from_slice(bytes);
    }
}

fn equal_prefix(earlier: &[u8], bytes: &[u8]) -> usize {
    earlier.iter().zip(bytes).take_while(|(a, b)| a == b).count()
}

/// Fills `bytes` with what `pressed` stands for.
///
/// # Panics
/// Where that is not as long.
pub fn restore(pressed: &[u8], bytes: &mut [u8]) {
    let (kind, mut rest) = pressed.split_at(1);
    if kind[0] == PLAIN {
        return bytes.copy_from_slice(rest);
    }
    let mut at = 0;
    while at < bytes.len() {
        let mut flags = u16::from_le_bytes([rest[0], rest[1]]);
        rest = &rest[2..];
        for _ in 0..ITEMS {
            if at == bytes.len() {
                break;
            }
            if flags & 1 == 1 {
                let copy = usize::from(u16::from_le_bytes([rest[0], rest[1]]));
                let (length, distance) = ((copy >> 12) + 1, copy & DISTANCE_MAX);
                let from = at - distance;
                if distance >= COPY_MAX && at + COPY_MAX <= bytes.len() {
                    // What is copied too much is written again.
                    let (earlier, later) = bytes.split_at_mut(at);
                    later[..COPY_MAX].copy_from_slice(&earlier[from..from + COPY_MAX]);
                } else {
                    (0..length).for_each(|index| bytes[at + index] = bytes[from + index]);
                }
                at += length;
                rest = &rest[2..];
            } else {
                bytes[at] = rest[0];
                at += 1;
                rest = &rest[1..];
            }
            flags >>= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn what_is_pressed_is_restored() {
        let mut random = Random::new(5);
        let text = b"the quick brown fox jumps over the lazy dog and the quick brown cat. ".repeat(300);
        let noise: Vec<u8> = (0..5000).map(|_| random.bits() as u8).collect();
        let mixed: Vec<u8> = (0..70_000).map(|_| random.below(3) as u8).collect();
        for (bytes, at_most) in [(&text[..], text.len() / 3), (&noise, 5001), (&mixed, 45_000), (b"", 1), (b"ab", 3)] {
            let mut pressed = Vec::new();
            press(bytes, &mut pressed);
            assert!(pressed.len() <= at_most, "{} bytes of {}", pressed.len(), bytes.len());
            let mut restored = vec![0; bytes.len()];
            restore(&pressed, &mut restored);
            assert_eq!(restored, bytes);
        }
    }
}

//! What a byte of a control says: where each byte of its differences lies behind it, and how many there are. Made at compile
//! time.

/// What each value of a byte says.
pub(super) struct Table {
    /// For each byte of four numbers of 32 bits, or of two of 64, which byte comes there; [`NONE`] for zero.
    pub(super) places: [[u8; 16]; 256],
    /// The bytes of the differences together.
    pub(super) lens: [u8; 256],
}

/// No place.
const NONE: u8 = 0x80;

/// Of four lengths of up to four bytes.
pub(super) static FOUR_OF_32_BITS: Table = table(4);

/// Of two lengths of up to eight bytes: half a control.
pub(super) static TWO_OF_64_BITS: Table = table(8);

const fn table(lane_bytes: usize) -> Table {
    let mut table = Table { places: [[NONE; 16]; 256], lens: [0; 256] };
    let bits = lane_bytes / 2;
    let mut control = 0;
    while control < 256 {
        let (mut at, mut lane) = (0, 0);
        while lane < 16 / lane_bytes {
            let len = (control >> (lane * bits)) % lane_bytes + 1;
            let mut byte = 0;
            while byte < len {
                table.places[control][lane * lane_bytes + byte] = at as u8;
                at += 1;
                byte += 1;
            }
            lane += 1;
        }
        table.lens[control] = at as u8;
        control += 1;
    }
    table
}

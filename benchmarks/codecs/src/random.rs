//! Numbers that look random and are the same on every machine.

/// SplitMix64 (Steele, Lea and Flood, 2014).
pub struct Random {
    state: u64,
}

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number of at most so many bits, 1 to 64.
    pub fn of_width(&mut self, bit_width: u32) -> u64 {
        self.bits() >> (64 - bit_width)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// True in this share of the calls.
    pub fn happens(&mut self, share: f64) -> bool {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64 <= share && share > 0.0
    }
}

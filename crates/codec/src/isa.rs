//! Instruction sets: which one this machine has, and kernels compiled once for each.
//!
//! A kernel is a plain loop, written to be read. [`each_isa!`] compiles it for every set of [`Isa`] and makes the one
//! function that others call: it asks [`isa`], which is the only place that chooses. As all forms come from one source they
//! give equal bytes; tests hold them to it with [`forms`].
//!
//! `SINTER_ISA=scalar|avx2|avx512` forces a set for the whole process. One that the machine has not is not taken, which is
//! said on stderr.

use std::ffi::OsStr;
use std::fmt;
use std::io::Write;
use std::sync::Once;
use std::sync::atomic::{AtomicU8, Ordering};

/// A set of instructions that kernels are compiled for, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Isa {
    /// What every CPU of the target has: on x86-64, SSE2.
    Scalar = 1,
    /// AVX2 with the bit manipulations and fused multiplications that came with it (Haswell, Zen).
    Avx2 = 2,
    /// AVX-512 F, BW, CD, DQ and VL (Skylake-X, Zen 4).
    Avx512 = 3,
}

impl Isa {
    /// All of them.
    pub const ALL: [Isa; 3] = [Isa::Scalar, Isa::Avx2, Isa::Avx512];

    /// The name in `SINTER_ISA`.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }

    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512cd")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            match self {
                Isa::Scalar => true,
                Isa::Avx2 => avx2,
                Isa::Avx512 => avx2 && avx512,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            self == Isa::Scalar
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The environment variable that forces a set.
const ISA_VARIABLE: &str = "SINTER_ISA";

/// The set in use, as a number; zero until somebody asks.
static IN_USE: AtomicU8 = AtomicU8::new(0);

/// The set that kernels run on: the greatest that the machine has, or what `SINTER_ISA` says.
#[inline]
pub fn isa() -> Isa {
    match IN_USE.load(Ordering::Relaxed) {
        1 => Isa::Scalar,
        2 => Isa::Avx2,
        3 => Isa::Avx512,
        _ => choose(),
    }
}

#[cold]
fn choose() -> Isa {
    static SAID: Once = Once::new();
    let asked = std::env::var_os(ISA_VARIABLE).filter(|name| !name.is_empty());
    let (chosen, refusal) = chosen(asked.as_deref().map(OsStr::to_string_lossy).as_deref());
    if let Some(refusal) = refusal {
        // Who cannot be told goes on all the same.
        SAID.call_once(|| drop(writeln!(std::io::stderr(), "{refusal}")));
    }
    IN_USE.store(chosen as u8, Ordering::Relaxed);
    chosen
}

/// The set that is asked for, else the greatest that the machine has, and why it is not what was asked for.
fn chosen(asked: Option<&str>) -> (Isa, Option<String>) {
    let available = || Isa::ALL.into_iter().filter(|isa| isa.is_available());
    let greatest = available().next_back().unwrap_or(Isa::Scalar);
    let Some(asked) = asked else { return (greatest, None) };
    match available().find(|isa| isa.name() == asked) {
        Some(isa) => (isa, None),
        None => {
            let names: Vec<&str> = available().map(Isa::name).collect();
            let refusal = format!(
                "{ISA_VARIABLE} asks for '{asked}', but this machine has {}: kernels run on {greatest}",
                names.join(", ")
            );
            (greatest, Some(refusal))
        }
    }
}

/// Runs `work` once on each set that the machine has. One caller at a time; afterwards all is as before.
#[cfg(test)]
pub(crate) fn forms(mut work: impl FnMut(Isa)) {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let before = isa();
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        IN_USE.store(isa as u8, Ordering::Relaxed);
        work(isa);
    }
    IN_USE.store(before as u8, Ordering::Relaxed);
}

/// Asks for bytes that will be read soon, so that they are nearer then.
#[inline]
pub(crate) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for line in 0..bytes.len().div_ceil(64) {
            // SAFETY: nothing is read that could be seen; the address lies in `bytes`.
            #[expect(unsafe_code, reason = "a hint to the memory that has no other name")]
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().add(64 * line).cast());
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// Knows that the machine has a set, and so may use what the compiler would not find by itself.
pub(crate) trait Proof: Copy {
    /// Whether `f64::mul_add` is one instruction. Else it is a call, and slow.
    const FUSED: bool;
    /// Whether registers are wider than those of the baseline. Code that is long is compiled for these sets only.
    const IS_WIDE: bool;
    /// One bit for each byte, the lowest for the first: it is not zero. Bytes are 0 or 1.
    fn bits(self, flags: &[u8; 64]) -> u64;

    /// One byte for each bit, the first for the lowest: not zero where the bit is set.
    fn flags(self, bits: u64) -> [u8; 64];

    /// Adds the sum of eight bytes each to the sum at their place.
    fn add_eights(self, bytes: &[u8; 64], sums: &mut [u64; 8]);

    /// The bytes at these places, each less than 16; zero for a place from 128 on. Of other places nothing is said.
    fn shuffle(self, bytes: &[u8; 16], places: &[u8; 16]) -> [u8; 16];
}

/// [`Isa::Scalar`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

impl Proof for Portable {
    const FUSED: bool = false;
    const IS_WIDE: bool = false;

    /// Eight bytes of 0 and 1 become eight bits by one multiplication.
    #[inline(always)]
    fn bits(self, flags: &[u8; 64]) -> u64 {
        const GATHER: u64 = 0x0102_0408_1020_4080;
        let eights = flags.as_chunks::<8>().0.iter().enumerate();
        eights.fold(0, |bits, (index, eight)| {
            bits | (u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56) << (8 * index)
        })
    }

    /// Eight bits become eight bytes that have one of them each.
    #[inline(always)]
    fn flags(self, bits: u64) -> [u8; 64] {
        const ONE_EACH: u64 = 0x8040_2010_0804_0201;
        let mut flags = [0; 64];
        for (eight, byte) in flags.as_chunks_mut::<8>().0.iter_mut().zip(bits.to_le_bytes()) {
            *eight = ((u64::from(byte) * 0x0101_0101_0101_0101) & ONE_EACH).to_le_bytes();
        }
        flags
    }

    #[inline(always)]
    fn add_eights(self, bytes: &[u8; 64], sums: &mut [u64; 8]) {
        for (sum, eight) in sums.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *sum += eight.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        }
    }

    #[inline(always)]
    fn shuffle(self, bytes: &[u8; 16], places: &[u8; 16]) -> [u8; 16] {
        places.map(|place| bytes.get(usize::from(place)).copied().unwrap_or(0))
    }
}

/// [`Isa::Avx2`]. Only [`Avx2::new`] makes one.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

/// [`Isa::Avx512`]. Only [`Avx512::new`] makes one.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());

#[cfg(target_arch = "x86_64")]
mod proofs {
    #![expect(unsafe_code, reason = "instructions that are there by proof")]

    use super::{Avx2, Avx512, Portable, Proof};
    use std::arch::x86_64::*;

    impl Avx2 {
        /// # Safety
        /// The machine has the set.
        #[inline(always)]
        pub(crate) unsafe fn new() -> Avx2 {
            Avx2(())
        }
    }

    impl Avx512 {
        /// # Safety
        /// The machine has the set.
        #[inline(always)]
        pub(crate) unsafe fn new() -> Avx512 {
            Avx512(())
        }
    }

    impl Proof for Avx2 {
        const FUSED: bool = true;
        const IS_WIDE: bool = true;

        #[inline(always)]
        fn bits(self, flags: &[u8; 64]) -> u64 {
            #[inline]
            #[target_feature(enable = "avx2")]
            fn bits(flags: &[u8; 64]) -> u64 {
                let half = |at: usize| {
                    // SAFETY: both halves of 32 bytes lie in the array; loads need no alignment.
                    let bytes = unsafe { _mm256_loadu_si256(flags.as_ptr().add(at).cast()) };
                    u64::from(_mm256_movemask_epi8(_mm256_cmpgt_epi8(bytes, _mm256_setzero_si256())) as u32)
                };
                half(0) | half(32) << 32
            }
            // SAFETY: there is no proof without the set.
            unsafe { bits(flags) }
        }

        #[inline(always)]
        fn flags(self, bits: u64) -> [u8; 64] {
            Portable.flags(bits)
        }

        #[inline(always)]
        fn add_eights(self, bytes: &[u8; 64], sums: &mut [u64; 8]) {
            #[inline]
            #[target_feature(enable = "avx2")]
            fn add_half(bytes: &[u8; 32], sums: &mut [u64; 4]) {
                // SAFETY: both arrays have 32 bytes; loads and stores need no alignment.
                unsafe {
                    let sums = sums.as_mut_ptr().cast();
                    let added = _mm256_sad_epu8(_mm256_loadu_si256(bytes.as_ptr().cast()), _mm256_setzero_si256());
                    _mm256_storeu_si256(sums, _mm256_add_epi64(_mm256_loadu_si256(sums), added));
                }
            }
            for (bytes, sums) in bytes.as_chunks().0.iter().zip(sums.as_chunks_mut().0) {
                // SAFETY: there is no proof without the set.
                unsafe { add_half(bytes, sums) };
            }
        }

        #[inline(always)]
        fn shuffle(self, bytes: &[u8; 16], places: &[u8; 16]) -> [u8; 16] {
            #[inline]
            #[target_feature(enable = "avx2")]
            fn shuffle(bytes: &[u8; 16], places: &[u8; 16]) -> [u8; 16] {
                let mut shuffled = [0; 16];
                // SAFETY: all three arrays have 16 bytes; loads and stores need no alignment.
                unsafe {
                    let bytes = _mm_loadu_si128(bytes.as_ptr().cast());
                    let places = _mm_loadu_si128(places.as_ptr().cast());
                    _mm_storeu_si128(shuffled.as_mut_ptr().cast(), _mm_shuffle_epi8(bytes, places));
                }
                shuffled
            }
            // SAFETY: there is no proof without the set.
            unsafe { shuffle(bytes, places) }
        }
    }

    impl Proof for Avx512 {
        const FUSED: bool = true;
        const IS_WIDE: bool = true;

        #[inline(always)]
        fn bits(self, flags: &[u8; 64]) -> u64 {
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw")]
            fn bits(flags: &[u8; 64]) -> u64 {
                // SAFETY: the array has 64 bytes; loads need no alignment.
                let bytes = unsafe { _mm512_loadu_si512(flags.as_ptr().cast()) };
                _mm512_test_epi8_mask(bytes, bytes)
            }
            // SAFETY: there is no proof without the set.
            unsafe { bits(flags) }
        }

        #[inline(always)]
        fn flags(self, bits: u64) -> [u8; 64] {
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw")]
            fn flags(bits: u64) -> [u8; 64] {
                let mut flags = [0; 64];
                // SAFETY: the array has 64 bytes; stores need no alignment.
                unsafe { _mm512_storeu_si512(flags.as_mut_ptr().cast(), _mm512_movm_epi8(bits)) };
                flags
            }
            // SAFETY: there is no proof without the set.
            unsafe { flags(bits) }
        }

        #[inline(always)]
        fn add_eights(self, bytes: &[u8; 64], sums: &mut [u64; 8]) {
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw")]
            fn add(bytes: &[u8; 64], sums: &mut [u64; 8]) {
                // SAFETY: both arrays have 64 bytes; loads and stores need no alignment.
                unsafe {
                    let sums = sums.as_mut_ptr().cast();
                    let added = _mm512_sad_epu8(_mm512_loadu_si512(bytes.as_ptr().cast()), _mm512_setzero_si512());
                    _mm512_storeu_si512(sums, _mm512_add_epi64(_mm512_loadu_si512(sums), added));
                }
            }
            // SAFETY: there is no proof without the set.
            unsafe { add(bytes, sums) }
        }

        #[inline(always)]
        fn shuffle(self, bytes: &[u8; 16], places: &[u8; 16]) -> [u8; 16] {
            // SAFETY: who has this set has that one.
            unsafe { Avx2::new() }.shuffle(bytes, places)
        }
    }
}

/// Makes a function that runs `body`, a function marked `#[inline(always)]`, compiled for the set in use. After a comma, the
/// body gets a [`Proof`] of the set as its first argument.
///
/// ```text
/// each_isa! {
///     /// Adds.
///     pub(crate) fn add<T: Integer>(values: &mut [T], by: T) = add_body;
///     /// Tests.
///     fn test<T: Integer>(values: &[T], words: &mut [u64]) = test_body, proof;
/// }
/// ```
macro_rules! each_isa {
    ($(
        $(#[$meta:meta])*
        $vis:vis fn $name:ident $(<$($generic:ident: $bound:path),+>)? ($($arg:ident: $type:ty),* $(,)?)
            $(-> $result:ty)? = $body:path $(, $proof:ident)?;
    )*) => {$(
        $(#[$meta])*
        #[inline]
        $vis fn $name$(<$($generic: $bound),+>)?($($arg: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
                fn avx2$(<$($generic: $bound),+>)?($($proof: $crate::isa::Avx2,)? $($arg: $type),*) $(-> $result)? {
                    $body($($proof,)? $($arg),*)
                }
                #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
                fn avx512$(<$($generic: $bound),+>)?($($proof: $crate::isa::Avx512,)? $($arg: $type),*) $(-> $result)? {
                    $body($($proof,)? $($arg),*)
                }
                match $crate::isa::isa() {
                    $crate::isa::Isa::Scalar => {}
                    $crate::isa::Isa::Avx2 => {
                        // SAFETY: `isa` gives only sets of which `is_available` found every feature that is named above.
                        #[expect(unsafe_code, reason = "the one way to call a form that was compiled for more")]
                        return unsafe {
                            $(let $proof = $crate::isa::Avx2::new();)?
                            avx2$(::<$($generic),+>)?($($proof,)? $($arg),*)
                        };
                    }
                    $crate::isa::Isa::Avx512 => {
                        // SAFETY: as above.
                        #[expect(unsafe_code, reason = "the one way to call a form that was compiled for more")]
                        return unsafe {
                            $(let $proof = $crate::isa::Avx512::new();)?
                            avx512$(::<$($generic),+>)?($($proof,)? $($arg),*)
                        };
                    }
                }
            }
            $(let $proof = $crate::isa::Portable;)?
            $body($($proof,)? $($arg),*)
        }
    )*};
}
pub(crate) use each_isa;

#[cfg(test)]
mod tests {
    use super::*;

    each_isa! {
        fn bits_of(flags: &[u8; 64]) -> u64 = bits_of_body, proof;
        fn flags_of(bits: u64) -> [u8; 64] = flags_of_body, proof;
        fn eights_of(bytes: &[u8; 64], sums: &mut [u64; 8]) = eights_of_body, proof;
        fn shuffle_of(bytes: &[u8; 16], places: &[u8; 16]) -> [u8; 16] = shuffle_of_body, proof;
    }

    fn bits_of_body<P: Proof>(proof: P, flags: &[u8; 64]) -> u64 {
        proof.bits(flags)
    }

    fn flags_of_body<P: Proof>(proof: P, bits: u64) -> [u8; 64] {
        proof.flags(bits)
    }

    fn eights_of_body<P: Proof>(proof: P, bytes: &[u8; 64], sums: &mut [u64; 8]) {
        proof.add_eights(bytes, sums);
    }

    fn shuffle_of_body<P: Proof>(proof: P, bytes: &[u8; 16], places: &[u8; 16]) -> [u8; 16] {
        proof.shuffle(bytes, places)
    }

    #[test]
    fn proofs_of_all_sets_do_the_same() {
        let bytes: [u8; 64] = std::array::from_fn(|place| (place * 89 + 200) as u8);
        let some = bytes.first_chunk().unwrap();
        forms(|isa| {
            for bits in [0, 1, 1 << 63, u64::MAX, 0x0123_4567_89ab_cdef] {
                let flags = flags_of(bits);
                let expected: [bool; 64] = std::array::from_fn(|place| bits >> place & 1 == 1);
                assert_eq!(flags.map(|flag| flag != 0), expected, "{isa}");
                assert_eq!(bits_of(&expected.map(u8::from)), bits, "{isa}");
            }
            let mut sums: [u64; 8] = std::array::from_fn(|place| u64::MAX / 9 * place as u64);
            let expected: [u64; 8] = std::array::from_fn(|place| {
                sums[place] + bytes[8 * place..][..8].iter().map(|byte| u64::from(*byte)).sum::<u64>()
            });
            eights_of(&bytes, &mut sums);
            assert_eq!(sums, expected, "{isa}");
            for first in 0..16 {
                let places: [u8; 16] = std::array::from_fn(|place| match (first + 5 * place) % 19 {
                    place @ 0..16 => place as u8,
                    place => 0x80 | (place * 57) as u8,
                });
                let expected = places.map(|place| some.get(usize::from(place)).copied().unwrap_or(0));
                assert_eq!(shuffle_of(some, &places), expected, "{isa}");
            }
        });
    }

    #[test]
    fn a_greater_set_has_all_of_the_lesser() {
        assert!(Isa::Scalar.is_available());
        assert!(!Isa::Avx512.is_available() || Isa::Avx2.is_available());
        assert!(isa().is_available());
    }

    #[test]
    fn what_is_asked_for_and_not_there_is_refused_aloud() {
        let (greatest, refusal) = chosen(None);
        assert_eq!((Isa::ALL.into_iter().rfind(|isa| isa.is_available()), refusal), (Some(greatest), None));
        assert_eq!(chosen(Some("scalar")), (Isa::Scalar, None));
        let (chosen, refusal) = chosen(Some("avx1024"));
        assert_eq!(chosen, greatest);
        let refusal = refusal.unwrap();
        assert!(refusal.starts_with("SINTER_ISA asks for 'avx1024', but this machine has scalar"), "{refusal}");
        assert!(refusal.ends_with(&format!(": kernels run on {greatest}")), "{refusal}");
    }
}

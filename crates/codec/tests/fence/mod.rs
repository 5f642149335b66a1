//! Memory between fences: while asked to, every allocation of the process stands against a page that nobody may touch,
//! so that the first byte read or written beyond it ends the process with a signal. (Electric Fence, Perens, 1987.)
//!
//! ```text
//!   Side::End                              Side::Start
//!   | fence | .......... allocation | fence |     | fence | allocation .......... | fence |
//! ```
//!
//! There is a fixed number of slots, each of a size of its own in addresses and none in memory; what finds no slot, or is
//! too large for one, is allocated as usual. A slot that is given back becomes fence as a whole.
#![expect(unsafe_code, reason = "an allocator and a byte beyond the end have no other form")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Which side of an allocation stands at the fence. At the end, bytes are only left between where the alignment of the
/// type wants them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Side {
    None = 0,
    End = 1,
    Start = 2,
}

/// Bytes of a page, or a multiple of them.
const PAGE: usize = 16 << 10;
const SLOT_BYTES: usize = 1 << 20;
const SLOTS: usize = 4096;

/// The allocator of the process.
pub(crate) struct Fences;

static SIDE: AtomicU8 = AtomicU8::new(Side::None as u8);
static FENCED: AtomicUsize = AtomicUsize::new(0);
/// Where the slots begin; null until they are needed.
static SLOTS_AT: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static FREE: Mutex<FreeSlots> = Mutex::new(FreeSlots { fresh: 0, returned: 0, slots: [0; SLOTS] });

/// Slots that were never used, and those that came back.
struct FreeSlots {
    fresh: usize,
    returned: usize,
    slots: [u16; SLOTS],
}

/// From here on, allocations of all threads stand so.
pub(crate) fn put(side: Side) {
    SIDE.store(side as u8, Ordering::SeqCst);
}

/// How many allocations stood at a fence.
pub(crate) fn fenced() -> usize {
    FENCED.load(Ordering::SeqCst)
}

/// Reads the byte just behind the bytes, or just before: what a kernel must never do. To see that the fence holds.
pub(crate) fn trespass(bytes: &[u8], side: Side) -> u8 {
    let at = if side == Side::End { bytes.as_ptr_range().end } else { bytes.as_ptr().wrapping_sub(1) };
    // SAFETY: there is none; the process is expected to end here.
    unsafe { at.read_volatile() }
}

impl Fences {
    /// The first slot, mapped at the first call; null where the system refuses.
    fn slots_at() -> *mut u8 {
        let found = SLOTS_AT.load(Ordering::Acquire);
        if !found.is_null() {
            return found;
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, at an address of the system's choice.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), SLOTS * SLOT_BYTES, libc::PROT_NONE, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return std::ptr::null_mut();
        }
        // Under the lock of `FREE`, so there is no other.
        SLOTS_AT.store(mapped.cast(), Ordering::Release);
        mapped.cast()
    }

    /// An allocation at a fence; null where there is no room for it.
    fn take(layout: Layout, side: Side) -> *mut u8 {
        let pages = layout.size().next_multiple_of(PAGE);
        if pages + 2 * PAGE > SLOT_BYTES || layout.align() > PAGE || layout.size() == 0 {
            return std::ptr::null_mut();
        }
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let first = Fences::slots_at();
        let slot = if free.returned > 0 {
            free.returned -= 1;
            usize::from(free.slots[free.returned])
        } else if free.fresh < SLOTS && !first.is_null() {
            free.fresh += 1;
            free.fresh - 1
        } else {
            return std::ptr::null_mut();
        };
        let start = first.wrapping_add(slot * SLOT_BYTES + PAGE);
        // SAFETY: pages of the mapping, in a slot that is nobody's.
        if unsafe { libc::mprotect(start.cast(), pages, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
            return std::ptr::null_mut();
        }
        FENCED.fetch_add(1, Ordering::Relaxed);
        match side {
            Side::End => start.wrapping_add((pages - layout.size()) & !(layout.align() - 1)),
            _ => start,
        }
    }

    /// Gives back an allocation at a fence; false where it is none.
    fn give(pointer: *mut u8, layout: Layout) -> bool {
        let first = SLOTS_AT.load(Ordering::Acquire).addr();
        let slots: Range<usize> = first..first + SLOTS * SLOT_BYTES;
        if first == 0 || !slots.contains(&pointer.addr()) {
            return false;
        }
        let slot = (pointer.addr() - first) / SLOT_BYTES;
        let start = SLOTS_AT.load(Ordering::Acquire).wrapping_add(slot * SLOT_BYTES + PAGE);
        let pages = layout.size().next_multiple_of(PAGE);
        // SAFETY: a slot of the mapping, whose allocation ends here; its memory goes back, its addresses stay.
        unsafe {
            libc::madvise(start.cast(), pages, libc::MADV_DONTNEED);
            libc::mprotect(start.cast(), pages, libc::PROT_NONE);
        }
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let returned = free.returned;
        free.slots[returned] = slot as u16;
        free.returned += 1;
        true
    }
}

// SAFETY: an allocation is memory of its own, as large as was asked for and aligned so, until it is given back: that of
// the system, or pages of a slot that nobody else has.
unsafe impl GlobalAlloc for Fences {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let side = match SIDE.load(Ordering::Relaxed) {
            1 => Side::End,
            2 => Side::Start,
            _ => Side::None,
        };
        let fenced = if side == Side::None { std::ptr::null_mut() } else { Fences::take(layout, side) };
        if !fenced.is_null() {
            return fenced;
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if !Fences::give(pointer, layout) {
            // SAFETY: it is not of a slot, so it is of the system.
            unsafe { System.dealloc(pointer, layout) }
        }
    }
}

//! Writes vectors into their frames.

use super::directory::{Entry, Layout, PLAIN_WIDTH, POINT_STEPS, width_with_points, write_points};
use super::exceptions;
use super::frame::{Frame, FrameChooser, Frames};
use crate::VECTOR_LEN;
use crate::bit_packing::Lane;
use crate::bit_stream::write_stream;
use crate::fixed::Integer;
use crate::kernels::{Positions, misses};

/// Appends directory and vectors; `None` (and something appended) where `frames` cannot hold the values.
pub(crate) fn encode<T: Integer>(values: &[T], layout: Layout, frames: Frames, out: &mut Vec<u8>) -> Option<()> {
    let directory_at = out.len();
    let entry_bytes = layout.entry_bytes(T::BYTES);
    out.resize(directory_at + values.len().div_ceil(VECTOR_LEN) * entry_bytes, 0);
    let data_at = out.len();
    let mut entry_buf = Vec::with_capacity(entry_bytes);
    let mut steps = Vec::new();
    let (mut chooser, mut steps_chooser) = (FrameChooser::new(frames), FrameChooser::new(frames));
    for (index, vector) in values.chunks(VECTOR_LEN).enumerate() {
        let offset = (out.len() - data_at) as u32;
        let entry = if layout.stepped {
            steps.clear();
            steps.extend(vector.windows(2).map(|pair| pair[1].sub(pair[0]).signed()));
            // The first value has no step; any will do that needs no width of its own.
            steps.insert(0, steps.first().copied().unwrap_or_default());
            let entry = encode_vector(&steps, steps_chooser.choose(&steps)?, layout.patched, offset, out);
            let base = T::from_signed(entry.base);
            // Where neither numbers nor exceptions are, the bases alone say what a value is.
            let has_points = vector.len() > POINT_STEPS && (entry.bit_width > 0 || entry.exception_count > 0);
            if has_points {
                write_points(vector, base, out);
            }
            Entry {
                first: vector[0],
                base,
                offset,
                bit_width: if has_points { width_with_points(entry.bit_width) } else { entry.bit_width },
                exception_form: entry.exception_form,
                exception_count: entry.exception_count,
            }
        } else {
            encode_vector(vector, chooser.choose(vector)?, layout.patched, offset, out)
        };
        entry_buf.clear();
        layout.write_entry(entry, &mut entry_buf);
        out[directory_at + index * entry_bytes..][..entry_bytes].copy_from_slice(&entry_buf);
    }
    Some(())
}

/// Appends one vector and returns its entry.
fn encode_vector<T: Integer>(
    vector: &[T],
    frame: Frame<T>,
    is_patched: bool,
    offset: u32,
    out: &mut Vec<u8>,
) -> Entry<T> {
    match frame.bit_width {
        0 => {}
        1..=8 => pack::<T, u8>(vector, frame, out),
        9..=16 => pack::<T, u16>(vector, frame, out),
        17..=32 => pack::<T, u32>(vector, frame, out),
        33..=64 => pack::<T, u64>(vector, frame, out),
        _ => vector
            .iter()
            .for_each(|value| value.sub(frame.base).bits().to_le_bytes().iter().for_each(|byte| out.push(*byte))),
    }
    let mut entry = Entry {
        first: T::default(),
        base: frame.base,
        offset,
        bit_width: frame.bit_width as u8,
        exception_form: 0,
        exception_count: 0,
    };
    if !is_patched || frame.bit_width == PLAIN_WIDTH {
        return entry;
    }
    let mut positions: Positions = [0; _];
    let count = misses(vector, frame.base, frame.bit_width, &mut positions);
    entry.exception_form = exceptions::write(vector, frame, &positions[..count], out);
    entry.exception_count = count as u16;
    entry
}

fn pack<T: Integer, L: Lane>(vector: &[T], frame: Frame<T>, out: &mut Vec<u8>) {
    if let Ok(vector) = vector.try_into() {
        L::pack(vector, frame.base, frame.bit_width, out);
    } else {
        let mask = u64::MAX >> (64 - frame.bit_width);
        let number = |value: T| value.sub(frame.base).to_delta() & mask;
        write_stream(vector.iter().map(|&value| number(value)), frame.bit_width, out);
    }
}

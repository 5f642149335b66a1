//! Rows side by side by the numbers of their keys: a counting sort. Each of several threads reads all numbers, and writes what
//! comes of those that are its own.

use crate::parallel::{on_each, on_shares, readers_for, share};

/// How many rows have each of `count` numbers, and a zero behind them, where [`placed`] puts the end. Rows without a number,
/// [`NONE`](crate::store::NONE), do not count.
pub(super) fn counted(numbers: &[u32], count: usize, threads: usize) -> Vec<u32> {
    let mut counts = vec![0u32; count + 1];
    on_shares(&mut counts[..count], readers_for(threads), |first, counts| {
        for &number in numbers {
            if let Some(count) = counts.get_mut(number.wrapping_sub(first as u32) as usize) {
                *count += 1;
            }
        }
    });
    counts
}

/// What rows have, side by side by their numbers, in the order of rows; and where that of each number begins, and of the last
/// one ends. The counts are those of [`counted`].
pub(super) fn placed<T: Clone + Default + Send>(
    counts: Vec<u32>,
    numbers: &[u32],
    threads: usize,
    of_row: impl Fn(usize) -> T + Sync,
) -> (Vec<u32>, Vec<T>) {
    // Where the next one of a number goes, which in the end is where those of the next number begin.
    let (mut offsets, mut end) = (counts, 0);
    for offset in &mut offsets {
        end += std::mem::replace(offset, end);
    }
    let count = offsets.len() - 1;
    let own = share(count, readers_for(threads));
    let ends: Vec<u32> = (0..count).step_by(own).map(|first| offsets[count.min(first + own)]).collect();
    let mut placed = vec![T::default(); end as usize];
    let (mut parts, mut rest, mut start) = (Vec::with_capacity(ends.len()), &mut placed[..], 0);
    for (part, (offsets, end)) in offsets[..count].chunks_mut(own).zip(ends).enumerate() {
        let (places, others) = rest.split_at_mut((end - start) as usize);
        parts.push(((part * own) as u32, start, offsets, places));
        (rest, start) = (others, end);
    }
    on_each(parts, |(first, start, offsets, places)| {
        for (row, &number) in numbers.iter().enumerate() {
            if let Some(offset) = offsets.get_mut(number.wrapping_sub(first) as usize) {
                places[(*offset - start) as usize] = of_row(row);
                *offset += 1;
            }
        }
    });
    offsets.rotate_right(1);
    offsets[0] = 0;
    (offsets, placed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::NONE;

    #[test]
    fn rows_stand_by_their_numbers_whatever_thread_put_them() {
        let count = 1000;
        let numbers: Vec<u32> =
            (0..5000u32).map(|row| if row % 7 == 0 { NONE } else { row % 1009 * 7 % 997 }).collect();
        for threads in [1, 2, 3, 8] {
            let counts = counted(&numbers, count, threads);
            let (offsets, rows) = placed(counts, &numbers, threads, |row| row as u32);
            assert_eq!(offsets.len(), count + 1);
            for number in 0..count {
                let found = &rows[offsets[number] as usize..offsets[number + 1] as usize];
                let wanted = (0..numbers.len() as u32).filter(|&row| numbers[row as usize] == number as u32);
                assert!(found.iter().copied().eq(wanted), "{number}, {threads} threads");
            }
        }
        assert_eq!(placed(counted(&[NONE], 0, 4), &[NONE], 4, |row| row), (vec![0], vec![]));
    }
}

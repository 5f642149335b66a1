//! Work that is cut into pieces for several threads.

use crate::Result;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Fewer rows are not worth a thread; nor fewer of those that take a few nanoseconds each.
const ROWS_PER_THREAD_MIN: usize = 1 << 14;
const QUICK_ROWS_PER_THREAD_MIN: usize = 1 << 17;

/// Where each thread reads all rows to write what is its own, more of them wait for memory.
const READERS_MAX: usize = 16;

/// How many of so many threads are to read all rows each.
pub(crate) fn readers_for(threads: usize) -> usize {
    threads.min(READERS_MAX)
}

/// On how many of so many threads work on so many rows is quickest; one at least.
pub(crate) fn threads_for(rows: usize, threads: usize) -> usize {
    threads.min(rows / ROWS_PER_THREAD_MIN).max(1)
}

/// The same where a row takes a few nanoseconds.
pub(crate) fn threads_for_quick(rows: usize, threads: usize) -> usize {
    threads.min(rows / QUICK_ROWS_PER_THREAD_MIN).max(1)
}

/// How many of so many each thread has; one at least.
pub(crate) fn share(count: usize, threads: usize) -> usize {
    count.div_ceil(threads.max(1)).max(1)
}

/// Does `work` with each piece on so many threads, this one included, whoever is free the next one; returns what it brought, in
/// the order of the pieces. Where no thread can be made, fewer do it. A panic goes on in this thread.
pub(crate) fn deal<T: Send, R: Send>(pieces: Vec<T>, threads: usize, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let others = threads.min(pieces.len()).saturating_sub(1);
    if others == 0 {
        return pieces.into_iter().map(work).collect();
    }
    let pieces = Mutex::new(pieces.into_iter().enumerate());
    let take = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work =
        || -> Vec<(usize, R)> { std::iter::from_fn(take).map(|(number, piece)| (number, work(piece))).collect() };
    let mut brought = thread::scope(|scope| {
        let made = (0..others).map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok());
        let made: Vec<_> = made.collect();
        let mut brought = work();
        for thread in made {
            brought.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        brought
    });
    brought.sort_unstable_by_key(|(number, _)| *number);
    brought.into_iter().map(|(_, brought)| brought).collect()
}

/// [`deal`] with a thread for each piece.
pub(crate) fn on_each<T: Send, R: Send>(pieces: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = pieces.len();
    deal(pieces, threads, work)
}

/// Cuts `values` into a share for each of so many threads, and does `work` with each share and the place of its first one;
/// returns what it brought, in their order.
pub(crate) fn on_shares<T: Send, R: Send>(
    values: &mut [T],
    threads: usize,
    work: impl Fn(usize, &mut [T]) -> R + Sync,
) -> Vec<R> {
    let own = share(values.len(), threads);
    on_each(values.chunks_mut(own).enumerate().collect(), |(part, values)| work(part * own, values))
}

/// [`on_each`] where work may fail.
///
/// # Errors
/// The first of any piece.
pub(crate) fn try_on_each<T: Send, R: Send>(pieces: Vec<T>, work: impl Fn(T) -> Result<R> + Sync) -> Result<Vec<R>> {
    on_each(pieces, work).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pieces_bring_stays_in_their_order() {
        for count in [0, 1, 2, 7, 40] {
            let squares = Vec::from_iter((0..count).map(|piece| piece * piece));
            for threads in [0, 1, 3, count] {
                assert_eq!(deal((0..count).collect(), threads, |piece: usize| piece * piece), squares);
                let mut places = vec![0; count];
                on_shares(&mut places, threads, |first, places| {
                    places.iter_mut().zip(first..).for_each(|(place, at)| *place = at * at);
                });
                assert_eq!(places, squares);
            }
        }
    }

    #[test]
    #[should_panic(expected = "the third")]
    fn a_panic_goes_on() {
        on_each(vec![1, 2, 3, 4], |piece| assert!(piece != 3, "the third"));
    }
}

//! Work that is cut into pieces for several threads.

use crate::Result;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Fewer rows are not worth a thread; nor fewer of those that take a few nanoseconds each.
const ROWS_PER_THREAD_MIN: usize = 1 << 14;
const QUICK_ROWS_PER_THREAD_MIN: usize = 1 << 17;

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

/// Does `work` with each piece, on this thread and as many others as there are more pieces, and returns what it brought, in the
/// order of the pieces. Where no thread can be made, fewer do it. A panic goes on in this thread.
pub(crate) fn all<T: Send, R: Send>(pieces: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    if pieces.len() == 1 {
        return pieces.into_iter().map(work).collect();
    }
    let others = pieces.len().saturating_sub(1);
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

/// [`all`] where work may fail.
///
/// # Errors
/// The first of any piece.
pub(crate) fn each<T: Send, R: Send>(pieces: Vec<T>, work: impl Fn(T) -> Result<R> + Sync) -> Result<Vec<R>> {
    all(pieces, work).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pieces_bring_stays_in_their_order() {
        for count in [0, 1, 2, 7, 40] {
            assert_eq!(
                all((0..count).collect(), |piece: usize| piece * piece),
                Vec::from_iter((0..count).map(|piece| piece * piece))
            );
        }
    }

    #[test]
    #[should_panic(expected = "the third")]
    fn a_panic_goes_on() {
        all(vec![1, 2, 3, 4], |piece| assert!(piece != 3, "the third"));
    }
}

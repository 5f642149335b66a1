//! Work that is cut into pieces, each on a thread of its own.

use crate::Result;

/// Fewer rows are not worth a thread.
const ROWS_PER_THREAD_MIN: usize = 1 << 14;

/// On how many of so many threads work on so many rows is quickest; one at least.
pub(crate) fn threads_for(rows: usize, threads: usize) -> usize {
    threads.min(rows / ROWS_PER_THREAD_MIN).max(1)
}

/// Does `work` with each piece, the first on this thread and each other on one of its own, and returns what they brought, in
/// their order.
///
/// # Errors
/// The first of any piece. A panic goes on in this thread.
pub(crate) fn each<T: Send, R: Send>(pieces: Vec<T>, work: impl Fn(T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let mut pieces = pieces.into_iter();
    let Some(first) = pieces.next() else { return Ok(Vec::new()) };
    let work = &work;
    std::thread::scope(|scope| {
        let others: Vec<_> = pieces.map(|piece| scope.spawn(move || work(piece))).collect();
        let first = work(first);
        let joined = |other: std::thread::ScopedJoinHandle<'_, Result<R>>| {
            other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        std::iter::once(first).chain(others.into_iter().map(joined)).collect()
    })
}

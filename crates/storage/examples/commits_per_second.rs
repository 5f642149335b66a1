//! How many commits a second the disk allows: records of 100 bytes, each made durable before the next, by one thread and
//! by many at once.
//!
//! ```sh
//! cargo run --release -p sinter-storage --example commits_per_second -- DIRECTORY [SECONDS]
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sinter_storage::{ObjectId, Options, RealFileSystem, Record, RecordTag, Store};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let directory = arguments.next().map(PathBuf::from).ok_or("which directory is on the disk?")?;
    let seconds = arguments.next().and_then(|seconds| seconds.to_str()?.parse().ok()).unwrap_or(3);
    println!("threads  commits/s  median ms  99 % ms");
    for threads in [1, 4, 16] {
        let path = directory.join(format!("commits-{}-{threads}.sinter", std::process::id()));
        let (store, _) = Store::open(Arc::new(RealFileSystem), &path, Options::default())?;
        let mut waited = measure(&store, threads, Duration::from_secs(seconds));
        waited.sort_unstable();
        let at = |part: f64| waited[(waited.len() as f64 * part) as usize].as_secs_f64() * 1e3;
        let per_second = waited.len() as u64 / seconds;
        println!("{threads:7}  {per_second:9}  {:9.2}  {:7.2}", at(0.5), at(0.99));
        drop(store);
        for file in std::fs::read_dir(&directory)? {
            let file = file?.path();
            if file.as_os_str().as_encoded_bytes().starts_with(path.as_os_str().as_encoded_bytes()) {
                std::fs::remove_file(file)?;
            }
        }
    }
    Ok(())
}

/// How long each commit took.
fn measure(store: &Store, threads: u64, time: Duration) -> Vec<Duration> {
    let (slot, end) = (AtomicU64::new(0), Instant::now() + time);
    let worker = || {
        let mut waited = Vec::new();
        while Instant::now() < end {
            let object = ObjectId(slot.fetch_add(1, Ordering::Relaxed));
            let record = Record { tag: RecordTag::ROWS_INSERTED, object, payload: vec![7; 100] };
            let start = Instant::now();
            store.commit(&[record], &[]).expect("the disk is well");
            waited.push(start.elapsed());
        }
        waited
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no worker panics")).collect()
    })
}

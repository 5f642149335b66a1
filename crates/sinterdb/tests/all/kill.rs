//! `kill -9` in a loop: a child process runs statements and acknowledges each on its standard output; the parent kills it,
//! opens what is left, and compares it with a model. What was acknowledged must be there whole, the statement in flight
//! wholly or not at all, and nothing else.
//!
//! Where a kill lands is not left to chance alone: in three rounds of four the child's file system writes only the first
//! half of the n-th write of a kind (log, page or header), says so, and waits for its death; so the kill falls inside
//! that write. The other kills come at a random moment.

use crate::answers::value;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_storage::fs::{LockKind, LockOutcome, OpenMode};
use sinter_storage::{File, FileSystem, Pinned, RealFileSystem};
use sinterdb::{Config, Connection, Database};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const ROUNDS: u64 = 60;

/// Another seed: `SINTER_KILL_SEED=7 cargo test ... kill`.
const SEED_VARIABLE: &str = "SINTER_KILL_SEED";
/// For the child: the database, the number of its first statement, and where to halt.
const CHILD_VARIABLE: &str = "SINTER_KILL_CHILD";

/// The two header copies lie before this.
const HEADER_BYTES: u64 = 2 * 4096;

/// The rows of the table: (id, v).
type Rows = Vec<(i64, i64)>;

/// What a statement does to the model.
type Effect = Box<dyn Fn(&mut Rows)>;

/// The n-th statement, and what it does to the rows. The same for the same seed, in parent and child.
fn statement(seed: u64, n: i64) -> (String, Effect) {
    let mut random = SmallRng::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(n.cast_unsigned()));
    let first = n * 1_000_000;
    let insert = |count: i64| -> (String, Effect) {
        let sql = format!("INSERT INTO t SELECT {first} + value, value * 3 FROM generate_series(1, {count})");
        (sql, Box::new(move |rows| rows.extend((1..=count).map(|value| (first + value, value * 3)))))
    };
    match random.random_range(0..40) {
        0 => insert(140_000),
        1..5 => insert(random.random_range(1000..6000)),
        5..10 => {
            let rest = random.random_range(0..7);
            let sql = format!("UPDATE t SET v = v + {n}, id = id WHERE id % 7 = {rest}");
            (sql, Box::new(move |rows| rows.iter_mut().filter(|row| row.0 % 7 == rest).for_each(|row| row.1 += n)))
        }
        10..15 => {
            let rest = random.random_range(0..5);
            let sql = format!("DELETE FROM t WHERE id % 5 = {rest}");
            (sql, Box::new(move |rows| rows.retain(|row| row.0 % 5 != rest)))
        }
        15..20 => ("CHECKPOINT".to_owned(), Box::new(|_| ())),
        _ => {
            let sql = format!("INSERT INTO t VALUES ({first}, {n})");
            (sql, Box::new(move |rows| rows.push((first, n))))
        }
    }
}

fn fingerprint(rows: &Rows) -> String {
    let sum = |of: &dyn Fn(&(i64, i64)) -> i64| -> i64 { rows.iter().map(of).sum() };
    let mixed = sum(&|row| (row.0 % 100_003) * (row.1 % 1009));
    format!("{} {} {} {mixed}", rows.len(), sum(&|row| row.0), sum(&|row| row.1))
}

const FINGERPRINT_SQL: &str = "SELECT count(*), coalesce(sum(id), 0), coalesce(sum(v), 0), \
     coalesce(sum((id % 100003) * (v % 1009)), 0) FROM t";

#[test]
fn acknowledged_statements_survive_kills_and_others_leave_nothing_half_done() {
    let seed = std::env::var(SEED_VARIABLE).map_or(20_261_121, |seed| seed.parse().expect("a number"));
    println!("{SEED_VARIABLE}={seed}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kill.sinter");
    let database = Database::open(&path).unwrap();
    database.connect().execute("CREATE TABLE t (id BIGINT, v BIGINT)", &[]).unwrap();
    database.close().unwrap();
    drop(database);
    let mut random = SmallRng::seed_from_u64(seed);
    let mut rows = Rows::new();
    let mut next = 1;
    let mut landed: BTreeMap<String, u64> = BTreeMap::new();
    for round in 0..ROUNDS {
        let halt = match round % 4 {
            0 => format!("log:{}", random.random_range(1..30)),
            1 => format!("page:{}", random.random_range(1..12)),
            2 => format!("header:{}", random.random_range(1..4)),
            _ => format!("random:{}", random.random_range(0..300)),
        };
        let (acknowledged, place) = run_and_kill(&path, seed, next, &halt);
        *landed.entry(place).or_default() += 1;
        for n in next..=acknowledged {
            statement(seed, n).1(&mut rows);
        }
        next = acknowledged + 1;
        // Reading changes nothing, so that the next child recovers by itself; now and then this process does.
        let config = Config::builder().threads(2).read_only(round % 5 != 4);
        let database =
            Database::open_with(&path, config).unwrap_or_else(|error| panic!("round {round}, {halt}: {error}"));
        let found = value(&database.connect(), FINGERPRINT_SQL);
        if found != fingerprint(&rows) {
            let (sql, apply) = statement(seed, next);
            apply(&mut rows);
            assert_eq!(found, fingerprint(&rows), "round {round}, {halt}: neither before nor after {next}, {sql}");
            next += 1;
        }
    }
    // Past the test runner, which keeps what a test that passes prints to itself.
    writeln!(std::io::stderr(), "kill -9: {} statements; kills by where they landed: {landed:?}", next - 1).unwrap();
    for place in ["log", "page", "header"] {
        assert!(landed.get(place).is_some_and(|count| *count >= 5), "too few kills in a {place} write: {landed:?}");
    }
    assert!(landed.values().sum::<u64>() >= 50);
}

/// The number of the last statement that the child acknowledged, and where the kill found it.
fn run_and_kill(path: &Path, seed: u64, next: i64, halt: &str) -> (i64, String) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child", "--nocapture", "--test-threads=1"])
        .env(CHILD_VARIABLE, format!("{seed} {next} {halt} {}", path.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut acknowledged = next - 1;
    let mut place = "random moment".to_owned();
    if let Some(milliseconds) = halt.strip_prefix("random:") {
        // Counted from its opening, which takes longer than what is to be met.
        assert!(lines.any(|line| line.contains("opened")), "the child could not open the database");
        std::thread::sleep(Duration::from_millis(milliseconds.parse().unwrap()));
        child.kill().unwrap();
    }
    for line in lines {
        if let Some(n) = line.strip_prefix("done ") {
            acknowledged = n.parse().unwrap();
        } else if let Some(halted) = line.strip_prefix("halted in ") {
            place = halted.to_owned();
            child.kill().unwrap();
        }
    }
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGKILL), "{halt}: {status}");
    (acknowledged, place)
}

/// Not a test of its own: the process that is killed.
#[test]
fn child() {
    let Ok(task) = std::env::var(CHILD_VARIABLE) else { return };
    let parts: Vec<&str> = task.splitn(4, ' ').collect();
    let (seed, next): (u64, i64) = (parts[0].parse().unwrap(), parts[1].parse().unwrap());
    let (kind, count) = parts[2].split_once(':').unwrap();
    let halting = Halting {
        kind: kind.to_owned(),
        writes_left: Arc::new(AtomicU64::new(count.parse().unwrap())),
        inner: RealFileSystem,
    };
    let config = Config::builder().threads(2).file_system(Arc::new(halting));
    let database = Database::open_with(parts[3], config).unwrap();
    say("opened");
    let conn = database.connect();
    for n in next.. {
        run(&conn, &statement(seed, n).0);
        say(&format!("done {n}"));
    }
}

fn run(conn: &Connection, sql: &str) {
    if let Err(error) = conn.execute(sql, &[]) {
        panic!("{sql}: {error}");
    }
}

/// One write to the pipe, on a line of its own.
pub(crate) fn say(line: &str) {
    let mut out = io::stdout().lock();
    out.write_all(format!("\n{line}\n").as_bytes()).and_then(|()| out.flush()).expect("the parent listens");
}

/// The real file system, until the n-th write of a kind, of which it writes the first half and never returns.
#[derive(Debug)]
struct Halting {
    kind: String,
    writes_left: Arc<AtomicU64>,
    inner: RealFileSystem,
}

impl FileSystem for Halting {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(HaltingFile {
            is_log: path.to_string_lossy().contains("-log."),
            kind: self.kind.clone(),
            writes_left: Arc::clone(&self.writes_left),
            inner: self.inner.open(path, mode)?,
        }))
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn list(&self, directory: &Path, prefix: &OsStr) -> io::Result<Vec<PathBuf>> {
        self.inner.list(directory, prefix)
    }
    fn follow_links(&self, path: &Path) -> io::Result<PathBuf> {
        self.inner.follow_links(path)
    }
    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.inner.sync_directory(directory)
    }
    fn lock(&self, path: &Path, kind: LockKind) -> io::Result<LockOutcome> {
        self.inner.lock(path, kind)
    }
}

#[derive(Debug)]
struct HaltingFile {
    is_log: bool,
    kind: String,
    writes_left: Arc<AtomicU64>,
    inner: Arc<dyn File>,
}

impl HaltingFile {
    fn kind_at(&self, offset: u64) -> &'static str {
        match (self.is_log, offset < HEADER_BYTES) {
            (true, _) => "log",
            (false, true) => "header",
            (false, false) => "page",
        }
    }
}

impl File for HaltingFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, buffer)
    }
    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        let kind = self.kind_at(offset);
        if kind == self.kind && self.writes_left.fetch_sub(1, Ordering::SeqCst) == 1 {
            let bytes = parts.concat();
            self.inner.write_at(offset, &[&bytes[..bytes.len() / 2]])?;
            say(&format!("halted in {kind}"));
            loop {
                std::thread::park();
            }
        }
        self.inner.write_at(offset, parts)
    }
    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }
    fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.inner.set_length(bytes)
    }
    fn read_shared(&self, offset: u64, bytes: usize) -> io::Result<Pinned> {
        self.inner.read_shared(offset, bytes)
    }
    fn discard(&self, offset: u64, bytes: u64) {
        self.inner.discard(offset, bytes);
    }
}

//! `kill -9` beside four writers: a child process runs transactions on four connections at once, each over two tables,
//! while checkpoints are made and rows are pressed. A transaction is acknowledged on its standard output after its COMMIT
//! returned. The parent kills it, opens what is left, and holds both tables against a model: what was acknowledged is
//! there, the one transaction that a writer may have had in flight is there wholly or not at all, and nothing else is.
//! The next child goes on with the same file.
//!
//! What transactions of different writers do to the same rows adds up in any order, and all else is a writer's own. So
//! the model needs to know how far each writer came, and not in which order they committed.
//!
//! Most kills come at a random moment; others once the child said that it opens the file, or began a checkpoint.
//! `scripts/kill-writers 200` is the long run.

use crate::kill::say;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinterdb::arrow::array::AsArray;
use sinterdb::arrow::datatypes::Int64Type;
use sinterdb::{Config, Connection, Database, Error, Synchronous, Transaction};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const WRITERS: i64 = 4;

/// Rows of `accounts` that all writers change.
const SHARED: i64 = 8;

/// How often the child is killed: `SINTER_KILLS=200 cargo test ... kill_writers`.
const KILLS_VARIABLE: &str = "SINTER_KILLS";
const SEED_VARIABLE: &str = "SINTER_KILL_SEED";
/// For the child: the database, the level, the seed, and each writer's first transaction.
const CHILD_VARIABLE: &str = "SINTER_KILL_WRITERS_CHILD";

/// What one transaction does, to both tables.
#[derive(Debug)]
enum Deed {
    /// Between two shared accounts, with an entry that says so.
    Move {
        from: i64,
        to: i64,
        amount: i64,
    },
    /// So many rows under the same keys in both tables.
    Insert {
        count: i64,
    },
    /// The rows of transactions `first..end`, in both tables.
    Update {
        first: i64,
        end: i64,
    },
    Delete {
        first: i64,
        end: i64,
    },
}

/// The first key of a writer's n-th transaction. Each has room for a million.
fn key(writer: i64, n: i64) -> i64 {
    (writer + 1) * 1_000_000_000_000 + n * 1_000_000
}

impl Deed {
    /// A writer's n-th. The same for the same seed, in parent and child.
    fn of(seed: u64, writer: i64, n: i64) -> Deed {
        let mut random =
            SmallRng::seed_from_u64(seed ^ key(writer, n).cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let before = (n - random.random_range(5..30)).max(0);
        match random.random_range(0..200) {
            0 => Deed::Insert { count: 70_000 },
            1..10 => Deed::Insert { count: random.random_range(1000..6000) },
            10..60 => Deed::Insert { count: random.random_range(1..40) },
            60..90 => Deed::Update { first: before, end: n },
            90..120 => Deed::Delete { first: before, end: (before + 10).min(n) },
            _ => {
                let from = random.random_range(0..SHARED);
                let to = (from + random.random_range(1..SHARED)) % SHARED;
                Deed::Move { from, to, amount: random.random_range(1..100) }
            }
        }
    }

    /// Each leaves one entry of its own, by which it is known to be there.
    fn run(&self, writer: i64, n: i64, transaction: &Transaction) -> Result<(), Error> {
        let first = key(writer, n);
        let run = |sql: String| transaction.execute(&sql, &[]);
        let mark = |v: i64| run(format!("INSERT INTO entries VALUES ({first}, {writer}, {n}, {v})"));
        match *self {
            Deed::Move { from, to, amount } => {
                run(format!("UPDATE accounts SET balance = balance - {amount} WHERE id = {from}"))?;
                mark(amount)?;
                run(format!("UPDATE accounts SET balance = balance + {amount} WHERE id = {to}"))?;
            }
            Deed::Insert { count } => {
                let rows = format!("FROM generate_series(1, {count})");
                run(format!("INSERT INTO entries SELECT {first} + value, {writer}, {n}, value * 5 {rows}"))?;
                run(format!("INSERT INTO accounts SELECT {first} + value, value * 3 {rows}"))?;
                mark(count)?;
            }
            Deed::Update { first, end } => {
                let rows = format!("WHERE id >= {} AND id < {}", key(writer, first), key(writer, end));
                run(format!("UPDATE accounts SET balance = balance + {n} {rows}"))?;
                run(format!("UPDATE entries SET v = v + {n} {rows}"))?;
                mark(0)?;
            }
            Deed::Delete { first, end } => {
                let rows = format!("WHERE id >= {} AND id < {}", key(writer, first), key(writer, end));
                run(format!("DELETE FROM entries {rows}"))?;
                mark(0)?;
                run(format!("DELETE FROM accounts {rows}"))?;
            }
        }
        Ok(())
    }
}

/// What both tables should hold.
#[derive(Default)]
struct Model {
    /// id: balance.
    accounts: BTreeMap<i64, i64>,
    /// id: writer, n, v.
    entries: BTreeMap<i64, [i64; 3]>,
}

impl Model {
    fn apply(&mut self, seed: u64, writer: i64, n: i64) {
        let own = key(writer, n);
        let mut mark = 0;
        match Deed::of(seed, writer, n) {
            Deed::Move { from, to, amount } => {
                *self.accounts.entry(from).or_default() -= amount;
                *self.accounts.entry(to).or_default() += amount;
                mark = amount;
            }
            Deed::Insert { count } => {
                self.accounts.extend((1..=count).map(|value| (own + value, value * 3)));
                self.entries.extend((1..=count).map(|value| (own + value, [writer, n, value * 5])));
                mark = count;
            }
            Deed::Update { first, end } => {
                let rows = key(writer, first)..key(writer, end);
                self.accounts.range_mut(rows.clone()).for_each(|(_, balance)| *balance += n);
                self.entries.range_mut(rows).for_each(|(_, row)| row[2] += n);
            }
            Deed::Delete { first, end } => {
                let rows = key(writer, first)..key(writer, end);
                self.accounts.retain(|id, _| !rows.contains(id));
                self.entries.retain(|id, _| !rows.contains(id));
            }
        }
        self.entries.insert(own, [writer, n, mark]);
    }

    fn check(&self, conn: &Connection, context: &str) {
        let accounts = self.accounts.iter().map(|(id, balance)| vec![*id, *balance]);
        assert_same(accounts, numbers(conn, "SELECT id, balance FROM accounts ORDER BY id"), context);
        let entries = self.entries.iter().map(|(id, [writer, n, v])| vec![*id, *writer, *n, *v]);
        assert_same(entries, numbers(conn, "SELECT id, writer, n, v FROM entries ORDER BY id"), context);
    }
}

#[track_caller]
fn assert_same(expected: impl Iterator<Item = Vec<i64>>, found: Vec<Vec<i64>>, context: &str) {
    let expected: Vec<Vec<i64>> = expected.collect();
    if expected != found {
        let counts = (expected.len(), found.len());
        let (expected, found): (BTreeSet<_>, BTreeSet<_>) = (expected.iter().collect(), found.iter().collect());
        let missing: Vec<_> = expected.difference(&found).take(5).collect();
        let strange: Vec<_> = found.difference(&expected).take(5).collect();
        panic!("{context}: {counts:?} rows; {missing:?} missing, {strange:?} strange");
    }
}

/// The rows of a query of whole numbers.
fn numbers(conn: &Connection, sql: &str) -> Vec<Vec<i64>> {
    let batches = conn.sql(sql).and_then(|query| query.collect()).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let rows = |batch: &sinterdb::arrow::array::RecordBatch| -> Vec<Vec<i64>> {
        let columns: Vec<_> = batch.columns().iter().map(|column| column.as_primitive::<Int64Type>()).collect();
        (0..batch.num_rows()).map(|row| columns.iter().map(|column| column.value(row)).collect()).collect()
    };
    batches.iter().flat_map(rows).collect()
}

/// A child that does not come as far as it should is killed all the same.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where a child is killed.
#[derive(Clone, Copy, Debug)]
enum Aim {
    /// So long after it began to open the file.
    Opening(Duration),
    /// So long after it began its first checkpoint.
    Checkpoint(Duration),
    /// So long after so many commits; or when it has taken long.
    Anywhere(u64, Duration),
}

/// How a child ended.
#[derive(Default)]
struct Ended {
    /// By writer: the last transaction that was acknowledged, if any.
    acknowledged: BTreeMap<i64, i64>,
    opened: bool,
    in_checkpoint: bool,
    in_commit: BTreeSet<i64>,
    commits: u64,
    /// What it had to replay.
    replayed: bool,
    opening: Option<Duration>,
    checkpoint: Option<Duration>,
    checkpoints: u64,
    conflicts: u64,
}

#[test]
fn four_writers_are_killed_and_lose_nothing_acknowledged() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
    };
    let (kills, seed) = (number(KILLS_VARIABLE, 20), number(SEED_VARIABLE, 20_261_122));
    println!("{KILLS_VARIABLE}={kills} {SEED_VARIABLE}={seed}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("writers.sinter");
    let mut model = Model::default();
    model.accounts.extend((0..SHARED).map(|id| (id, 0)));
    {
        let database = Database::open(&path).unwrap();
        let conn = database.connect();
        conn.execute("CREATE TABLE accounts (id BIGINT, balance BIGINT)", &[]).unwrap();
        conn.execute("CREATE TABLE entries (id BIGINT, writer BIGINT, n BIGINT, v BIGINT) WITH (layout = 'pax')", &[])
            .unwrap();
        conn.execute(&format!("INSERT INTO accounts SELECT value, 0 FROM generate_series(0, {})", SHARED - 1), &[])
            .unwrap();
        database.close().unwrap();
    }
    let mut random = SmallRng::seed_from_u64(seed);
    let mut next = vec![0i64; WRITERS as usize];
    let (mut opening, mut checkpoint) = (Duration::from_millis(5), Duration::from_millis(5));
    let mut landed: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut checkpoints, mut conflicts, mut in_flight_kept) = (0, 0, 0);
    for kill in 0..kills {
        let part = random.random_range(0.0..0.9);
        let aim = match kill % 4 {
            1 => Aim::Opening(opening.mul_f64(part)),
            3 => Aim::Checkpoint(checkpoint.mul_f64(part)),
            _ => Aim::Anywhere(random.random_range(0..50), Duration::from_micros(random.random_range(0..30_000))),
        };
        let level = ["full", "normal", "off"][random.random_range(0..3)];
        let context = format!("kill {kill} of seed {seed}, {aim:?}, synchronous = {level}");
        let ended = run_and_kill(&path, level, seed, &next, aim, &context);
        opening = ended.opening.unwrap_or(opening);
        checkpoint = ended.checkpoint.unwrap_or(checkpoint);
        (checkpoints, conflicts) = (checkpoints + ended.checkpoints, conflicts + ended.conflicts);
        for (place, here) in [
            ("recovery", !ended.opened && ended.replayed),
            ("opening", !ended.opened && !ended.replayed),
            ("checkpoint", ended.in_checkpoint),
            ("commit", !ended.in_commit.is_empty()),
        ] {
            *landed.entry(place).or_default() += u64::from(here);
        }
        // Reading changes nothing, so that the next child recovers by itself; now and then this process does.
        let config = Config::builder().threads(2).read_only(kill % 5 != 4);
        let database = Database::open_with(&path, config).unwrap_or_else(|error| panic!("{context}: {error}"));
        let conn = database.connect();
        for writer in 0..WRITERS {
            let sql = format!("SELECT coalesce(max(n), -1) FROM entries WHERE writer = {writer}");
            let last = numbers(&conn, &sql)[0][0];
            let start = &mut next[writer as usize];
            let acknowledged = ended.acknowledged.get(&writer).map_or(*start - 1, |n| *n);
            assert!(
                last == acknowledged || last == acknowledged + 1,
                "{context}: writer {writer} was told of {acknowledged}, and {last} is there"
            );
            assert!(last == acknowledged || ended.in_commit.contains(&writer), "{context}: {last} was never committed");
            in_flight_kept += last - acknowledged;
            (*start..=last).for_each(|n| model.apply(seed, writer, n));
            *start = last + 1;
        }
        model.check(&conn, &context);
    }
    // Past the test runner, which keeps what a test that passes prints to itself.
    writeln!(
        std::io::stderr(),
        "kill -9 beside {WRITERS} writers: {kills} kills of {} transactions, {conflicts} conflicts, {checkpoints} \
         checkpoints; kills by where they landed: {landed:?}; in flight and there afterwards: {in_flight_kept}; {} rows",
        next.iter().sum::<i64>(),
        model.entries.len() + model.accounts.len()
    )
    .unwrap();
    for place in ["commit", "checkpoint", "recovery"] {
        assert!(kills < 20 || landed.get(place).is_some_and(|count| *count > 0), "no kill in a {place}: {landed:?}");
    }
}

fn run_and_kill(path: &Path, level: &str, seed: u64, next: &[i64], aim: Aim, context: &str) -> Ended {
    let next: Vec<String> = next.iter().map(i64::to_string).collect();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill_writers::child", "--nocapture", "--test-threads=1"])
        .env(CHILD_VARIABLE, format!("{level} {seed} {} {}", next.join(","), path.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut ended = Ended::default();
    let (mut begun, mut opened, mut is_killed) = (Instant::now(), Instant::now(), false);
    // What the child wrote before its death is read to the end.
    for line in lines {
        let mut kill_at = |moment: Instant| {
            if !is_killed {
                std::thread::sleep(moment.saturating_duration_since(Instant::now()));
                child.kill().unwrap();
                is_killed = true;
            }
        };
        let words: Vec<&str> = line.split(' ').collect();
        let number = |index: usize| -> i64 { words[index].parse().unwrap() };
        match words[0] {
            "opening" => {
                begun = Instant::now();
                ended.replayed = words[1] == "log";
                if let Aim::Opening(delay) = aim {
                    kill_at(begun + delay);
                }
            }
            "opened" => {
                (ended.opened, ended.opening) = (true, Some(begun.elapsed()));
                (begun, opened) = (Instant::now(), Instant::now());
                if let Aim::Opening(_) = aim {
                    kill_at(begun);
                }
            }
            "checkpoint" => {
                ended.in_checkpoint = words[1] == "begun";
                if ended.in_checkpoint {
                    begun = Instant::now();
                    if let Aim::Checkpoint(delay) = aim {
                        kill_at(begun + delay);
                    }
                } else {
                    ended.checkpoint = Some(begun.elapsed());
                    ended.checkpoints += 1;
                }
            }
            "committing" => drop(ended.in_commit.insert(number(1))),
            "conflict" => {
                ended.in_commit.remove(&number(1));
                ended.conflicts += 1;
            }
            "done" => {
                ended.in_commit.remove(&number(1));
                ended.acknowledged.insert(number(1), number(2));
                ended.commits += 1;
            }
            _ => {}
        }
        if let Aim::Anywhere(commits, delay) = aim
            && ended.opened
            && (ended.commits >= commits || opened.elapsed() > PATIENCE)
        {
            kill_at(Instant::now() + delay);
        }
    }
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGKILL), "{context}: {status}");
    ended
}

/// Not a test of its own: the process that is killed.
#[test]
fn child() {
    let Ok(task) = std::env::var(CHILD_VARIABLE) else { return };
    let parts: Vec<&str> = task.splitn(4, ' ').collect();
    let level = match parts[0] {
        "full" => Synchronous::Full,
        "normal" => Synchronous::Normal,
        _ => Synchronous::Off,
    };
    let seed: u64 = parts[1].parse().unwrap();
    let next: Vec<i64> = parts[2].split(',').map(|n| n.parse().unwrap()).collect();
    let path = Path::new(parts[3]);
    let files = std::fs::read_dir(path.parent().unwrap()).unwrap();
    say(if files.count() > 1 { "opening log" } else { "opening closed" });
    let database = Database::open_with(path, Config::builder().threads(2).synchronous(level)).unwrap_or_else(fail);
    say("opened");
    std::thread::scope(|scope| {
        for (writer, next) in next.into_iter().enumerate() {
            let database = &database;
            scope.spawn(move || write(database, seed, writer as i64, next));
        }
        scope.spawn(|| checkpoint(&database, seed));
    });
}

fn write(database: &Database, seed: u64, writer: i64, next: i64) {
    for n in next.. {
        let deed = Deed::of(seed, writer, n);
        loop {
            let transaction = database.begin().unwrap_or_else(fail);
            deed.run(writer, n, &transaction).unwrap_or_else(fail);
            say(&format!("committing {writer} {n}"));
            match transaction.commit() {
                Ok(()) => break say(&format!("done {writer} {n}")),
                Err(Error::Conflict(_)) => say(&format!("conflict {writer} {n}")),
                Err(error) => fail(error),
            }
        }
    }
}

/// Makes checkpoints, and holds up what it sees between them: a move is there as a whole.
fn checkpoint(database: &Database, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let conn = database.connect();
    loop {
        std::thread::sleep(Duration::from_millis(random.random_range(0..60)));
        let total = numbers(&conn, &format!("SELECT sum(balance) FROM accounts WHERE id < {SHARED}"));
        if total != [[0]] {
            fail(format!("half of a move was seen: {total:?}"))
        }
        say("checkpoint begun");
        conn.execute("CHECKPOINT", &[]).unwrap_or_else(fail);
        say("checkpoint done");
    }
}

/// Ends the process, whatever its other threads do.
fn fail<T>(error: impl std::fmt::Display) -> T {
    eprintln!("the child failed: {error}");
    std::process::exit(1)
}

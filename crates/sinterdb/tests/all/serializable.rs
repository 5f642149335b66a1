//! Transactions that commit could have run one after the other.
//!
//! Several run at once, in an order of statements that comes from a seed. What they read and wrote is recorded, and
//! held against two things: a run one by one, in the order of the commits, over a map; and the graph of who depends on
//! whom, which may have no cycle. Transactions that only read see one state, whatever happens beside them.

use crate::answers::{lines, rows_of};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinterdb::{Config, Database, Error, Transaction};
use std::collections::{BTreeMap, BTreeSet};

const KEYS: i64 = 12;

/// Which rows a statement looks at.
#[derive(Clone, Copy, Debug)]
enum Rows {
    Key(i64),
    Range(i64, i64),
    /// By value: rows come into it by being changed.
    Remainder(i64),
    All,
}

impl Rows {
    fn random(random: &mut SmallRng) -> Rows {
        let key = random.random_range(0..KEYS);
        match random.random_range(0..6) {
            0..3 => Rows::Key(key),
            3 => Rows::Range(key, key + random.random_range(0..4)),
            4 => Rows::Remainder(random.random_range(0..5)),
            _ => Rows::All,
        }
    }

    fn condition(self) -> String {
        match self {
            Rows::Key(key) => format!("k = {key}"),
            Rows::Range(from, to) => format!("k BETWEEN {from} AND {to}"),
            Rows::Remainder(remainder) => format!("v % 5 = {remainder}"),
            Rows::All => "true".to_owned(),
        }
    }

    fn hold(self, key: i64, value: i64) -> bool {
        match self {
            Rows::Key(wanted) => key == wanted,
            Rows::Range(from, to) => (from..=to).contains(&key),
            Rows::Remainder(remainder) => value % 5 == remainder,
            Rows::All => true,
        }
    }
}

/// What statements do. The values of a key only grow.
#[derive(Clone, Debug)]
enum Step {
    Read(Rows),
    /// As one number, which zone maps and statistics might answer without a scan.
    Count(Rows),
    Delete(Rows),
    /// Rows become `v + add`, and `add` is larger than anything before.
    Update(Rows, i64),
    /// Where the key is not there yet: a read that decides over a write.
    Insert(i64, i64),
}

type State = BTreeMap<i64, i64>;

/// What a step answers.
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Rows(Vec<(i64, i64)>),
    Changed(u64),
}

impl Step {
    fn random(random: &mut SmallRng, fresh: &mut i64) -> Step {
        *fresh += 1000;
        let rows = Rows::random(random);
        match random.random_range(0..10) {
            0..3 => Step::Read(rows),
            3 => Step::Count(rows),
            4 => Step::Delete(rows),
            5..8 => Step::Update(rows, *fresh + random.random_range(0..5)),
            _ => Step::Insert(random.random_range(0..KEYS), *fresh + random.random_range(0..5)),
        }
    }

    fn run(&self, transaction: &Transaction) -> Result<Answer, Error> {
        let query = |sql: String| -> Result<Answer, Error> {
            let rows: Vec<_> = transaction.sql(&sql)?.collect()?.iter().flat_map(rows_of).collect();
            let number = |text: &String| text.parse().unwrap();
            Ok(Answer::Rows(rows.iter().map(|row| (number(&row[0]), number(&row[1]))).collect()))
        };
        match self {
            Step::Read(rows) => query(format!("SELECT k, v FROM t WHERE {} ORDER BY k", rows.condition())),
            Step::Count(Rows::All) => query("SELECT count(*), 0 FROM t".to_owned()),
            Step::Count(rows) => query(format!("SELECT count(*), 0 FROM t WHERE {}", rows.condition())),
            Step::Delete(rows) => {
                let sql = format!("DELETE FROM t WHERE {}", rows.condition());
                transaction.execute(&sql, &[]).map(Answer::Changed)
            }
            Step::Update(rows, add) => {
                let sql = format!("UPDATE t SET v = v + {add} WHERE {}", rows.condition());
                transaction.execute(&sql, &[]).map(Answer::Changed)
            }
            Step::Insert(key, value) => {
                let sql =
                    format!("INSERT INTO t SELECT {key}, {value} WHERE NOT EXISTS (SELECT 1 FROM t WHERE k = {key})");
                transaction.execute(&sql, &[]).map(Answer::Changed)
            }
        }
    }

    /// The same over a map.
    fn run_on(&self, state: &mut State) -> Answer {
        let held = |state: &State, rows: Rows| -> Vec<(i64, i64)> {
            state.iter().map(|(key, value)| (*key, *value)).filter(|(key, value)| rows.hold(*key, *value)).collect()
        };
        match self {
            Step::Read(rows) => Answer::Rows(held(state, *rows)),
            Step::Count(rows) => Answer::Rows(vec![(held(state, *rows).len() as i64, 0)]),
            Step::Delete(rows) => {
                let gone = held(state, *rows);
                for (key, _) in &gone {
                    state.remove(key);
                }
                Answer::Changed(gone.len() as u64)
            }
            Step::Update(rows, add) => {
                let changed = held(state, *rows);
                for (key, value) in &changed {
                    state.insert(*key, value + add);
                }
                Answer::Changed(changed.len() as u64)
            }
            Step::Insert(key, value) => match state.contains_key(key) {
                true => Answer::Changed(0),
                false => {
                    state.insert(*key, *value);
                    Answer::Changed(1)
                }
            },
        }
    }

    fn rows(&self) -> Option<Rows> {
        match self {
            Step::Read(rows) | Step::Count(rows) | Step::Delete(rows) | Step::Update(rows, _) => Some(*rows),
            Step::Insert(key, _) => Some(Rows::Key(*key)),
        }
    }
}

/// A transaction under way.
struct Running {
    transaction: Transaction,
    is_read_only: bool,
    /// What it sees, by the model: the state at its beginning with its own changes.
    view: State,
    /// How many had committed when it began.
    begun: usize,
    steps: Vec<(Step, Answer)>,
    steps_left: usize,
}

/// One that has committed.
struct Committed {
    begun: usize,
    steps: Vec<(Step, Answer)>,
    before: State,
    after: State,
}

#[derive(Default, Debug)]
struct Tally {
    committed: usize,
    conflicts: usize,
    read_only: usize,
    edges: usize,
}

/// Runs one schedule; returns what happened in it.
fn schedule(seed: u64) -> Tally {
    let mut random = SmallRng::seed_from_u64(seed);
    let config = Config::builder().threads(1).memory_limit_bytes(1 << 28).background(false);
    let database = Database::memory_with(config).unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE t (k BIGINT, v BIGINT)", &[]).unwrap();
    let mut fresh = 1000;
    let mut state = State::new();
    for key in (0..KEYS).filter(|_| random.random_bool(0.6)) {
        state.insert(key, key);
        conn.execute(&format!("INSERT INTO t VALUES ({key}, {key})"), &[]).unwrap();
    }
    let mut history: Vec<Committed> = Vec::new();
    let mut running: Vec<Running> = Vec::new();
    let mut tally = Tally::default();
    for _ in 0..120 {
        if running.len() < 4 && random.random_bool(0.4) {
            let is_read_only = random.random_bool(0.2);
            let transaction = if is_read_only { database.begin_read_only() } else { database.begin() }.unwrap();
            let steps_left = random.random_range(1..6);
            let (view, begun) = (state.clone(), history.len());
            running.push(Running { transaction, is_read_only, view, begun, steps: Vec::new(), steps_left });
        }
        if running.is_empty() {
            continue;
        }
        if random.random_bool(0.1) {
            // The form of the rows changes under everybody's feet.
            conn.execute("CHECKPOINT", &[]).unwrap();
        }
        let chosen = random.random_range(0..running.len());
        if running[chosen].steps_left > 0 {
            let one = &mut running[chosen];
            one.steps_left -= 1;
            let step = match Step::random(&mut random, &mut fresh) {
                Step::Delete(rows) | Step::Update(rows, _) if one.is_read_only => Step::Read(rows),
                Step::Insert(key, _) if one.is_read_only => Step::Count(Rows::Key(key)),
                step => step,
            };
            let answer = step.run(&one.transaction).unwrap_or_else(|error| panic!("seed {seed}, {step:?}: {error}"));
            // One state, and its own changes, from beginning to end: reads are repeatable.
            assert_eq!(answer, step.run_on(&mut one.view), "seed {seed}, {step:?} does not see its own snapshot");
            one.steps.push((step, answer));
            continue;
        }
        let Running { transaction, begun, steps, .. } = running.swap_remove(chosen);
        // Who changed nothing stands in the order where it began, and has no conflicts.
        let has_only_read = !steps.iter().any(|(_, answer)| matches!(answer, Answer::Changed(rows) if *rows > 0));
        match transaction.commit() {
            Ok(()) if has_only_read => tally.read_only += 1,
            Ok(()) => {
                let before = state.clone();
                for (step, answer) in &steps {
                    let serial = step.run_on(&mut state);
                    assert_eq!(*answer, serial, "seed {seed}: {step:?} answers otherwise in the order of the commits");
                }
                history.push(Committed { begun, steps, before, after: state.clone() });
            }
            Err(Error::Conflict(_)) if !has_only_read => tally.conflicts += 1,
            Err(error) => panic!("seed {seed}: {error}"),
        }
        let expected: Vec<String> = state.iter().map(|(key, value)| format!("{key} {value}")).collect();
        assert_eq!(lines(&conn, "SELECT k, v FROM t ORDER BY k"), expected, "seed {seed}");
    }
    tally.committed = history.len();
    tally.edges = check_graph(&history, seed);
    tally
}

/// Builds the graph of dependencies from what was read and written, not from the order of the commits, and looks for a
/// cycle. Returns the number of edges.
fn check_graph(history: &[Committed], seed: u64) -> usize {
    // Values of a key only grow, so that a key and its value say who wrote it.
    let mut writer: BTreeMap<(i64, i64), usize> = BTreeMap::new();
    for (index, one) in history.iter().enumerate() {
        let new = one.after.iter().filter(|(key, value)| one.before.get(*key) != Some(value));
        writer.extend(new.map(|(key, value)| ((*key, *value), index)));
    }
    let mut edges: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (index, one) in history.iter().enumerate() {
        // What it replaced was written by another: write to write.
        let old = one.before.iter().filter(|(key, value)| one.after.get(*key) != Some(value));
        edges.extend(old.filter_map(|(key, value)| Some((*writer.get(&(*key, *value))?, index))));
        for (step, answer) in &one.steps {
            // What it read was written by another: write to read.
            if let (Step::Read(_), Answer::Rows(rows)) = (step, answer) {
                edges.extend(rows.iter().filter_map(|row| Some((*writer.get(row)?, index))));
            }
            // What it did not see, because another wrote it after it began: read to write. What came and went again
            // between its beginning and its commit makes no difference to it.
            let Some(rows) = step.rows() else { continue };
            let differ = |from: &State, to: &State| -> BTreeSet<i64> {
                let gone = from.iter().filter(|(key, value)| to.get(*key) != Some(value));
                gone.filter(|(key, value)| rows.hold(**key, **value)).map(|(key, _)| *key).collect()
            };
            let either = |from: &State, to: &State| -> BTreeSet<i64> { &differ(from, to) | &differ(to, from) };
            let missed = either(&history[one.begun].before, &one.before);
            for (other, beside) in history.iter().enumerate().take(index).skip(one.begun) {
                let wrote = |key: &i64| beside.before.get(key) != beside.after.get(key);
                edges.extend(missed.iter().any(wrote).then_some((index, other)));
            }
            for (other, later) in history.iter().enumerate().skip(index + 1) {
                edges.extend((!either(&later.before, &later.after).is_empty()).then_some((index, other)));
            }
        }
    }
    edges.retain(|(from, to)| from != to);
    let mut state = vec![0u8; history.len()];
    fn visit(node: usize, edges: &BTreeSet<(usize, usize)>, state: &mut [u8]) -> bool {
        state[node] = 1;
        for (_, next) in edges.range((node, 0)..(node + 1, 0)) {
            if state[*next] == 1 || (state[*next] == 0 && visit(*next, edges, state)) {
                return true;
            }
        }
        state[node] = 2;
        false
    }
    for node in 0..history.len() {
        assert!(state[node] != 0 || !visit(node, &edges, &mut state), "seed {seed}: the dependencies have a cycle");
    }
    edges.len()
}

#[test]
fn random_schedules_are_serializable() {
    let mut total = Tally::default();
    for seed in 0..150 {
        let tally = schedule(seed);
        total.committed += tally.committed;
        total.conflicts += tally.conflicts;
        total.read_only += tally.read_only;
        total.edges += tally.edges;
    }
    println!("{total:?}");
    // Schedules in which nothing meets prove nothing.
    assert!(total.committed > 500 && total.conflicts > 200 && total.read_only > 50, "{total:?}");
}

/// Two transactions over the same two rows, and what each does between its beginning and its commit.
fn both(first: &[&str], second: &[&str]) -> (Result<(), Error>, Result<(), Error>, Vec<String>) {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE t (k INT, v INT)", &[]).unwrap();
    conn.execute("INSERT INTO t VALUES (1, 1), (2, 1)", &[]).unwrap();
    let (one, two) = (database.begin().unwrap(), database.begin().unwrap());
    let run = |transaction: &Transaction, statements: &[&str]| {
        for sql in statements {
            transaction.execute(sql, &[]).unwrap();
        }
    };
    run(&one, first);
    run(&two, second);
    let (one, two) = (one.commit(), two.commit());
    (one, two, lines(&conn, "SELECT k, v FROM t ORDER BY k, v"))
}

#[test]
fn write_skew_is_a_conflict() {
    // Each looks whether the other's row is still on call, and takes its own away.
    let (one, two, rows) = both(
        &["SELECT sum(v) FROM t", "UPDATE t SET v = 0 WHERE k = 1"],
        &["SELECT sum(v) FROM t", "UPDATE t SET v = 0 WHERE k = 2"],
    );
    assert!(one.is_ok() && matches!(two, Err(Error::Conflict(_))), "{two:?}");
    assert_eq!(rows, ["1 0", "2 1"]);
}

#[test]
fn a_phantom_is_a_conflict() {
    let (one, two, rows) = both(
        &["INSERT INTO t SELECT 10 + count(*), 5 FROM t WHERE v > 3"],
        &["INSERT INTO t SELECT 10 + count(*), 6 FROM t WHERE v > 3"],
    );
    assert!(one.is_ok() && matches!(two, Err(Error::Conflict(_))), "{two:?}");
    assert_eq!(rows, ["1 1", "2 1", "10 5"]);
}

#[test]
fn a_read_that_statistics_answer_is_a_read() {
    for read in
        ["SELECT count(*) FROM t", "SELECT max(v) FROM t", "SELECT (SELECT count(*) FROM t), k FROM t WHERE k = 1"]
    {
        let (one, two, _) = both(&["INSERT INTO t VALUES (9, 9)"], &[read, "INSERT INTO t VALUES (8, 8)"]);
        assert!(one.is_ok() && matches!(two, Err(Error::Conflict(_))), "{read}: {two:?}");
    }
}

#[test]
fn disjoint_rows_are_no_conflict() {
    let (one, two, rows) = both(
        &["UPDATE t SET v = v + 1 WHERE k = 1", "INSERT INTO t VALUES (3, 3)", "DELETE FROM t WHERE k = 3"],
        &["UPDATE t SET v = v + 2 WHERE k = 2", "INSERT INTO t VALUES (4, 4)", "UPDATE t SET v = 5 WHERE k = 4"],
    );
    one.unwrap();
    two.unwrap();
    assert_eq!(rows, ["1 2", "2 3", "4 5"]);
}

#[test]
fn whoever_only_reads_never_conflicts() {
    let (one, two, _) = both(&["DELETE FROM t"], &["SELECT * FROM t", "SELECT sum(v) FROM t"]);
    one.unwrap();
    two.unwrap();
}

#[test]
fn two_definitions_of_one_name_are_a_conflict() {
    for (first, second) in [
        ("CREATE TABLE x (a INT)", "CREATE TABLE x (b INT)"),
        ("CREATE VIEW x AS SELECT 1 AS a", "CREATE TABLE x (b INT)"),
        ("DROP TABLE t", "DROP TABLE t"),
        ("DROP TABLE t", "INSERT INTO t VALUES (7, 7)"),
        ("ALTER TABLE t ADD COLUMN c INT", "INSERT INTO t VALUES (7, 7)"),
        ("INSERT INTO t VALUES (7, 7)", "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 1"),
        ("ALTER TABLE t RENAME TO u", "ALTER TABLE t RENAME TO w"),
        ("ALTER TABLE t RENAME COLUMN v TO w", "ALTER TABLE t RENAME COLUMN v TO x"),
    ] {
        let (one, two, _) = {
            let database = Database::memory().unwrap();
            let conn = database.connect();
            conn.execute("CREATE TABLE t (k INT, v INT)", &[]).unwrap();
            let (one, two) = (database.begin().unwrap(), database.begin().unwrap());
            one.execute(first, &[]).unwrap();
            two.execute(second, &[]).unwrap();
            (one.commit(), two.commit(), ())
        };
        assert!(one.is_ok() && matches!(two, Err(Error::Conflict(_))), "{first} | {second}: {one:?} {two:?}");
    }
}

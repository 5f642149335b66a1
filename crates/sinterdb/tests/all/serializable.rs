//! Transactions that commit could have run one after the other.
//!
//! Several run at once, in an order of statements that comes from a seed. What they read and wrote is recorded, and
//! held against two things: a run one by one, in the order of the commits, over a map; and the graph of who depends on
//! whom, which may have no cycle. Transactions that only read see one state, whatever happens beside them.

use crate::answers::{lines, rows_of};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use sinterdb::{Config, Database, Error, Transaction};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

const KEYS: i64 = 12;

/// Both have keys and values. Views of the same rows: `all_t`, `all_u`, and `both`.
const TABLES: [&str; 2] = ["t", "u"];

/// A row of one of the tables.
type Key = (usize, i64);

/// Which rows of a table a statement looks at.
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

/// What statements do, each to the table of the number it has first. The values of a key only grow.
#[derive(Clone, Debug)]
enum Step {
    Read(usize, Rows),
    /// The same through a view.
    ReadView(usize, Rows),
    /// Both tables as one view.
    ReadBoth(Rows),
    /// As one number, which zone maps and statistics might answer without a scan.
    Count(usize, Rows),
    Greatest(usize, Rows),
    Delete(usize, Rows),
    /// Rows become `v + add`, and `add` is larger than anything before.
    Update(usize, Rows, i64),
    /// Where the key is not there yet: a read that decides over a write.
    Insert(usize, i64, i64),
    /// Rows of the other table, `v + add`, as far as their keys are not there yet.
    Copy(usize, Rows, i64),
    /// Only if an even number of rows of the other table are such.
    UpdateIfEven(usize, i64, i64, Rows),
    /// The table anew, with rows of the other one, `v + add`.
    Replace(usize, Rows, i64),
    AddColumn(usize, i64),
    Savepoint,
    RollBack,
}

type State = BTreeMap<Key, i64>;

/// What a step answers.
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Rows(Vec<(i64, i64)>),
    Changed(u64),
    Defined,
    Nothing,
}

impl Answer {
    fn is_change(&self) -> bool {
        match self {
            Answer::Changed(rows) => *rows > 0,
            Answer::Defined => true,
            Answer::Rows(_) | Answer::Nothing => false,
        }
    }
}

impl Step {
    fn random(random: &mut SmallRng, fresh: &mut i64, has_savepoint: bool) -> Step {
        *fresh += 1000;
        let (table, rows) = (random.random_range(0..2), Rows::random(random));
        let (key, add) = (random.random_range(0..KEYS), *fresh + random.random_range(0..5));
        if has_savepoint && random.random_bool(0.25) {
            return Step::RollBack;
        }
        match random.random_range(0..40) {
            0..6 => Step::Read(table, rows),
            6..8 => Step::ReadView(table, rows),
            8 => Step::ReadBoth(rows),
            9..12 => Step::Count(table, rows),
            12..14 => Step::Greatest(table, rows),
            14..17 => Step::Delete(table, rows),
            17..25 => Step::Update(table, rows, add),
            25..29 => Step::Insert(table, key, add),
            29..31 => Step::Copy(table, rows, add),
            31..34 => Step::UpdateIfEven(table, key, add, rows),
            34 if random.random_bool(0.3) => Step::Replace(table, rows, add),
            35 if random.random_bool(0.3) => Step::AddColumn(table, *fresh),
            36..40 => Step::Savepoint,
            _ => Step::Read(table, rows),
        }
    }

    fn run(&self, transaction: &Transaction) -> Result<Answer, Error> {
        let query = |sql: String| -> Result<Answer, Error> {
            let rows: Vec<_> = transaction.sql(&sql)?.collect()?.iter().flat_map(rows_of).collect();
            let number = |text: &String| text.parse().unwrap();
            Ok(Answer::Rows(rows.iter().map(|row| (number(&row[0]), number(&row[1]))).collect()))
        };
        let change = |sql: String| transaction.execute(&sql, &[]).map(Answer::Changed);
        let define = |sql: String| transaction.execute(&sql, &[]).map(|_| Answer::Defined);
        let other = |table: usize| TABLES[1 - table];
        match self {
            Step::Read(table, rows) => {
                query(format!("SELECT k, v FROM {} WHERE {} ORDER BY k", TABLES[*table], rows.condition()))
            }
            Step::ReadView(table, rows) => {
                query(format!("SELECT k, v FROM all_{} WHERE {} ORDER BY k", TABLES[*table], rows.condition()))
            }
            Step::ReadBoth(rows) => query(format!("SELECT k, v FROM both WHERE {} ORDER BY k, v", rows.condition())),
            Step::Count(table, Rows::All) => query(format!("SELECT count(*), 0 FROM {}", TABLES[*table])),
            Step::Count(table, rows) => {
                query(format!("SELECT count(*), 0 FROM {} WHERE {}", TABLES[*table], rows.condition()))
            }
            Step::Greatest(table, rows) => {
                let condition =
                    if let Rows::All = rows { String::new() } else { format!(" WHERE {}", rows.condition()) };
                let greatest = "coalesce(max(v), -1), coalesce(min(k), -1)";
                query(format!("SELECT {greatest} FROM {}{condition}", TABLES[*table]))
            }
            Step::Delete(table, rows) => change(format!("DELETE FROM {} WHERE {}", TABLES[*table], rows.condition())),
            Step::Update(table, rows, add) => {
                change(format!("UPDATE {} SET v = v + {add} WHERE {}", TABLES[*table], rows.condition()))
            }
            Step::Insert(table, key, value) => {
                let table = TABLES[*table];
                let absent = format!("NOT EXISTS (SELECT 1 FROM {table} WHERE k = {key})");
                change(format!("INSERT INTO {table} (k, v) SELECT {key}, {value} WHERE {absent}"))
            }
            Step::Copy(table, rows, add) => {
                let (table, from) = (TABLES[*table], other(*table));
                let absent = format!("k NOT IN (SELECT k FROM {table})");
                let condition = rows.condition();
                change(format!(
                    "INSERT INTO {table} (k, v) SELECT k, v + {add} FROM {from} WHERE {condition} AND {absent}"
                ))
            }
            Step::UpdateIfEven(table, key, add, rows) => {
                let count = format!("SELECT count(*) FROM {} WHERE {}", other(*table), rows.condition());
                change(format!("UPDATE {} SET v = v + {add} WHERE k = {key} AND ({count}) % 2 = 0", TABLES[*table]))
            }
            Step::Replace(table, rows, add) => {
                let select = format!("SELECT k, v + {add} AS v FROM {} WHERE {}", other(*table), rows.condition());
                define(format!("CREATE OR REPLACE TABLE {} AS {select}", TABLES[*table]))
            }
            Step::AddColumn(table, number) => {
                define(format!("ALTER TABLE {} ADD COLUMN c{number} INT DEFAULT 1", TABLES[*table]))
            }
            Step::Savepoint => transaction.execute("SAVEPOINT here", &[]).map(|_| Answer::Nothing),
            Step::RollBack => transaction.execute("ROLLBACK TO SAVEPOINT here", &[]).map(|_| Answer::Nothing),
        }
    }

    /// The same over a map, with the states that savepoints kept.
    fn run_on(&self, state: &mut State, savepoints: &mut Vec<State>) -> Answer {
        let held = |state: &State, table: usize, rows: Rows| -> Vec<(i64, i64)> {
            let of_table = state.range((table, i64::MIN)..=(table, i64::MAX)).map(|((_, key), value)| (*key, *value));
            of_table.filter(|(key, value)| rows.hold(*key, *value)).collect()
        };
        match self {
            Step::Read(table, rows) | Step::ReadView(table, rows) => Answer::Rows(held(state, *table, *rows)),
            Step::ReadBoth(rows) => {
                let mut all = held(state, 0, *rows);
                all.extend(held(state, 1, *rows));
                all.sort_unstable();
                Answer::Rows(all)
            }
            Step::Count(table, rows) => Answer::Rows(vec![(held(state, *table, *rows).len() as i64, 0)]),
            Step::Greatest(table, rows) => {
                let rows = held(state, *table, *rows);
                let (greatest, least) = (rows.iter().map(|row| row.1).max(), rows.iter().map(|row| row.0).min());
                Answer::Rows(vec![(greatest.unwrap_or(-1), least.unwrap_or(-1))])
            }
            Step::Delete(table, rows) => {
                let gone = held(state, *table, *rows);
                for (key, _) in &gone {
                    state.remove(&(*table, *key));
                }
                Answer::Changed(gone.len() as u64)
            }
            Step::Update(table, rows, add) => {
                let changed = held(state, *table, *rows);
                for (key, value) in &changed {
                    state.insert((*table, *key), value + add);
                }
                Answer::Changed(changed.len() as u64)
            }
            Step::Insert(table, key, value) => match state.contains_key(&(*table, *key)) {
                true => Answer::Changed(0),
                false => {
                    state.insert((*table, *key), *value);
                    Answer::Changed(1)
                }
            },
            Step::Copy(table, rows, add) => {
                let mut new = held(state, 1 - table, *rows);
                new.retain(|(key, _)| !state.contains_key(&(*table, *key)));
                state.extend(new.iter().map(|(key, value)| ((*table, *key), value + add)));
                Answer::Changed(new.len() as u64)
            }
            Step::UpdateIfEven(table, key, add, rows) => {
                let is_even = held(state, 1 - table, *rows).len().is_multiple_of(2);
                match state.get_mut(&(*table, *key)).filter(|_| is_even) {
                    None => Answer::Changed(0),
                    Some(value) => {
                        *value += add;
                        Answer::Changed(1)
                    }
                }
            }
            Step::Replace(table, rows, add) => {
                state.retain(|(of, _), _| of != table);
                let new = held(state, 1 - table, *rows);
                state.extend(new.iter().map(|(key, value)| ((*table, *key), value + add)));
                Answer::Defined
            }
            Step::AddColumn(..) => Answer::Defined,
            Step::Savepoint => {
                savepoints.push(state.clone());
                Answer::Nothing
            }
            Step::RollBack => {
                state.clone_from(savepoints.last().expect("there is a savepoint"));
                Answer::Nothing
            }
        }
    }

    /// What it looks at.
    fn rows(&self) -> Vec<(usize, Rows)> {
        match self {
            Step::Read(table, rows)
            | Step::ReadView(table, rows)
            | Step::Count(table, rows)
            | Step::Greatest(table, rows)
            | Step::Delete(table, rows)
            | Step::Update(table, rows, _) => vec![(*table, *rows)],
            Step::ReadBoth(rows) => vec![(0, *rows), (1, *rows)],
            Step::Insert(table, key, _) => vec![(*table, Rows::Key(*key))],
            // It looks only whether the keys are there, and conflicts a little more often than it would have to.
            Step::Copy(table, rows, _) => vec![(1 - table, *rows)],
            Step::UpdateIfEven(table, key, _, rows) => vec![(*table, Rows::Key(*key)), (1 - table, *rows)],
            Step::Replace(table, rows, _) => vec![(1 - table, *rows)],
            Step::AddColumn(..) | Step::Savepoint | Step::RollBack => Vec::new(),
        }
    }
}

/// A transaction under way.
struct Running {
    transaction: Transaction,
    is_read_only: bool,
    /// What it sees, by the model: the state at its beginning with its own changes.
    view: State,
    savepoints: Vec<State>,
    /// Whether it has changed anything, now and at each savepoint.
    has_changed: bool,
    had_changed: Vec<bool>,
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
    /// Steps of those that committed, by their names.
    steps: BTreeMap<String, usize>,
}

/// Runs one schedule; returns what happened in it.
fn schedule(seed: u64) -> Tally {
    let mut random = SmallRng::seed_from_u64(seed);
    let config = Config::builder().threads(1).memory_limit_bytes(1 << 28).background(false);
    let database = Database::memory_with(config).unwrap();
    let conn = database.connect();
    let mut fresh = 1000;
    let mut state = State::new();
    for (number, table) in TABLES.iter().enumerate() {
        conn.execute(&format!("CREATE TABLE {table} (k BIGINT, v BIGINT)"), &[]).unwrap();
        conn.execute(&format!("CREATE VIEW all_{table} AS SELECT k, v FROM {table}"), &[]).unwrap();
        for key in (0..KEYS).filter(|_| random.random_bool(0.6)) {
            state.insert((number, key), key);
            conn.execute(&format!("INSERT INTO {table} VALUES ({key}, {key})"), &[]).unwrap();
        }
    }
    conn.execute("CREATE VIEW both AS SELECT k, v FROM t UNION ALL SELECT k, v FROM u", &[]).unwrap();
    let mut history: Vec<Committed> = Vec::new();
    let mut running: Vec<Running> = Vec::new();
    let mut tally = Tally::default();
    for _ in 0..120 {
        if running.len() < 4 && random.random_bool(0.4) {
            let is_read_only = random.random_bool(0.2);
            let transaction = if is_read_only { database.begin_read_only() } else { database.begin() }.unwrap();
            running.push(Running {
                transaction,
                is_read_only,
                view: state.clone(),
                savepoints: Vec::new(),
                has_changed: false,
                had_changed: Vec::new(),
                begun: history.len(),
                steps: Vec::new(),
                steps_left: random.random_range(1..6),
            });
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
            let step = match Step::random(&mut random, &mut fresh, !one.savepoints.is_empty()) {
                Step::Delete(table, rows) | Step::Update(table, rows, _) if one.is_read_only => Step::Read(table, rows),
                Step::Insert(table, key, _) if one.is_read_only => Step::Count(table, Rows::Key(key)),
                Step::Copy(table, rows, _) | Step::Replace(table, rows, _) | Step::UpdateIfEven(table, _, _, rows)
                    if one.is_read_only =>
                {
                    Step::Greatest(table, rows)
                }
                Step::AddColumn(..) if one.is_read_only => Step::ReadBoth(Rows::All),
                step => step,
            };
            let answer = step.run(&one.transaction).unwrap_or_else(|error| panic!("seed {seed}, {step:?}: {error}"));
            // One state, and its own changes, from beginning to end: reads are repeatable.
            let expected = step.run_on(&mut one.view, &mut one.savepoints);
            assert_eq!(answer, expected, "seed {seed}, {step:?} does not see its own snapshot");
            match step {
                Step::Savepoint => one.had_changed.push(one.has_changed),
                Step::RollBack => one.has_changed = one.had_changed.last().is_some_and(|had| *had),
                _ => one.has_changed |= answer.is_change(),
            }
            one.steps.push((step, answer));
            continue;
        }
        let Running { transaction, begun, steps, has_changed, .. } = running.swap_remove(chosen);
        match transaction.commit() {
            // Who changed nothing stands in the order where it began, and has no conflicts.
            Ok(()) if !has_changed => tally.read_only += 1,
            Ok(()) => {
                let (before, mut savepoints) = (state.clone(), Vec::new());
                for (step, answer) in &steps {
                    let serial = step.run_on(&mut state, &mut savepoints);
                    assert_eq!(*answer, serial, "seed {seed}: {step:?} answers otherwise in the order of the commits");
                    let name = format!("{step:?}");
                    let name = name.split('(').next().unwrap_or_default();
                    *tally.steps.entry(name.to_owned()).or_default() += 1;
                }
                history.push(Committed { begun, steps, before, after: state.clone() });
            }
            Err(Error::Conflict(_)) if has_changed => tally.conflicts += 1,
            Err(error) => panic!("seed {seed}: {error}"),
        }
        for (number, table) in TABLES.iter().enumerate() {
            let rows = state.iter().filter(|((of, _), _)| *of == number);
            let expected: Vec<String> = rows.map(|((_, key), value)| format!("{key} {value}")).collect();
            assert_eq!(lines(&conn, &format!("SELECT k, v FROM {table} ORDER BY k")), expected, "seed {seed}, {table}");
        }
    }
    tally.committed = history.len();
    tally.edges = check_graph(&history, seed);
    tally
}

/// Builds the graph of dependencies from what was read and written, not from the order of the commits, and looks for a
/// cycle. Returns the number of edges.
fn check_graph(history: &[Committed], seed: u64) -> usize {
    // Values of a key only grow, so that a key and its value say who wrote it.
    let mut writer: BTreeMap<(Key, i64), usize> = BTreeMap::new();
    for (index, one) in history.iter().enumerate() {
        let new = one.after.iter().filter(|(key, value)| one.before.get(*key) != Some(value));
        writer.extend(new.map(|(key, value)| ((*key, *value), index)));
    }
    let mut edges: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (index, one) in history.iter().enumerate() {
        // What it replaced was written by another: write to write.
        let old = one.before.iter().filter(|(key, value)| one.after.get(*key) != Some(value));
        edges.extend(old.filter_map(|(key, value)| Some((*writer.get(&(*key, *value))?, index))));
        // Tables that it has made anew itself, now and at each savepoint: what it reads of them is nobody else's.
        let (mut own, mut owned) = ([false; 2], Vec::new());
        for (step, answer) in &one.steps {
            match step {
                Step::Savepoint => owned.push(own),
                Step::RollBack => own = owned.last().copied().unwrap_or_default(),
                Step::Replace(table, ..) => own[*table] = true,
                _ => {}
            }
            // What it read was written by another: write to read.
            if let (Step::Read(table, _) | Step::ReadView(table, _), Answer::Rows(rows)) = (step, answer) {
                let writer = |row: &(i64, i64)| writer.get(&((*table, row.0), row.1));
                edges.extend(rows.iter().filter_map(|row| Some((*writer(row)?, index))));
            }
            // What it did not see, because another wrote it after it began: read to write. What came and went again
            // between its beginning and its commit makes no difference to it.
            for (table, rows) in step.rows().into_iter().filter(|(table, _)| !own[*table]) {
                let differ = |from: &State, to: &State| -> BTreeSet<Key> {
                    let gone = from.iter().filter(|(key, value)| key.0 == table && to.get(*key) != Some(value));
                    gone.filter(|(key, value)| rows.hold(key.1, **value)).map(|(key, _)| *key).collect()
                };
                let either = |from: &State, to: &State| -> BTreeSet<Key> { &differ(from, to) | &differ(to, from) };
                let missed = either(&history[one.begun].before, &one.before);
                for (other, beside) in history.iter().enumerate().take(index).skip(one.begun) {
                    let wrote = |key: &Key| beside.before.get(key) != beside.after.get(key);
                    edges.extend(missed.iter().any(wrote).then_some((index, other)));
                }
                for (other, later) in history.iter().enumerate().skip(index + 1) {
                    edges.extend((!either(&later.before, &later.after).is_empty()).then_some((index, other)));
                }
            }
        }
    }
    check_acyclic(history.len(), &mut edges, &format!("seed {seed}"));
    edges.len()
}

/// Panics where the edges, those of a node to itself apart, lead from a node back to it.
fn check_acyclic(nodes: usize, edges: &mut BTreeSet<(usize, usize)>, context: &str) {
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
    edges.retain(|(from, to)| from != to);
    let mut state = vec![0u8; nodes];
    for node in 0..nodes {
        assert!(state[node] != 0 || !visit(node, edges, &mut state), "{context}: the dependencies have a cycle");
    }
}

/// So many schedules: `SINTER_SCHEDULES=5000 cargo test ... serializable`.
const SCHEDULES_VARIABLE: &str = "SINTER_SCHEDULES";

#[test]
fn random_schedules_are_serializable() {
    let schedules = std::env::var(SCHEDULES_VARIABLE).map_or(100, |text| text.parse().expect("a number"));
    let mut total = Tally::default();
    for seed in 0..schedules {
        let tally = schedule(seed);
        total.committed += tally.committed;
        total.conflicts += tally.conflicts;
        total.read_only += tally.read_only;
        total.edges += tally.edges;
        tally.steps.into_iter().for_each(|(name, count)| *total.steps.entry(name).or_default() += count);
    }
    println!("{total:?}");
    // Schedules in which nothing meets prove nothing.
    let enough = |count: usize, in_hundred: u64| count as u64 * 100 > in_hundred * schedules;
    assert!(enough(total.committed, 500) && enough(total.conflicts, 200) && enough(total.read_only, 50), "{total:?}");
    assert!(total.steps.contains_key("RollBack") || schedules < 10, "{total:?}");
}

/// What a transaction of [`threads_are_serializable`] read and wrote. The values say which version of a row it was.
#[derive(Default)]
struct Access {
    reads: Vec<(Key, i64)>,
    /// The value before, and the new one.
    writes: Vec<(Key, i64, i64)>,
}

/// Keys of each table in [`threads_are_serializable`].
const FEW_KEYS: i64 = 3;

/// Real threads, on a file, where a commit waits for its sync while others read, validate and commit. Nobody knows the
/// order of the commits; so every write is a value of its own, and the versions of each row tell who depends on whom.
/// Each reads several of a few rows and writes one: what two read and write mostly crosses.
#[test]
fn threads_are_serializable() {
    const THREADS: i64 = 6;
    const TRANSACTIONS: i64 = 80;
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open_with(directory.path().join("threads.sinter"), Config::builder().threads(1)).unwrap();
    let conn = database.connect();
    for table in TABLES {
        conn.execute(&format!("CREATE TABLE {table} (k BIGINT, v BIGINT)"), &[]).unwrap();
        conn.execute(
            &format!("INSERT INTO {table} SELECT value, -1 - value FROM generate_series(0, {})", FEW_KEYS - 1),
            &[],
        )
        .unwrap();
    }
    let committed: Mutex<Vec<Access>> = Mutex::default();
    let conflicts: Mutex<usize> = Mutex::default();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (database, committed, conflicts) = (&database, &committed, &conflicts);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(thread.cast_unsigned());
                for n in 0..TRANSACTIONS {
                    let transaction = database.begin().unwrap();
                    let value = thread * 1_000_000 + n * 100;
                    let access = read_and_write(&transaction, &mut random, value);
                    match transaction.commit() {
                        Ok(()) => committed.lock().unwrap().push(access),
                        Err(Error::Conflict(_)) => *conflicts.lock().unwrap() += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let (committed, conflicts) = (committed.into_inner().unwrap(), conflicts.into_inner().unwrap());
    let mut writer: BTreeMap<(Key, i64), usize> = BTreeMap::new();
    let mut next: BTreeMap<(Key, i64), (usize, i64)> = BTreeMap::new();
    for (index, one) in committed.iter().enumerate() {
        for (key, before, after) in &one.writes {
            writer.insert((*key, *after), index);
            let lost = next.insert((*key, *before), (index, *after));
            assert!(lost.is_none(), "two changed the value {before} of {key:?}: {lost:?} and {after}");
        }
    }
    let mut edges: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (index, one) in committed.iter().enumerate() {
        let replaced = one.writes.iter().map(|(key, before, _)| (*key, *before));
        edges.extend(replaced.filter_map(|version| Some((*writer.get(&version)?, index))));
        for version in &one.reads {
            edges.extend(writer.get(version).map(|writer| (*writer, index)));
            edges.extend(next.get(version).map(|(writer, _)| (index, *writer)));
        }
    }
    check_acyclic(committed.len(), &mut edges, "threads");
    for (number, table) in TABLES.iter().enumerate() {
        let last = |key: i64| {
            let mut value = -1 - key;
            while let Some((_, after)) = next.get(&((number, key), value)) {
                value = *after;
            }
            format!("{key} {value}")
        };
        let expected: Vec<String> = (0..FEW_KEYS).map(last).collect();
        assert_eq!(lines(&conn, &format!("SELECT k, v FROM {table} ORDER BY k")), expected);
    }
    println!("{} transactions committed, {conflicts} conflicts, {} edges", committed.len(), edges.len());
    assert!(committed.len() > 60 && conflicts > 20, "{} committed, {conflicts} conflicts", committed.len());
}

/// Reads some rows, and gives one of them a new value.
fn read_and_write(transaction: &Transaction, random: &mut SmallRng, value: i64) -> Access {
    let mut access = Access::default();
    for _ in 0..2 {
        let (table, key) = (random.random_range(0..2), random.random_range(0..FEW_KEYS));
        let rows = *[Rows::Key(key), Rows::Range(key, key + 1), Rows::All].choose(random).unwrap();
        let Ok(Answer::Rows(rows)) = Step::Read(table, rows).run(transaction) else { panic!("a read fails") };
        access.reads.extend(rows.into_iter().map(|(key, value)| ((table, key), value)));
    }
    let (key, before) = *access.reads.choose(random).unwrap();
    let sql = format!("UPDATE {} SET v = {value} WHERE k = {}", TABLES[key.0], key.1);
    assert_eq!(transaction.execute(&sql, &[]).unwrap(), 1);
    access.writes.push((key, before, value));
    access
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
fn write_skew_over_two_tables_is_a_conflict() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    for table in TABLES {
        conn.execute(&format!("CREATE TABLE {table} AS SELECT 1 AS k, 1 AS v"), &[]).unwrap();
    }
    // Each takes the last one away if the other table still has one.
    let (one, two) = (database.begin().unwrap(), database.begin().unwrap());
    one.execute("DELETE FROM t WHERE (SELECT count(*) FROM u) > 0", &[]).unwrap();
    two.execute("DELETE FROM u WHERE (SELECT count(*) FROM t) > 0", &[]).unwrap();
    one.commit().unwrap();
    assert!(matches!(two.commit(), Err(Error::Conflict(_))));
    assert_eq!(lines(&conn, "SELECT count(*), (SELECT count(*) FROM t) FROM u"), ["1 0"]);
}

#[test]
fn what_was_read_behind_a_savepoint_counts_after_going_back() {
    let (one, two, _) = both(
        &["UPDATE t SET v = 5 WHERE k = 1"],
        &["SAVEPOINT s", "SELECT v FROM t WHERE k = 1", "ROLLBACK TO SAVEPOINT s", "UPDATE t SET v = 7 WHERE k = 2"],
    );
    assert!(one.is_ok() && matches!(two, Err(Error::Conflict(_))), "{two:?}");
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
        ("ALTER TABLE t RENAME TO u", "INSERT INTO t VALUES (7, 7)"),
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

//! Orders of statements that come from a seed.

use super::check_acyclic;
use super::steps::{Answer, KEYS, Key, NAME_COUNT, NAMES, Rows, State, Step, TABLES, Trees};
use crate::answers::{lines, rows_of};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinterdb::{Config, Database, Error, Transaction};
use std::collections::{BTreeMap, BTreeSet};

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
    // In two schedules of three key-value trees are among them.
    let trees = Trees([seed % 3 == 2, !seed.is_multiple_of(3)]);
    for (number, table) in TABLES.iter().enumerate() {
        for sql in trees.create(number) {
            conn.execute(&sql, &[]).unwrap();
        }
        for key in (0..KEYS).filter(|_| random.random_bool(0.6)) {
            state.insert((number, key), key);
            conn.execute(&format!("INSERT INTO {table} VALUES ({key}, {key})"), &[]).unwrap();
        }
    }
    conn.execute("CREATE VIEW both AS SELECT * FROM all_t UNION ALL SELECT * FROM all_u", &[]).unwrap();
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
                Step::Create(name, _) | Step::Rename(name, ..) | Step::Drop(name) if one.is_read_only => {
                    Step::Look(name)
                }
                Step::AddColumn(table, _) if trees.0[table] => Step::Count(table, Rows::All),
                step => step,
            };
            let answer =
                step.run(&one.transaction, trees).unwrap_or_else(|error| panic!("seed {seed}, {step:?}: {error}"));
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
        for name in 0..NAME_COUNT {
            let found = conn.sql(&format!("SELECT v FROM n{name}")).and_then(|query| query.collect()).ok();
            let found = found.map(|batches| batches.iter().flat_map(rows_of).flatten().collect::<Vec<_>>().join(" "));
            assert_eq!(found, state.get(&(NAMES, name)).map(ToString::to_string), "seed {seed}, n{name}");
        }
        for (number, table) in TABLES.iter().enumerate() {
            let rows = state.iter().filter(|((of, _), _)| *of == number);
            let expected: Vec<String> = rows.map(|((_, key), value)| format!("{key} {value}")).collect();
            let found = lines(&conn, &format!("SELECT k, v FROM all_{table} ORDER BY k"));
            assert_eq!(found, expected, "seed {seed}, {table}");
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
        let (mut own, mut owned) = ([false; NAMES + 1], Vec::new());
        for (step, answer) in &one.steps {
            match step {
                Step::Savepoint => owned.push(own),
                Step::RollBack => own = owned.last().copied().unwrap_or_default(),
                Step::Replace(table, ..) => own[*table] = true,
                _ => {}
            }
            // What it read was written by another: write to read.
            let table = match step {
                Step::Read(table, _) | Step::ReadView(table, _) => Some(*table),
                Step::Look(_) => Some(NAMES),
                _ => None,
            };
            if let (Some(table), Answer::Rows(rows)) = (table, answer) {
                let writer = |row: &(i64, i64)| writer.get(&((table, row.0), row.1));
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

/// So many schedules: `SINTER_SCHEDULES=5000 cargo test ... serializable`.
const SCHEDULES_VARIABLE: &str = "SINTER_SCHEDULES";

#[test]
fn random_schedules_are_serializable() {
    let schedules = std::env::var(SCHEDULES_VARIABLE).map_or(150, |text| text.parse().expect("a number"));
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

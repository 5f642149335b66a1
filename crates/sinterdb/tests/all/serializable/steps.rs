//! What transactions do, to the database and to a map.

use crate::answers::rows_of;
use rand::Rng;
use rand::rngs::SmallRng;
use sinterdb::{Error, Transaction};
use std::collections::BTreeMap;

pub(super) const KEYS: i64 = 12;

/// Both have keys and values. Views of the same rows: `all_t`, `all_u`, and `both`.
pub(super) const TABLES: [&str; 2] = ["t", "u"];

/// What the columns of one are called.
pub(super) type Columns = [&'static str; 2];

const OF_VIEWS: Columns = ["k", "v"];

/// Which of the two are key-value trees, and not column tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trees(pub(super) [bool; 2]);

impl Trees {
    pub(super) fn columns(self, table: usize) -> Columns {
        if self.0[table] { ["key", "value"] } else { OF_VIEWS }
    }

    /// What makes one, before its columns or its query.
    fn option(self, table: usize) -> &'static str {
        if self.0[table] { " WITH (storage = 'tree')" } else { "" }
    }

    /// What makes one of no rows, and the view of it.
    pub(super) fn create(self, table: usize) -> [String; 2] {
        let ([k, v], name) = (self.columns(table), TABLES[table]);
        let create = format!("CREATE TABLE {name} ({k} BIGINT, {v} BIGINT){}", self.option(table));
        [create, format!("CREATE VIEW all_{name} AS SELECT {k} AS k, {v} AS v FROM {name}")]
    }
}

/// Tables that come and go are called `n0` to `n2`. In the model they are rows of a third table, by their numbers; the value
/// is that of the one row that such a table has.
pub(super) const NAMES: usize = 2;
pub(super) const NAME_COUNT: i64 = 3;

/// A row of one of the tables.
pub(super) type Key = (usize, i64);

/// Which rows of a table a statement looks at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rows {
    Key(i64),
    Range(i64, i64),
    /// By value: rows come into it by being changed.
    Remainder(i64),
    All,
}

impl Rows {
    pub(super) fn random(random: &mut SmallRng) -> Rows {
        let key = random.random_range(0..KEYS);
        match random.random_range(0..6) {
            0..3 => Rows::Key(key),
            3 => Rows::Range(key, key + random.random_range(0..4)),
            4 => Rows::Remainder(random.random_range(0..5)),
            _ => Rows::All,
        }
    }

    pub(super) fn condition(self, [k, v]: Columns) -> String {
        match self {
            Rows::Key(key) => format!("{k} = {key}"),
            Rows::Range(from, to) => format!("{k} BETWEEN {from} AND {to}"),
            Rows::Remainder(remainder) => format!("{v} % 5 = {remainder}"),
            Rows::All => "true".to_owned(),
        }
    }

    pub(super) fn hold(self, key: i64, value: i64) -> bool {
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
pub(super) enum Step {
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
    /// One of the tables that come and go, with this value, if it is not there.
    Create(i64, i64),
    /// It gets another name, and a new value; refused where there is none, or the name is taken.
    Rename(i64, i64, i64),
    /// Refused where there is none.
    Drop(i64),
    /// What it holds; refused where there is none.
    Look(i64),
    /// Which of them there are.
    List,
    Savepoint,
    RollBack,
}

pub(super) type State = BTreeMap<Key, i64>;

/// What a step answers.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    Rows(Vec<(i64, i64)>),
    Changed(u64),
    Defined,
    Nothing,
}

impl Answer {
    pub(super) fn is_change(&self) -> bool {
        match self {
            Answer::Changed(rows) => *rows > 0,
            Answer::Defined => true,
            Answer::Rows(_) | Answer::Nothing => false,
        }
    }
}

impl Step {
    pub(super) fn random(random: &mut SmallRng, fresh: &mut i64, has_savepoint: bool) -> Step {
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
            36..40 if random.random_bool(0.5) => {
                let (one, other) = (key % NAME_COUNT, random.random_range(0..NAME_COUNT));
                match random.random_range(0..10) {
                    0..3 => Step::Create(one, add),
                    3..6 => Step::Rename(one, other, add),
                    6 => Step::Drop(one),
                    7..9 => Step::Look(one),
                    _ => Step::List,
                }
            }
            36..40 => Step::Savepoint,
            _ => Step::Read(table, rows),
        }
    }

    pub(super) fn run(&self, transaction: &Transaction, trees: Trees) -> Result<Answer, Error> {
        let query = |sql: String| -> Result<Answer, Error> {
            let rows: Vec<_> = transaction.sql(&sql)?.collect()?.iter().flat_map(rows_of).collect();
            let number = |text: &String| text.parse().unwrap();
            Ok(Answer::Rows(rows.iter().map(|row| (number(&row[0]), number(&row[1]))).collect()))
        };
        let change = |sql: String| transaction.execute(&sql, &[]).map(Answer::Changed);
        let define = |sql: String| transaction.execute(&sql, &[]).map(|_| Answer::Defined);
        // What cannot be understood, for it names nothing that is there, or what is taken, leaves all as it was.
        let unless_refused = |outcome: Result<Answer, Error>, refused: Answer| match outcome {
            Err(Error::Sql(_)) => Ok(refused),
            outcome => outcome,
        };
        let other = |table: usize| TABLES[1 - table];
        let of = |table: usize| trees.columns(table);
        match self {
            Step::Read(table, Rows::Key(key)) if trees.0[*table] => {
                let found = transaction.kv::<i64>(TABLES[*table])?.get(*key)?;
                let value = found.map(|value| i64::from_le_bytes(value.try_into().unwrap()));
                Ok(Answer::Rows(value.into_iter().map(|value| (*key, value)).collect()))
            }
            Step::Read(table, rows) => {
                let ([k, v], condition) = (of(*table), rows.condition(of(*table)));
                query(format!("SELECT {k}, {v} FROM {} WHERE {condition} ORDER BY {k}", TABLES[*table]))
            }
            Step::ReadView(table, rows) => {
                let condition = rows.condition(OF_VIEWS);
                query(format!("SELECT k, v FROM all_{} WHERE {condition} ORDER BY k", TABLES[*table]))
            }
            Step::ReadBoth(rows) => {
                query(format!("SELECT k, v FROM both WHERE {} ORDER BY k, v", rows.condition(OF_VIEWS)))
            }
            Step::Count(table, Rows::All) => query(format!("SELECT count(*), 0 FROM {}", TABLES[*table])),
            Step::Count(table, rows) => {
                query(format!("SELECT count(*), 0 FROM {} WHERE {}", TABLES[*table], rows.condition(of(*table))))
            }
            Step::Greatest(table, rows) => {
                let [k, v] = of(*table);
                let condition =
                    if let Rows::All = rows { String::new() } else { format!(" WHERE {}", rows.condition([k, v])) };
                let greatest = format!("coalesce(max({v}), -1), coalesce(min({k}), -1)");
                query(format!("SELECT {greatest} FROM {}{condition}", TABLES[*table]))
            }
            Step::Delete(table, rows) => {
                change(format!("DELETE FROM {} WHERE {}", TABLES[*table], rows.condition(of(*table))))
            }
            Step::Update(table, rows, add) => {
                let ([_, v], condition) = (of(*table), rows.condition(of(*table)));
                change(format!("UPDATE {} SET {v} = {v} + {add} WHERE {condition}", TABLES[*table]))
            }
            Step::Insert(table, key, value) => {
                let ([k, v], table) = (of(*table), TABLES[*table]);
                let absent = format!("NOT EXISTS (SELECT 1 FROM {table} WHERE {k} = {key})");
                change(format!("INSERT INTO {table} ({k}, {v}) SELECT {key}, {value} WHERE {absent}"))
            }
            Step::Copy(table, rows, add) => {
                let ([k, v], [from_k, from_v]) = (of(*table), of(1 - table));
                let (condition, from, table) = (rows.condition([from_k, from_v]), other(*table), TABLES[*table]);
                let absent = format!("{from_k} NOT IN (SELECT {k} FROM {table})");
                let select = format!("SELECT {from_k}, {from_v} + {add} FROM {from} WHERE {condition} AND {absent}");
                change(format!("INSERT INTO {table} ({k}, {v}) {select}"))
            }
            Step::UpdateIfEven(table, key, add, rows) => {
                let ([k, v], condition) = (of(*table), rows.condition(of(1 - table)));
                let count = format!("SELECT count(*) FROM {} WHERE {condition}", other(*table));
                let table = TABLES[*table];
                change(format!("UPDATE {table} SET {v} = {v} + {add} WHERE {k} = {key} AND ({count}) % 2 = 0"))
            }
            Step::Replace(table, rows, add) => {
                let ([k, v], [from_k, from_v]) = (of(*table), of(1 - table));
                let (condition, from) = (rows.condition([from_k, from_v]), other(*table));
                let select = format!("SELECT {from_k} AS {k}, {from_v} + {add} AS {v} FROM {from} WHERE {condition}");
                define(format!("CREATE OR REPLACE TABLE {}{} AS {select}", TABLES[*table], trees.option(*table)))
            }
            Step::AddColumn(table, number) => {
                define(format!("ALTER TABLE {} ADD COLUMN c{number} INT DEFAULT 1", TABLES[*table]))
            }
            Step::Create(name, value) => {
                let created = transaction.execute(&format!("CREATE TABLE n{name} AS SELECT {value} AS v"), &[]);
                unless_refused(created.map(|_| Answer::Changed(1)), Answer::Changed(0))
            }
            Step::Rename(from, to, value) => {
                let renamed = transaction.execute(&format!("ALTER TABLE n{from} RENAME TO n{to}"), &[]);
                let set = renamed.and_then(|_| transaction.execute(&format!("UPDATE n{to} SET v = {value}"), &[]));
                unless_refused(set.map(Answer::Changed), Answer::Changed(0))
            }
            Step::Drop(name) => {
                let dropped = transaction.execute(&format!("DROP TABLE n{name}"), &[]);
                unless_refused(dropped.map(|_| Answer::Changed(1)), Answer::Changed(0))
            }
            Step::Look(name) => {
                unless_refused(query(format!("SELECT {name}, v FROM n{name}")), Answer::Rows(Vec::new()))
            }
            Step::List => {
                let number = r#"CAST(substr("table", 2) AS BIGINT)"#;
                query(format!(r#"SELECT {number}, 0 FROM tables() WHERE "table" LIKE 'n%' ORDER BY 1"#))
            }
            Step::Savepoint => transaction.execute("SAVEPOINT here", &[]).map(|_| Answer::Nothing),
            Step::RollBack => transaction.execute("ROLLBACK TO SAVEPOINT here", &[]).map(|_| Answer::Nothing),
        }
    }

    /// The same over a map, with the states that savepoints kept.
    pub(super) fn run_on(&self, state: &mut State, savepoints: &mut Vec<State>) -> Answer {
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
            Step::Create(name, value) => match state.contains_key(&(NAMES, *name)) {
                true => Answer::Changed(0),
                false => {
                    state.insert((NAMES, *name), *value);
                    Answer::Changed(1)
                }
            },
            Step::Rename(from, to, value) => {
                let is_free = !state.contains_key(&(NAMES, *to));
                match is_free && state.remove(&(NAMES, *from)).is_some() {
                    false => Answer::Changed(0),
                    true => {
                        state.insert((NAMES, *to), *value);
                        Answer::Changed(1)
                    }
                }
            }
            Step::Drop(name) => Answer::Changed(u64::from(state.remove(&(NAMES, *name)).is_some())),
            Step::Look(name) => Answer::Rows(held(state, NAMES, Rows::Key(*name))),
            Step::List => {
                let names = held(state, NAMES, Rows::All);
                Answer::Rows(names.into_iter().map(|(name, _)| (name, 0)).collect())
            }
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
    pub(super) fn rows(&self) -> Vec<(usize, Rows)> {
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
            Step::Create(name, _) | Step::Drop(name) | Step::Look(name) => vec![(NAMES, Rows::Key(*name))],
            Step::Rename(from, to, _) => vec![(NAMES, Rows::Key(*from)), (NAMES, Rows::Key(*to))],
            // It tells how many rows each table has, too.
            Step::List => vec![(0, Rows::All), (1, Rows::All), (NAMES, Rows::All)],
            Step::AddColumn(..) | Step::Savepoint | Step::RollBack => Vec::new(),
        }
    }
}

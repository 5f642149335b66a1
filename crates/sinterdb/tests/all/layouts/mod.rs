//! One table as a user sees it, many as it may lie on disk: under any scheme and layout, split anyhow into delta batches
//! and row groups, with deletes, updates and altered columns, pressed, checkpointed, reopened and crashed, it answers as
//! a plain list of rows does; and so do older states of it that readers still look at. Both engines are asked.
//!
//! What happens comes from a seed, which a failure prints with all steps: `SINTER_LAYOUT_SEED=7` runs that one alone,
//! `SINTER_LAYOUT_ROUNDS=1000` so many.

mod cell;
mod filter;

use cell::{Cell, Kind, Style};
use filter::Filter;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_codec::SCHEMES;
use sinter_storage::testing::CrashingFileSystem;
use sinterdb::arrow::array::RecordBatch;
use sinterdb::{Config, Connection, Database, Result, Transaction};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;

const ROUNDS_VARIABLE: &str = "SINTER_LAYOUT_ROUNDS";
const SEED_VARIABLE: &str = "SINTER_LAYOUT_SEED";
const PATH: &str = "layouts.sinter";

const READERS_MAX: usize = 3;
/// More than a row group may have.
const GROUP_AND_MORE: usize = 140_000;

#[derive(Clone, Debug)]
struct Column {
    name: String,
    kind: Kind,
    /// Of what no value is given for.
    default: Cell,
}

/// A row's cells, in the order of the columns; the first is its `id`.
type Row = Vec<Cell>;

/// The table, as a user sees it.
#[derive(Clone)]
struct Model {
    columns: Vec<Column>,
    rows: Arc<Vec<Row>>,
}

impl Model {
    /// The rows that pass, by id.
    fn passing(&self, filter: &Filter) -> Vec<&Row> {
        self.rows.iter().filter(|row| filter.passes(row)).collect()
    }

    fn names(&self) -> String {
        self.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// Somebody who still looks at an older state.
struct Reader {
    transaction: Transaction,
    sees: Model,
}

/// Numbers with a pattern, for one column of one batch.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Constant,
    Few(i64),
    Runs(i64),
    Sequence(i64),
    Wide,
    /// A few that are far from all others.
    Outliers,
}

impl Pattern {
    fn random(random: &mut SmallRng) -> Pattern {
        match random.random_range(0..7) {
            0 => Pattern::Constant,
            1 | 2 => Pattern::Few(random.random_range(2..20)),
            3 => Pattern::Runs(random.random_range(2..200)),
            4 => Pattern::Sequence(random.random_range(-3..4)),
            5 => Pattern::Wide,
            _ => Pattern::Outliers,
        }
    }

    fn number(self, base: i64, at: usize, random: &mut SmallRng) -> i64 {
        let at = at as i64;
        match self {
            Pattern::Constant => base,
            Pattern::Few(count) => base + random.random_range(0..count),
            Pattern::Runs(length) => base + at / length,
            Pattern::Sequence(step) => base + at * step,
            Pattern::Wide => match random.random_range(0..40) {
                0 => i64::MIN,
                1 => i64::MAX,
                2 => 0,
                _ => random.random::<i64>() >> random.random_range(0..60),
            },
            Pattern::Outliers if random.random_bool(0.02) => random.random(),
            Pattern::Outliers => base + random.random_range(0..100),
        }
    }
}

struct World {
    random: SmallRng,
    seed: u64,
    disk: CrashingFileSystem,
    database: Database,
    conn: Connection,
    model: Model,
    readers: Vec<Reader>,
    /// Where values of a batch begin: they move on, so that dictionaries have to.
    base: i64,
    next_id: i64,
    next_name: usize,
    is_large: bool,
    steps: Vec<String>,
    tally: Tally,
}

#[derive(Default, Debug)]
struct Tally {
    statements: u64,
    queries: u64,
    rows_compared: u64,
    readers: u64,
    /// Where a scheme was seen in which type of column.
    schemes: BTreeMap<String, BTreeSet<Kind>>,
}

fn config(disk: &CrashingFileSystem, seed: u64) -> Config {
    let threads = 1 + (seed % 2) as usize;
    Config::builder()
        .threads(threads)
        .memory_limit_bytes(256 << 20)
        .background(false)
        .file_system(Arc::new(disk.clone()))
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = SmallRng::seed_from_u64(seed);
        let is_large = seed % 6 == 5;
        let disk = CrashingFileSystem::new();
        let database = Database::open_with(PATH, config(&disk, seed)).unwrap();
        let conn = database.connect();
        let mut columns = vec![Column { name: "id".to_owned(), kind: Kind::BigInt, default: Cell::Null }];
        let kinds = match is_large {
            true => (0..3).map(|_| Kind::ALL[random.random_range(0..Kind::ALL.len())]).collect(),
            false => Kind::ALL.to_vec(),
        };
        let names = (0..).map(|index| format!("c{index}"));
        columns.extend(names.zip(kinds).map(|(name, kind)| Column { name, kind, default: Cell::Null }));
        let mut world = World {
            seed,
            disk,
            database,
            conn,
            next_name: columns.len(),
            model: Model { columns, rows: Arc::default() },
            readers: Vec::new(),
            base: 0,
            next_id: 0,
            is_large,
            steps: Vec::new(),
            tally: Tally::default(),
            random,
        };
        world.create();
        world
    }

    fn create(&mut self) {
        let mut options = vec![format!("layout = '{}'", ["dsm", "pax"][self.random.random_range(0..2)])];
        for column in &self.model.columns {
            let Some(physical) = column.kind.physical() else { continue };
            let able: Vec<&str> =
                SCHEMES.iter().filter(|scheme| scheme.holds(physical)).map(|scheme| scheme.name).collect();
            if self.random.random_bool(0.7) {
                let scheme = able[self.random.random_range(0..able.len())];
                options.push(format!("compression_{} = '{scheme}'", column.name));
            }
        }
        if self.random.random_bool(0.3) {
            let flat: Vec<&Column> = self.model.columns.iter().filter(|column| !column.kind.is_list()).collect();
            options.push(format!("order_by = '{}'", flat[self.random.random_range(0..flat.len())].name));
        }
        let columns: Vec<String> =
            self.model.columns.iter().map(|column| format!("{} {}", column.name, column.kind.sql())).collect();
        self.execute(&format!("CREATE TABLE t ({}) WITH ({})", columns.join(", "), options.join(", ")));
    }

    #[track_caller]
    fn fail(&self, what: &str) -> ! {
        panic!("{what}\nafter\n  {}\n{SEED_VARIABLE}={}", self.steps.join("\n  "), self.seed)
    }

    /// A statement that must succeed.
    #[track_caller]
    fn execute(&mut self, sql: &str) -> u64 {
        self.note(sql.to_owned());
        self.tally.statements += 1;
        self.conn.execute(sql, &[]).unwrap_or_else(|error| self.fail(&error.to_string()))
    }

    fn note(&mut self, step: String) {
        let shown: String = step.chars().take(600).collect();
        self.steps.push(shown);
    }

    fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..16 => self.insert_values(),
            16..36 => self.append(),
            36..40 => self.insert_select(),
            40..52 => self.delete(),
            52..64 => self.update(),
            64..72 => drop(self.execute("CHECKPOINT")),
            72..76 => self.reopen(),
            76..79 => self.crash(),
            79..83 => self.add_column(),
            83..86 => self.drop_column(),
            86 => self.rename_column(),
            87..94 => self.open_reader(),
            94..97 => drop(self.readers.pop()),
            _ => self.change_nothing(),
        }
        self.check();
    }

    /// New rows: each column has a pattern of its own in them.
    fn fresh_rows(&mut self, count: usize) -> Vec<Row> {
        if self.random.random_bool(0.5) {
            self.base += self.random.random_range(-300..1000);
        }
        let mut rows: Vec<Row> = (0..count as i64).map(|at| vec![Cell::Int((self.next_id + at).into())]).collect();
        self.next_id += count as i64;
        for column in &self.model.columns[1..] {
            let (pattern, style) = (Pattern::random(&mut self.random), Style::random(&mut self.random));
            let nulls = [0.0, 0.0, 0.1, 0.9, 1.0][self.random.random_range(0..5)];
            for (at, row) in rows.iter_mut().enumerate() {
                let is_null = nulls > 0.0 && self.random.random_bool(nulls);
                let number = pattern.number(self.base, at, &mut self.random);
                row.push(if is_null { Cell::Null } else { column.kind.cell(number, style) });
            }
        }
        rows
    }

    fn insert_values(&mut self) {
        let count = self.random.random_range(1..12);
        let rows = self.fresh_rows(count);
        // Now and then without one of the columns, which takes its default.
        let left_out = self.random.random_range(1..self.model.columns.len() * 3);
        let mut names = Vec::new();
        let mut tuples: Vec<Vec<String>> = vec![Vec::new(); count];
        for (index, column) in self.model.columns.iter().enumerate().filter(|(index, _)| *index != left_out) {
            names.push(column.name.clone());
            tuples.iter_mut().zip(&rows).for_each(|(tuple, row)| tuple.push(column.kind.literal(&row[index])));
        }
        let tuples: Vec<String> = tuples.iter().map(|tuple| format!("({})", tuple.join(", "))).collect();
        self.execute(&format!("INSERT INTO t ({}) VALUES {}", names.join(", "), tuples.join(", ")));
        let default = self.model.columns.get(left_out).map(|column| column.default.clone());
        let with_default = rows.into_iter().map(|mut row| {
            if let Some(default) = &default {
                row[left_out] = default.clone();
            }
            row
        });
        Arc::make_mut(&mut self.model.rows).extend(with_default);
    }

    fn append(&mut self) {
        let count = match self.is_large && self.model.rows.len() < GROUP_AND_MORE {
            true => GROUP_AND_MORE,
            false => [30, 1100, 2500][self.random.random_range(0..3)] + self.random.random_range(0..500),
        };
        let rows = self.fresh_rows(count);
        // Several batches, several statements: the split is the loader's, or ours.
        let parts = self.random.random_range(1..4);
        self.note(format!("append {count} rows in {parts} batches"));
        let batches = rows.chunks(count.div_ceil(parts)).map(|rows| {
            let columns = self.model.columns.iter().enumerate();
            let columns =
                columns.map(|(index, column)| (&column.name, column.kind.array(rows.iter().map(|row| &row[index]))));
            RecordBatch::try_from_iter(columns).map_err(Into::into)
        });
        let batches: Vec<Result<RecordBatch>> = batches.collect();
        let appended = self.conn.append("t", &mut batches.into_iter());
        match appended {
            Ok(appended) => assert_eq!(appended, count as u64),
            Err(error) => self.fail(&error.to_string()),
        }
        Arc::make_mut(&mut self.model.rows).extend(rows);
    }

    fn filter(&mut self) -> Filter {
        Filter::random(&mut self.random, &self.model.columns, &self.model.rows)
    }

    /// Rows once more, under ids of their own.
    fn insert_select(&mut self) {
        let filter = self.filter();
        let shift = self.next_id;
        let mut again: Vec<Row> = self.model.passing(&filter).into_iter().cloned().collect();
        if again.len() > 5000 {
            return;
        }
        self.next_id += shift;
        let names = self.model.names();
        let rest = &names["id".len()..];
        let sql = format!(
            "INSERT INTO t ({names}) SELECT id + {shift}{rest} FROM t WHERE {}",
            filter.sql(&self.model.columns)
        );
        let inserted = self.execute(&sql);
        self.expect_rows(inserted, again.len());
        for row in &mut again {
            if let Cell::Int(id) = &mut row[0] {
                *id += i128::from(shift);
            }
        }
        Arc::make_mut(&mut self.model.rows).extend(again);
    }

    #[track_caller]
    fn expect_rows(&self, found: u64, expected: usize) {
        if found != expected as u64 {
            self.fail(&format!("{found} rows instead of {expected}"));
        }
    }

    fn delete(&mut self) {
        let filter = self.filter();
        let gone = self.model.passing(&filter).len();
        if gone * 3 > self.model.rows.len() * 2 && self.random.random_bool(0.8) {
            return;
        }
        let deleted = self.execute(&format!("DELETE FROM t WHERE {}", filter.sql(&self.model.columns)));
        self.expect_rows(deleted, gone);
        Arc::make_mut(&mut self.model.rows).retain(|row| !filter.passes(row));
    }

    fn update(&mut self) {
        let filter = self.filter();
        if self.model.columns.len() == 1 || self.model.passing(&filter).len() > 20_000 {
            return;
        }
        let index = self.random.random_range(1..self.model.columns.len());
        let column = &self.model.columns[index];
        let kind = column.kind;
        let same: Vec<usize> =
            (1..self.model.columns.len()).filter(|other| self.model.columns[*other].kind == kind).collect();
        let source = same[self.random.random_range(0..same.len())];
        let constant = match self.random.random_range(0..4) {
            0 => Some(Cell::Null),
            1 | 2 => Some(kind.cell(self.base + self.random.random_range(0..9), Style::random(&mut self.random))),
            _ => None,
        };
        let to = constant.as_ref().map_or(self.model.columns[source].name.clone(), |cell| kind.literal(cell));
        let sql = format!("UPDATE t SET {} = {to} WHERE {}", column.name, filter.sql(&self.model.columns));
        let updated = self.execute(&sql);
        self.expect_rows(updated, self.model.passing(&filter).len());
        for row in Arc::make_mut(&mut self.model.rows).iter_mut().filter(|row| filter.passes(row)) {
            row[index] = constant.clone().unwrap_or_else(|| row[source].clone());
        }
    }

    /// A transaction that takes back what it did.
    fn change_nothing(&mut self) {
        let before = self.model.clone();
        self.execute("BEGIN");
        self.delete();
        self.append();
        self.check();
        self.execute("ROLLBACK");
        self.model = before;
    }

    fn add_column(&mut self) {
        if self.model.columns.len() > 20 {
            return;
        }
        let kind = Kind::ALL[self.random.random_range(0..Kind::ALL.len())];
        let name = format!("c{}", self.next_name);
        self.next_name += 1;
        let default = match self.random.random_bool(0.6) {
            true => kind.cell(self.random.random_range(-9..9), Style::random(&mut self.random)),
            false => Cell::Null,
        };
        let clause = if default.is_null() { String::new() } else { format!(" DEFAULT {}", kind.literal(&default)) };
        self.execute(&format!("ALTER TABLE t ADD COLUMN {name} {}{clause}", kind.sql()));
        Arc::make_mut(&mut self.model.rows).iter_mut().for_each(|row| row.push(default.clone()));
        self.model.columns.push(Column { name, kind, default });
    }

    fn drop_column(&mut self) {
        if self.model.columns.len() < 3 {
            return;
        }
        let index = self.random.random_range(1..self.model.columns.len());
        let name = self.model.columns[index].name.clone();
        // What rows are ordered by stays.
        if self.steps[0].contains(&format!("order_by = '{name}'")) {
            return;
        }
        self.execute(&format!("ALTER TABLE t DROP COLUMN {name}"));
        self.model.columns.remove(index);
        Arc::make_mut(&mut self.model.rows).iter_mut().for_each(|row| drop(row.remove(index)));
    }

    fn rename_column(&mut self) {
        let index = self.random.random_range(1..self.model.columns.len());
        let (from, to) = (self.model.columns[index].name.clone(), format!("c{}", self.next_name));
        if self.steps[0].contains(&format!("order_by = '{from}'")) {
            return;
        }
        self.next_name += 1;
        self.execute(&format!("ALTER TABLE t RENAME COLUMN {from} TO {to}"));
        self.model.columns[index].name = to;
    }

    fn open_reader(&mut self) {
        if self.readers.len() < READERS_MAX {
            self.note("a reader begins".to_owned());
            self.tally.readers += 1;
            self.readers
                .push(Reader { transaction: self.database.begin_read_only().unwrap(), sees: self.model.clone() });
        }
    }

    fn reopen(&mut self) {
        self.note("close and open".to_owned());
        self.readers.clear();
        if let Err(error) = self.database.close() {
            self.fail(&error.to_string());
        }
        self.open();
    }

    /// The process dies, or the power goes.
    fn crash(&mut self) {
        self.readers.clear();
        let disk = match self.random.random_bool(0.5) {
            true => self.disk.copy(),
            false => self.disk.restart(self.random.random()),
        };
        self.note("crash and open".to_owned());
        self.disk = disk;
        self.open();
    }

    fn open(&mut self) {
        match Database::open_with(PATH, config(&self.disk, self.seed)) {
            Ok(database) => {
                self.conn = database.connect();
                self.database = database;
            }
            Err(error) => self.fail(&error.to_string()),
        }
    }

    /// Asks the current state and the oldest one that somebody looks at.
    fn check(&mut self) {
        let old = (!self.readers.is_empty()).then(|| self.random.random_range(0..self.readers.len()));
        let model = self.model.clone();
        self.check_state(&model, None);
        if let Some(old) = old {
            let sees = self.readers[old].sees.clone();
            self.check_state(&sees, Some(old));
        }
    }

    fn check_state(&mut self, model: &Model, reader: Option<usize>) {
        let whole = !self.is_large || self.random.random_bool(0.3);
        if whole {
            let rows = model.passing(&Filter::All);
            let found = self.ask(reader, &format!("SELECT {} FROM t", model.names()));
            self.compare_rows(&rows, None, found, "all rows", reader);
        }
        let filter = Filter::random(&mut self.random, &model.columns, &model.rows);
        let (condition, passing) = (filter.sql(&model.columns), model.passing(&filter));
        let index = self.random.random_range(0..model.columns.len());
        let column = &model.columns[index];
        for _ in 0..2 {
            let sql = format!("SELECT id, {} FROM t WHERE {condition}", column.name);
            let found = self.ask(reader, &sql);
            self.compare_rows(&passing, Some(index), found, &sql, reader);
            self.check_aggregates(column, index, &passing, &condition, reader);
        }
        if !column.kind.is_float() && !column.kind.is_list() {
            self.check_groups(column, index, &passing, &condition, reader);
        }
    }

    /// Asks the next engine.
    #[track_caller]
    fn ask(&mut self, reader: Option<usize>, sql: &str) -> Vec<Row> {
        self.tally.queries += 1;
        let engine = ["auto", "datafusion"][(self.tally.queries % 2) as usize];
        let set = format!("SET sinter.engine = '{engine}'");
        let batches = match reader {
            None => self.conn.execute(&set, &[]).and_then(|_| self.conn.sql(sql)?.collect()),
            Some(index) => {
                let transaction = &self.readers[index].transaction;
                transaction.execute(&set, &[]).and_then(|_| transaction.sql(sql)?.collect())
            }
        };
        let batches = batches.unwrap_or_else(|error| self.fail(&format!("{sql} ({engine}): {error}")));
        let row = |batch: &RecordBatch, at: usize| batch.columns().iter().map(|column| Cell::of(column, at)).collect();
        batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|at| row(batch, at)).collect::<Vec<Row>>()).collect()
    }

    /// Whole rows, or the id and one column.
    #[track_caller]
    fn compare_rows(
        &mut self,
        rows: &[&Row],
        column: Option<usize>,
        mut found: Vec<Row>,
        sql: &str,
        reader: Option<usize>,
    ) {
        let by_id = |a: &Row, b: &Row| a[0].compare(&b[0]).unwrap_or(Ordering::Equal);
        let mut rows: Vec<&Row> = rows.to_vec();
        rows.sort_by(|a, b| by_id(a, b));
        found.sort_by(by_id);
        self.tally.rows_compared += rows.len() as u64;
        let is_same = |row: &Row, found: &Row| match column {
            None => row.len() == found.len() && row.iter().zip(found).all(|(a, b)| a.is_same(b)),
            Some(column) => row[0].is_same(&found[0]) && row[column].is_same(&found[1]),
        };
        let differs = rows.iter().zip(&found).position(|(row, found)| !is_same(row, found));
        if differs.is_some() || rows.len() != found.len() {
            let at = differs.unwrap_or(rows.len().min(found.len()));
            let who = if reader.is_some() { "an older state" } else { "the table" };
            self.fail(&format!(
                "{sql}: {who} answers {} rows instead of {}; number {at} is {:?} instead of {:?}",
                found.len(),
                rows.len(),
                found.get(at),
                rows.get(at)
            ));
        }
    }

    #[track_caller]
    fn check_aggregates(
        &mut self,
        column: &Column,
        index: usize,
        rows: &[&Row],
        condition: &str,
        reader: Option<usize>,
    ) {
        let name = &column.name;
        let values: Vec<&Cell> = rows.iter().map(|row| &row[index]).filter(|cell| !cell.is_null()).collect();
        let mut expected = vec![Cell::Int(rows.len() as i128), Cell::Int(values.len() as i128)];
        let mut sql = format!("SELECT count(*), count({name})");
        if !column.kind.is_list() {
            sql += &format!(", min({name}), max({name})");
            let order = |a: &&Cell, b: &&Cell| a.compare(b).unwrap_or(Ordering::Equal);
            let cell = |one: Option<&Cell>| one.cloned().unwrap_or(Cell::Null);
            expected.push(cell(values.iter().copied().min_by(order)));
            expected.push(cell(values.iter().copied().max_by(order)));
        }
        if let Some(sum_max) = column.kind.sum_max() {
            let numbers = values.iter().map(|cell| if let Cell::Int(number) = cell { *number } else { 0 });
            let magnitude = numbers.clone().try_fold(0i128, |sum, number| sum.checked_add(number.abs()));
            if magnitude.is_some_and(|magnitude| magnitude <= sum_max) {
                sql += &format!(", sum({name})");
                expected.push(if values.is_empty() { Cell::Null } else { Cell::Int(numbers.sum()) });
            }
        }
        let sql = format!("{sql} FROM t WHERE {condition}");
        let found = self.ask(reader, &sql);
        // Of two zeros either may be the least.
        let is_same = |a: &Cell, b: &Cell| a.is_same(b) || a.compare(b) == Some(Ordering::Equal);
        if found.len() != 1 || !found[0].iter().zip(&expected).all(|(a, b)| is_same(a, b)) {
            let who = if reader.is_some() { "an older state" } else { "the table" };
            self.fail(&format!("{sql}: {who} answers {found:?} instead of {expected:?}"));
        }
    }

    #[track_caller]
    fn check_groups(&mut self, column: &Column, index: usize, rows: &[&Row], condition: &str, reader: Option<usize>) {
        let mut expected: BTreeMap<String, i128> = BTreeMap::new();
        for row in rows {
            *expected.entry(format!("{:?}", row[index])).or_default() += 1;
        }
        let sql = format!("SELECT {0}, count(*) FROM t WHERE {condition} GROUP BY {0}", column.name);
        let found = self.ask(reader, &sql);
        let found = found.into_iter().map(|row| match &row[1] {
            Cell::Int(count) => (format!("{:?}", row[0]), *count),
            other => panic!("a count is {other:?}"),
        });
        let found: BTreeMap<String, i128> = found.collect();
        if found != expected {
            let wrong =
                |(key, count): (&String, &i128)| (expected.get(key) != Some(count)).then(|| format!("{key}: {count}"));
            let wrong: Vec<String> = found.iter().filter_map(wrong).take(5).collect();
            let missing: Vec<&String> = expected.keys().filter(|key| !found.contains_key(*key)).take(5).collect();
            self.fail(&format!("{sql}: {wrong:?} are wrong, {missing:?} are missing"));
        }
    }

    /// What the columns really are made of.
    fn note_schemes(&mut self) {
        let sql = "SELECT \"column\", scheme FROM storage('t')";
        let batches = self.conn.sql(sql).and_then(|query| query.collect()).unwrap();
        for (name, scheme) in
            batches.iter().flat_map(crate::answers::rows_of).map(|row| (row[0].clone(), row[1].clone()))
        {
            let Some(column) = self.model.columns.iter().find(|column| column.name == name) else { continue };
            for word in scheme.split(|char: char| !char.is_ascii_lowercase() && char != '_') {
                if SCHEMES.iter().any(|scheme| scheme.name == word) {
                    self.tally.schemes.entry(word.to_owned()).or_default().insert(column.kind);
                }
            }
        }
    }
}

fn live(seed: u64) -> Tally {
    let mut world = World::new(seed);
    for step in 0..if world.is_large { 14 } else { 40 } {
        world.step();
        if step % 8 == 7 {
            world.note_schemes();
        }
    }
    world.tally
}

#[test]
fn a_table_answers_as_its_rows_however_it_lies() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds = match (number(SEED_VARIABLE), number(ROUNDS_VARIABLE)) {
        (Some(seed), _) => seed..seed + 1,
        (None, rounds) => 0..rounds.unwrap_or(16),
    };
    let rounds = seeds.end - seeds.start;
    let mut total = Tally::default();
    for seed in seeds {
        let tally = live(seed);
        total.statements += tally.statements;
        total.queries += tally.queries;
        total.rows_compared += tally.rows_compared;
        total.readers += tally.readers;
        for (scheme, kinds) in tally.schemes {
            total.schemes.entry(scheme).or_default().extend(kinds);
        }
    }
    writeln!(
        std::io::stderr(),
        "{rounds} tables: {} statements, {} older states, {} queries, {} rows compared; schemes: {:?}",
        total.statements,
        total.readers,
        total.queries,
        total.rows_compared,
        total.schemes.iter().map(|(scheme, kinds)| (scheme, kinds.len())).collect::<BTreeMap<_, _>>()
    )
    .unwrap();
    if rounds > 1 {
        let missing: Vec<&str> =
            SCHEMES.iter().map(|scheme| scheme.name).filter(|name| !total.schemes.contains_key(*name)).collect();
        assert!(missing.is_empty(), "no column was ever made of {missing:?}");
    }
}

//! Several transactions at once over one table, committed in any order, with alterations, rewrites, checkpoints and
//! crashes between: the table holds what a map of rows says, and every page that nobody needs has come back.
//!
//! A failure prints the seed; `SINTER_SEED=7` runs that one alone.

use crate::support;
use crate::support::{Rows, Shop, TABLE, column, open, rows, schema};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use rand::rngs::SmallRng;
use rand::seq::{IndexedRandom, IteratorRandom};
use rand::{Rng, SeedableRng};
use sinter_column::*;
use sinter_exec::LogicalType;
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{PageId, PageKind, Record};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the table should be.
#[derive(Clone, Debug)]
struct Model {
    schema: Arc<TableSchema>,
    rows: Rows,
}

impl Model {
    /// The alteration, or `false` where the rows stand against it.
    fn alter(&mut self, alteration: &Alteration) -> bool {
        let mut schema = (*self.schema).clone();
        schema.version += 1;
        let position = |name: &str| self.schema.index_of(name).unwrap();
        match alteration {
            Alteration::AddColumn { column, fill } => {
                let value = fill.as_ref().map(|fill| arrow::util::display::array_value_to_string(fill, 0).unwrap());
                if !column.nullable && value.is_none() && !self.rows.is_empty() {
                    return false;
                }
                schema.columns.push(column.clone());
                self.rows.values_mut().for_each(|row| row.push(value.clone()));
            }
            Alteration::DropColumn { name } => {
                let index = position(name);
                if schema.indexes.iter().any(|index| index.columns.contains(name)) {
                    return false;
                }
                schema.columns.remove(index);
                self.rows.values_mut().for_each(|row| drop(row.remove(index)));
            }
            Alteration::RenameColumn { from, to } => {
                schema.columns[position(from)].name.clone_from(to);
                let indexed = schema.indexes.iter_mut().flat_map(|index| &mut index.columns);
                indexed.filter(|name| *name == from).for_each(|name| name.clone_from(to));
            }
            Alteration::SetNullable { column, nullable } => {
                let index = position(column);
                if !nullable && self.rows.values().any(|row| row[index].is_none()) {
                    return false;
                }
                schema.columns[index].nullable = *nullable;
            }
            Alteration::SetDefault { column, default } => schema.columns[position(column)].default.clone_from(default),
            Alteration::AddCheck { check } => schema.checks.push(check.clone()),
            Alteration::DropCheck { name } => schema.checks.retain(|check| check.name.as_ref() != Some(name)),
            Alteration::AddIndex { index, .. } => schema.indexes.push(index.clone()),
            Alteration::DropIndex { name } => schema.indexes.retain(|index| index.name != *name),
        }
        self.schema = Arc::new(schema);
        true
    }
}

/// A transaction that is under way.
#[derive(Clone)]
struct Open {
    draft: Draft,
    sees: Model,
    began: Model,
    first_own: u64,
    deleted: BTreeSet<u64>,
    alterations: Vec<Alteration>,
}

struct World {
    random: SmallRng,
    disk: CrashingFileSystem,
    shop: Shop,
    model: Model,
    open: Vec<Open>,
    rewrites: Vec<Rewrite>,
    /// Everything since the table was made.
    history: Vec<Record>,
    /// The last checkpoint: its root, its schema.
    checkpoint: Option<(PageId, Arc<TableSchema>)>,
    first_schema: Arc<TableSchema>,
    names: usize,
}

impl World {
    fn new(seed: u64) -> World {
        let disk = CrashingFileSystem::new();
        let layout = ["dsm", "pax"][seed as usize % 2];
        let mut first = (*schema(vec![column("a", LogicalType::Int64), column("b", LogicalType::Utf8)])).clone();
        first.options.push(("layout".to_owned(), layout.to_owned()));
        let first_schema = Arc::new(first);
        let shop = Shop::new(open(&disk).0, Arc::clone(&first_schema));
        World {
            random: SmallRng::seed_from_u64(seed),
            disk,
            shop,
            model: Model { schema: Arc::clone(&first_schema), rows: Rows::new() },
            open: Vec::new(),
            rewrites: Vec::new(),
            history: Vec::new(),
            checkpoint: None,
            first_schema,
            names: 0,
        }
    }

    fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..10 if self.open.len() < 5 => {
                let draft = self.shop.draft();
                let (sees, began) = (self.model.clone(), self.model.clone());
                let first_own = draft.base().next_row_id();
                let (deleted, alterations) = Default::default();
                self.open.push(Open { draft, sees, began, first_own, deleted, alterations });
            }
            0..66 => self.statement(),
            66..70 => self.alter(),
            70..80 => self.end(),
            80..86 => self.prepare_rewrite(),
            86..92 => self.apply_rewrite(),
            92..95 => self.round_trip(),
            95..97 => self.checkpoint(),
            97..98 => self.crash(),
            _ => drop(self.rewrites.pop()),
        }
        assert_eq!(rows(&*self.shop.table), self.model.rows);
        assert_eq!(self.shop.table.schema(), &self.model.schema);
    }

    fn value(&mut self, column: &ColumnSchema) -> Option<String> {
        if column.nullable && self.random.random_bool(0.1) {
            return None;
        }
        let number = self.random.random_range(-50..1000);
        Some(if column.ty == LogicalType::Utf8 { format!("text {number}") } else { number.to_string() })
    }

    /// Deletes and inserts in one of the open transactions, now and then given up half way.
    fn statement(&mut self) {
        let Some(index) = (0..self.open.len()).choose(&mut self.random) else { return };
        let gives_up = self.random.random_bool(0.1);
        let mut open = self.open[index].clone();
        let mut change = Change::on(&open.draft, 2);
        let mut deleted = 0;
        if self.random.random_bool(0.4) && !open.sees.rows.is_empty() {
            let share = *[0.002, 0.002, 0.01, 0.01, 0.1, 0.8, 1.0].choose(&mut self.random).unwrap();
            let mut ids: Vec<u64> = open.sees.rows.keys().copied().filter(|_| self.random.random_bool(share)).collect();
            deleted = ids.len() as u64;
            open.sees.rows.retain(|id, _| ids.binary_search(id).is_err());
            open.deleted.extend(ids.iter().copied().filter(|&id| id < open.first_own));
            // Ids in any order, twice, and such as are not there.
            ids.extend(ids.clone());
            ids.extend([u64::MAX, 1 << 40]);
            ids.reverse();
            change.delete(ids).unwrap();
        }
        let inserts = self.random.random_range(0..3);
        let (mut next, mut inserted) = (open.draft.now().next_row_id(), 0);
        for _ in 0..inserts {
            let count = if self.random.random_bool(0.07) { PRESS_ROWS_MIN } else { self.random.random_range(1..12) };
            let columns = open.sees.schema.columns.clone();
            let new: Vec<Vec<Option<String>>> =
                (0..count).map(|_| columns.iter().map(|column| self.value(column)).collect()).collect();
            change.insert(&batch_of(&columns, &new)).unwrap();
            for row in new {
                open.sees.rows.insert(next, row);
                next += 1;
                inserted += 1;
            }
        }
        if gives_up {
            return;
        }
        assert_eq!((change.rows_deleted(), change.rows_inserted()), (deleted, inserted));
        let changed = change.finish().unwrap();
        open.draft.take(changed);
        assert_eq!(rows(&**open.draft.now()), open.sees.rows);
        self.open[index] = open;
    }

    fn some_alteration(&mut self, schema: &TableSchema) -> Option<Alteration> {
        self.names += 1;
        let name = format!("c{}", self.names);
        let column = schema.columns.choose(&mut self.random)?.name.clone();
        Some(match self.random.random_range(0..10) {
            0 | 1 => {
                let ty = [LogicalType::Int64, LogicalType::Utf8].choose(&mut self.random)?.clone();
                let nullable = self.random.random_bool(0.7);
                let added = ColumnSchema { nullable, ..support::column(&name, ty) };
                let fill = if self.random.random_bool(0.6) { self.value(&added) } else { None };
                let is_text = added.ty == LogicalType::Utf8;
                Alteration::AddColumn { column: added, fill: fill.map(|value| array_of(is_text, &[Some(value)])) }
            }
            2 if schema.columns.len() > 1 => Alteration::DropColumn { name: column },
            3 => Alteration::RenameColumn { from: column, to: name },
            4 => Alteration::SetNullable { column, nullable: false },
            5 => Alteration::SetNullable { column, nullable: true },
            6 => Alteration::SetDefault { column, default: self.random.random_bool(0.5).then(|| "7".to_owned()) },
            7 => {
                let tree = sinter_storage::ObjectId(self.names as u64);
                let index = Index { name, columns: vec![column], rule: IndexRule::Unique, tree };
                Alteration::AddIndex { index, of_rows: self.random.random() }
            }
            8 if !schema.indexes.is_empty() => {
                Alteration::DropIndex { name: schema.indexes.choose(&mut self.random)?.name.clone() }
            }
            _ => match schema.checks.choose(&mut self.random) {
                Some(Check { name: Some(name), .. }) => Alteration::DropCheck { name: name.clone() },
                _ => Alteration::AddCheck { check: Check { name: Some(name), sql: "a > 0".to_owned() } },
            },
        })
    }

    fn alter(&mut self) {
        let Some(index) = (0..self.open.len()).choose(&mut self.random) else { return };
        let schema = Arc::clone(&self.open[index].sees.schema);
        let Some(alteration) = self.some_alteration(&schema) else { return };
        let open = &mut self.open[index];
        let (before, mut sees) = (Arc::clone(open.draft.now()), open.sees.clone());
        let is_allowed = sees.alter(&alteration);
        match open.draft.alter(alteration.clone()) {
            Ok(()) => {
                assert!(is_allowed, "{alteration:?}");
                open.sees = sees;
                open.alterations.push(alteration);
            }
            Err(error) => {
                assert!(!is_allowed && matches!(error, Error::Data(_)), "{alteration:?}: {error}");
                assert!(Arc::ptr_eq(&before, open.draft.now()));
            }
        }
        assert_eq!(rows(&**open.draft.now()), open.sees.rows);
        assert_eq!(open.draft.now().schema(), &open.sees.schema);
    }

    /// Commits or rolls back one of the open transactions.
    fn end(&mut self) {
        let Some(index) = (0..self.open.len()).choose(&mut self.random) else { return };
        let open = self.open.swap_remove(index);
        if self.random.random_bool(0.15) {
            return;
        }
        let expected = self.expected(&open);
        let before = Arc::clone(&self.shop.table);
        match (open.draft.rebase(&self.shop.table), expected) {
            (Ok(rebased), Some(expected)) => {
                assert_eq!(rows(&rebased.table), expected.rows);
                if self.random.random_bool(0.1) {
                    return; // The log took it not: nothing happened.
                }
                self.shop.store.commit(&rebased.records, &rebased.pages).unwrap();
                self.history.extend(rebased.records.iter().cloned());
                // Who replays the log finds the same.
                let mut replayed = (*before).clone();
                for record in rebased.records.iter().chain(&rebased.records) {
                    replayed.apply(record).unwrap();
                }
                assert_eq!(rows(&replayed), expected.rows);
                assert_eq!(replayed.next_row_id(), rebased.table.next_row_id());
                self.model = expected;
                self.shop.publish(rebased.table);
            }
            (Err(Error::Conflict { table, what }), None) => {
                assert!(table == "t" && what.contains("table 't'"), "{what}");
            }
            (result, expected) => panic!("{result:?} where {expected:?} was expected"),
        }
    }

    /// What a commit should make of the current table; `None` for a conflict.
    fn expected(&self, open: &Open) -> Option<Model> {
        let mut next = self.model.clone();
        if open.draft.is_empty() {
            return Some(next);
        }
        if self.model.schema != open.began.schema || open.deleted.iter().any(|id| !next.rows.contains_key(id)) {
            return None;
        }
        next.rows.retain(|id, _| !open.deleted.contains(id));
        if !open.alterations.iter().all(|alteration| next.alter(alteration)) {
            return None;
        }
        let shift = self.shop.table.next_row_id() - open.first_own;
        let own = open.sees.rows.range(open.first_own..);
        next.rows.extend(own.map(|(id, row)| (id + shift, row.clone())));
        Some(next)
    }

    fn prepare_rewrite(&mut self) {
        let rewrite = match self.random.random_bool(0.5) {
            true => self.shop.table.settling(2).unwrap(),
            false => self.shop.table.pressing(2, &mut Unreadable::default()).unwrap(),
        };
        self.rewrites.extend(rewrite);
    }

    fn apply_rewrite(&mut self) {
        let Some(index) = (0..self.rewrites.len()).choose(&mut self.random) else { return };
        let rewrite = self.rewrites.swap_remove(index);
        self.shop.rewrite(&rewrite);
    }

    /// The root page says all that there is to say, and old records say nothing new.
    fn round_trip(&mut self) {
        let Shop { store, table } = &self.shop;
        let root = store.write_page(PageKind::TABLE_ROOT, &table.root_bytes().unwrap()).unwrap();
        let mut loaded = ColumnTable::load(TABLE, "t", Arc::clone(table.schema()), Arc::clone(store), root).unwrap();
        store.free(root);
        assert_eq!(rows(&loaded), self.model.rows);
        assert_eq!(loaded.next_row_id(), table.next_row_id());
        assert_eq!(loaded.root_bytes().unwrap(), table.root_bytes().unwrap());
        let start = self.random.random_range(0..=self.history.len());
        self.history[start..].iter().for_each(|record| loaded.apply(record).unwrap());
        assert_eq!(rows(&loaded), self.model.rows);
        assert_eq!(loaded.schema(), table.schema());
    }

    fn checkpoint(&mut self) {
        let Shop { store, table } = &self.shop;
        let bytes = table.root_bytes().unwrap();
        let old = self.checkpoint.as_ref().map(|(root, _)| *root);
        let mut root = None;
        let write = |out: &mut sinter_storage::CheckpointWriter<'_>| {
            table.pages().into_iter().try_for_each(|page| out.keep(page))?;
            let page = out.put(old, PageKind::TABLE_ROOT, &bytes)?;
            root = Some(page);
            Ok(page)
        };
        store.checkpoint(write).unwrap();
        self.checkpoint = root.map(|root| (root, Arc::clone(table.schema())));
    }

    /// Everything that is in memory is gone.
    fn crash(&mut self) {
        self.open.clear();
        self.rewrites.clear();
        let spare = Shop::memory(Arc::clone(&self.first_schema));
        drop(std::mem::replace(&mut self.shop, spare));
        let (store, records) = open(&self.disk);
        let start = || match &self.checkpoint {
            Some((root, schema)) => {
                ColumnTable::load(TABLE, "t", Arc::clone(schema), Arc::clone(&store), *root).unwrap()
            }
            None => ColumnTable::create(TABLE, "t", Arc::clone(&self.first_schema), Arc::clone(&store)),
        };
        // From any prefix, and all of it once more.
        let prefix = self.random.random_range(0..=records.len());
        let mut table = start();
        for record in records[..prefix].iter().chain(&records).chain(&records) {
            table.apply(record).unwrap();
        }
        assert_eq!(rows(&table), self.model.rows);
        let mut reachable = table.pages();
        reachable.extend(self.checkpoint.as_ref().map(|(root, _)| *root));
        let mut lost = Vec::new();
        store.for_each_page(&mut |info| {
            if !reachable.contains(&info.page) {
                lost.push(info.page);
            }
        });
        lost.into_iter().for_each(|page| store.free(page));
        self.shop = Shop { store, table: Arc::new(table) };
    }
}

fn array_of(is_text: bool, values: &[Option<String>]) -> ArrayRef {
    match is_text {
        true => Arc::new(values.iter().map(Option::as_deref).collect::<StringArray>()),
        false => Arc::new(
            values
                .iter()
                .map(|value| value.as_ref().map(|value| value.parse::<i64>().unwrap()))
                .collect::<Int64Array>(),
        ),
    }
}

fn batch_of(columns: &[ColumnSchema], rows: &[Vec<Option<String>>]) -> RecordBatch {
    let arrays = columns.iter().enumerate().map(|(index, column)| {
        let values: Vec<Option<String>> = rows.iter().map(|row| row[index].clone()).collect();
        (&column.name, array_of(column.ty == LogicalType::Utf8, &values), true)
    });
    RecordBatch::try_from_iter_with_nullable(arrays).unwrap()
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..200 {
        world.step();
    }
    world.open.clear();
    world.rewrites.clear();
    world.shop.assert_no_page_is_lost();
    world.round_trip();
    world.shop.press();
    assert_eq!(rows(&*world.shop.table), world.model.rows);
    world.shop.assert_no_page_is_lost();
    world.crash();
    world.shop.assert_no_page_is_lost();
    world.checkpoint();
    assert_eq!(world.shop.store.stats().fresh_pages, 0);
}

#[test]
fn any_order_of_commits() {
    if let Ok(seed) = std::env::var("SINTER_SEED") {
        return run(seed.parse().unwrap());
    }
    for seed in 0..40 {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

//! A column table under everything that happens to one at once. Each state carries the rows that it should hold, made by
//! arithmetic on a map; whoever has a state, however old, holds the table against them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch};
use arrow::datatypes::{Int64Type, UInt64Type};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use sinter_column::{
    Change, ColumnSchema, ColumnTable, Draft, Error, PRESS_ROWS_MIN, Result, Rewrite, TableSchema, Unreadable,
};
use sinter_exec::{Batch, Expr, LogicalType, OnDamage, Output, Pipeline, ScanColumn, Source, TableSource, edge};
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{
    Built, CheckpointWriter, ObjectId, Options, PageId, PageKind, Record, RecordTag, Recovery, Store, Timeline,
};

use crate::commits::{PATH, open};
use crate::explore::{explore, repeats};

const TABLE: ObjectId = ObjectId(1);

/// So many rows become a row group at once.
const MANY: i64 = PRESS_ROWS_MIN as i64;

/// One for each column. The other one is none of shuttle's: it waits for no lock of the store's.
const PRESSING_THREADS: usize = 2;

/// Rows by their ids.
type Rows = BTreeMap<u64, i64>;

/// The database: its table until that is dropped, and what it should hold.
#[derive(Clone)]
struct State {
    commits: u64,
    table: Option<Arc<ColumnTable>>,
    rows: Rows,
}

impl State {
    fn new(store: &Arc<Store>) -> State {
        let column = |(name, ty): (&str, LogicalType)| {
            let name = name.to_owned();
            ColumnSchema { name, ty, nullable: true, compression: None, default: None }
        };
        let columns = [("a", LogicalType::Int64), ("is_odd", LogicalType::Boolean)].map(column);
        let schema = Arc::new(TableSchema { columns: columns.into(), ..TableSchema::default() });
        let table = ColumnTable::create(TABLE, "t", schema, Arc::clone(store));
        State { commits: 0, table: Some(Arc::new(table)), rows: Rows::new() }
    }

    fn table(&self) -> Result<&Arc<ColumnTable>> {
        let dropped = || Error::Conflict { table: "t".to_owned(), what: "it was dropped".to_owned() };
        self.table.as_ref().ok_or_else(dropped)
    }

    fn with_table(&self, table: ColumnTable) -> State {
        State { table: Some(Arc::new(table)), ..self.clone() }
    }

    fn check(&self) {
        match &self.table {
            Some(table) if thread_rng().gen_bool(0.5) => assert_eq!(scan(table), self.rows),
            Some(table) => assert_eq!(rows_of(table), self.rows),
            None => assert!(self.rows.is_empty()),
        }
    }

    /// As recovery leads to it; it has no rows to be held against.
    fn recover(store: &Arc<Store>, recovery: Recovery) -> State {
        let mut state = State::new(store);
        if let Some(root) = recovery.root {
            let page = store.pin(root).unwrap();
            let table = u64::from_le_bytes(*page.first_chunk().unwrap());
            let schema = Arc::clone(state.table().unwrap().schema());
            state.table = (table != 0)
                .then(|| Arc::new(ColumnTable::load(TABLE, "t", schema, Arc::clone(store), PageId(table)).unwrap()));
        }
        for transaction in recovery.transactions {
            for record in transaction.unwrap().records {
                match record.tag {
                    RecordTag::CATALOG_DROP => state.table = None,
                    _ => drop(state.table.as_mut().map(|table| Arc::make_mut(table).apply(&record).unwrap())),
                }
            }
        }
        state.commits = recovery.commit.0;
        state
    }
}

fn rows_of(table: &ColumnTable) -> Rows {
    let mut rows = Rows::new();
    for (index, entry) in table.groups().iter().enumerate() {
        let decoded = |column: usize, ty: &LogicalType| {
            let segment = table.segment(index, column).unwrap();
            edge::decode_segment(&segment, ty, 0..entry.group.rows, None).unwrap()
        };
        let (values, are_odd) = (decoded(0, &LogicalType::Int64), decoded(1, &LogicalType::Boolean));
        let (values, are_odd) = (values.as_primitive::<Int64Type>(), are_odd.as_boolean());
        let is_alive = |position: &usize| entry.deleted.as_ref().is_none_or(|deleted| !deleted.get(*position));
        for position in (0..entry.group.rows).filter(is_alive) {
            assert_eq!(are_odd.value(position), is_odd(values.value(position)), "each column has its own segments");
            let known = rows.insert(entry.group.row_id_at(position), values.value(position));
            assert!(known.is_none(), "a row id stands for one row");
        }
    }
    rows
}

/// The same by the engine, which has the next row groups read ahead.
fn scan(table: &Arc<ColumnTable>) -> Rows {
    let source: Arc<dyn TableSource> = Arc::clone(table) as _;
    let (columns, output) = (vec![ScanColumn::Table(0), ScanColumn::RowId], vec![Expr::Column(0), Expr::Column(1)]);
    let (output, on_damage) = (Output::Rows(output), OnDamage::Fail);
    let (source, filter, steps) = (Source::Table(source), Vec::new(), Vec::new());
    let run = Pipeline { source, columns, filter, steps, output, limit: None, on_damage }.start().unwrap();
    let (mut worker, mut batch, mut rows) = (run.worker(), Batch::default(), Rows::new());
    while worker.next(&mut batch).unwrap() {
        let values = edge::to_arrow(&batch.columns[0], &LogicalType::Int64, batch.rows).unwrap();
        let ids = edge::to_arrow(&batch.columns[1], &LogicalType::UInt64, batch.rows).unwrap();
        let (values, ids) = (values.as_primitive::<Int64Type>(), ids.as_primitive::<UInt64Type>());
        for row in 0..batch.rows {
            let known = rows.insert(ids.value(row), values.value(row));
            assert!(known.is_none(), "a row id stands for one row");
        }
    }
    rows
}

fn is_odd(value: i64) -> bool {
    value % 2 != 0
}

fn batch(values: &[i64]) -> RecordBatch {
    let are_odd: Vec<bool> = values.iter().map(|&value| is_odd(value)).collect();
    let are_odd: ArrayRef = Arc::new(BooleanArray::from(are_odd));
    let values: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
    RecordBatch::try_from_iter_with_nullable([("a", values, true), ("is_odd", are_odd, true)]).unwrap()
}

#[derive(Clone)]
struct Shop {
    disk: CrashingFileSystem,
    store: Arc<Store>,
    timeline: Arc<Timeline<State>>,
    /// The rows after each commit, the first one's at 0.
    history: Arc<Mutex<Vec<Rows>>>,
    /// The last commit that somebody was told is durable.
    told: Arc<AtomicU64>,
    /// What the disk kept when the power went at some moment, and the commit that had been told by then.
    power_losses: Arc<Mutex<Vec<(CrashingFileSystem, u64)>>>,
}

impl Shop {
    fn new(disk: &CrashingFileSystem) -> Shop {
        let (store, _) = open(disk, Options { memory_limit_bytes: 256 << 10, ..Options::default() });
        let timeline = Timeline::new(Arc::clone(&store), State::new(&store));
        let (told, power_losses) = Default::default();
        // None of the locks of these is held where another thread may go on.
        let history = Arc::new(Mutex::new(vec![Rows::new()]));
        Shop { disk: disk.clone(), store, timeline, history, told, power_losses }
    }

    fn tell(&self, commit: u64) {
        self.told.fetch_max(commit, Ordering::SeqCst);
        if thread_rng().gen_bool(0.2) {
            self.lose_power();
        }
    }

    fn lose_power(&self) {
        let told = self.told.load(Ordering::SeqCst);
        let survivor = self.disk.restart(thread_rng().r#gen());
        self.power_losses.lock().unwrap().push((survivor, told));
    }

    /// A commit that leads to these rows. Called under the lock that orders commits.
    fn built(&self, pending: &State, table: Option<ColumnTable>, rows: Rows, records: Vec<Record>) -> State {
        assert!(!records.is_empty());
        let mut history = self.history.lock().unwrap();
        assert_eq!(history.len() as u64, pending.commits + 1);
        history.push(rows.clone());
        State { commits: pending.commits + 1, table: table.map(Arc::new), rows }
    }

    /// A transaction: deletes these rows of the state that it saw, and inserts values. Says whether it could be done.
    fn change(&self, seen: &State, deleted: &[u64], inserted: &[i64]) -> bool {
        let Ok(table) = seen.table() else { return false };
        let mut draft = Draft::new(Arc::clone(table));
        let mut change = Change::on(&draft, PRESSING_THREADS);
        change.delete(deleted.to_vec()).unwrap();
        change.insert(&batch(inserted)).unwrap();
        draft.take(change.finish().unwrap());
        if draft.has_pages() {
            self.store.sync_pages().unwrap();
        }
        let prepared = draft.prepare().unwrap();
        let outcome = self.timeline.commit(None, |pending| -> Result<_> {
            let current = pending.table()?;
            let rebased = prepared.rebase(current);
            let mut rows = pending.rows.clone();
            let are_alive = deleted.iter().all(|id| rows.remove(id).is_some());
            assert_eq!(rebased.is_ok(), are_alive, "a conflict where a row is gone, and only there");
            let rebased = rebased?;
            let ids = current.next_row_id()..rebased.table.next_row_id();
            assert_eq!(ids.end - ids.start, inserted.len() as u64, "each row has an id");
            rows.extend(ids.zip(inserted.iter().copied()));
            let root = self.built(pending, Some(rebased.table), rows, rebased.records.clone());
            Ok(Some(Built { root: Arc::new(root), records: rebased.records, pages: rebased.pages }))
        });
        match outcome {
            Ok(commit) => {
                self.tell(commit.unwrap().0);
                true
            }
            Err(Error::Conflict { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    }

    fn insert(&self, rows: std::ops::Range<i64>) -> bool {
        self.change(&self.timeline.visible(), &[], &rows.collect::<Vec<_>>())
    }

    /// Deletes some of the rows that are there, and inserts one for each, as UPDATE does.
    fn update(&self) {
        let seen = self.timeline.visible();
        let ids: Vec<u64> = seen.rows.keys().copied().filter(|_| thread_rng().gen_bool(0.4)).collect();
        let values: Vec<i64> = ids.iter().map(|id| -seen.rows[id]).collect();
        let inserted = if thread_rng().gen_bool(0.5) { &values[..] } else { &[] };
        if !ids.is_empty() {
            self.change(&seen, &ids, inserted);
        }
    }

    /// Keeps the rows in another form, as long as there is something to do.
    fn rewrite(&self, next: fn(&ColumnTable) -> Result<Option<Rewrite>>) {
        for _ in 0..3 {
            let seen = self.timeline.pending();
            let Ok(table) = seen.table() else { return };
            let Some(rewrite) = next(table).unwrap() else { return };
            self.timeline.rewrite(|pending| Some(pending.with_table(rewrite.apply_to(pending.table().ok()?)?)));
        }
    }

    /// Looks at an old state again and again, and at newer ones.
    fn read(&self) {
        let old = self.timeline.visible();
        for _ in 0..3 {
            self.timeline.visible().check();
            old.check();
        }
    }

    fn drop_table(&self) {
        let drop_it = |pending: &Arc<State>| -> Result<_> {
            let record = Record { tag: RecordTag::CATALOG_DROP, object: TABLE, payload: Vec::new() };
            let root = self.built(pending, None, Rows::new(), vec![record.clone()]);
            Ok(Some(Built { root: Arc::new(root), records: vec![record], pages: Vec::new() }))
        };
        let commit = self.timeline.commit(None, drop_it).unwrap().unwrap();
        self.tell(commit.0);
    }

    /// What a checkpoint or a backup holds.
    fn put(state: &State, out: &mut CheckpointWriter<'_>) -> Result<PageId> {
        assert_eq!(out.commit().0, state.commits);
        let mut table_root = PageId(0);
        if let Some(table) = &state.table {
            let mut pages: Vec<PageId> = table.pages().into_iter().collect();
            pages.sort_unstable();
            for page in pages {
                out.keep(page)?;
            }
            table_root = out.put(None, PageKind::TABLE_ROOT, &table.root_bytes()?)?;
        }
        Ok(out.put(None, PageKind::CATALOG, &table_root.0.to_le_bytes())?)
    }

    fn checkpoint(&self) {
        self.timeline.checkpoint(Shop::put).unwrap();
    }

    fn vacuum(&self) {
        self.store.vacuum(&mut |_| ControlFlow::Continue(()), || self.timeline.checkpoint(Shop::put)).unwrap();
    }

    fn back_up(&self) {
        let (disk, told) = (CrashingFileSystem::new(), self.told.load(Ordering::SeqCst));
        let go_on = &mut |_| ControlFlow::Continue(());
        self.timeline.backup(&disk, Path::new(PATH), go_on, Shop::put).unwrap();
        self.check_survivor(&disk, told);
    }

    /// What a disk kept: the rows after some commit, and none that was told is missing.
    fn check_survivor(&self, disk: &CrashingFileSystem, told: u64) {
        let (store, recovery) = open(disk, Options::default());
        let state = State::recover(&store, recovery);
        assert!(state.commits >= told, "{} commits, {told} were promised", state.commits);
        let rows = self.history.lock().unwrap()[state.commits as usize].clone();
        State { rows, ..state }.check();
    }

    /// Nobody but the newest state has pages of the table.
    fn check_pages(&self) {
        let state = self.timeline.visible();
        state.check();
        let chunks = self.store.stats().pages.get(&PageKind::CHUNK).map_or(0, |count| count.pages);
        assert_eq!(chunks, state.table.as_ref().map_or(0, |table| table.pages().len() as u64));
    }
}

fn live() {
    let disk = CrashingFileSystem::new();
    let shop = Shop::new(&disk);
    // A pressed group and a delta batch.
    assert!(shop.insert(0..8));
    shop.rewrite(|table| table.pressing(PRESSING_THREADS, &mut Unreadable::default()));
    assert!(shop.insert(8..12));
    let [is_dropped, has_checkpoint, has_vacuum, is_large] = std::array::from_fn(|_| thread_rng().gen_bool(0.3));
    let has_backup = thread_rng().gen_bool(0.2);
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(shop.insert(20..20 + if is_large { MANY } else { 4 }) || is_dropped);
            assert!(shop.insert(30..33) || is_dropped);
        });
        scope.spawn(|| (0..2).for_each(|_| shop.update()));
        scope.spawn(|| (0..2).for_each(|_| shop.update()));
        scope.spawn(|| shop.rewrite(|table| table.pressing(PRESSING_THREADS, &mut Unreadable::default())));
        scope.spawn(|| shop.rewrite(|table| table.settling(PRESSING_THREADS)));
        scope.spawn(|| shop.read());
        if has_checkpoint {
            scope.spawn(|| shop.checkpoint());
        }
        if has_vacuum {
            scope.spawn(|| shop.vacuum());
        }
        if has_backup {
            scope.spawn(|| shop.back_up());
        }
        if is_dropped {
            scope.spawn(|| shop.drop_table());
        }
        scope.spawn(|| shop.lose_power());
    });
    shop.check_pages();
    let told = shop.told.load(Ordering::SeqCst);
    assert_eq!(told, shop.timeline.visible().commits);
    shop.check_survivor(&disk.copy(), told);
    shop.lose_power();
    let power_losses = std::mem::take(&mut *shop.power_losses.lock().unwrap());
    power_losses.into_iter().for_each(|(survivor, told)| shop.check_survivor(&survivor, told));
}

#[test]
fn every_state_holds_its_rows_while_others_press_delete_and_drop() {
    explore(240, live);
}

#[test]
fn a_seed_repeats_it() {
    repeats(live);
}

/// Merging and pressing meet over the same delta batches, and each delete meets both.
fn rewrite() {
    let disk = CrashingFileSystem::new();
    let shop = Shop::new(&disk);
    (0..4).for_each(|step| assert!(shop.insert(step * 3..step * 3 + 3)));
    thread::scope(|scope| {
        scope.spawn(|| shop.rewrite(ColumnTable::merging));
        scope.spawn(|| shop.rewrite(|table| table.pressing(PRESSING_THREADS, &mut Unreadable::default())));
        scope.spawn(|| shop.rewrite(|table| table.pressing(PRESSING_THREADS, &mut Unreadable::default())));
        scope.spawn(|| shop.update());
        shop.update();
    });
    shop.rewrite(|table| table.pressing(PRESSING_THREADS, &mut Unreadable::default()));
    shop.check_pages();
}

#[test]
fn rewrites_of_the_same_groups_lose_no_row_and_no_delete() {
    explore(300, rewrite);
}

/// The table is dropped, and so is every hold on it but that of a reader, who reads to the end.
fn leave() {
    let disk = CrashingFileSystem::new();
    let shop = Shop::new(&disk);
    shop.insert(0..MANY);
    let Shop { store, .. } = shop.clone();
    let old = shop.timeline.visible();
    let threads = [
        thread::spawn({
            let shop = shop.clone();
            move || shop.checkpoint()
        }),
        thread::spawn(move || {
            old.check();
            old.check();
        }),
        thread::spawn(move || shop.drop_table()),
    ];
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(!store.stats().pages.contains_key(&PageKind::CHUNK), "the last hold is gone");
    assert_eq!(Arc::strong_count(&store), 1);
    drop(store);
    let (store, recovery) = open(&disk.copy(), Options::default());
    assert!(State::recover(&store, recovery).table.is_none());
}

#[test]
fn a_dropped_table_is_there_for_who_reads_it() {
    explore(200, leave);
}

//! One byte changed, in each page and chunk of a database in turn, in its headers, its page map and its log: it is named,
//! or nothing depends on it. No answer is ever wrong, `check` names exactly what matters, and with
//! `on_corruption = 'skip'` what is left comes out as whole row groups, with counts that are right.

mod used_bytes;

use crate::answers::{lines, rows};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_column::PRESS_ROWS_MIN;
use sinter_storage::PageKind;
use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, FaultyFileSystem, Trigger};
use sinterdb::arrow::array::RecordBatch;
use sinterdb::arrow::compute::concat_batches;
use sinterdb::{Config, Connection, Database, Error, Finding, OnCorruption, Report};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use used_bytes::{Used, frames, logs, places, used};

const PATH: &str = "shop.sinter";

const TABLES: [&str; 6] = ["numbers", "texts", "nested", "together", "added", "s.few"];

/// What tells a row's group: rows of an INSERT have ids from so many of their own.
const IDS_PER_GROUP: i64 = 2000;

fn config(fs: &CrashingFileSystem) -> Config {
    let config = Config::builder().file_system(Arc::new(fs.clone())).background(false);
    config.threads(1).memory_limit_bytes(64 << 20)
}

fn read(fs: &CrashingFileSystem, on_corruption: OnCorruption) -> Result<Database, Error> {
    Database::open_with(PATH, config(fs).read_only(true).on_corruption(on_corruption))
}

fn check(fs: &CrashingFileSystem) -> Report {
    sinterdb::check_with(PATH, &config(fs), &mut |_, _| ()).unwrap()
}

/// Tables of several row groups, in schemes and types of many kinds.
fn fill(conn: &Connection) {
    for sql in [
        "CREATE TABLE numbers (id BIGINT, small INT, price DECIMAL(12, 2), ratio DOUBLE, day DATE) WITH \
         (compression_id = 'delta', compression_small = 'pfor', compression_price = 'bitpack', compression_ratio = 'alp', \
         compression_day = 'rle')",
        "CREATE TABLE texts (id BIGINT, word VARCHAR, line VARCHAR, raw BLOB) WITH \
         (compression_word = 'dict', compression_line = 'fsst')",
        "CREATE TABLE nested (id BIGINT, list INT[], words VARCHAR[], pair STRUCT<a INT, b VARCHAR>)",
        "CREATE TABLE together (id BIGINT, word VARCHAR, flag BOOLEAN) WITH (layout = 'pax')",
        "CREATE TABLE added (id BIGINT)",
        "CREATE SCHEMA s",
        "CREATE TABLE s.few (id BIGINT, t TIMESTAMP)",
        "CREATE VIEW words AS SELECT word FROM texts WHERE id > 5",
    ] {
        conn.execute(sql, &[]).unwrap();
    }
    for group in 0..4 {
        add_group(conn, group);
    }
    conn.execute("ALTER TABLE added ADD COLUMN later VARCHAR DEFAULT 'was not there'", &[]).unwrap();
    conn.execute("DELETE FROM numbers WHERE id % 7 = 0", &[]).unwrap();
    conn.execute("DELETE FROM texts WHERE id BETWEEN 2100 AND 2150", &[]).unwrap();
}

/// A row group for each table, with ids of its own.
fn add_group(conn: &Connection, group: usize) {
    let first = group as i64 * IDS_PER_GROUP;
    let rows = PRESS_ROWS_MIN + 40 * group;
    let columns = [
        (
            "numbers (id, small, price, ratio, day)",
            "value % 100, value * 7 / 100, value / 8.0, CAST('20' || (10 + value / 90) || '-01-01' AS DATE)",
        ),
        (
            "texts (id, word, line, raw)",
            "CASE WHEN value % 9 = 0 THEN NULL ELSE 'w' || (value % 20) END, 'the line number ' || value, \
          CAST('raw' || (value * 7919) AS BLOB)",
        ),
        (
            "nested (id, list, words, pair)",
            "[value, value % 5], ['a' || (value % 3)], struct(value AS a, 'x' || (value % 4) AS b)",
        ),
        ("together (id, word, flag)", "'word ' || (value % 50), value % 3 = 0"),
        ("added (id)", ""),
        ("s.few (id, t)", "CAST('20' || (10 + value % 80) || '-01-01' AS TIMESTAMP)"),
    ];
    for (table, values) in columns {
        let id = format!("{first} + value");
        let list = if values.is_empty() { id } else { format!("{id}, {values}") };
        let sql = format!("INSERT INTO {table} SELECT {list} FROM generate_series(0, {}) AS g (value)", rows - 1);
        conn.execute(&sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

/// Closed: the header twice, no log.
fn closed() -> CrashingFileSystem {
    let fs = CrashingFileSystem::new();
    let database = Database::open_with(PATH, config(&fs)).unwrap();
    fill(&database.connect());
    database.close().unwrap();
    drop(database);
    with_a_delta_batch_in_a_root(fs)
}

/// Rows that wait to be pressed are in a table's root when they could not be pressed before the close; here because a page
/// could not be written.
fn with_a_delta_batch_in_a_root(disk: CrashingFileSystem) -> CrashingFileSystem {
    let fs = FaultyFileSystem::on_disk(&disk);
    let database = Database::open_with(PATH, config(&disk).file_system(Arc::new(fs.clone()))).unwrap();
    let conn = database.connect();
    for first in [8000, 8200] {
        let sql = format!(
            "INSERT INTO together (id, word, flag) SELECT {first} + value, 'late', NULL FROM generate_series(0, 199) AS g (value)"
        );
        conn.execute(&sql, &[]).unwrap();
    }
    drop(conn);
    fs.plan(Trigger::next().of(Call::Write).ending_with(PATH), DiskFault::IoError);
    database.close().unwrap_err();
    assert_eq!(disk.files(), [Path::new(PATH)], "closed all the same");
    disk
}

/// What each table holds, in the order of its rows.
type Contents = BTreeMap<&'static str, RecordBatch>;

fn select(conn: &Connection, table: &str) -> Result<(RecordBatch, Vec<String>), Error> {
    let mut batches = conn.sql(&format!("SELECT * FROM {table}"))?.stream()?;
    let schema = batches.schema();
    let all = batches.by_ref().collect::<Result<Vec<_>, _>>()?;
    Ok((concat_batches(&schema, &all).unwrap(), batches.notes()))
}

fn contents(database: &Database) -> Contents {
    let conn = database.connect();
    TABLES.iter().filter_map(|table| Some((*table, select(&conn, table).ok()?.0))).collect()
}

/// Left by a crash: two checkpoints, a log with pages of its own, deletes, delta batches and a table; and what the
/// database held after each of its last commits.
fn left_open() -> (CrashingFileSystem, Vec<Contents>) {
    let fs = CrashingFileSystem::new();
    let database = Database::open_with(PATH, config(&fs)).unwrap();
    let conn = database.connect();
    fill(&conn);
    conn.execute("CHECKPOINT", &[]).unwrap();
    conn.execute("DELETE FROM together WHERE id < 100", &[]).unwrap();
    add_group(&conn, 4);
    conn.execute("CHECKPOINT", &[]).unwrap();
    add_group(&conn, 5);
    let mut states = vec![contents(&database)];
    for sql in [
        "INSERT INTO numbers VALUES (12000, 1, 2, 3, NULL), (12001, 4, 5, 6, '2021-05-05')",
        "INSERT INTO nested VALUES (12000, [1, 2, NULL], NULL, NULL)",
        "INSERT INTO texts VALUES (12000, 'late', NULL, NULL)",
        "DELETE FROM added WHERE id % 50 = 3",
        "ALTER TABLE together DROP COLUMN flag",
        "UPDATE s.few SET t = NULL WHERE id = 4005",
        "INSERT INTO added VALUES (12000, 'last')",
    ] {
        conn.execute(sql, &[]).unwrap();
        states.push(contents(&database));
    }
    let left = fs.copy();
    drop(conn);
    (left, states)
}

fn flipped(fs: &CrashingFileSystem, file: &Path, at: u64, bit: u32) -> CrashingFileSystem {
    let copy = fs.copy();
    let mut bytes = copy.bytes(file);
    bytes[at as usize] ^= 1 << bit;
    copy.put(file, bytes);
    copy
}

/// Rows of `found` are those of `right` but for whole groups; returns how many are missing.
fn missing_groups(found: &RecordBatch, right: &RecordBatch) -> Result<u64, String> {
    let ids =
        sinterdb::arrow::array::AsArray::as_primitive::<sinterdb::arrow::datatypes::Int64Type>(right.column(0)).clone();
    let (mut at, mut start, mut missing) = (0, 0, 0);
    while start < right.num_rows() {
        let group = ids.value(start) / IDS_PER_GROUP;
        let rows = (start..right.num_rows()).take_while(|row| ids.value(*row) / IDS_PER_GROUP == group).count();
        let (wanted, left) = (right.slice(start, rows), found.num_rows() - at);
        if left >= rows && found.slice(at, rows) == wanted {
            at += rows;
        } else {
            missing += rows as u64;
        }
        start += rows;
    }
    if at == found.num_rows() {
        Ok(missing)
    } else {
        Err(format!("{} rows that should not be there", found.num_rows() - at))
    }
}

/// The number before ` rows)` in a note of what was left out.
fn rows_left_out(notes: &[String]) -> u64 {
    let left_out = notes.iter().filter(|note| note.contains("left out"));
    left_out
        .map(|note| {
            let (before, _) = note.split_once(" rows)").unwrap();
            before[before.rfind('(').unwrap() + 1..].replace(',', "").parse::<u64>().unwrap()
        })
        .sum()
}

/// Counts of what became of the changes.
#[derive(Debug, Default)]
struct Tally {
    changes: AtomicUsize,
    named: AtomicUsize,
    unused: AtomicUsize,
    answered_in_spite: AtomicUsize,
    rows_left_out: AtomicUsize,
}

impl Tally {
    fn count(counter: &AtomicUsize, more: usize) {
        counter.fetch_add(more, Ordering::Relaxed);
    }
}

/// Runs `work` for each of `items` on two threads.
fn in_parallel<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}

/// What a changed byte of the database file does.
fn try_change_of_file(fs: &CrashingFileSystem, used: &[Used], right: &Contents, at: u64, bit: u32, tally: &Tally) {
    let place = used.iter().find(|used| used.bytes.contains(&at));
    let what = format!("byte {at}, bit {bit}, {place:?}");
    let damaged = flipped(fs, Path::new(PATH), at, bit);
    Tally::count(&tally.changes, 1);

    // `check` names the place if it matters, and nothing else.
    let report = check(&damaged);
    let finding = report.findings.first();
    match place {
        None => {
            assert_eq!(report.findings, [], "{what}");
            Tally::count(&tally.unused, 1);
        }
        Some(place) => {
            let finding: &Finding = finding.unwrap_or_else(|| panic!("{what}: not found"));
            assert_eq!(
                (finding.file.as_path(), finding.offset),
                (Path::new(PATH), place.bytes.start),
                "{what}: {finding}"
            );
            assert_eq!(
                finding.page,
                place.page.filter(|_| place.kind != Some(PageKind::MAP_NODE)),
                "{what}: {finding}"
            );
            if place.kind == Some(PageKind::CHUNK) && !place.is_fallback {
                assert!(finding.table.as_deref().is_some_and(|table| TABLES.contains(&table)), "{what}: {finding}");
                assert!(
                    !finding.columns.is_empty() && finding.row_count > 0 && finding.rows.is_some(),
                    "{what}: {finding}"
                );
            }
            if place.kind == Some(PageKind::TABLE_ROOT) && !place.is_fallback {
                assert!(finding.table.is_some() && finding.what.contains("hides"), "{what}: {finding}");
            }
            Tally::count(&tally.named, 1);
        }
    }
    // Nothing but what a lost map node, root or catalog hides is found beside it.
    if place.is_some_and(|place| place.kind != Some(PageKind::MAP_NODE)) {
        assert_eq!(report.damaged, 1, "{what}: {:?}", report.findings);
    }

    // Answers are right, or an error that names file and page.
    let names_the_place = |error: &Error| {
        let text = error.to_string();
        matches!(error, Error::Damaged(_))
            && text.contains(PATH)
            && place.is_some_and(|place| {
                text.contains(&format!("byte {}", place.bytes.start))
                    || text.contains(&format!("at {}:", place.bytes.start))
            })
    };
    match read(&damaged, OnCorruption::Error) {
        Err(error) => assert!(names_the_place(&error), "{what}: {error}"),
        Ok(database) => {
            let conn = database.connect();
            let mut wrong = 0;
            for (table, right) in right {
                match select(&conn, table) {
                    Ok((found, notes)) => assert!(found == *right && notes.is_empty(), "{what}: table {table}"),
                    Err(error) => {
                        assert!(names_the_place(&error), "{what}: {error}");
                        wrong += 1;
                    }
                }
            }
            assert!(wrong <= 1, "{what}: {wrong} tables");
            if place.is_none_or(|place| place.is_fallback || place.kind.is_none()) {
                assert_eq!(wrong, 0, "{what}");
            }
            if place.is_some() && wrong == 0 {
                Tally::count(&tally.answered_in_spite, 1);
            }
        }
    }

    // With skip, whole row groups are missing and nothing else, and they are counted.
    match read(&damaged, OnCorruption::Skip) {
        Err(error) => {
            let kind = place.and_then(|place| place.kind);
            assert!(kind == Some(PageKind::CATALOG) || kind == Some(PageKind::MAP_NODE), "{what}: {error}");
            assert!(names_the_place(&error), "{what}: {error}");
        }
        Ok(database) => {
            let conn = database.connect();
            let mut lost = 0;
            for (table, right) in right {
                match select(&conn, table) {
                    Ok((found, notes)) => {
                        let missing =
                            missing_groups(&found, right).unwrap_or_else(|why| panic!("{what}: {table}: {why}"));
                        assert_eq!(missing, rows_left_out(&notes), "{what}: table {table}: {notes:?}");
                        lost += usize::from(missing > 0);
                        Tally::count(&tally.rows_left_out, missing as usize);
                    }
                    Err(error) => {
                        assert!(names_the_place(&error), "{what}: {error}");
                        assert!(
                            error.to_string().contains(&format!("table '{table}' cannot be read")),
                            "{what}: {error}"
                        );
                        assert!(
                            database.notes().iter().any(|note| note.contains(table)),
                            "{what}: {:?}",
                            database.notes()
                        );
                        lost += 1;
                    }
                }
            }
            let all_may_go = place.is_some_and(|place| place.kind == Some(PageKind::MAP_NODE));
            assert!(lost <= 1 || all_may_go, "{what}: {lost} tables");
        }
    }
}

#[test]
fn each_changed_byte_of_a_file_is_named_or_unused() {
    let fs = closed();
    let right = contents(&read(&fs, OnCorruption::Error).unwrap());
    assert_eq!(right.len(), TABLES.len());
    let file = fs.bytes(Path::new(PATH));
    let used = used(&file, &[]);
    let sound = check(&fs);
    assert!(sound.is_sound() && sound.tables == 6 && sound.segments > 60, "{sound:?}");
    assert_eq!(sound.pages as usize, used.iter().filter(|used| used.page.is_some()).count());
    let kinds = |kind| used.iter().filter(|used| used.kind == Some(kind)).count();
    assert!(kinds(PageKind::CHUNK) > 20 && kinds(PageKind::TABLE_ROOT) == 6 && kinds(PageKind::CATALOG) == 1);
    let mut random = SmallRng::seed_from_u64(20_261_122);
    let places = places(&used, file.len() as u64, 22, &mut random);
    let changes: Vec<(u64, u32)> = places.into_iter().map(|at| (at, random.random_range(0..8))).collect();
    let tally = Tally::default();
    in_parallel(&changes, |(at, bit)| try_change_of_file(&fs, &used, &right, *at, *bit, &tally));
    println!("{tally:?}");
    assert!(
        tally.named.into_inner() > 800 && tally.unused.into_inner() > 50 && tally.rows_left_out.into_inner() > 50_000
    );
}

#[test]
fn each_changed_byte_of_a_file_with_a_log_is_named_or_unused() {
    let (fs, states) = left_open();
    let right = states.last().unwrap();
    let file = fs.bytes(Path::new(PATH));
    let used = used(&file, &logs(&fs).iter().map(|log| fs.bytes(log)).collect::<Vec<_>>());
    assert!(used.iter().filter(|used| used.is_fallback).count() > 5, "{used:?}");
    assert!(check(&fs).is_sound(), "{:?}", check(&fs));
    let mut random = SmallRng::seed_from_u64(7);
    let places = places(&used, file.len() as u64, 9, &mut random);
    let changes: Vec<(u64, u32)> = places.into_iter().map(|at| (at, random.random_range(0..8))).collect();
    let tally = Tally::default();
    in_parallel(&changes, |(at, bit)| try_change_of_file(&fs, &used, right, *at, *bit, &tally));
    println!("{tally:?}");
    assert!(tally.changes.into_inner() > 500 && tally.answered_in_spite.into_inner() > 50);
}

#[test]
fn each_changed_byte_of_a_log_is_named_or_looks_like_a_torn_tail() {
    let (fs, states) = left_open();
    let path = logs(&fs).remove(0);
    let log = fs.bytes(&path);
    let frames = frames(&log);
    let (first, last) = (frames[0].start, frames.last().unwrap().clone());
    let mut random = SmallRng::seed_from_u64(9);
    let mut places: Vec<usize> = (0..first).step_by(3).collect();
    for frame in &frames {
        places.extend([
            frame.start,
            frame.start + 5,
            frame.start + 9,
            frame.start + 13,
            frame.start + 17,
            frame.end - 1,
        ]);
        places.extend((0..20).map(|_| random.random_range(frame.clone())));
    }
    places.extend((0..40).map(|_| random.random_range(last.clone())));
    places.extend((0..20).map(|_| random.random_range(last.end..log.len())));
    let changes: Vec<(usize, u32)> = places.into_iter().map(|at| (at, random.random_range(0..8))).collect();
    let (named, torn) = (AtomicUsize::new(0), AtomicUsize::new(0));
    in_parallel(&changes, |&(at, bit)| {
        let damaged = flipped(&fs, &path, at as u64, bit);
        let what = format!("byte {at} of the log, bit {bit}");
        let report = check(&damaged);
        for on_corruption in [OnCorruption::Error, OnCorruption::Skip] {
            match read(&damaged, on_corruption) {
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains(&*path.to_string_lossy()), "{what}: {text}");
                    let finding = report.findings.first().unwrap_or_else(|| panic!("{what}: not found: {text}"));
                    assert_eq!((finding.file.as_path(), finding.kind.as_str()), (path.as_path(), "log"), "{what}");
                    assert!(finding.offset <= at as u64 && at < last.start, "{what}: {finding}");
                    named.fetch_add(1, Ordering::Relaxed);
                }
                Ok(database) => {
                    assert_eq!(report.findings, [], "{what}");
                    let found = contents(&database);
                    let is_last = found == states[states.len() - 1];
                    let is_before = found == states[states.len() - 2];
                    assert!(at >= last.start, "{what}: a commit was lost, and nothing said");
                    assert!(if at < last.end { is_before } else { is_last }, "{what}: a state that never was");
                    assert!(database.notes().iter().any(|note| note.contains("were dropped")), "{what}");
                    assert!(report.notes.iter().any(|note| note.contains("were dropped")), "{what}");
                    torn.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    });
    println!(
        "{} named, {} like a torn tail, {} changes",
        named.load(Ordering::Relaxed),
        torn.load(Ordering::Relaxed),
        changes.len()
    );
    assert!(named.into_inner() > 300 && torn.into_inner() > 60);
}

/// The rows of one damaged group are there for no change: it is refused, and nothing is lost by it.
#[test]
fn nothing_is_changed_because_of_rows_that_were_left_out() {
    let fs = closed();
    let file = fs.bytes(Path::new(PATH));
    let chunks: Vec<Used> = used(&file, &[]).into_iter().filter(|used| used.kind == Some(PageKind::CHUNK)).collect();
    let of_texts = chunks.iter().find(|chunk| {
        let damaged = flipped(&fs, Path::new(PATH), chunk.bytes.start + 33, 3);
        check(&damaged).findings[0].table.as_deref() == Some("texts")
    });
    let damaged = flipped(&fs, Path::new(PATH), of_texts.unwrap().bytes.start + 33, 3);
    let group = check(&damaged).findings[0].rows.clone().unwrap();
    let database = Database::open_with(PATH, config(&damaged)).unwrap();
    let conn = database.connect();
    for sql in ["SELECT sum(length(line)) FROM texts", "SELECT max(word) FROM words GROUP BY word"] {
        let error = rows(&conn, sql).unwrap_err();
        assert!(matches!(error, Error::Damaged(_)) && error.to_string().contains("page"), "{sql}: {error}");
    }
    conn.execute("SET on_corruption = 'skip'", &[]).unwrap();
    let left = lines(&conn, "SELECT count(*), sum(length(line)) FROM texts");
    let live = lines(&conn, "SELECT count(*) FROM texts");
    assert_ne!(left[0].split(' ').next(), Some(live[0].as_str()), "count(*) by itself needs no row");
    for sql in [
        "DELETE FROM texts WHERE line LIKE '%1'",
        "UPDATE texts SET word = 'x' WHERE line LIKE '%1'",
        "DELETE FROM numbers WHERE id IN (SELECT id FROM texts WHERE line LIKE '%1')",
        "ALTER TABLE texts ADD CONSTRAINT c CHECK (length(line) > 0)",
    ] {
        let error = conn.execute(sql, &[]).expect_err(sql);
        assert!(matches!(error, Error::Damaged(_)), "{sql}: {error:?}");
    }
    assert_eq!(lines(&conn, "SELECT count(*) FROM texts"), live);
    // What only reads goes on, and says what is missing.
    for sql in ["CREATE TABLE saved AS SELECT * FROM texts", "INSERT INTO saved SELECT * FROM texts"] {
        let statement = conn.statements(sql).unwrap().remove(0);
        let sinterdb::Outcome::Done { rows, notes, .. } = conn.run(&statement, &[]).unwrap() else { panic!("{sql}") };
        let missing = rows_left_out(&notes);
        assert!(missing > 0 && notes[0].contains("table texts") && notes[0].contains(PATH), "{sql}: {notes:?}");
        assert_eq!(
            rows.unwrap_or_else(|| live[0].parse::<u64>().unwrap() - missing) + missing,
            live[0].parse::<u64>().unwrap(),
            "{sql}"
        );
    }
    let analyzed = lines(&conn, "EXPLAIN ANALYZE SELECT sum(length(line)) FROM texts").join("\n");
    assert!(analyzed.contains("left out, since they cannot be read: 1 row groups, "), "{analyzed}");
    // A group that zone maps rule out is not missed.
    let sql = format!("SELECT max(line) FROM texts WHERE id >= 1000000 + {}", group.end);
    let mut batches = conn.sql(&sql).unwrap().stream().unwrap();
    batches.by_ref().for_each(|batch| drop(batch.unwrap()));
    assert_eq!(batches.notes(), [] as [String; 0]);
    conn.execute("SET on_corruption = 'error'", &[]).unwrap();
    assert!(rows(&conn, "SELECT sum(length(line)) FROM texts").is_err());
    let error = conn.execute("SET on_corruption = 'ignore'", &[]).unwrap_err();
    assert!(error.to_string().contains("it wants error or skip"), "{error}");
}

/// A wide column has chunks of its own, so a group may be readable in one column and not in another.
#[test]
fn a_group_is_left_out_for_any_column_that_is_asked_for_and_for_no_other() {
    const LIVE: usize = 399;
    let fs = CrashingFileSystem::new();
    let database = Database::open_with(PATH, config(&fs)).unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE t (id BIGINT, wide VARCHAR, last INT) WITH (compression_wide = 'raw')", &[]).unwrap();
    for first in [0, IDS_PER_GROUP, 2 * IDS_PER_GROUP] {
        let sql = format!(
            "INSERT INTO t SELECT {first} + value, repeat('x', 3000), value FROM generate_series(0, {LIVE}) AS g (value)"
        );
        conn.execute(&sql, &[]).unwrap();
    }
    conn.execute(&format!("DELETE FROM t WHERE id % {IDS_PER_GROUP} = 7"), &[]).unwrap();
    let right = select(&conn, "t").unwrap().0;
    database.close().unwrap();
    let chunks = used(&fs.bytes(Path::new(PATH)), &[]).into_iter().filter(|used| used.kind == Some(PageKind::CHUNK));
    let (mut of_wide, mut of_others) = (0, 0);
    for chunk in chunks {
        let damaged = flipped(&fs, Path::new(PATH), chunk.bytes.start + 100, 3);
        let is_of_wide = check(&damaged).findings[0].columns == ["wide"];
        *if is_of_wide { &mut of_wide } else { &mut of_others } += 1;
        let database = read(&damaged, OnCorruption::Skip).unwrap();
        let conn = database.connect();
        for (columns, is_needed) in [("*", true), ("id, last", !is_of_wide), ("wide", is_of_wide), ("last, wide", true)]
        {
            let (found, notes) = select(&conn, &format!("(SELECT {columns} FROM t)")).unwrap();
            let missing = if is_needed { LIVE } else { 0 };
            assert_eq!((found.num_rows(), rows_left_out(&notes)), (3 * LIVE - missing, missing as u64), "{columns}");
            if columns == "*" {
                assert_eq!(missing_groups(&found, &right), Ok(missing as u64));
            }
        }
    }
    assert_eq!((of_wide, of_others), (3, 3));
}

#[test]
fn a_lost_table_leaves_the_others_and_nothing_is_written() {
    let fs = closed();
    let file = fs.bytes(Path::new(PATH));
    let before = file.len();
    let roots: Vec<Used> =
        used(&file, &[]).into_iter().filter(|used| used.kind == Some(PageKind::TABLE_ROOT)).collect();
    for root in roots {
        let damaged = flipped(&fs, Path::new(PATH), root.bytes.start + 50, 1);
        let error = Database::open_with(PATH, config(&damaged)).unwrap_err();
        assert!(matches!(error, Error::Damaged(_)) && error.to_string().contains("table root"), "{error}");
        let bytes = damaged.bytes(Path::new(PATH));
        let database = Database::open_with(PATH, config(&damaged).on_corruption(OnCorruption::Skip)).unwrap();
        let conn = database.connect();
        assert!(database.notes().iter().any(|note| note.contains("open for reading only")), "{:?}", database.notes());
        let left = TABLES.iter().filter(|table| select(&conn, table).is_ok()).count();
        assert_eq!(left, TABLES.len() - 1);
        let error = conn.execute("CREATE TABLE x (a INT)", &[]).unwrap_err();
        assert!(error.to_string().contains("read-only"), "{error}");
        database.close().unwrap();
        assert_eq!(damaged.bytes(Path::new(PATH)), bytes);
        assert_eq!(bytes.len(), before);
    }
}

#[test]
fn a_check_refuses_what_a_writer_holds_and_what_is_no_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(PATH);
    let held = Database::open(&path).unwrap();
    held.connect().execute("CREATE TABLE t AS SELECT 1 AS a", &[]).unwrap();
    let error = sinterdb::check(&path).unwrap_err().to_string();
    assert!(error.contains("in use by") && error.contains(&std::process::id().to_string()), "{error}");
    drop(held);
    assert!(sinterdb::check(&path).unwrap().is_sound());
    std::fs::write(&path, "id,name\n1,one\n".repeat(1000)).unwrap();
    let error = sinterdb::check(&path).unwrap_err();
    assert!(error.to_string().contains("not a SinterDB database"), "{error}");
    let error = sinterdb::check(directory.path().join("absent")).unwrap_err();
    assert!(error.to_string().contains("there is no database"), "{error}");
}

#[test]
fn a_vacuum_says_that_damaged_pages_stay() {
    let fs = closed();
    let is_chunk = |used: &Used| used.kind == Some(PageKind::CHUNK) && !used.is_fallback;
    let chunks = used(&fs.bytes(Path::new(PATH)), &[]).into_iter().filter(is_chunk);
    let last = chunks.map(|chunk| chunk.bytes.start + 33).max().unwrap();
    let damaged = flipped(&fs, Path::new(PATH), last, 0);
    let keeps = check(&damaged).findings.remove(0).table.unwrap();
    let database = Database::open_with(PATH, config(&damaged)).unwrap();
    let conn = database.connect();
    conn.execute("DROP VIEW words", &[]).unwrap();
    for table in TABLES.iter().filter(|table| **table != keeps) {
        conn.execute(&format!("DROP TABLE {table}"), &[]).unwrap();
    }
    let vacuum = || {
        let mut batches = conn.sql("VACUUM").unwrap().stream().unwrap();
        assert!(batches.next().is_none());
        batches.notes()
    };
    assert_eq!(vacuum(), ["a damaged page stays where it is; `sinter check` names it"]);
    conn.execute(&format!("DROP TABLE {keeps}"), &[]).unwrap();
    assert!(vacuum().is_empty());
}

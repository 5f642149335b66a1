//! Statements mean what was written, with odd strings, odd names, long chains, and files in between.

use crate::answers::{lines, rows_of, value};
use sinterdb::{Config, Connection, Database, Error, Value};
use std::time::{Duration, Instant};

fn memory() -> (Database, Connection) {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    (database, conn)
}

/// Texts that printing and reading again would change or, worse, run.
fn odd_texts() -> Vec<String> {
    let parts = ["'", "''", "\\", "\\'", "\\\\'", "\"", "x", "\n", "--", "\\' OR 1=1 --", "$1", "?", "E'"];
    let pairs = parts.iter().flat_map(|a| parts.iter().map(move |b| format!("{a}{b}")));
    parts.iter().map(|part| (*part).to_owned()).chain(pairs).collect()
}

#[test]
fn a_query_tells_how_far_it_is_while_it_runs() {
    // So few workers that who reads slowly holds them up.
    let database = Database::memory_with(Config::builder().threads(2)).unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE t AS SELECT value AS id, value % 1000 AS k FROM generate_series(1, 400000)", &[])
        .unwrap();
    let vectors = 400_000_u64.div_ceil(1024);
    let nearly = |total: Option<u64>| total.is_some_and(|total| (vectors..vectors + 8).contains(&total));
    let mut batches = conn.query("SELECT id FROM t WHERE k > 0", &[]).unwrap().stream().unwrap();
    batches.next().unwrap().unwrap();
    let progress = conn.progress().expect("few of its batches fit between it and who reads them");
    assert!(nearly(progress.total) && progress.done > 0 && progress.done < vectors, "{progress:?}");
    let rows: usize = batches.map(|batch| batch.unwrap().num_rows()).sum();
    assert!(rows > 300_000);
    // Build sides count, too.
    let joined = "SELECT x.id FROM t x JOIN (SELECT DISTINCT k FROM t) y ON x.k = y.k";
    let mut batches = conn.query(joined, &[]).unwrap().stream().unwrap();
    batches.next().unwrap().unwrap();
    let progress = conn.progress().expect("as above");
    assert!(progress.done > vectors && progress.total.is_some_and(|total| total >= 2 * vectors), "{progress:?}");
}

#[test]
fn parameters_are_counted_as_they_are_written_whatever_the_statement_becomes() {
    let (_database, conn) = memory();
    conn.execute("CREATE TABLE t (a INT, b INT)", &[]).unwrap();
    conn.execute("INSERT INTO t VALUES (1, 1), (2, 5), (3, 9)", &[]).unwrap();
    for (sql, params, wanted) in [
        ("SELECT a FROM t WHERE (a, b) > (?, ?) ORDER BY a", &[1, 1][..], &["2", "3"][..]),
        ("SELECT a FROM t WHERE (a, b) BETWEEN (?, ?) AND (?, ?) ORDER BY a", &[1, 1, 2, 9], &["1", "2"]),
        (
            "SELECT a, sum(a) OVER w, count(*) OVER w, ? FROM t WHERE b > ? WINDOW w AS (ORDER BY a * ?) ORDER BY a",
            &[7, 1, 1],
            &["2 2 1 7", "3 5 2 7"],
        ),
        ("SELECT a FROM t WHERE b > ? WINDOW w AS (ORDER BY a * ?) ORDER BY a", &[1, 1], &["2", "3"]),
        ("SELECT ? + sum(a) AS s FROM t GROUP BY b % ?, ROLLUP (b) ORDER BY s LIMIT 1", &[10, 4], &["11"]),
        ("VALUES ((SELECT max(a) FROM t WHERE a < ?), ?), (?, ?)", &[3, 4, 5, 6], &["2 4", "5 6"]),
    ] {
        let params: Vec<Value> = params.iter().map(|&value| Value::from(value)).collect();
        let batches = conn.query(sql, &params).and_then(|query| query.collect()).unwrap_or_else(|error| {
            panic!("{sql}: {error}");
        });
        let rows: Vec<String> = batches.iter().flat_map(rows_of).map(|row| row.join(" ")).collect();
        assert_eq!(rows, wanted, "{sql}");
    }
}

#[test]
fn parameters_stay_what_they_are_in_every_statement() {
    let (_database, conn) = memory();
    conn.execute("CREATE TABLE t (id INT, s VARCHAR, d INT DEFAULT 7, e INT DEFAULT 7)", &[]).unwrap();
    for (id, text) in odd_texts().iter().enumerate() {
        let id = Value::from(id as i64);
        let text = Value::from(text.as_str());
        conn.execute("INSERT INTO t (id, s) VALUES (?, ?)", &[id.clone(), text.clone()]).unwrap();
        conn.execute("UPDATE t SET s = ? WHERE id = ? AND s = ?", &[text.clone(), id.clone(), text.clone()]).unwrap();
        let same = "SELECT count(*) FROM t WHERE id = ? AND s = ? AND d = 7 AND e = 7";
        let batches = conn.query(same, &[id, text]).unwrap().collect().unwrap();
        assert_eq!(batches.iter().flat_map(rows_of).collect::<Vec<_>>(), [["1"]]);
    }
    let rows = odd_texts().len();
    assert_eq!(value(&conn, "SELECT count(DISTINCT id) FROM t"), rows.to_string());
    for (id, text) in odd_texts().iter().enumerate() {
        let gone =
            conn.execute("DELETE FROM t WHERE s = ? AND id = ?", &[Value::from(text.as_str()), Value::from(id as i64)]);
        assert_eq!(gone.unwrap(), 1, "{text}");
        assert_eq!(value(&conn, "SELECT count(*) FROM t"), (rows - id - 1).to_string());
    }
}

#[test]
fn literals_and_defaults_stay_what_they_are() {
    let (_database, conn) = memory();
    conn.execute(r"CREATE TABLE t (id INT, s VARCHAR DEFAULT 'it''s \ ''''', n INT DEFAULT 1 + 2)", &[]).unwrap();
    conn.execute(r"INSERT INTO t VALUES (1, DEFAULT, DEFAULT), (2, 'p''''q', 5)", &[]).unwrap();
    conn.execute(r"UPDATE t SET s = 'back\', n = DEFAULT WHERE id = 2", &[]).unwrap();
    conn.execute("INSERT INTO t (id) VALUES (3)", &[]).unwrap();
    assert_eq!(lines(&conn, "SELECT * FROM t ORDER BY id"), [r"1 it's \ '' 3", r"2 back\ 3", r"3 it's \ '' 3"]);
}

#[test]
fn names_that_look_alike_are_different_tables() {
    let (_database, conn) = memory();
    for sql in [
        r#"CREATE TABLE "T" (a INT)"#,
        r#"INSERT INTO "T" VALUES (1), (2)"#,
        "CREATE TABLE t (a INT)",
        "INSERT INTO t VALUES (2), (3)",
        r#"CREATE TABLE "x.y" (a INT)"#,
        r#"INSERT INTO "x.y" VALUES (2)"#,
        r#"DELETE FROM "T" WHERE a = 2"#,
        r#"UPDATE "x.y" SET a = 9"#,
    ] {
        conn.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    assert_eq!(lines(&conn, r#"SELECT * FROM "T""#), ["1"]);
    assert_eq!(lines(&conn, "SELECT * FROM t ORDER BY a"), ["2", "3"]);
    assert_eq!(lines(&conn, r#"SELECT * FROM "x.y""#), ["9"]);
    assert_eq!(lines(&conn, r#"SELECT "values" FROM storage('"T"')"#), ["2"]);
    assert_eq!(lines(&conn, "SELECT \"values\" FROM storage('t')"), ["2"]);
}

#[test]
fn what_copy_writes_reads_back() {
    let (_database, conn) = memory();
    let directory = tempfile::tempdir().unwrap();
    conn.execute("CREATE TABLE t (id INT, s VARCHAR, b BLOB, u UUID, l VARCHAR[], r STRUCT(x VARCHAR, y INT))", &[])
        .unwrap();
    conn.execute(
        "INSERT INTO t VALUES (1, 'one', X'00FF', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', ['a', NULL, 'a longer text'], \
         struct('x' AS x, 1 AS y)), (2, '', X'', NULL, [], NULL), (3, NULL, NULL, NULL, NULL, struct(NULL AS x, 2 AS y)), \
         (4, 'with, comma and \"quotes\" and more than twelve bytes', NULL, NULL, NULL, NULL)",
        &[],
    )
    .unwrap();
    let expected = lines(&conn, "SELECT * FROM t ORDER BY id");
    for kind in ["csv", "tsv", "json", "parquet", "arrow"] {
        let path = directory.path().join(format!("t.{kind}"));
        let path = path.display();
        conn.execute(&format!("COPY t TO '{path}'"), &[]).unwrap();
        conn.execute("CREATE OR REPLACE TABLE back AS SELECT * FROM t WHERE false", &[]).unwrap();
        conn.execute(&format!("COPY back FROM '{path}'"), &[]).unwrap();
        assert_eq!(lines(&conn, "SELECT * FROM back ORDER BY id"), expected, "{kind}");
    }
    let path = directory.path().join("q.csv");
    conn.execute(&format!("COPY (SELECT id, s FROM t WHERE id = ?) TO '{}'", path.display()), &[Value::from(1)])
        .unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), "id,s\n1,one\n");
}

#[test]
fn columns_that_a_file_lacks_take_their_defaults() {
    let (_database, conn) = memory();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.csv");
    std::fs::write(&path, "a\n1\n2\n").unwrap();
    conn.execute("CREATE TABLE t (a INT, b INT NOT NULL DEFAULT 9, c VARCHAR DEFAULT 'x' || 'y')", &[]).unwrap();
    conn.execute(&format!("COPY t (a) FROM '{}'", path.display()), &[]).unwrap();
    assert_eq!(lines(&conn, "SELECT * FROM t"), ["1 9 xy", "2 9 xy"]);
}

/// On the smallest stack that a thread is likely to have.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
}

#[test]
fn long_chains_run_or_are_refused() {
    on_a_small_stack(|| {
        let (_database, conn) = memory();
        conn.execute("CREATE TABLE t AS SELECT 1 AS a, 2 AS b", &[]).unwrap();
        let sum = |terms: usize| format!("SELECT a{} FROM t", " + b".repeat(terms));
        assert_eq!(value(&conn, &sum(600)), "1201");
        assert_eq!(value(&conn, &format!("SELECT 1{}", " + 1".repeat(600))), "601");
        assert_eq!(value(&conn, &format!("SELECT abs(-a{}) FROM t", " - b".repeat(600))), "1201");
        conn.execute("SET sinter.engine = 'datafusion'", &[]).unwrap();
        assert_eq!(value(&conn, &sum(600)), "1201");
        conn.execute("SET sinter.engine = 'auto'", &[]).unwrap();
        assert!(conn.query(&sum(20_000), &[]).unwrap_err().to_string().contains("in a row"));
        let any = |terms: usize| format!("SELECT count(*) FROM t WHERE a = 7{}", " OR a = 1".repeat(terms));
        assert_eq!(value(&conn, &any(600)), "1");
        assert!(conn.query(&any(20_000), &[]).unwrap_err().to_string().contains("in a row"));
        let all: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
        assert_eq!(value(&conn, &format!("SELECT count(*) FROM t WHERE a IN ({})", all.join(", "))), "1");
    });
}

#[test]
fn projections_that_double_what_they_use_do_not_double_the_work() {
    let (_database, conn) = memory();
    conn.execute("CREATE TABLE t AS SELECT CAST(0.5 AS DOUBLE) AS x", &[]).unwrap();
    let steps: Vec<String> =
        (1..=40).map(|step| format!("c{step} AS (SELECT x * x + x AS x FROM c{})", step - 1)).collect();
    let sql = format!("WITH c0 AS (SELECT x / 1000 AS x FROM t), {} SELECT x < 1 FROM c40", steps.join(", "));
    assert_eq!(value(&conn, &sql), "true");
}

#[test]
fn joins_of_very_many_tables_run() {
    let (_database, conn) = memory();
    conn.execute("CREATE TABLE t AS SELECT value AS k FROM generate_series(1, 10)", &[]).unwrap();
    let joins: Vec<String> = (1..70).map(|table| format!("JOIN t t{table} ON t0.k = t{table}.k")).collect();
    assert_eq!(value(&conn, &format!("SELECT count(*) FROM t t0 {}", joins.join(" "))), "10");
    // Each step doubles what it uses, above a join and below another one.
    let steps: Vec<String> =
        (1..=40).map(|step| format!("c{step} AS (SELECT k, x * x + x AS x FROM c{})", step - 1)).collect();
    let sql = format!(
        "WITH c0 AS (SELECT a.k, CAST(b.k AS DOUBLE) / 1000 AS x FROM t a JOIN t b ON a.k = b.k), {} \
         SELECT count(x) FROM c40 JOIN t ON c40.k = t.k",
        steps.join(", ")
    );
    assert_eq!(value(&conn, &sql), "10");
}

#[test]
fn a_large_join_stops_when_it_is_interrupted() {
    let joins = [
        "SELECT count(*) FROM t a JOIN t b ON a.k = b.k",
        "SELECT a.k, sum(b.value) FROM t a JOIN t b ON a.k = b.k GROUP BY a.k",
        "SELECT a.value FROM t a JOIN t b ON a.k = b.k WHERE a.value + b.value < 0",
        "SELECT count(*) FROM generate_series(1, 3000000) a, generate_series(1, 3000000) b",
        "SELECT count(*) FROM generate_series(1, 3000000) a, generate_series(1, 3000000) b WHERE a.value + b.value < 0",
        "SELECT count(*) FROM t a WHERE NOT EXISTS (SELECT 1 FROM t b WHERE a.value + b.value < 0)",
        "SELECT count(*) FROM t a, t c WHERE a.k = c.k AND EXISTS (SELECT 1 FROM t b WHERE b.value > 1)",
    ];
    for (engine, sql) in ["auto", "datafusion"].into_iter().flat_map(|engine| joins.map(|sql| (engine, sql))) {
        let (_database, conn) = memory();
        conn.execute("CREATE TABLE t AS SELECT value % 3 AS k, value FROM generate_series(1, 300000)", &[]).unwrap();
        conn.execute(&format!("SET sinter.engine = '{engine}'"), &[]).unwrap();
        let interrupt = conn.interrupt();
        let waiting = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            interrupt.interrupt();
        });
        let begun = Instant::now();
        let ended = conn.query(sql, &[]).and_then(sinterdb::Query::collect);
        assert!(matches!(ended, Err(Error::Cancelled)), "{engine}: {sql}");
        waiting.join().unwrap();
        // The threads are there again.
        assert_eq!(value(&conn, "SELECT count(DISTINCT k) FROM t"), "3", "{engine}: {sql}");
        // It would take hours.
        assert!(begun.elapsed() < Duration::from_secs(60), "{engine}: {sql}");
    }
}

#[test]
fn a_large_join_stops_when_nobody_waits_for_it() {
    let finds_nothing = [
        "SELECT a.value FROM generate_series(1, 3000000) a, generate_series(1, 3000000) b WHERE a.value + b.value < 0",
        "SELECT a.value FROM t a JOIN t b ON a.k = b.k WHERE a.value + b.value < 0",
    ];
    for (engine, sql) in ["auto", "datafusion"].into_iter().flat_map(|engine| finds_nothing.map(|sql| (engine, sql))) {
        let (_database, conn) = memory();
        conn.execute("CREATE TABLE t AS SELECT value % 3 AS k, value FROM generate_series(1, 300000)", &[]).unwrap();
        conn.execute(&format!("SET sinter.engine = '{engine}'"), &[]).unwrap();
        let begun = Instant::now();
        // More of them than there are threads.
        let running: Vec<_> = (0..16).map(|_| conn.sql(sql).unwrap().stream().unwrap()).collect();
        std::thread::sleep(Duration::from_millis(300));
        drop(running);
        assert_eq!(value(&conn, "SELECT count(DISTINCT k) FROM t"), "3", "{engine}: {sql}");
        // It would take hours.
        assert!(begun.elapsed() < Duration::from_secs(60), "{engine}: {sql}");
    }
}

#[test]
fn a_large_join_stops_when_the_insert_of_its_rows_fails() {
    for engine in ["auto", "datafusion"] {
        let (_database, conn) = memory();
        conn.execute("CREATE TABLE t AS SELECT value % 3 AS k, value FROM generate_series(1, 300000)", &[]).unwrap();
        conn.execute("CREATE TABLE few (value BIGINT CHECK (value < 0))", &[]).unwrap();
        conn.execute(&format!("SET sinter.engine = '{engine}'"), &[]).unwrap();
        let begun = Instant::now();
        // The first rows come at once and break the rule, the others would never come.
        let sql = "INSERT INTO few SELECT value FROM t UNION ALL \
                   SELECT a.value FROM t a JOIN t b ON a.k = b.k WHERE a.value + b.value < 0";
        let ended = conn.execute(sql, &[]);
        assert!(matches!(ended, Err(Error::Data(_))), "{engine}: {ended:?}");
        assert_eq!(value(&conn, "SELECT count(DISTINCT k) FROM t"), "3", "{engine}");
        // It would take hours.
        assert!(begun.elapsed() < Duration::from_secs(60), "{engine}");
    }
}

#[test]
fn explain_shows_how_rows_to_change_are_found() {
    let (_database, conn) = memory();
    conn.execute("CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 10)", &[]).unwrap();
    for sql in
        ["DELETE FROM t WHERE a = 3", "UPDATE t SET a = 4 WHERE a = 3", "INSERT INTO t SELECT a FROM t WHERE a = 3"]
    {
        let plan = lines(&conn, &format!("EXPLAIN {sql}")).join("\n");
        assert!(plan.contains("filter pushed to blocks: a = 3"), "{plan}");
    }
    assert_eq!(value(&conn, "SELECT count(*) FROM t"), "10");
}

#[test]
fn files_are_read_with_options_in_a_query() {
    let (_database, conn) = memory();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("odd.dat");
    std::fs::write(&path, "a|b\n1|x\nmany|fields|here\n3|007\n").unwrap();
    let path = path.display();
    let sql =
        format!("SELECT * FROM read_csv('{path}', delimiter = '|', on_error => 'skip', types = 'a INT') WHERE a > 0");
    assert_eq!(lines(&conn, &sql), ["1 x", "3 007"]);
    let mut batches = conn.sql(&sql).unwrap().stream().unwrap();
    batches.by_ref().for_each(|batch| drop(batch.unwrap()));
    assert!(batches.notes().iter().any(|note| note.contains("1 malformed rows were skipped")));
    conn.execute(
        &format!("CREATE TABLE t AS SELECT b FROM read_csv('{path}', delimiter = '|', on_error = 'skip')"),
        &[],
    )
    .unwrap();
    assert_eq!(value(&conn, "SELECT count(*) FROM t"), "2");
    for (sql, message) in [
        (format!("SELECT * FROM read_csv('{path}', colour = 'red')"), "colour"),
        ("SELECT * FROM read_csv('absent.csv')".to_owned(), "absent.csv"),
        (format!("COPY t FROM '{path}' (types 'b INT')"), "leave out 'types'"),
    ] {
        let error = conn.execute(&sql, &[]).unwrap_err().to_string();
        assert!(error.contains(message), "{sql}: {error}");
    }
}

#[test]
fn wide_values_and_long_lists_are_kept_and_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wide.sinter");
    let database = Database::open(&path).unwrap();
    let conn = database.connect();
    // 17 elements a row make more than a block may hold; 8 KB a row more than a page.
    conn.execute(
        "CREATE TABLE lists AS SELECT value AS id, [value, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, NULL] AS l \
         FROM generate_series(1, 140000)",
        &[],
    )
    .unwrap();
    conn.execute(
        "CREATE TABLE wide AS SELECT value AS id, repeat(CAST(value AS VARCHAR), 2000) AS s FROM generate_series(1, 20000)",
        &[],
    )
    .unwrap();
    let ask = |conn: &Connection| {
        let mut all = lines(conn, "SELECT count(*), sum(l[1]), sum(array_length(l)) FROM lists");
        all.extend(lines(conn, "SELECT count(*), sum(length(s)), max(id) FROM wide WHERE s LIKE '%99%'"));
        all
    };
    let before = ask(&conn);
    assert_eq!(before[0], "140000 9800070000 2380000");
    database.close().unwrap();
    drop((conn, database));
    assert_eq!(ask(&Database::open(&path).unwrap().connect()), before);
}

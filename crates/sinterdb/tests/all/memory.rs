//! One memory limit for everything, and SHOW MEMORY says who has what.

use crate::answers::{lines, rows, value};
use sinterdb::{Config, Connection, Database};

/// What SHOW MEMORY says of something, in bytes.
#[track_caller]
fn held(conn: &Connection, what: &str) -> u64 {
    value(conn, &format!("SELECT bytes FROM memory() WHERE what = '{what}'")).parse().unwrap()
}

/// Whether this is given back soon: tasks of a query that is over end a moment later.
fn is_given_back(conn: &Connection, what: &str) -> bool {
    (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(25));
        held(conn, what) == 0
    })
}

#[test]
fn show_memory_says_who_has_what() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config::builder().threads(2).memory_limit_bytes(64 << 20).background(false);
    let database = Database::open_with(directory.path().join("m.sinter"), config).unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE few (a INT)", &[]).unwrap();
    conn.execute("INSERT INTO few SELECT value FROM generate_series(1, 200)", &[]).unwrap();
    conn.execute("CREATE TABLE many AS SELECT value AS a FROM generate_series(1, 300000)", &[]).unwrap();
    let names = lines(&conn, "SELECT what FROM memory()");
    assert_eq!(names, ["table few", "table many", "tables", "pool", "trees", "scratch", "undo", "query", "limit"]);
    assert!(held(&conn, "table few") > 200 * 4, "they are in memory");
    assert_eq!(held(&conn, "tables"), held(&conn, "table few") + held(&conn, "table many"));
    assert!(held(&conn, "table many") < 10_000, "they are in the file");
    assert_eq!(value(&conn, "SELECT sum(a) FROM many WHERE a % 2 = 0"), "22500150000");
    assert!(held(&conn, "pool") > 100, "and now in the pool");
    assert_eq!((held(&conn, "undo"), held(&conn, "limit")), (0, 64 << 20));
    conn.execute("SET memory_limit = '32MB'", &[]).unwrap();
    assert_eq!(held(&conn, "limit"), 32_000_000);
}

#[test]
fn what_a_long_reader_keeps_is_undo() {
    let database = Database::memory().unwrap();
    let (conn, reader) = (database.connect(), database.connect());
    conn.execute("CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 300000)", &[]).unwrap();
    assert_eq!(held(&conn, "undo"), 0);
    reader.begin(true).unwrap();
    assert_eq!(value(&reader, "SELECT count(*) FROM t"), "300000");
    for _ in 0..5 {
        conn.execute("UPDATE t SET a = a + 1", &[]).unwrap();
        conn.execute("CHECKPOINT", &[]).unwrap();
    }
    let one_state = held(&conn, "tables");
    let undo = held(&conn, "undo");
    assert!(undo > one_state / 2 && undo < 2 * one_state, "one state, not the ones in between: {undo} of {one_state}");
    assert_eq!(value(&reader, "SELECT min(a) FROM t"), "1");
    reader.roll_back().unwrap();
    assert_eq!(held(&conn, "undo"), 0);
}

#[test]
fn a_sort_larger_than_the_limit_spills() {
    let config = Config::builder().threads(2).memory_limit_bytes(64 << 20);
    let database = Database::memory_with(config).unwrap();
    let conn = database.connect();
    let sorted = "SELECT a, row_number() OVER (ORDER BY b) AS n FROM \
                  (SELECT value AS a, (value * 7919) % 2000003 AS b, repeat('x', 40) AS c FROM generate_series(1, 2000000))";
    let sql = format!("SELECT count(*), sum(n), max(a) FROM ({sorted})");
    assert_eq!(lines(&conn, &sql), ["2000000 2000001000000 2000000"]);
    let plan = lines(&conn, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
    assert!(plan.contains("bytes spilled"), "{plan}");
    assert!(is_given_back(&conn, "query"), "{} bytes", held(&conn, "query"));
}

#[test]
fn what_has_no_room_says_so() {
    let config = Config::builder().threads(2).memory_limit_bytes(24 << 20);
    let database = Database::memory_with(config).unwrap();
    let conn = database.connect();
    // Rows of a function are DataFusion's to join, which holds one side and cannot spill it.
    let sql = "SELECT count(*) FROM (SELECT value AS a FROM generate_series(1, 3000000)) AS x \
               JOIN (SELECT value AS b FROM generate_series(1, 3000000)) AS y ON x.a = y.b";
    let error = rows(&conn, sql).unwrap_err().to_string();
    assert!(error.contains("out of memory") && error.contains("raise memory_limit"), "{error}");
    assert!(is_given_back(&conn, "query"), "{} bytes", held(&conn, "query"));
    conn.execute("SET memory_limit = '1GB'", &[]).unwrap();
    assert_eq!(lines(&conn, sql), ["3000000"]);
}

/// What is kept is estimated generously, so whether it fits is tried, and it spills only if it does not; by our own engine.
#[test]
fn what_might_not_fit_spills_only_if_it_does_not() {
    let database = Database::memory_with(Config::builder().threads(2)).unwrap();
    let conn = database.connect();
    let table = "CREATE TABLE t AS SELECT value AS a, (value * 7919) % 6000011 AS b FROM generate_series(1, 6000000)";
    conn.execute(table, &[]).unwrap();
    let queries = [
        ("SELECT count(*), sum(y.b) FROM t AS x JOIN t AS y ON x.a = y.b WHERE y.a % 1000 = 0", false),
        ("SELECT count(*), sum(x.b) FROM t AS x JOIN t AS y ON x.a = y.b", true),
        ("SELECT count(*), count(y.b) FROM t AS x LEFT JOIN t AS y ON x.a = y.b AND x.b < y.a", true),
        (
            "SELECT count(*), sum(s) FROM (SELECT a % 5900000 AS k, sum(b) AS s FROM t GROUP BY 1 HAVING sum(a) > 0)",
            true,
        ),
        ("SELECT sum(n) FROM (SELECT a % 10 AS k, count(DISTINCT b) AS n FROM t GROUP BY 1)", true),
        ("SELECT sum(n) FROM (SELECT a, row_number() OVER (PARTITION BY a % 9 ORDER BY b) AS n FROM t)", true),
        ("SELECT a, b FROM t ORDER BY b DESC OFFSET 5999999", true),
    ];
    let expected = queries.map(|(sql, _)| lines(&conn, sql));
    conn.execute("SET memory_limit = '200MB'", &[]).unwrap();
    for ((sql, spills), expected) in queries.iter().zip(expected) {
        assert_eq!(lines(&conn, sql), expected, "{sql}");
        let plan = lines(&conn, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
        assert!(plan.contains("if ours does not fit the memory"), "{plan}");
        assert_eq!(plan.contains("bytes spilled"), *spills, "{plan}");
        assert!(is_given_back(&conn, "query"), "{} bytes", held(&conn, "query"));
    }
}

#[test]
fn what_is_spilled_is_compressed_as_is_wanted() {
    let database = Database::memory_with(Config::builder().threads(1)).unwrap();
    let conn = database.connect();
    let texts =
        "SELECT value % 1000 AS a, 'a text that none is like, number ' || value AS b FROM generate_series(1, 200000)";
    conn.execute(&format!("CREATE TABLE t AS {texts}"), &[]).unwrap();
    conn.execute("SET sinter.operator_memory = '1B'", &[]).unwrap();
    let spilled = |compression: &str| -> u64 {
        conn.execute(&format!("SET sinter.spill_compression = '{compression}'"), &[]).unwrap();
        let plan = lines(&conn, "EXPLAIN ANALYZE SELECT a, b FROM t ORDER BY b OFFSET 199999").join("\n");
        let (before, _) = plan.split_once(" bytes spilled").unwrap_or_else(|| panic!("{plan}"));
        before.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let [none, auto, all] = ["none", "auto", "all"].map(spilled);
    assert!(none > auto && auto > all, "{none} bytes plain, {auto} as it would, {all} of which all is compressed");
}

#[test]
fn attached_databases_share_the_limit() {
    const LIMIT: u64 = 16 << 20;
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(format!("{name}.sinter"));
    let config = Config::builder().threads(2).memory_limit_bytes(LIMIT).background(false);
    let database = Database::open_with(file("main"), config).unwrap();
    let conn = database.connect();
    conn.execute(&format!("ATTACH '{}' AS o", file("other").display()), &[]).unwrap();
    conn.execute("ATTACH ':memory:' AS \"M\"", &[]).unwrap();
    for sql in [
        "CREATE TABLE t AS SELECT value AS a, random() AS b FROM generate_series(1, 1500000)",
        "CREATE TABLE o.t AS SELECT a, b FROM t",
        "CREATE SCHEMA \"M\".s",
        "CREATE TABLE \"M\".s.few AS SELECT a, b FROM t WHERE a <= 100000",
    ] {
        conn.execute(sql, &[]).unwrap();
    }
    let names = lines(&conn, "SELECT what FROM memory()");
    assert_eq!(names[..4], ["table t", "table \"M\".s.few", "table o.t", "tables"]);
    assert!(held(&conn, "table \"M\".s.few") > 100_000 * 4, "it is nowhere else");
    assert_eq!(held(&conn, "tables"), names[..3].iter().map(|name| held(&conn, name)).sum::<u64>());
    for table in ["t", "o.t", "t", "o.t"] {
        assert_eq!(value(&conn, &format!("SELECT sum(a) FROM {table} WHERE b >= 0")), "1125000750000");
        let all =
            ["pool", "trees", "tables", "undo", "scratch", "query"].map(|what| held(&conn, what)).iter().sum::<u64>();
        assert!(all <= LIMIT / 8 * 7, "{all} bytes");
        assert!(held(&conn, "pool") > LIMIT / 2, "what is left is for either file");
    }
    conn.execute("SET memory_limit = '8MB'", &[]).unwrap();
    assert_eq!(value(&conn, "SELECT sum(a) FROM o.t WHERE b >= 0"), "1125000750000");
    assert!(held(&conn, "pool") < 7_000_000);
    conn.execute("DETACH \"M\"", &[]).unwrap();
    conn.execute("DETACH o", &[]).unwrap();
    assert_eq!(lines(&conn, "SELECT what FROM memory()")[..2], ["table t", "tables"]);
    assert!(held(&conn, "tables") < 100_000 && is_given_back(&conn, "undo"), "{} bytes", held(&conn, "undo"));
}

/// A table several times as large as the limit, loaded and scanned.
#[test]
fn a_table_larger_than_the_limit_loads_and_scans() {
    const LIMIT: u64 = 16 << 20;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large.sinter");
    let config = || Config::builder().threads(2).memory_limit_bytes(LIMIT);
    let count = 3_000_000u64;
    {
        let database = Database::open_with(&path, config()).unwrap();
        let conn = database.connect();
        let sql = format!(
            "CREATE TABLE t AS SELECT value AS a, random() AS b, random() AS c, uuid() AS d \
             FROM generate_series(1, {count})"
        );
        conn.execute(&sql, &[]).unwrap();
        assert_eq!((held(&conn, "scratch"), held(&conn, "query")), (0, 0));
    }
    assert!(std::fs::metadata(&path).unwrap().len() > 4 * LIMIT);
    let database = Database::open_with(&path, config()).unwrap();
    let conn = database.connect();
    for _ in 0..2 {
        let sql = "SELECT sum(a), count(*) FILTER (WHERE b < c), count(d) FROM t WHERE b + c >= 0";
        let answer = lines(&conn, sql);
        let sum = count * (count + 1) / 2;
        assert!(answer[0].starts_with(&format!("{sum} ")) && answer[0].ends_with(&format!(" {count}")), "{answer:?}");
        let all = ["pool", "trees", "tables", "scratch", "query"].map(|what| held(&conn, what)).iter().sum::<u64>();
        assert!(all <= LIMIT / 8 * 7, "{all} bytes");
    }
}

#[test]
fn what_a_build_side_hands_out_for_nobody_is_not_spilled() {
    let conn = Database::memory_with(Config::builder().threads(1)).unwrap().connect();
    for statement in [
        "SET sinter.operator_memory = '1B'",
        "CREATE TABLE a (i BIGINT, d INT)",
        "INSERT INTO a VALUES (5, 1), (7, 2), (NULL, 3)",
        "CREATE TABLE o (id INT, k INT, i BIGINT)",
        "INSERT INTO o VALUES (1, 1, 10), (2, 2, NULL), (6, 3, 30)",
        "CREATE TABLE e (k SMALLINT)",
        "CREATE TABLE big (k INT)",
        "INSERT INTO big SELECT value FROM generate_series(1, 5000)",
    ] {
        conn.execute(statement, &[]).unwrap();
    }
    let sql = "SELECT o.i, count(*) FROM (SELECT i AS q FROM a GROUP BY d, i) AS g JOIN o ON g.q >= o.id \
               LEFT JOIN e ON o.k = e.k WHERE e.k <= ANY (SELECT k FROM big) GROUP BY GROUPING SETS ((), (o.i))";
    assert_eq!(lines(&conn, sql), ["NULL 0"]);
}

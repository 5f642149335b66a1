//! Filters, aggregates and groups of one table run wholly in our engine, on the encoded form, and what a filter rejects is not
//! decoded: EXPLAIN and the counters of EXPLAIN ANALYZE say so.

use crate::answers::{lines, rows};
use sinterdb::{Connection, Database};

fn plan(conn: &Connection, sql: &str) -> Vec<String> {
    lines(conn, &format!("EXPLAIN {sql}"))
}

#[track_caller]
fn assert_ours(conn: &Connection, sql: &str) {
    let plan = plan(conn, sql);
    assert!(plan[0].starts_with("sinter: "), "{sql}\n{}", plan.join("\n"));
    assert!(!plan.iter().any(|line| line.contains("datafusion:")), "{sql}\n{}", plan.join("\n"));
}

/// What EXPLAIN ANALYZE counted.
#[derive(Debug, PartialEq)]
pub(crate) struct Counted {
    groups_pruned: u64,
    vectors_rejected: u64,
    pub(crate) vectors: u64,
    filters_encoded: u64,
    filters_decoded: u64,
    rows_selected: u64,
    pub(crate) bytes_decoded: u64,
    vectors_decoded: u64,
}

pub(crate) fn counted(conn: &Connection, sql: &str) -> Counted {
    let lines = lines(conn, &format!("EXPLAIN ANALYZE {sql}"));
    let numbers = |start: &str| -> Vec<u64> {
        let line = lines.iter().find(|line| line.trim_start().starts_with(start) && !line.starts_with("bytes"));
        let line = line.unwrap_or_else(|| panic!("no line '{start}' in\n{}", lines.join("\n")));
        line.split(|char: char| !char.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
    };
    let (groups, vectors) = (numbers("row groups:"), numbers("vectors:"));
    let (rows, bytes) = (numbers("rows:"), numbers("bytes:"));
    Counted {
        groups_pruned: groups[0],
        vectors_rejected: vectors[0],
        vectors: vectors[1],
        filters_encoded: vectors[2],
        filters_decoded: vectors[3],
        rows_selected: rows[0],
        bytes_decoded: bytes[1],
        vectors_decoded: bytes[2],
    }
}

/// Three row groups; `pressed` WITH options for single columns.
fn table(options: &str) -> Connection {
    let conn = Database::memory().unwrap().connect();
    let create = "CREATE TABLE t (id BIGINT, k INT, n BIGINT, s VARCHAR, f DOUBLE, d DECIMAL(12, 2), day DATE)";
    conn.execute(&format!("{create} {options}"), &[]).unwrap();
    conn.execute(
        "INSERT INTO t SELECT value, value % 8, CASE WHEN value % 5 = 0 THEN NULL ELSE value * 7919 % 100003 END, \
         'name ' || (value / 1024), value * 0.25, CAST(value % 10000 AS DECIMAL(12, 2)) / 100, \
         DATE '2020-01-01' + CAST(value % 366 AS INT) FROM generate_series(1, 300000)",
        &[],
    )
    .unwrap();
    conn
}

/// Zone maps prune by it, and a file is read by others.
#[test]
fn rows_that_are_made_in_an_order_are_put_in_in_it() {
    let conn = Database::memory().unwrap().connect();
    for sql in [
        "SET threads = 4",
        "CREATE TABLE t (id BIGINT)",
        "INSERT INTO t SELECT value + 1 FROM generate_series(0, 299999)",
        "CREATE TABLE made AS SELECT value + 1 AS id FROM generate_series(0, 299999)",
        "SET threads = 1",
    ] {
        conn.execute(sql, &[]).unwrap();
    }
    let expected: Vec<String> = (1..=300_000).map(|id: i64| id.to_string()).collect();
    for table in ["t", "made"] {
        assert!(lines(&conn, &format!("SELECT id FROM {table}")) == expected, "the order of {table}");
    }
}

#[test]
fn tpch_q6_uses_no_datafusion_operator_and_decodes_only_what_it_needs() {
    let conn = Database::memory().unwrap().connect();
    crate::tpch::load(&conn);
    let sql = crate::tpch::query(6);
    let sql = sql.trim().trim_end_matches(';');
    assert_ours(&conn, sql);
    let counted = counted(&conn, sql);
    assert!(counted.filters_encoded > 0, "{counted:?}");
    assert_eq!(counted.filters_decoded, 0, "{counted:?}");
    // Two columns are summed, at 8 bytes each in their plain form: nothing of the rejected rows was decoded.
    assert_eq!(counted.bytes_decoded, counted.rows_selected * 2 * 8, "{counted:?}");
}

#[test]
fn ungrouped_filters_and_aggregates_use_no_datafusion_operator() {
    let conn = table("");
    for sql in [
        "SELECT count(*) FROM t",
        "SELECT count(*) AS rows, sum(n) AS total FROM t WHERE k = 3",
        "SELECT min(id), max(id), sum(id), avg(n), count(n) FROM t WHERE id BETWEEN 1000 AND 200000",
        "SELECT sum(d * (1 - d)) FROM t WHERE day >= DATE '2020-02-01' AND f < 100.5",
        "SELECT max(s), min(day) FROM t WHERE s LIKE 'name 1%' OR k IN (1, 2)",
        "SELECT sum(CASE WHEN k = 1 THEN id ELSE 0 END) FROM t WHERE n IS NOT NULL",
        "SELECT count(*) FILTER (WHERE k = 1), sum(id) FILTER (WHERE n IS NULL) FROM t",
        "SELECT max(id) - min(id) AS span FROM t",
        "SELECT 100.0 * sum(CASE WHEN k = 1 THEN d ELSE 0 END) / sum(d) AS share FROM t",
        "SELECT c FROM (SELECT count(*) AS c FROM t WHERE k = 2) AS q",
        "SELECT count(*) FROM (SELECT id AS x FROM t WHERE k = 2) AS q WHERE x > 10",
        "SELECT id, s FROM t WHERE id > 299990",
        "SELECT id + 1 AS next FROM t WHERE k = 2 LIMIT 5",
        "SELECT * FROM t",
        "SELECT k, count(*) FROM t WHERE id > 5 GROUP BY k",
        "SELECT DISTINCT s, day FROM t",
        "SELECT s, sum(d) / count(*) AS mean FROM (SELECT * FROM t WHERE k < 4) AS q GROUP BY s",
        "SELECT extract(year FROM day) AS year, max(f) FROM t GROUP BY extract(year FROM day)",
        "SELECT low FROM (SELECT min(id) AS low, count(*) AS c FROM t ORDER BY c LIMIT 9) AS q GROUP BY low, c ORDER BY low",
        "SELECT id, sum(n) FILTER (WHERE k = 3) OVER (PARTITION BY k ORDER BY id) FROM t",
    ] {
        assert_ours(&conn, sql);
    }
}

#[test]
fn sums_of_rows_that_a_filter_lets_into_a_window_need_room() {
    let conn = Database::memory().unwrap().connect();
    conn.execute("CREATE TABLE t (id INT, a BIGINT)", &[]).unwrap();
    conn.execute("INSERT INTO t VALUES (1, 9223372036854775807), (2, -5), (3, 5)", &[]).unwrap();
    let sum = |filter: &str| format!("SELECT sum(a) FILTER (WHERE {filter}) OVER (ORDER BY id) FROM t ORDER BY id");
    assert_eq!(lines(&conn, &sum("id < 3")), ["9223372036854775807", "9223372036854775802", "9223372036854775802"]);
    let error = rows(&conn, &sum("a > 0")).unwrap_err().to_string();
    assert!(error.contains("verflow") || error.contains("out of range"), "{error}");
}

#[test]
fn aggregates_that_datafusion_computes_run_within_our_groups() {
    let conn = table("");
    for aggregate in [
        "stddev(n), stddev_pop(d), var_samp(f), var_pop(k), bool_and(n > 5), bool_or(n > 5)",
        "count(DISTINCT s), sum(DISTINCT n), avg(DISTINCT d)",
        "median(n), percentile_cont(0.25) WITHIN GROUP (ORDER BY f), approx_median(n), approx_distinct(s)",
        "string_agg(s, ', '), string_agg(DISTINCT s, ', ' ORDER BY s), array_agg(n ORDER BY id DESC)",
        "first_value(n ORDER BY id), last_value(s ORDER BY id), first_value(day)",
        "bit_and(n), bit_or(n), bit_xor(n), corr(n, f), covar_pop(n, f), covar_samp(n, f), regr_slope(n, f)",
        "stddev(n) FILTER (WHERE k = 1), median(n) FILTER (WHERE n > 5), count(DISTINCT s) FILTER (WHERE k < 3)",
    ] {
        assert_ours(&conn, &format!("SELECT {aggregate} FROM t WHERE id > 5"));
        assert_ours(&conn, &format!("SELECT k, {aggregate} FROM t GROUP BY k"));
        assert_ours(&conn, &format!("SELECT s, day, {aggregate}, count(*), max(id) FROM t GROUP BY s, day"));
    }
}

#[test]
fn what_stays_with_datafusion_is_named_and_can_be_all() {
    let conn = table("");
    let nth = plan(&conn, "SELECT k, nth_value(n, 2 ORDER BY id) FROM t WHERE id > 5 GROUP BY k").join("\n");
    assert!(nth.contains("datafusion: AggregateExec"), "{nth}");
    assert!(nth.contains("sinter: Scan t"), "{nth}");
    conn.execute("SET sinter.engine = 'datafusion'", &[]).unwrap();
    let forced = plan(&conn, "SELECT sum(n) FROM t WHERE k = 3").join("\n");
    assert!(forced.contains("datafusion: AggregateExec"), "{forced}");
}

#[test]
fn zone_maps_prune_row_groups() {
    let conn = table("");
    let one = counted(&conn, "SELECT sum(n) FROM t WHERE id = 200000");
    assert_eq!((one.groups_pruned, one.rows_selected), (2, 1), "{one:?}");
    let none = counted(&conn, "SELECT sum(n) FROM t WHERE id > 300000");
    assert_eq!((none.groups_pruned, none.vectors_decoded), (3, 0), "{none:?}");
}

/// Schemes that compare without decoding: each column is asked in its own.
#[test]
fn comparisons_run_on_the_encoded_form_and_rejected_vectors_stay_undecoded() {
    let conn = table(
        "WITH (compression_id = 'for', compression_k = 'bitpack', compression_s = 'dict', compression_d = 'pfor', \
         compression_day = 'dict')",
    );
    for (condition, rows) in [
        ("id BETWEEN 150000 AND 150099", 100),
        ("s = 'name 100'", 1024),
        ("s IN ('name 100', 'name 200') AND k < 4", 1024),
        ("id < 1000 AND day > DATE '2020-12-01'", 60),
        ("d = 0.01 AND id <= 20000", 2),
    ] {
        let counted = counted(&conn, &format!("SELECT sum(n) FROM t WHERE {condition}"));
        assert_eq!(counted.filters_decoded, 0, "{condition}: {counted:?}");
        assert!(counted.filters_encoded > 0, "{condition}: {counted:?}");
        assert_eq!(counted.rows_selected, rows, "{condition}: {counted:?}");
        // Only the column that is summed is decoded, and of it only vectors that hold survivors.
        assert!(counted.vectors_decoded <= counted.vectors - counted.vectors_rejected, "{condition}: {counted:?}");
        assert!(counted.bytes_decoded <= counted.vectors_decoded * 1024 * 8, "{condition}: {counted:?}");
    }
}

#[test]
fn explain_analyze_says_exactly_what_a_scan_touched() {
    let conn = table("WITH (compression_id = 'for', compression_k = 'bitpack')");
    let sql = "EXPLAIN ANALYZE SELECT sum(k) FROM t WHERE id BETWEEN 150000 AND 150099";
    let lines = lines(&conn, sql);
    let found: Vec<&str> = lines.iter().map(|line| line.trim()).filter(|line| line.starts_with("scanned:")).collect();
    let [found] = found[..] else { panic!("{found:?}") };
    let [groups, vectors, bytes] = found.split("; ").collect::<Vec<_>>()[..] else { panic!("{found}") };
    assert_eq!(groups, "scanned: 2 of 3 row groups pruned, 0 answered by statistics");
    // One vector of the second group holds them all.
    assert_eq!(vectors, "127 of 128 vectors rejected, 128 tests on the encoded form left 100 rows");
    let numbers: Vec<usize> = bytes.split(' ').filter_map(|word| word.parse().ok()).collect();
    // Ten bits an `id` within its vector and three a `k`, beside headers; of `k` what is left is decoded, at four bytes.
    let packed = 131_072 * (10 + 3) / 8;
    assert!(numbers[0] > packed && numbers[0] < packed + packed / 50, "{bytes}");
    assert_eq!(bytes, format!("{} bytes compressed, 400 decoded", numbers[0]));
}

#[test]
fn a_count_without_conditions_decodes_nothing() {
    let conn = table("");
    let all = counted(&conn, "SELECT count(*) FROM t");
    assert_eq!(all.bytes_decoded, 0, "{all:?}");
}

/// Few parts are wanted, and the planner knows it whether they are joined with what is scanned, or with what is joined with
/// that.
#[test]
fn groups_that_a_join_would_drop_are_not_made() {
    for suppliers in [500, 100_000] {
        let conn = Database::memory().unwrap().connect();
        for sql in [
            "CREATE TABLE part (id INT, name VARCHAR)".to_owned(),
            "INSERT INTO part SELECT value, 'part ' || (value % 1000) FROM generate_series(1, 20000)".to_owned(),
            "CREATE TABLE supplier (id INT, name VARCHAR)".to_owned(),
            format!("INSERT INTO supplier SELECT value, 'supplier ' || value FROM generate_series(1, {suppliers})"),
            "CREATE TABLE offer (part INT, supplier INT, cost INT)".to_owned(),
            format!(
                "INSERT INTO offer SELECT value % 20000 + 1, value % {suppliers} + 1, value * 7919 % 10007 \
                 FROM generate_series(1, 80000)"
            ),
        ] {
            conn.execute(&sql, &[]).unwrap();
        }
        let sql = "SELECT s.name, p.id FROM part p JOIN offer o ON o.part = p.id JOIN supplier s ON s.id = o.supplier \
                   WHERE p.name = 'part 7' AND o.cost = (SELECT min(other.cost) FROM offer other WHERE other.part = p.id)";
        assert_eq!(lines(&conn, sql).len(), 20, "of {suppliers} suppliers");
        let plan = lines(&conn, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
        // Four offers of each of the twenty parts, of 80,000.
        assert!(plan.contains("group by: part -- of 80 rows"), "of {suppliers} suppliers\n{plan}");
    }
}

/// Of a thousand sales that are wanted, about forty are paid. A thousand are fewer than all that are paid, so they are kept, but
/// not where it takes long to unpack a thousand notes instead of forty.
#[test]
fn what_takes_long_to_unpack_is_streamed() {
    let sql =
        "SELECT s.id, s.note FROM sale s JOIN wanted w ON s.kind = w.kind JOIN paid p ON p.id = s.id ORDER BY s.id";
    let mut answers = Vec::new();
    for (scheme, expected) in [("raw", ["paid", "sale", "wanted"]), ("fsst", ["sale", "wanted", "paid"])] {
        let conn = Database::memory().unwrap().connect();
        let create = format!("CREATE TABLE sale (id INT, kind INT, note VARCHAR) WITH (compression_note = '{scheme}')");
        for sql in [
            &create[..],
            "INSERT INTO sale SELECT value, value % 60, 'order ' || (value * 7919 % 100003) || ' of customer ' || \
             (value * 104729 % 99991) || ' to street ' || (value * 31 % 997) FROM generate_series(0, 59999)",
            "CREATE TABLE wanted (kind INT)",
            "INSERT INTO wanted VALUES (7)",
            "CREATE TABLE paid (id INT)",
            "INSERT INTO paid SELECT value * 23 FROM generate_series(0, 2499)",
        ] {
            conn.execute(sql, &[]).unwrap();
        }
        let plan = plan(&conn, sql);
        let scanned = |line: &String| Some(line.split_once("Scan ")?.1.split(' ').next()?.to_owned());
        let scans: Vec<String> = plan.iter().filter_map(scanned).collect();
        assert_eq!(scans, expected, "{scheme}\n{}", plan.join("\n"));
        answers.push(lines(&conn, sql));
    }
    assert!((41..=42).contains(&answers[0].len()), "{} sales", answers[0].len());
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn groups_are_not_missed_by_what_a_semi_join_looks_up() {
    let conn = Database::memory().unwrap().connect();
    for sql in [
        "CREATE TABLE part (id INT, name VARCHAR)",
        "INSERT INTO part SELECT value, 'part ' || (value % 1000) FROM generate_series(1, 20000)",
        "CREATE TABLE offer (part INT, supplier INT)",
        "INSERT INTO offer SELECT value % 20000 + 1, value % 500 + 1 FROM generate_series(1, 80000)",
        "CREATE TABLE few (id INT)",
        "INSERT INTO few VALUES (6), (7), (8), (9), (10)",
    ] {
        conn.execute(sql, &[]).unwrap();
    }
    let sql = "SELECT count(*), count(g.n), min(g.n), max(g.n) FROM (
                 SELECT p.id FROM part p JOIN offer o ON o.part = p.id
                 WHERE p.name = 'part 7' AND o.supplier IN (SELECT id FROM few)
               ) q LEFT JOIN (SELECT part, count(*) AS n FROM offer GROUP BY part) g ON g.part = q.id";
    assert_eq!(lines(&conn, sql), ["80 80 4 4"]);
}

#[test]
fn explain_analyze_says_what_each_operator_did() {
    let conn = Database::memory().unwrap().connect();
    // Keys of `b` lie as far apart as those of `a`: they tell its scan nothing.
    for (table, rows, step) in [("a", 10_000, 1), ("b", 10, 2)] {
        conn.execute(&format!("CREATE TABLE {table} (id INT, k INT)"), &[]).unwrap();
        let numbers = format!("generate_series(1, {rows}) g(value)");
        let insert = format!("INSERT INTO {table} SELECT value, value * {step} % 20 FROM {numbers}");
        conn.execute(&insert, &[]).unwrap();
    }
    let sql = "EXPLAIN ANALYZE SELECT b.k, count(*), count(*) OVER () FROM a JOIN b ON a.k = b.k WHERE a.id <= 5000 \
               GROUP BY b.k ORDER BY b.k";
    let lines = lines(&conn, sql);
    let noted = |start: &str| -> Vec<&str> {
        let line = lines.iter().find(|line| line.trim_start().trim_start_matches("sinter: ").starts_with(start));
        let line = line.unwrap_or_else(|| panic!("no line '{start}' in\n{}", lines.join("\n")));
        let (_, note) = line.split_once(" -- ").unwrap_or_else(|| panic!("nothing is said in '{line}'"));
        note.split(", ").collect()
    };
    assert_eq!(noted("Scan a")[0], "5000 rows");
    assert_eq!(noted("Scan b")[0], "10 rows");
    assert_eq!(noted("inner join")[0], "2500 rows");
    for operator in ["group by", "window", "order by"] {
        let note = noted(operator);
        assert_eq!(note[0], if operator == "group by" { "of 2500 rows" } else { "of 10 rows" }, "{}", lines.join("\n"));
        let is_said = note[1].ends_with(" ms") && note[2].contains(" thread") && note[3].ends_with(" bytes held");
        assert!(is_said, "{}", lines.join("\n"));
    }
    assert!(lines.iter().any(|line| line.trim_start().starts_with("scanned: 0 of 1 row groups pruned")));
    assert!(!lines.iter().any(|line| line.contains("datafusion:")), "{}", lines.join("\n"));
}

#[test]
fn explain_analyze_counts_who_reads_unions_and_rows_that_met_nobody() {
    let conn = Database::memory().unwrap().connect();
    for (table, step) in [("a", 1), ("b", 3)] {
        conn.execute(
            &format!("CREATE TABLE {table} AS SELECT value * {step} AS id FROM generate_series(1, 20000)"),
            &[],
        )
        .unwrap();
    }
    let analyzed = |sql: &str| lines(&conn, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
    let plan = analyzed("SELECT sum(id) FROM (SELECT id FROM a UNION ALL SELECT id FROM b) AS all_ids");
    assert!(plan.contains("Scan a [id] -- 20000 rows") && !plan.contains(" 0 threads"), "{plan}");
    // 6666 of each meet each other.
    for (join, rows) in [("FULL", 33_334), ("RIGHT", 20_000), ("LEFT", 20_000)] {
        let plan = analyzed(&format!("SELECT count(*), count(a.id) FROM a {join} JOIN b ON a.id = b.id"));
        let line = plan.lines().find(|line| line.contains(" join: ")).unwrap_or_else(|| panic!("{plan}"));
        assert!(line.contains(&format!(" -- {rows} rows, ")), "{join}\n{plan}");
    }
}

#[test]
fn explain_analyze_tells_of_each_operator_its_rows_time_and_threads() {
    let conn = Database::memory().unwrap().connect();
    conn.execute("CREATE TABLE t AS SELECT value AS a, value % 7 AS b FROM generate_series(1, 20000)", &[]).unwrap();
    let analyzed = |sql: &str| lines(&conn, &format!("EXPLAIN ANALYZE {sql}"));
    for (sql, operators) in [
        ("SELECT t.b, sum(u.a) FROM t JOIN t AS u ON t.a = u.b WHERE t.a < u.a GROUP BY t.b ORDER BY t.b", 7),
        ("SELECT sum(a) FROM t WHERE a % 3 = 1", 2),
        ("SELECT a, row_number() OVER (PARTITION BY b ORDER BY a) AS n FROM t", 3),
    ] {
        let plan = analyzed(sql);
        let operators_there: Vec<&String> = plan.iter().filter(|line| line.contains(" -- ")).collect();
        assert!(operators_there.len() >= operators, "{sql}\n{}", plan.join("\n"));
        for line in operators_there {
            assert!(line.contains(" rows, ") && line.contains(" ms, ") && line.contains(" thread"), "{line}");
        }
        // Nothing is said of tests that there are not.
        assert!(
            !plan.iter().any(|line| line.contains("scanned: ") && line.contains(" 0 tests")),
            "{}",
            plan.join("\n")
        );
    }
    let by_datafusion = analyzed("SELECT stddev(a) OVER (PARTITION BY b) FROM t").join("\n");
    assert!(by_datafusion.contains("datafusion: ") && by_datafusion.contains(" partitions"), "{by_datafusion}");

    let bytes = |decompression: &str| {
        conn.execute(&format!("SET sinter.decompression = '{decompression}'"), &[]).unwrap();
        let plan = analyzed("SELECT sum(a % 3) FROM t");
        plan.iter()
            .find(|line| line.contains("bytes compressed: "))
            .map(|line| line.split(',').next().map(str::to_owned))
    };
    assert_eq!(bytes("page"), bytes("vector"), "what is stored");
}

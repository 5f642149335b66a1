//! What becomes of statements, written without quotes and marks.

use super::rewrite;
use crate::parse::parse_one;
use crate::progress::Notes;
use crate::{Database, DatabaseOptions, Result, Session};

fn session() -> Session {
    let session = Database::open(None, DatabaseOptions::in_memory()).unwrap().session();
    for sql in [
        "CREATE TABLE a (k INT, x INT, n INT)",
        "CREATE TABLE b (y INT, k INT, n INT)",
        "CREATE TABLE c (k BIGINT, z INT)",
        "CREATE TABLE d (w INT)",
        "CREATE SCHEMA s",
        "CREATE TABLE s.a (k INT)",
    ] {
        session.query(sql, &[]).unwrap();
    }
    session
}

fn rewritten(session: &Session, sql: &str, tells_apart: bool) -> Result<String> {
    let state = session.statement_state(session.readable()?, Notes::default());
    let mut sql = parse_one(sql)?;
    rewrite(&state, &mut sql, tells_apart)?;
    Ok(sql.to_string().replace(['"', '\u{1}'], ""))
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    let session = session();
    for (sql, expected) in cases {
        assert_eq!(rewritten(&session, sql, false).unwrap(), *expected, "{sql}");
    }
}

#[test]
fn plain_names_get_their_tables() {
    check(&[
        (
            "SELECT k, y FROM a RIGHT JOIN b USING (k) WHERE k = 2",
            "SELECT b.k, y FROM a RIGHT JOIN b ON a.k = b.k WHERE b.k = 2",
        ),
        (
            "SELECT k FROM a JOIN b USING (k, n) LEFT JOIN c USING (k) GROUP BY k HAVING k > 1 ORDER BY k",
            "SELECT a.k FROM a JOIN b ON a.k = b.k AND a.n = b.n LEFT JOIN c ON a.k = c.k GROUP BY a.k HAVING a.k > 1 \
             ORDER BY a.k",
        ),
        (
            "SELECT sum(x) OVER (PARTITION BY k) AS s FROM a LEFT JOIN c USING (k) JOIN d ON w = k",
            "SELECT sum(x) OVER (PARTITION BY a.k) AS s FROM a LEFT JOIN c ON a.k = c.k JOIN d ON w = a.k",
        ),
        ("SELECT k FROM a LEFT SEMI JOIN b USING (k)", "SELECT k FROM a LEFT SEMI JOIN b ON a.k = b.k"),
        ("SELECT a.k FROM a JOIN b ON a.k = b.k", "SELECT a.k FROM a JOIN b ON a.k = b.k"),
    ]);
}

#[test]
fn full_joins_have_columns_of_their_own() {
    check(&[(
        "SELECT k, a.k FROM a FULL JOIN b USING (k) FULL JOIN c USING (k)",
        "SELECT full_join_2.k, a.k FROM (SELECT coalesce(a.k, b.k, c.k) AS k FROM \
         (SELECT coalesce(a.k, b.k) AS k FROM a FULL JOIN b ON a.k = b.k) AS full_join_1 \
         FULL JOIN c ON full_join_1.k = c.k) AS full_join_2",
    )]);
}

#[test]
fn a_star_has_shared_columns_where_the_left_side_has_them() {
    check(&[
        ("SELECT * FROM b LEFT JOIN a USING (k)", "SELECT b.y, b.k, b.n, a.x, a.n FROM b LEFT JOIN a ON b.k = a.k"),
        (
            "SELECT * EXCLUDE (k) REPLACE (x + k AS x) FROM a NATURAL RIGHT JOIN b",
            "SELECT x + b.k AS x, b.n, b.y FROM a RIGHT JOIN b ON a.k = b.k AND a.n = b.n",
        ),
        (
            "SELECT *, k FROM a JOIN (SELECT 2 AS k) USING (k)",
            "SELECT a.k, a.x, a.n, a.k AS k_2 FROM a JOIN (SELECT 2 AS k) AS subquery_1 ON a.k = subquery_1.k",
        ),
        (
            "SELECT * FROM c JOIN (a JOIN b USING (k, n)) AS j USING (k)",
            "SELECT c.k, c.z, j.x, j.n, j.y FROM c JOIN \
             (SELECT a.k, a.x, a.n, b.y FROM a JOIN b ON a.k = b.k AND a.n = b.n) AS j ON c.k = j.k",
        ),
    ]);
}

#[test]
fn what_comes_twice_gets_names_of_its_own() {
    let session = session();
    for (sql, expected) in [
        ("SELECT *, k FROM a", "SELECT a.k, a.x, a.n, k AS k_2 FROM a"),
        ("SELECT k, a.*, a.k FROM a", "SELECT k, a.k AS k_2, a.x, a.n, a.k AS k_3 FROM a"),
        ("SELECT x, x + 1 AS x, 1 AS x_2 FROM a", "SELECT x, x + 1 AS x_3, 1 AS x_2 FROM a"),
        ("SELECT 1 AS k, * FROM c", "SELECT 1 AS k, c.k AS k_2, c.z FROM c"),
        ("SELECT a.*, b.k FROM a JOIN b ON a.k = b.k", "SELECT a.k, a.x, a.n, b.k FROM a JOIN b ON a.k = b.k"),
        (
            "SELECT k, b.* FROM c RIGHT JOIN b USING (k)",
            "SELECT b.k, b.y, b.k AS k_2, b.n FROM c RIGHT JOIN b ON c.k = b.k",
        ),
        ("SELECT x, -x AS x FROM a ORDER BY x, -x", "SELECT x, -x AS x_2 FROM a ORDER BY x_2, -x"),
        ("SELECT -x AS x, x FROM a ORDER BY x", "SELECT -x AS x, x AS x_2 FROM a ORDER BY x"),
        ("SELECT *, z FROM c JOIN d ON w = z", "SELECT c.k, c.z, d.w, z AS z_2 FROM c JOIN d ON w = z"),
        (
            "SELECT w FROM d WHERE w IN (SELECT y FROM (SELECT y, *, 2 AS y FROM b))",
            "SELECT w FROM d WHERE w IN (SELECT y FROM (SELECT y, b.y AS y_2, b.k, b.n, 2 AS y_3 FROM b))",
        ),
    ] {
        assert_eq!(rewritten(&session, sql, true).unwrap(), expected, "{sql}");
    }
}

#[test]
fn natural_joins_without_a_column_in_common_keep_their_kind() {
    check(&[
        ("SELECT x FROM a NATURAL LEFT JOIN d", "SELECT x FROM a LEFT JOIN d ON true"),
        ("SELECT x FROM a NATURAL JOIN d", "SELECT x FROM a CROSS JOIN d"),
    ]);
}

#[test]
fn a_name_means_the_innermost_column() {
    check(&[
        (
            "SELECT x FROM a RIGHT JOIN b USING (k) WHERE EXISTS (SELECT w FROM d WHERE w = k)",
            "SELECT x FROM a RIGHT JOIN b ON a.k = b.k WHERE EXISTS (SELECT w FROM d WHERE w = b.k)",
        ),
        (
            "SELECT x FROM a RIGHT JOIN b USING (k) WHERE EXISTS (SELECT z FROM c WHERE z = k)",
            "SELECT x FROM a RIGHT JOIN b ON a.k = b.k WHERE EXISTS (SELECT z FROM c WHERE z = k)",
        ),
        (
            "SELECT x FROM a RIGHT JOIN b USING (k) WHERE x IN (SELECT w AS k FROM d GROUP BY k ORDER BY k)",
            "SELECT x FROM a RIGHT JOIN b ON a.k = b.k WHERE x IN (SELECT w AS k FROM d GROUP BY k ORDER BY k)",
        ),
        (
            "WITH q AS (SELECT z AS k FROM c) SELECT x AS k FROM a RIGHT JOIN q USING (k) WHERE k > 1 ORDER BY k",
            "WITH q AS (SELECT z AS k FROM c) SELECT x AS k FROM a RIGHT JOIN q ON a.k = q.k WHERE q.k > 1 ORDER BY k",
        ),
        (
            "SELECT l.k FROM a RIGHT JOIN b USING (k), LATERAL (SELECT z AS k FROM c WHERE z > y) AS l",
            "SELECT l.k FROM a RIGHT JOIN b ON a.k = b.k, LATERAL (SELECT z AS k FROM c WHERE z > y) AS l",
        ),
        (
            "SELECT x FROM a WHERE EXISTS (SELECT z FROM (SELECT * FROM d WHERE w = a.x) AS e(k) RIGHT JOIN c USING (k))",
            "SELECT x FROM a WHERE EXISTS (SELECT z FROM (SELECT * FROM d WHERE w = a.x) AS e (k) RIGHT JOIN c \
             ON e.k = c.k)",
        ),
    ]);
}

#[test]
fn what_cannot_be_told_is_refused() {
    let session = session();
    for (sql, expected) in [
        ("SELECT 1 FROM a JOIN b USING (y)", "No field named y on the left side"),
        ("SELECT 1 FROM a JOIN b ON a.k = b.k JOIN c USING (k)", "twice, \"a\".\"k\" and \"b\".\"k\""),
        ("SELECT 1 FROM a JOIN s.a USING (k)", "with AS"),
        ("SELECT * EXCLUDE (w) FROM a JOIN b USING (k)", "No field named w"),
        ("SELECT * ILIKE 'k%' FROM a JOIN b USING (k)", "not supported"),
    ] {
        let error = rewritten(&session, sql, false).unwrap_err().to_string();
        assert!(error.contains(expected), "{sql}: {error}");
    }
}

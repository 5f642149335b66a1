"""A frame that a variable of the caller holds can be queried by the variable's name, as in DuckDB."""

import pytest

import sinterdb

pa = pytest.importorskip("pyarrow")

everywhere = pa.table({"a": [10, 20]})


def test_locals_and_globals_are_found(db: sinterdb.Connection) -> None:
    here = pa.table({"a": [1, 2, 3]})
    assert db.sql("SELECT sum(a) FROM here").fetchall() == [(6,)]
    assert db.sql("SELECT sum(a) FROM everywhere").fetchall() == [(30,)]
    assert db.execute("SELECT sum(a) FROM here").fetchall() == [(6,)]
    assert db.cursor().execute("SELECT sum(a) FROM here").fetchall() == [(6,)]
    assert db.sql("SELECT h.a, e.a FROM here h JOIN everywhere AS e ON e.a = 10 * h.a ORDER BY 1").fetchall() == [
        (1, 10),
        (2, 20),
    ]


def test_a_local_comes_before_a_global(db: sinterdb.Connection) -> None:
    everywhere = pa.table({"a": [1]})
    assert db.sql("SELECT a FROM everywhere").fetchall() == [(1,)]


def test_a_table_comes_before_a_frame(db: sinterdb.Connection) -> None:
    db.execute("CREATE TABLE here (a INTEGER)")
    here = pa.table({"a": [1, 2, 3]})
    assert db.sql("SELECT count(*) FROM here").fetchall() == [(0,)]


def test_names_with_capitals(db: sinterdb.Connection) -> None:
    Sales = pa.table({"a": [1]})
    assert db.sql("SELECT a FROM Sales").fetchall() == [(1,)]
    assert db.sql('SELECT a FROM "Sales"').fetchall() == [(1,)]


def test_a_found_frame_does_not_stay(db: sinterdb.Connection) -> None:
    def inner() -> sinterdb.Relation:
        gone = pa.table({"a": [1]})
        return db.sql("SELECT a FROM gone")

    relation = inner()
    # The relation keeps what it was made of, run after run.
    assert relation.fetchall() == [(1,)]
    assert relation.to_arrow().num_rows == 1
    assert "a" in relation.explain() or relation.explain()
    with pytest.raises(sinterdb.ProgrammingError, match="gone"):
        db.sql("SELECT a FROM gone")


def test_frames_feed_commands(db: sinterdb.Connection) -> None:
    rows = pa.table({"a": [1, 2]})
    db.execute("CREATE TABLE t AS SELECT * FROM rows")
    assert db.execute("INSERT INTO t SELECT a + 10 FROM rows").rowcount == 2
    assert db.sql("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (2,), (11,), (12,)]


def test_a_script_is_not_run_twice_for_a_frame(db: sinterdb.Connection) -> None:
    rows = pa.table({"a": [1]})
    db.execute("CREATE TABLE t (a BIGINT); INSERT INTO t VALUES (5); INSERT INTO t SELECT * FROM rows;")
    assert db.sql("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (5,)]


def test_a_relation_is_a_frame_too(db: sinterdb.Connection) -> None:
    small = db.sql("SELECT 1 AS a UNION ALL SELECT 2")
    assert db.sql("SELECT sum(a) FROM small").fetchall() == [(3,)]


def test_what_is_no_frame_is_not_found(db: sinterdb.Connection) -> None:
    number = 5
    with pytest.raises(sinterdb.ProgrammingError, match="number"):
        db.sql("SELECT * FROM number")


def test_texts_and_comments_hold_no_names(db: sinterdb.Connection) -> None:
    from sinterdb import frames

    assert list(frames._names("SELECT 'here', \"a b\" -- here\n/* here */ FROM X")) == [
        ("SELECT", "select"),
        ("a b", "a b"),
        ("FROM", "from"),
        ("X", "x"),
    ]

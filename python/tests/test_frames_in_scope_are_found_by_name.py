"""A frame that a variable of the caller holds can be queried by the variable's name, as in DuckDB."""

import pathlib
from typing import Any

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


class Unread:
    """A frame that nobody may read."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise AssertionError("read without need")


def test_only_what_is_missing_is_read(db: sinterdb.Connection) -> None:
    db.execute("CREATE TABLE t (a INTEGER)")
    a = t = nothing = alias = Unread()
    here, there = pa.table({"a": [1]}), pa.table({"b": [2]})
    assert db.sql("SELECT alias.a, b FROM here AS alias, there, (SELECT count(*) AS n FROM t)").fetchall() == [(1, 2)]
    for wrong in ("SELECT nothing FROM t", "SELECT a FROM t WHERE", "SELECT nothing FROM here", "SELECT a FROM s.t"):
        with pytest.raises(sinterdb.ProgrammingError):
            db.sql(wrong)
    with pytest.raises(AssertionError, match="read without need"):
        db.sql("SELECT a FROM nothing")


def test_a_registered_frame_stays_whatever_happens(db: sinterdb.Connection) -> None:
    """Frames in scope once took the place of registered ones where a statement failed, and took them along."""
    db.register("sales", pa.table({"a": [1]}))
    sales, other = pa.table({"a": [2, 3]}), pa.table({"b": [7]})
    for wrong in ("SELECT nothing FROM sales", "SELECT a FROM sales WHERE", "SELECT a FROM sales, nowhere"):
        with pytest.raises(sinterdb.ProgrammingError):
            db.sql(wrong)
        assert db.sql("SELECT a FROM sales").fetchall() == [(1,)]
    assert db.sql("SELECT a, b FROM other, sales").fetchall() == [(1, 7)]
    assert db.sql("SELECT a FROM sales").fetchall() == [(1,)]
    assert db.unregister("sales")


def test_registering_a_name_that_a_relation_found_keeps_it(db: sinterdb.Connection) -> None:
    sales = pa.table({"a": [1]})
    relation = db.sql("SELECT a FROM sales")
    db.register("sales", pa.table({"a": [2]}))
    assert relation.fetchall() == [(1,)], "planned before"
    assert relation.to_arrow().to_pylist() == [{"a": 2}], "what the database knows comes first"
    assert db.sql("SELECT a FROM sales").fetchall() == [(2,)]
    assert db.unregister("sales")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM {}",
        "SELECT * FROM public.{}",
        "SELECT 1 WHERE 1 IN (SELECT a FROM {})",
        "WITH x AS (SELECT * FROM {}) SELECT * FROM x",
        "EXPLAIN SELECT * FROM {}",
        "CREATE TABLE made AS SELECT * FROM {}",
        "COPY (SELECT * FROM {}) TO 'out.csv'",
    ],
)
def test_the_library_names_what_is_missing(
    db: sinterdb.Connection, sql: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message of the library is what tells a missing table from other errors."""
    from sinterdb import frames

    monkeypatch.chdir(tmp_path)
    for name in ("nowhere", '"No Where"', '"it\'s"'):
        with pytest.raises(sinterdb.ProgrammingError) as error:
            db.execute(sql.format(name))
        assert frames.missing(error.value) == name.strip('"')
    here: Any = pa.table({"a": [1]})
    db.execute(sql.format("here"))


def test_other_errors_name_nothing(db: sinterdb.Connection) -> None:
    from sinterdb import frames

    for sql in ("SELECT nothing", "SELECT * FROM here(1)", "SELECT 'there is no table ''here'';' + 1 FROM", "SELEC"):
        with pytest.raises(sinterdb.Error) as error:
            db.execute(sql)
        assert frames.missing(error.value) is None


def test_texts_and_comments_hold_no_names(db: sinterdb.Connection) -> None:
    from sinterdb import frames

    assert list(frames._names("SELECT 'here', \"a b\" -- here\n/* here */ FROM X")) == [
        ("SELECT", "select"),
        ("a b", "a b"),
        ("FROM", "from"),
        ("X", "x"),
    ]

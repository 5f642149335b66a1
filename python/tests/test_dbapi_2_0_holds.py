"""DB-API 2.0, PEP 249, point by point."""

import inspect

import pytest

import sinterdb


@pytest.fixture
def cursor(db: sinterdb.Connection) -> sinterdb.Cursor:
    db.execute("CREATE TABLE t (a INTEGER, b VARCHAR)")
    db.executemany("INSERT INTO t VALUES (?, ?)", [(1, "one"), (2, "two"), (3, None)])
    return db.cursor()


def test_module_constants() -> None:
    assert sinterdb.apilevel == "2.0"
    assert sinterdb.threadsafety == 2
    assert sinterdb.paramstyle == "qmark"


def test_exceptions_stand_in_the_given_order() -> None:
    assert issubclass(sinterdb.Warning, Exception)
    assert issubclass(sinterdb.Error, Exception)
    assert issubclass(sinterdb.InterfaceError, sinterdb.Error)
    assert issubclass(sinterdb.DatabaseError, sinterdb.Error)
    for kind in (
        sinterdb.DataError,
        sinterdb.OperationalError,
        sinterdb.IntegrityError,
        sinterdb.InternalError,
        sinterdb.ProgrammingError,
        sinterdb.NotSupportedError,
    ):
        assert issubclass(kind, sinterdb.DatabaseError)
        assert getattr(sinterdb.Connection, kind.__name__) is kind


def test_a_query_describes_its_columns(cursor: sinterdb.Cursor) -> None:
    assert cursor.description is None
    cursor.execute("SELECT a, b FROM t")
    assert cursor.description is not None
    assert [column[0] for column in cursor.description] == ["a", "b"]
    assert all(len(column) == 7 for column in cursor.description)
    assert cursor.description[0][1] == sinterdb.NUMBER
    assert cursor.description[0][1] != sinterdb.STRING
    assert cursor.description[1][1] == sinterdb.STRING
    cursor.execute("INSERT INTO t VALUES (4, 'four')")
    assert cursor.description is None


def test_fetching_walks_over_the_rows(cursor: sinterdb.Cursor) -> None:
    assert cursor.execute("SELECT a FROM t ORDER BY a") is cursor
    assert cursor.fetchone() == (1,)
    assert cursor.fetchmany() == [(2,)]
    assert cursor.fetchall() == [(3,)]
    assert cursor.fetchone() is None
    assert cursor.fetchmany(5) == []
    assert cursor.fetchall() == []


def test_arraysize_is_what_fetchmany_returns(cursor: sinterdb.Cursor) -> None:
    cursor.arraysize = 2
    cursor.execute("SELECT a FROM t ORDER BY a")
    assert cursor.fetchmany() == [(1,), (2,)]
    assert cursor.fetchmany() == [(3,)]


def test_a_cursor_is_an_iterator(cursor: sinterdb.Cursor) -> None:
    cursor.execute("SELECT a FROM t ORDER BY a")
    assert next(cursor) == (1,)
    assert list(cursor) == [(2,), (3,)]


def test_rowcount_counts_changes(cursor: sinterdb.Cursor) -> None:
    assert cursor.rowcount == -1
    assert cursor.execute("INSERT INTO t VALUES (4, 'four'), (5, 'five')").rowcount == 2
    assert cursor.executemany("INSERT INTO t VALUES (?, ?)", [(6, "six"), (7, "seven")]).rowcount == 2
    assert cursor.execute("UPDATE t SET b = 'x' WHERE a > 5").rowcount == 2
    assert cursor.execute("DELETE FROM t WHERE a > 4").rowcount == 3
    assert cursor.execute("SELECT count(*) FROM t").rowcount == -1
    assert cursor.fetchone() == (4,)


def test_fetching_without_a_query_is_an_error(db: sinterdb.Connection, cursor: sinterdb.Cursor) -> None:
    with pytest.raises(sinterdb.Error):
        cursor.fetchone()
    cursor.execute("INSERT INTO t VALUES (4, 'four')")
    with pytest.raises(sinterdb.Error):
        cursor.fetchall()


def test_parameters_are_values_and_never_sql(cursor: sinterdb.Cursor) -> None:
    trap = "'; DROP TABLE t; --"
    cursor.execute("INSERT INTO t VALUES (?, ?)", [9, trap])
    assert cursor.execute("SELECT b FROM t WHERE a = ?", (9,)).fetchall() == [(trap,)]


@pytest.mark.parametrize("parameters", [[], [1], [1, 2, 3], "ab", {"a": 1}])
def test_wrong_parameters_are_refused(cursor: sinterdb.Cursor, parameters: object) -> None:
    with pytest.raises(sinterdb.Error):
        cursor.execute("INSERT INTO t VALUES (?, ?)", parameters)  # type: ignore[arg-type]
    assert cursor.execute("SELECT count(*) FROM t").fetchone() == (3,)


def test_executemany_inserts_in_one_commit(cursor: sinterdb.Cursor) -> None:
    with pytest.raises(sinterdb.Error):
        cursor.executemany("INSERT INTO t VALUES (?, ?)", [(10, "ten"), ("no number", "x")])
    assert cursor.execute("SELECT count(*) FROM t").fetchone() == (3,)
    assert cursor.executemany("INSERT INTO t VALUES (?, ?)", []).rowcount == 0


def test_executemany_of_anything_else_commits_row_by_row(cursor: sinterdb.Cursor) -> None:
    with pytest.raises(sinterdb.Error):
        cursor.executemany("UPDATE t SET a = ? WHERE a = ?", [(20, 2), ("no number", 3)])
    assert cursor.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (3,), (20,)]


def test_executemany_takes_rows_that_the_connection_itself_yields(cursor: sinterdb.Cursor) -> None:
    rows = cursor.connection.sql("SELECT a + 10, b FROM t")
    assert cursor.executemany("INSERT INTO t VALUES (?, ?)", (row for row in rows)).rowcount == 3
    assert cursor.execute("SELECT count(*) FROM t").fetchone() == (6,)


def test_closed_things_refuse(db: sinterdb.Connection, cursor: sinterdb.Cursor) -> None:
    cursor.execute("SELECT a FROM t")
    cursor.close()
    with pytest.raises(sinterdb.Error):
        cursor.fetchone()
    with pytest.raises(sinterdb.Error):
        cursor.execute("SELECT 1")
    other = db.cursor()
    db.close()
    db.close()
    assert db.closed
    for use in (
        lambda: other.execute("SELECT 1"),
        lambda: db.execute("SELECT 1"),
        lambda: db.sql("SELECT 1"),
        db.cursor,
        db.commit,
        db.interrupt,
    ):
        with pytest.raises(sinterdb.Error):
            use()


def test_context_managers_close() -> None:
    with sinterdb.connect() as db:
        with db.cursor() as cursor:
            cursor.execute("SELECT 1")
        with pytest.raises(sinterdb.Error):
            cursor.fetchone()
    assert db.closed


def test_commit_and_rollback_end_what_begin_began(db: sinterdb.Connection) -> None:
    db.execute("CREATE TABLE t (a INTEGER)")
    # Outside of a transaction every statement has committed by itself.
    db.execute("INSERT INTO t VALUES (1)")
    db.rollback()
    db.commit()
    for end, rows in ((db.rollback, 1), (db.commit, 2)):
        db.execute("BEGIN")
        assert db.in_transaction
        db.execute("INSERT INTO t VALUES (2)")
        end()
        assert not db.in_transaction
        assert db.sql("SELECT count(*) FROM t").fetchall() == [(rows,)]


def test_constructors(db: sinterdb.Connection) -> None:
    ticks = 86400.0 * 365
    row = [sinterdb.Date(2020, 1, 2), sinterdb.Time(1, 2, 3), sinterdb.Timestamp(2020, 1, 2, 3, 4, 5)]
    row += [sinterdb.DateFromTicks(ticks), sinterdb.TimeFromTicks(ticks), sinterdb.TimestampFromTicks(ticks)]
    row += [sinterdb.Binary(b"\0")]
    assert db.execute("SELECT ?, ?, ?, ?, ?, ?, ?", row).fetchone() == tuple(row)


def test_every_public_thing_has_a_docstring() -> None:
    for kind in (sinterdb, sinterdb.Connection, sinterdb.Cursor, sinterdb.Relation, sinterdb.Batch):
        for name, member in inspect.getmembers(kind):
            if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                assert inspect.getdoc(member), f"{kind.__name__}.{name}"

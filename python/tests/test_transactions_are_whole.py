"""Transactions from Python: whole, or not at all, and run again where they conflict."""

import pytest

import sinterdb


@pytest.fixture
def counted(db: sinterdb.Connection) -> sinterdb.Connection:
    db.execute("CREATE TABLE t (a INTEGER)")
    db.execute("INSERT INTO t VALUES (0)")
    return db


def test_a_block_commits(counted: sinterdb.Connection) -> None:
    with counted.transaction() as tx:
        tx.execute("UPDATE t SET a = a + ?", [1])
        tx.executemany("INSERT INTO t VALUES (?)", [[10], [20]])
        assert tx.sql("SELECT sum(a) FROM t").fetchall() == [(31,)]
        # Others see nothing of it yet.
        assert counted.sql("SELECT sum(a) FROM t").fetchall() == [(0,)]
    assert counted.sql("SELECT sum(a) FROM t").fetchall() == [(31,)]
    with pytest.raises(sinterdb.ProgrammingError, match="closed"):
        tx.execute("SELECT 1")


def test_an_exception_takes_all_of_it_back(counted: sinterdb.Connection) -> None:
    with pytest.raises(ZeroDivisionError), counted.transaction() as tx:
        tx.execute("INSERT INTO t VALUES (5)")
        tx.execute("CREATE TABLE u (a INTEGER)")
        1 / 0  # noqa: B018
    assert counted.sql("SELECT count(*) FROM t").fetchall() == [(1,)]
    with pytest.raises(sinterdb.ProgrammingError):
        counted.execute("SELECT * FROM u")


def test_a_conflict_is_told(counted: sinterdb.Connection) -> None:
    with pytest.raises(sinterdb.ConflictError, match="run the transaction again"), counted.transaction() as tx:
        tx.execute("UPDATE t SET a = a + 1")
        counted.execute("UPDATE t SET a = 100")
    assert counted.sql("SELECT a FROM t").fetchall() == [(100,)]
    assert issubclass(sinterdb.ConflictError, sinterdb.OperationalError)


def test_a_function_is_run_again(counted: sinterdb.Connection) -> None:
    tries = []

    @counted.transaction(retry=2)
    def add(tx: sinterdb.Transaction, number: int) -> int:
        tries.append(number)
        tx.execute("UPDATE t SET a = a + ?", [number])
        if len(tries) < 3:
            counted.execute("UPDATE t SET a = a + 100")
        return number * 2

    assert add(7) == 14
    assert tries == [7, 7, 7]
    assert counted.sql("SELECT a FROM t").fetchall() == [(207,)]
    tries.clear()
    with pytest.raises(sinterdb.ConflictError):
        counted.transaction()(add.__wrapped__)(1)  # type: ignore[attr-defined]
    assert tries == [1]


def test_a_block_cannot_be_run_again(counted: sinterdb.Connection) -> None:
    with pytest.raises(sinterdb.ProgrammingError, match="decorate"), counted.transaction(retry=3):
        pass
    with pytest.raises(sinterdb.ProgrammingError, match="0 or more"):
        counted.transaction(retry=-1)


def test_who_only_reads_sees_one_state(counted: sinterdb.Connection) -> None:
    with counted.transaction(read_only=True) as tx:
        assert tx.sql("SELECT a FROM t").fetchall() == [(0,)]
        counted.execute("UPDATE t SET a = 1")
        assert tx.sql("SELECT a FROM t").fetchall() == [(0,)]
        with pytest.raises(sinterdb.ProgrammingError, match="read-only"):
            tx.execute("DELETE FROM t")
    assert counted.sql("SELECT a FROM t").fetchall() == [(1,)]


def test_savepoints(counted: sinterdb.Connection) -> None:
    with counted.transaction() as tx:
        tx.execute("INSERT INTO t VALUES (1)")
        tx.execute("SAVEPOINT one")
        tx.execute("DELETE FROM t")
        tx.execute("ROLLBACK TO one")
    assert counted.sql("SELECT count(*) FROM t").fetchall() == [(2,)]


def test_frames_in_scope_are_found_within(counted: sinterdb.Connection) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    more = pyarrow.table({"a": pyarrow.array([5, 6], pyarrow.int32())})
    with counted.transaction() as tx:
        tx.execute("INSERT INTO t SELECT a FROM more")
    assert more.num_rows == 2
    assert counted.sql("SELECT sum(a) FROM t").fetchall() == [(11,)]

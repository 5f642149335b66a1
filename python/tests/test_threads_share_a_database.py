"""Threads share a connection; each statement sees one state of the database."""

import threading
from concurrent.futures import ThreadPoolExecutor

import sinterdb


def test_threads_read_and_write_through_one_connection(db: sinterdb.Connection) -> None:
    db.execute("CREATE TABLE t (thread INTEGER, step INTEGER)")
    torn: list[object] = []

    def write(thread: int) -> None:
        for step in range(20):
            db.execute("INSERT INTO t VALUES (?, ?), (?, ?)", [thread, step, thread, -step])

    def read(_: int) -> None:
        for _ in range(20):
            rows = db.execute("SELECT count(*), sum(step) FROM t").fetchall()
            count, total = rows[0]
            if count % 2 != 0 or (count and total != 0):
                torn.append(rows)

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(write, n) for n in range(4)] + [pool.submit(read, n) for n in range(4)]:
            future.result()
    assert torn == []
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(160,)]


def test_frames_of_the_same_name_do_not_mix(db: sinterdb.Connection) -> None:
    import pytest

    pa = pytest.importorskip("pyarrow")

    def query(value: int) -> bool:
        mine = pa.table({"a": [value] * 10})
        # No generator: its scope would be another than that of the frame.
        for _ in range(10):
            if db.sql("SELECT DISTINCT a FROM mine").fetchall() != [(value,)]:
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(query, range(16)))


def test_one_cursor_read_by_two_threads_loses_no_row(db: sinterdb.Connection) -> None:
    db.execute("CREATE TABLE t AS SELECT value AS a FROM range(20000) AS r(value)")
    cursor = db.execute("SELECT a FROM t")
    seen: list[int] = []
    lock = threading.Lock()

    def drain() -> None:
        while rows := cursor.fetchmany(97):
            with lock:
                seen.extend(value for (value,) in rows)

    threads = [threading.Thread(target=drain) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(20000))

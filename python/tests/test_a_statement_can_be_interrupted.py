"""Ctrl-C and `interrupt` end what runs, and the connection goes on."""

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

import sinterdb

PATIENCE_S = 5.0
"""Far more than an interruption takes, far less than the query."""


def test_interrupt_ends_a_query(db: sinterdb.Connection, slow: str) -> None:
    timer = threading.Timer(0.3, db.interrupt)
    timer.start()
    begin = time.monotonic()
    with pytest.raises(sinterdb.CancelledError):
        db.sql(slow).fetchall()
    assert time.monotonic() - begin < PATIENCE_S
    assert db.sql("SELECT 1").fetchall() == [(1,)]


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C as at a terminal, also where whoever started the tests has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_query(db: sinterdb.Connection, slow: str) -> None:
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        db.sql(slow).to_arrow()
    assert time.monotonic() - begin < PATIENCE_S
    assert db.sql("SELECT 1").fetchall() == [(1,)]


def test_an_interrupt_with_nothing_to_end_does_nothing(db: sinterdb.Connection) -> None:
    db.interrupt()
    assert db.sql("SELECT 1").fetchall() == [(1,)]


def test_other_threads_run_meanwhile(db: sinterdb.Connection, slow: str) -> None:
    ticks = 0
    running = threading.Event()

    def stop() -> None:
        running.set()
        time.sleep(0.5)
        db.interrupt()

    threading.Thread(target=stop).start()
    running.wait()

    done = threading.Event()

    def query() -> None:
        with pytest.raises(sinterdb.CancelledError):
            db.sql(slow).fetchall()
        done.set()

    thread = threading.Thread(target=query)
    thread.start()
    while not done.wait(0.01):
        ticks += 1
    thread.join()
    assert ticks > 5, "the interpreter was free while the query ran"

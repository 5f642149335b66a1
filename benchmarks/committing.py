"""The process of one engine in `commits`, for engines that are measured through Python; prints what it found as JSON.

    python -m benchmarks.committing '{"engine": "duckdb", "level": "full", "work": "insert", "clients": 8, ...}'

The same work as `sinter-bench commits` (crates/bench/src/commits), with threads as clients.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

ROWS_BEFORE = 8000
KEYS_PER_CLIENT = 1 << 40
TEXT_CHARACTERS = 84
MARK = "/measured-from-here-to-here"

INSERT = "INSERT INTO t VALUES (?, ?, ?)"
UPDATE = "UPDATE t SET amount = ?, text = ? WHERE id = ?"
TOTALS = "SELECT count(*), CAST(sum(amount) AS BIGINT) FROM t"

Execute = Callable[[str, list[Any]], Any]


class Engine(Protocol):
    """A database that is open."""

    def fill(self, keys: list[int], texts: list[str]) -> None:
        """Make the table with these rows, whose amounts are 0."""

    def client(self) -> Execute:
        """Return what runs a statement with parameters, on a connection of its own."""

    def close(self) -> None:
        """Close the database."""


class Sinter:
    """SinterDB."""

    def __init__(self, folder: Path, level: str) -> None:
        import sinterdb

        self.retried: tuple[type[Exception], ...] = (sinterdb.ConflictError,)
        self._connect = lambda: sinterdb.connect(folder / "t.sinter", synchronous=level)
        self._connections = [self._connect()]

    def fill(self, keys: list[int], texts: list[str]) -> None:
        """Insert all in one commit."""
        connection = self._connections[0]
        connection.execute("CREATE TABLE t (id BIGINT NOT NULL, amount BIGINT NOT NULL, text VARCHAR NOT NULL)")
        connection.executemany(INSERT, [[key, 0, text] for key, text in zip(keys, texts, strict=True)])

    def client(self) -> Execute:
        """Connect once more."""
        self._connections.append(self._connect())
        return self._connections[-1].execute

    def close(self) -> None:
        """Close all."""
        for connection in self._connections:
            connection.close()


class DuckDB:
    """DuckDB: `fsync_mode` is 'STANDARD', each commit syncs the log, or 'NONE'; there is nothing between."""

    def __init__(self, folder: Path, level: str) -> None:
        import duckdb

        modes = {"full": "STANDARD", "off": "NONE"}
        if level not in modes:
            raise ValueError("DuckDB has no level between 'full' and 'off'")
        self.retried: tuple[type[Exception], ...] = (duckdb.TransactionException,)
        self._database = duckdb.connect(folder / "t.duckdb")
        self._database.execute(f"SET fsync_mode = '{modes[level]}'")

    def fill(self, keys: list[int], texts: list[str]) -> None:
        """Insert all in one commit."""
        self._database.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, amount BIGINT NOT NULL, text VARCHAR NOT NULL)")
        self._database.execute("INSERT INTO t SELECT unnest(?::BIGINT[]), 0, unnest(?::VARCHAR[])", [keys, texts])

    def client(self) -> Execute:
        """Connect once more."""
        return self._database.cursor().execute

    def close(self) -> None:
        """Close the database, which makes a checkpoint."""
        self._database.close()


ENGINES: dict[str, Callable[[Path, str], Any]] = {"sinter-python": Sinter, "duckdb": DuckDB}


def written(folder: Path) -> tuple[int, int]:
    """Return the bytes that this process has written by calls, and the machine to the folder's device."""
    by_calls = re.search(r"^wchar: (\d+)$", Path("/proc/self/io").read_text(), re.M)
    assert by_calls is not None
    device = folder.stat().st_dev
    try:
        sectors = int(Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text().split()[6])
    except OSError:
        sectors = 0
    return int(by_calls[1]), sectors * 512


class Client:
    """A thread that commits rows of its own, or changes its own rows."""

    def __init__(self, engine: Any, asked: dict[str, Any], number: int, start: threading.Barrier) -> None:
        self._engine = engine
        self._asked = asked
        self._number = number
        self._start = start
        self._random = random.Random(number)
        self.times: list[float] = []
        self.rows = 0
        self.amounts = 0
        self.conflicts = 0
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            execute = self._engine.client()
            self._start.wait()
            self._start.wait()
            self._commit(execute)
        except BaseException as error:
            self.error = error
            self._start.abort()

    def _commit(self, execute: Execute) -> None:
        asked, number, clients = self._asked, self._number, self._asked["clients"]
        end = time.perf_counter() + asked["seconds"]
        own = (ROWS_BEFORE - number + clients - 1) // clients
        count = 0
        while count < asked["commits"] if asked["commits"] else time.perf_counter() < end:
            text = self._random.randbytes(TEXT_CHARACTERS // 2).hex()
            if asked["work"] == "insert":
                self._once(execute, INSERT, [(number + 1) * KEYS_PER_CLIENT + count, count + 1, text])
                self.rows += 1
                self.amounts += count + 1
            else:
                self._once(execute, UPDATE, [count // own + 1, text, number + count % own * clients])
                self.amounts += 1
            count += 1

    def _once(self, execute: Execute, sql: str, parameters: list[Any]) -> None:
        begun = time.perf_counter()
        while True:
            try:
                execute(sql, parameters)
                break
            except self._engine.retried:
                self.conflicts += 1
        self.times.append(time.perf_counter() - begun)


def measure(asked: dict[str, Any]) -> dict[str, Any]:
    """Measure one engine."""
    folder = Path(asked["folder"])
    open_engine = ENGINES[asked["engine"]]
    engine = open_engine(folder, asked["level"])
    texts = random.Random(-1)
    engine.fill(list(range(ROWS_BEFORE)), [texts.randbytes(TEXT_CHARACTERS // 2).hex() for _ in range(ROWS_BEFORE)])
    engine.close()

    engine = open_engine(folder, asked["level"])
    start = threading.Barrier(asked["clients"] + 1)
    clients = [Client(engine, asked, number, start) for number in range(asked["clients"])]
    for client in clients:
        client.thread.start()
    # Once when all have connected, and once to set off.
    start.wait()
    before = written(folder)
    os.path.exists(MARK)
    start.wait()
    begun = time.perf_counter()
    for client in clients:
        client.thread.join()
    seconds = time.perf_counter() - begun
    os.path.exists(MARK)
    after = written(folder)
    for client in clients:
        if client.error is not None:
            raise client.error
    engine.close()
    closed = written(folder)

    engine = open_engine(folder, asked["level"])
    found = tuple(engine.client()(TOTALS, []).fetchone())
    engine.close()
    wanted = (ROWS_BEFORE + sum(client.rows for client in clients), sum(client.amounts for client in clients))
    if found != wanted:
        raise ValueError(f"(rows, sum) are {found} after the commits, and should be {wanted}")
    times = sorted(duration for client in clients for duration in client.times)
    return {
        "engine": asked["engine"],
        "commits": len(times),
        "seconds": seconds,
        "commits_per_second": len(times) / seconds,
        "latency": {
            "count": len(times),
            **{
                f"ms_{name}": times[max(0, -int(-len(times) * share // 1) - 1)] * 1000
                for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0))
            },
        },
        "conflicts": sum(client.conflicts for client in clients),
        "bytes_by_calls_per_commit": (after[0] - before[0]) / len(times),
        "bytes_on_device_per_commit": (after[1] - before[1]) / len(times),
        "bytes_on_device_per_commit_until_closed": (closed[1] - before[1]) / len(times),
        "answer": "same",
    }


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))

"""The process of one engine in `refresh`: a worker that also commits refreshes, alone or while queries run.

    {"do": "prepare", "scale_factor": 1, ...}      {}
    {"do": "refresh", "commits": 30}               {"rf1": {"rows": 7500, "seconds": 0.4, ...}, "rf2": {...}}
    {"do": "stream", "queries": {...}, ...}        {"times_ms": {"q01": [40.1, ...]}, "seconds": 12.5, ...}
    {"do": "press"}                                {"seconds": 0.8}
    {"do": "totals"}                               {"totals": [...]}

Refreshes have a thread and a connection of their own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from benchmarks import new_orders
from benchmarks.new_orders import Delete, Insert
from benchmarks.worker import Worker, plain, serve

TOTALS = (
    "SELECT count(*), sum(o_orderkey), sum(o_totalprice) FROM orders",
    "SELECT count(*), sum(l_orderkey), sum(l_quantity), sum(l_extendedprice) FROM lineitem",
)

TORN = "SELECT count(*) FROM orders WHERE NOT EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey)"
"""Orders without a lineitem: none, as an order comes and goes with its lineitems in one commit."""


class Writer(Protocol):
    """A connection for refreshes."""

    retried: tuple[type[Exception], ...]
    """What says that a commit was in conflict with another."""

    def insert(self, commit: Insert) -> int:
        """Insert orders and lineitems in one commit; return the rows."""

    def delete(self, commit: Delete) -> int:
        """Delete orders and their lineitems in one commit; return the rows."""


class Sinter:
    """SinterDB: frames are appended, which is faster than INSERT; a list of keys is faster than a subquery."""

    def __init__(self, database: Any) -> None:
        import sinterdb

        self.retried: tuple[type[Exception], ...] = (sinterdb.ConflictError,)
        self._database = database

    def insert(self, commit: Insert) -> int:
        """Append both."""
        with self._database.transaction() as transaction:
            return int(transaction.append("orders", commit.orders) + transaction.append("lineitem", commit.lineitems))

    def delete(self, commit: Delete) -> int:
        """Delete by lists of keys."""
        keys = ", ".join(map(str, commit.keys))
        with self._database.transaction() as transaction:
            lineitems = transaction.execute(f"DELETE FROM lineitem WHERE l_orderkey IN ({keys})").rowcount
            orders = transaction.execute(f"DELETE FROM orders WHERE o_orderkey IN ({keys})").rowcount
        return int(lineitems + orders)


class DuckDB:
    """DuckDB: frames are inserted; a subquery over a frame of keys is faster than a list of many."""

    def __init__(self, database: Any) -> None:
        import duckdb

        self.retried: tuple[type[Exception], ...] = (duckdb.TransactionException,)
        self._connection = database.cursor()

    def insert(self, commit: Insert) -> int:
        """Insert both."""
        self._connection.register("new_orders", commit.orders)
        self._connection.register("new_lineitems", commit.lineitems)
        return self._commit("INSERT INTO orders FROM new_orders", "INSERT INTO lineitem FROM new_lineitems")

    def delete(self, commit: Delete) -> int:
        """Delete by a frame of keys."""
        import pyarrow

        self._connection.register("old_keys", pyarrow.table({"key": commit.keys}))
        return self._commit(
            "DELETE FROM lineitem WHERE l_orderkey IN (SELECT key FROM old_keys)",
            "DELETE FROM orders WHERE o_orderkey IN (SELECT key FROM old_keys)",
        )

    def _commit(self, *statements: str) -> int:
        self._connection.begin()
        try:
            rows = sum(int(self._connection.execute(statement).fetchone()[0]) for statement in statements)
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise
        return rows


WRITERS: dict[str, Callable[[Any], Writer]] = {"sinter": Sinter, "duckdb": DuckDB, "duckdb-checkpoint": DuckDB}
"""How each engine is refreshed."""


class Commits:
    """How long commits of one kind took."""

    def __init__(self) -> None:
        self.rows = 0
        self.conflicts = 0
        self.seconds: list[float] = []

    def summary(self) -> dict[str, Any]:
        """Return what goes into the record."""
        seconds = sum(self.seconds)
        return {
            "commits": len(self.seconds),
            "rows": self.rows,
            "seconds": seconds,
            "rows_per_second": self.rows / seconds if seconds else None,
            "median_ms": sorted(self.seconds)[len(self.seconds) // 2] * 1000 if self.seconds else None,
            "longest_ms": max(self.seconds) * 1000 if self.seconds else None,
            "conflicts": self.conflicts,
        }


class Refresher(Worker):
    """A worker that can refresh its tables."""

    def prepare(self, scale_factor: float, seed: int, orders_per_commit: int) -> dict[str, Any]:
        """Open the connection for refreshes, and stand before the first commit."""
        self._writer = WRITERS[self._name](self._engine.database)
        self._commits = new_orders.commits(scale_factor, seed, orders_per_commit)
        return {}

    def refresh(self, commits: int) -> dict[str, Any]:
        """Do so many commits."""
        return self._refresh(iter(range(commits)).__next__)

    def _refresh(self, proceed: Callable[[], Any]) -> dict[str, Any]:
        """Commit until `proceed` raises StopIteration; making rows does not count."""
        found = {"rf1": Commits(), "rf2": Commits()}
        while True:
            try:
                proceed()
            except StopIteration:
                return {kind: commits.summary() for kind, commits in found.items()}
            commit = next(self._commits)
            kind = found["rf1" if isinstance(commit, Insert) else "rf2"]
            begun = time.perf_counter()
            while True:
                try:
                    rows = self._writer.insert(commit) if isinstance(commit, Insert) else self._writer.delete(commit)
                    break
                except self._writer.retried:
                    kind.conflicts += 1
            kind.seconds.append(time.perf_counter() - begun)
            kind.rows += rows

    def stream(self, queries: dict[str, str], rounds: int, beside: bool) -> dict[str, Any]:
        """Run the queries in turn, round after round, alone or while another thread refreshes as fast as it can."""
        ended = threading.Event()
        refreshed: dict[str, Any] = {}

        def proceed() -> None:
            if ended.is_set():
                raise StopIteration

        def refresh() -> None:
            try:
                refreshed.update(self._refresh(proceed))
            except BaseException as error:
                refreshed["error"] = error

        thread = threading.Thread(target=refresh)
        if beside:
            thread.start()
        times: dict[str, list[float]] = {query: [] for query in queries}
        torn = 0
        begun = time.perf_counter()
        try:
            for _ in range(rounds):
                for query, sql in queries.items():
                    times[query].append(self.query(sql)["seconds"] * 1000)
                if beside:
                    torn += self._engine.rows(self._engine.query(TORN)).column(0)[0].as_py()
        finally:
            seconds = time.perf_counter() - begun
            ended.set()
            if beside:
                thread.join()
        if "error" in refreshed:
            raise refreshed["error"]
        return {"times_ms": times, "seconds": seconds, "torn_orders": torn, **refreshed}

    def press(self) -> dict[str, Any]:
        """Make a checkpoint."""
        begun = time.perf_counter()
        self._engine.database.execute("CHECKPOINT")
        return {"seconds": time.perf_counter() - begun}

    def totals(self) -> dict[str, Any]:
        """Return counts and sums of both tables."""
        found = [self._engine.rows(self._engine.query(sql)).to_pylist()[0].values() for sql in TOTALS]
        return {"totals": [plain(value) for row in found for value in row]}


if __name__ == "__main__":
    serve(Refresher)

"""Both engines, with the same tables, and what they answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow

import sinterdb
from random_queries.comparison import Row, difference
from random_queries.schema import Database, Table
from random_queries.tree import Query

TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Answer:
    """What both say about a query."""

    ours: list[Row] | str
    """Rows, or the message of an error."""
    theirs: list[Row] | str
    unoptimized: list[Row] | str | None = None
    """What DuckDB says without its optimizer; asked for where its rows are others than ours with it."""

    def error(self) -> tuple[str, str] | None:
        """Return the engine that alone refuses, and what it says."""
        if isinstance(self.ours, str) and not isinstance(self.theirs, str):
            return "SinterDB", self.ours
        if isinstance(self.theirs, str) and not isinstance(self.ours, str):
            return "DuckDB", self.theirs
        return None

    def differs(self, ordered: bool) -> str | None:
        """Return the first difference, in words."""
        if (error := self.error()) is not None:
            return f"{error[0]} alone refuses: {error[1]}"
        if isinstance(self.ours, str) or isinstance(self.theirs, str):
            return None
        return None if self.duckdb_contradicts_itself(ordered) else difference(self.ours, self.theirs, ordered)

    def duckdb_contradicts_itself(self, ordered: bool) -> bool:
        """Return whether DuckDB gives our rows without its optimizer, and others with it."""
        if isinstance(self.ours, str) or not isinstance(self.unoptimized, list):
            return False
        return difference(self.ours, self.unoptimized, ordered) is None


class Engines:
    """A database in both engines."""

    def __init__(self, database: Database) -> None:
        self._ours = sinterdb.connect(threads=database.threads)
        for setting in database.settings:
            self._ours.execute(setting)
        self._theirs = duckdb.connect(config={"threads": 1})
        # Of numbers that fit into 16 bits between operators it makes sums of 16 bits, which wrap around (DuckDB 2.0.0).
        self._theirs.execute("SET disabled_optimizers = 'compressed_materialization'")
        for table in database.tables:
            self._load(table)

    def _load(self, table: Table) -> None:
        """Make a table, by Arrow; `Table.statements` does the same by SQL."""
        self._ours.execute(table.create(options=True))
        self._theirs.execute(table.create(options=False))
        schema = pyarrow.schema([(column.name, column.kind.arrow()) for column in table.columns])
        for batch in table.batches:
            if batch.rows:
                arrays = [
                    pyarrow.array(stored, field.type)
                    for stored, field in zip(zip(*batch.rows, strict=True), schema, strict=True)
                ]
                rows = pyarrow.Table.from_arrays(arrays, schema=schema)
                self._ours.append(table.name, rows)
                self._theirs.register("rows_to_load", rows)
                self._theirs.execute(f"INSERT INTO {table.name} SELECT * FROM rows_to_load")
                self._theirs.unregister("rows_to_load")
            if batch.pressed:
                self._ours.execute("CHECKPOINT")
        if table.deleted:
            for engine in (self._ours, self._theirs):
                engine.execute(f"DELETE FROM {table.name} WHERE {table.deleted}")

    def ask(self, query: Query) -> Answer:
        """Run a query in both."""
        sql = query.sql()
        theirs = _rows(lambda: self._theirs.execute(sql).fetchall(), self._theirs.interrupt)
        ours = _rows(lambda: self._ours.sql(sql).fetchall(), self._ours.interrupt)
        if isinstance(ours, str) or isinstance(theirs, str) or difference(ours, theirs, bool(query.order)) is None:
            return Answer(ours, theirs)
        self._theirs.execute("PRAGMA disable_optimizer")
        unoptimized = _rows(lambda: self._theirs.execute(sql).fetchall(), self._theirs.interrupt)
        self._theirs.execute("PRAGMA enable_optimizer")
        return Answer(ours, theirs, unoptimized)

    def foreign_operators(self, query: Query) -> list[str]:
        """Return the operators that DataFusion runs for SinterDB, by EXPLAIN."""
        lines = [str(row[0]) for row in self._ours.sql(f"EXPLAIN {query.sql()}").fetchall()]
        marked = [line.split("datafusion:", 1)[1] for line in lines if line.lstrip().startswith("datafusion:")]
        return [line.strip().split(":", 1)[0].split(",", 1)[0].split(" ", 1)[0] for line in marked]

    def close(self) -> None:
        """Close both."""
        self._ours.close()
        self._theirs.close()


def _rows(run: Callable[[], list[Any]], interrupt: Callable[[], None]) -> list[Row] | str:
    """Return the rows, or why there are none."""
    late = threading.Event()

    def stop() -> None:
        late.set()
        interrupt()

    timer = threading.Timer(TIMEOUT_S, stop)
    timer.start()
    try:
        return run()
    except (sinterdb.Error, duckdb.Error) as error:
        return f"no answer within {TIMEOUT_S:.0f} s" if late.is_set() else str(error)
    finally:
        timer.cancel()

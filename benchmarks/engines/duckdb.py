"""DuckDB: tables as they are after CREATE TABLE, and after CHECKPOINT, which compresses them in memory too."""

from __future__ import annotations

import warnings

import duckdb
import pyarrow

_FLUSH = ("allocator_flush_threshold", "allocator_bulk_deallocation_flush_threshold")


class DuckDB:
    """A database in memory or on a file."""

    def __init__(self, path: str | None, threads: int, checkpoint: bool) -> None:
        self.database = duckdb.connect(path or ":memory:", config={"threads": threads})
        self._checkpoint = checkpoint or path is not None
        # Its allocator keeps up to 128 MB of what loading freed; without this the resident size would tell of that.
        for setting in _FLUSH:
            self.database.execute(f"SET {setting} = '1kB'")

    def load(self, table: str, path: str) -> None:
        """Make a table."""
        self.database.execute(f"CREATE TABLE {table} AS SELECT * FROM read_parquet('{path}')")

    def finish(self) -> None:
        """Compress, where asked to."""
        if self._checkpoint:
            self.database.execute("CHECKPOINT")
        for setting in _FLUSH:
            self.database.execute(f"RESET {setting}")

    def held_bytes(self) -> int:
        """Return what it counts under all its tags."""
        answer = self.database.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchall()
        return int(answer[0][0])

    def query(self, sql: str) -> pyarrow.Table:
        """Collect the rows as Arrow.

        By `execute`: `sql`, which makes a relation first, took longer for each query that was tried. The copy of the
        rows that DuckDB warns of matters where an answer has many.
        """
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Arrow output on a DB-API result")
            return self.database.execute(sql).to_arrow_table()

    def rows(self, result: pyarrow.Table) -> pyarrow.Table:
        """Return them as they are."""
        return result

    def close(self) -> None:
        """Close the database."""
        self.database.close()

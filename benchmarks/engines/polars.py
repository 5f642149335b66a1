"""Polars' SQL over frames in memory."""

from __future__ import annotations

import polars
import pyarrow


class Polars:
    """A set of frames; the number of threads is Polars' own environment variable, set by the parent."""

    def __init__(self, path: str | None, threads: int) -> None:
        if polars.thread_pool_size() != threads:
            raise RuntimeError(f"Polars runs with {polars.thread_pool_size()} threads instead of {threads}")
        self._frames = polars.SQLContext()
        self._held_bytes = 0

    def load(self, table: str, path: str) -> None:
        """Read the table into memory."""
        frame = polars.read_parquet(path)
        self._held_bytes += int(frame.estimated_size())
        self._frames.register(table, frame)

    def finish(self) -> None:
        """Do nothing."""

    def held_bytes(self) -> int:
        """Return Polars' estimate."""
        return self._held_bytes

    def query(self, sql: str) -> polars.DataFrame:
        """Collect the rows."""
        return self._frames.execute(sql.rstrip().rstrip(";"), eager=True)

    def rows(self, result: polars.DataFrame) -> pyarrow.Table:
        """Hand them to pyarrow."""
        return result.to_arrow()

    def close(self) -> None:
        """Do nothing."""

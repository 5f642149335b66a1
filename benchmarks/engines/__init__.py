"""The engines by name. Each module is imported only in the process that runs its engine."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow


class Engine(Protocol):
    """What a process with an engine can do."""

    def load(self, table: str, path: str) -> None:
        """Take a table from a Parquet file."""

    def finish(self) -> None:
        """Do what follows the last table, such as a checkpoint."""

    def held_bytes(self) -> int | None:
        """Return the bytes of its tables in memory by the engine's own count, where it has one."""

    def query(self, sql: str) -> Any:
        """Run a query to its last row; the time until this returns counts."""

    def rows(self, result: Any) -> pyarrow.Table:
        """Turn what `query` returned into Arrow; this does not count."""

    def close(self) -> None:
        """Close what is open, so that files are complete."""


ENGINES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "sinter": ("sinter", "Sinter", {}),
    "duckdb": ("duckdb", "DuckDB", {"checkpoint": False}),
    "duckdb-checkpoint": ("duckdb", "DuckDB", {"checkpoint": True}),
    "datafusion-arrow": ("datafusion", "DataFusion", {"arrow": True}),
    "datafusion-parquet": ("datafusion", "DataFusion", {"arrow": False}),
    "vortex": ("vortex", "Vortex", {}),
    "polars": ("polars", "Polars", {}),
}
"""Module, class and options of each."""

WITH_FILES = ("sinter", "duckdb", "vortex")
"""Engines that keep a database in files of their own."""

PACKAGES = ("sinterdb", "duckdb", "datafusion", "vortex-data", "polars", "pyarrow")
"""Whose versions a record names."""


def start(name: str, path: str | None, threads: int) -> Engine:
    """Open an engine, in memory or on a file."""
    module, kind, options = ENGINES[name]
    make: Callable[..., Engine] = getattr(import_module(f"benchmarks.engines.{module}"), kind)
    return make(path, threads, **options)

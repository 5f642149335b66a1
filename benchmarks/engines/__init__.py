"""The engines by name. Each module is imported only in the process that runs its engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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

DATABASES = ("sinter", "duckdb", "duckdb-checkpoint")
"""Engines that can close a database file and open it again."""

FROM_FILE = ("sinter", "duckdb", "datafusion-parquet", "vortex")
"""Engines that answer from files, each in one form."""

PACKAGES = ("sinterdb", "duckdb", "datafusion", "vortex-data", "polars", "pyarrow", "pcodec", "zstandard")
"""Whose versions a record names."""


def maker(name: str) -> Callable[[str | None, int], Engine]:
    """Import an engine; return what opens it, in memory or on a file, with so many threads."""
    module, kind, options = ENGINES[name]
    return partial(getattr(import_module(f"benchmarks.engines.{module}"), kind), **options)

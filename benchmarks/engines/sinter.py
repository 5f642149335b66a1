"""SinterDB through its Python module."""

from __future__ import annotations

import pyarrow

import sinterdb


class Sinter:
    """A database in memory or on a file."""

    def __init__(self, path: str | None, threads: int) -> None:
        self.database = sinterdb.connect(path, threads=threads)

    def load(self, table: str, path: str) -> None:
        """Press a table."""
        self.database.execute(f"CREATE TABLE {table} AS SELECT * FROM '{path}'")

    def finish(self) -> None:
        """Write the checkpoint."""
        self.database.execute("CHECKPOINT")

    def held_bytes(self) -> int:
        """Return what SHOW MEMORY counts."""
        # Lines of single tables are part of 'tables'.
        what = "what <> 'limit' AND what NOT LIKE 'table %'"
        held = self.database.sql(f"SELECT sum(bytes) FROM memory() WHERE {what}").fetchall()
        return int(held[0][0])

    def query(self, sql: str) -> sinterdb.Batch:
        """Collect the rows in memory."""
        return self.database.sql(sql).collect()

    def rows(self, result: sinterdb.Batch) -> pyarrow.Table:
        """Hand them to pyarrow."""
        return result.to_arrow()

    def close(self) -> None:
        """Close the database."""
        self.database.close()

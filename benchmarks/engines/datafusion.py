"""DataFusion over Arrow tables in memory, and over the Parquet files."""

from __future__ import annotations

import datafusion
import pyarrow
import pyarrow.parquet


class DataFusion:
    """A session; it keeps nothing itself."""

    def __init__(self, path: str | None, threads: int, arrow: bool) -> None:
        self._session = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(threads))
        self._arrow = arrow
        self._threads = threads
        self._held_bytes = 0

    def load(self, table: str, path: str) -> None:
        """Read the table into memory, in as many parts as there are threads; or only name the file."""
        if not self._arrow:
            self._session.register_parquet(table, path)
            return
        arrow = pyarrow.parquet.read_table(path).combine_chunks()
        batches = arrow.to_batches(max_chunksize=8192)
        self._held_bytes += arrow.nbytes
        share = -(-len(batches) // self._threads)
        parts = [batches[start : start + share] for start in range(0, len(batches), share)]
        self._session.register_record_batches(table, parts)

    def finish(self) -> None:
        """Do nothing."""

    def held_bytes(self) -> int:
        """Return the bytes of the Arrow tables."""
        return self._held_bytes

    def query(self, sql: str) -> list[pyarrow.RecordBatch]:
        """Collect the rows as Arrow."""
        frame = self._session.sql(sql.rstrip().rstrip(";"))
        self._schema = frame.schema()
        return frame.collect()

    def rows(self, result: list[pyarrow.RecordBatch]) -> pyarrow.Table:
        """Put the batches together."""
        return pyarrow.Table.from_batches(result, self._schema if not result else None)

    def close(self) -> None:
        """Do nothing."""

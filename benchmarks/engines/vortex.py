"""Vortex files, queried by DataFusion: its Python session over what Vortex gives as a dataset of pyarrow.

Vortex's own source for DataFusion is not in its Python module. So batches of rows pass through Python, which neither
side holds while it works. DataFusion hands comparisons, lists and conjunctions down, which Vortex answers on encoded
data; LIKE and arithmetic stay with DataFusion.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datafusion
import pyarrow
import pyarrow.dataset
import pyarrow.ipc
import pyarrow.parquet
import vortex
import vortex.dataset
import vortex.io

FOLDER = Path(__file__).resolve().parent.parent.parent / "target" / "vortex"
"""Where files are written that are not asked for elsewhere; they stay until the next time."""


class Vortex:
    """A session over Vortex files."""

    def __init__(self, path: str | None, threads: int) -> None:
        self._session = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(threads))
        self._folder = FOLDER if path is None else Path(path).parent
        self._folder.mkdir(parents=True, exist_ok=True)
        self._threads = threads

    def load(self, table: str, path: str) -> None:
        """Write the table as Vortex, and name the file."""
        rows = pyarrow.parquet.ParquetFile(path)
        reader = pyarrow.RecordBatchReader.from_batches(rows.schema_arrow, rows.iter_batches())
        file = self._folder / f"{table}.vortex"
        vortex.io.write(reader, str(file))
        self._session.register_dataset(table, Dataset(vortex.open(str(file)), self._threads))

    def finish(self) -> None:
        """Do nothing."""

    def held_bytes(self) -> None:
        """Return nothing: its cache of segments has no count."""

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


class Dataset(pyarrow.dataset.Dataset):  # type: ignore[misc]
    """A file as as many fragments as there are threads.

    Vortex's dataset itself has a fragment for each split, hundreds of them, and its fragments refuse the arguments with
    which DataFusion asks them (a schema, a batch size).
    """

    def __init__(self, file: vortex.VortexFile, threads: int) -> None:
        self._dataset = file.to_dataset()
        splits = file.splits()
        share = max(1, -(-len(splits) // threads))
        parts = [splits[first : first + share] for first in range(0, len(splits), share)]
        self._ranges = [(part[0][0], part[-1][1]) for part in parts]

    @property
    def schema(self) -> pyarrow.Schema:
        """The columns and their types."""
        return self._dataset.schema

    def scanner(self, columns: list[str] | None = None, filter: Any = None) -> Scanner:
        """Return what tells the schema of a scan."""
        return Scanner(self._dataset, (0, 0), columns, filter)

    def get_fragments(self, filter: Any = None) -> Iterator[Fragment]:
        """Return the parts that threads scan; the filter leaves out none."""
        return (Fragment(self._dataset, range_) for range_ in self._ranges)


class Fragment(pyarrow.dataset.Fragment):  # type: ignore[misc]
    """A range of rows."""

    def __init__(self, dataset: vortex.dataset.VortexDataset, range_: tuple[int, int]) -> None:
        self._dataset = dataset
        self._range = range_

    def scanner(
        self,
        schema: pyarrow.Schema | None = None,
        columns: list[str] | None = None,
        filter: Any = None,
        batch_size: int | None = None,
    ) -> Scanner:
        """Scan the range; batches are as long as Vortex makes them."""
        return Scanner(self._dataset, self._range, columns, filter)


class Scanner:
    """Columns of the rows of a range that pass a filter."""

    def __init__(
        self,
        dataset: vortex.dataset.VortexDataset,
        range_: tuple[int, int],
        columns: list[str] | None,
        filter: Any,
    ) -> None:
        self._dataset = dataset
        self._range = range_
        self._columns = dataset.schema.names if columns is None else columns
        self._filter = None if filter is None else with_strings(filter)

    @property
    def projected_schema(self) -> pyarrow.Schema:
        """The columns that are read."""
        return pyarrow.schema([self._dataset.schema.field(column) for column in self._columns])

    def to_batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows; where no column is wanted, only how many there are."""
        # Vortex refuses a scan of no columns.
        read = self._columns or self._dataset.schema.names[:1]
        part = vortex.dataset.VortexFragment(self._dataset, self._range)
        for batch in part.to_batches(columns=read, filter=self._filter, cache_metadata=None):  # type: ignore[arg-type]
            yield batch.select(self._columns)


def with_strings(filter: pyarrow.dataset.Expression) -> pyarrow.dataset.Expression:
    """Return a filter with its literals as strings, not views of strings: Vortex translates only those.

    An expression is written as a row of its literals, in a file whose metadata holds the rest.
    """
    restore, (written,) = filter.__reduce__()
    literals = pyarrow.ipc.open_file(written).get_batch(0)
    for place, field in enumerate(literals.schema):
        if field.type == pyarrow.string_view():
            strings = literals.column(place).cast(pyarrow.string())
            literals = literals.set_column(place, field.with_type(pyarrow.string()), strings)
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_file(sink, literals.schema) as writer:
        writer.write_batch(literals)
    expression: pyarrow.dataset.Expression = restore(sink.getvalue())
    return expression

"""A query that has been planned and runs when its rows are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sinterdb import table
from sinterdb._sinterdb import Frame, Outcome, ProgrammingError, Rows
from sinterdb.batch import Batch
from sinterdb.dbapi import Description, describe

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from sinterdb.connection import Connection


class Relation:
    """The result of `Connection.sql`.

    The fetch methods walk one run of the query, as a cursor does. Every other method runs it anew, on the data of that
    moment. A command such as INSERT has run already when the relation is made; it has no rows.
    """

    def __init__(
        self,
        connection: Connection,
        sql: str,
        parameters: Sequence[Any] | None,
        outcome: Outcome,
        frames: dict[str, Frame],
    ) -> None:
        self._connection = connection
        self._sql = sql
        self._parameters = parameters
        self._frames = frames
        self._tag = outcome.tag
        self._changed = outcome.changed
        self._is_query = outcome.rows is not None
        self._columns = [] if outcome.rows is None else outcome.rows.columns
        self._planned: Rows | None = outcome.rows
        self._fetching: Rows | None = None

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [name for name, _, _ in self._columns]

    @property
    def types(self) -> list[str]:
        """Types of the columns, as SQL calls them."""
        return [kind for _, kind, _ in self._columns]

    @property
    def description(self) -> list[Description]:
        """The columns as DB-API 2.0 describes them."""
        return describe(self._columns)

    def _run(self) -> Rows:
        """Return the rows of a run of its own; the plan made at first serves the first."""
        if not self._is_query:
            raise ProgrammingError(f"{self._tag} has no rows")
        planned, self._planned = self._planned, None
        if planned is None:
            outcome = self._connection._run_with(self._sql, self._parameters, self._frames)
            planned = outcome.rows
        if planned is None:
            raise ProgrammingError(f"{self._tag} has no rows")
        return planned

    def _fetch(self, limit: int | None) -> list[tuple[Any, ...]]:
        if not self._is_query:
            return []
        if self._fetching is None:
            self._fetching = self._run()
        return self._fetching.fetch(limit)

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row; None after the last."""
        rows = self._fetch(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """Return up to `size` further rows."""
        return self._fetch(size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows that have not been fetched yet."""
        return self._fetch(None)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Run the query and yield its rows."""
        for batch in self.stream():
            yield from batch.fetchall()

    def stream(self) -> Iterator[Batch]:
        """Run the query and yield its rows in batches, as they come."""
        rows = self._run()
        try:
            while (frame := rows.next_frame()) is not None:
                yield Batch(frame)
        finally:
            rows.close()

    def collect(self) -> Batch:
        """Run the query and return all of its rows."""
        return Batch(self._run().collect())

    def to_arrow(self) -> pyarrow.Table:
        """Run the query and return a pyarrow Table."""
        return self.collect().to_arrow()

    def to_pandas(self) -> pandas.DataFrame:
        """Run the query and return a pandas DataFrame."""
        return self.collect().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Run the query and return a Polars DataFrame."""
        return self.collect().to_polars()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Run the query; the consumer pulls batches as they come."""
        return self._run().__arrow_c_stream__(requested_schema)

    def explain(self, analyze: bool = False) -> str:
        """Return how the query would run; with `analyze`, run it and tell how it did."""
        verb = "EXPLAIN ANALYZE" if analyze else "EXPLAIN"
        outcome = self._connection._run_with(f"{verb} {self._sql}", self._parameters, self._frames)
        rows = [] if outcome.rows is None else outcome.rows.fetch()
        return "\n".join("\n".join(str(value) for value in row) for row in rows)

    def show(self, max_rows: int = table.ROW_COUNT_MAX, max_width: int | None = None) -> None:
        """Run the query and print its first rows; as wide as the terminal unless `max_width` says otherwise."""
        print(self._text(max_rows, max_width))

    def _head(self, max_rows: int) -> tuple[list[tuple[Any, ...]], bool]:
        """Return the first rows, and whether there are more."""
        rows = self._run()
        try:
            head = rows.fetch(max_rows + 1)
        finally:
            rows.close()
        return head[:max_rows], len(head) > max_rows

    def _text(self, max_rows: int, max_width: int | None) -> str:
        if not self._is_query:
            return self._tag if self._changed is None else f"{self._tag} {self._changed}"
        rows, more = self._head(max_rows)
        if not self._columns:
            return table.count(len(rows), more)
        return table.as_text(self.columns, self.types, rows, more, max_width)

    def __repr__(self) -> str:
        return self._text(table.ROW_COUNT_MAX, None)

    def _repr_html_(self) -> str:
        if not self._is_query:
            return f"<p>{self._text(0, None)}</p>"
        rows, more = self._head(table.ROW_COUNT_MAX)
        return table.as_html(self.columns, self.types, rows, more)

"""DB-API 2.0's cursor: one statement at a time, its rows on demand."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sinterdb._sinterdb import Outcome, ProgrammingError, Rows
from sinterdb.dbapi import Description, describe

if TYPE_CHECKING:
    from sinterdb.connection import Connection


class Cursor:
    """Runs statements and walks over the rows of the last one. Made by `Connection.cursor`."""

    arraysize: int
    """Rows that `fetchmany` returns unless told otherwise."""

    rowcount: int
    """Rows changed by the last statement; -1 after a query, whose rows are not counted beforehand."""

    description: list[Description] | None
    """The columns of the last query; None after a command."""

    lastrowid: None
    """Always None: SinterDB's row ids are its own."""

    def __init__(self, connection: Connection) -> None:
        self._connection: Connection | None = connection
        self._rows: Rows | None = None
        self.arraysize = 1
        self.lastrowid = None
        self._reset()

    def _reset(self) -> None:
        if self._rows is not None:
            self._rows.close()
        self._rows = None
        self.rowcount = -1
        self.description = None

    @property
    def connection(self) -> Connection:
        """The connection that made this cursor."""
        if self._connection is None:
            raise ProgrammingError("the cursor is closed")
        return self._connection

    def execute(self, sql: str, parameters: Sequence[Any] | None = None) -> Cursor:
        """Run a statement, with one parameter per `?`, and return the cursor itself."""
        return self._execute(sql, parameters, sys._getframe(1))

    def _execute(self, sql: str, parameters: Sequence[Any] | None, scope: Any) -> Cursor:
        connection = self.connection
        self._reset()
        outcome, _ = connection._run(sql, parameters, scope)
        self._take(outcome)
        return self

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> Cursor:
        """Run a statement once per row of parameters, and return the cursor itself.

        An INSERT of one row of VALUES is one commit: all rows or none. Any other statement is one commit per row, and
        the rows before one that fails stay.
        """
        connection = self.connection
        self._reset()
        self.rowcount = connection._run_many(sql, rows)
        return self

    def _take(self, outcome: Outcome) -> None:
        self._rows = outcome.rows
        if outcome.rows is not None:
            self.description = describe(outcome.rows.columns)
        elif outcome.changed is not None:
            self.rowcount = outcome.changed

    def _fetch(self, limit: int | None) -> list[tuple[Any, ...]]:
        # Raises when the cursor or its connection is closed.
        if self.connection.closed:
            raise ProgrammingError("the connection is closed")
        if self._rows is None:
            raise ProgrammingError("the last statement has no rows, or there was none")
        return self._rows.fetch(limit)

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row; None after the last."""
        rows = self._fetch(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Return up to `size` further rows, or `arraysize`."""
        return self._fetch(self.arraysize if size is None else size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows that have not been fetched yet."""
        return self._fetch(None)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self

    def __next__(self) -> tuple[Any, ...]:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing, as DB-API 2.0 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing, as DB-API 2.0 allows."""

    def close(self) -> None:
        """Stop the query, if one runs; the cursor cannot be used any more."""
        self._reset()
        self._connection = None

    def __enter__(self) -> Cursor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

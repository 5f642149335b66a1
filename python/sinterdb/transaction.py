"""Statements that happen together or not at all."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Concatenate, ParamSpec, TypeVar

from sinterdb import _sinterdb
from sinterdb._sinterdb import ConflictError, ProgrammingError
from sinterdb.connection import Connection

P = ParamSpec("P")
T = TypeVar("T")


class Transaction(Connection):
    """A connection whose statements are one transaction: it sees one state and its own changes.

    Made by `Connection.transaction`, which also ends it. Transactions are serializable: those that commit could have
    run one after the other. One that could not ends with ConflictError, nothing of it has happened then, and it is to
    run again.
    """

    def __init__(self, raw: _sinterdb.Connection, *, read_only: bool) -> None:
        super().__init__(raw)
        raw.begin(read_only)

    def _end(self, *, commit: bool) -> None:
        if self.closed:
            return
        try:
            if self._raw.in_transaction():
                if commit:
                    self._raw.commit()
                else:
                    self._raw.roll_back()
        finally:
            self.close()


class Transactions:
    """The way into transactions. Made by `Connection.transaction`.

    A context manager, whose block is one transaction:

    >>> import sinterdb
    >>> db = sinterdb.connect()
    >>> _ = db.execute("CREATE TABLE t (a INTEGER)")
    >>> with db.transaction() as tx:
    ...     _ = tx.execute("INSERT INTO t VALUES (1)")

    A decorator, for what is to be run again where it conflicts with other transactions, which a block cannot be:

    >>> @db.transaction(retry=3)
    ... def add(tx, number):
    ...     tx.execute("INSERT INTO t VALUES (?)", [number])
    >>> add(2)
    >>> db.sql("SELECT count(*) FROM t").fetchall()
    [(2,)]
    """

    def __init__(self, connection: Connection, *, read_only: bool, retry: int) -> None:
        if retry < 0:
            raise ProgrammingError(f"retry is 0 or more, not {retry}")
        self._connection = connection
        self._read_only = read_only
        self._retry = retry
        self._running: list[Transaction] = []

    def _begin(self) -> Transaction:
        # Of its own, so that other statements of the connection stay outside.
        return Transaction(self._connection._another(), read_only=self._read_only)

    def __enter__(self) -> Transaction:
        if self._retry:
            raise ProgrammingError("a block cannot be run again: decorate a function with transaction(retry=...)")
        self._running.append(self._begin())
        return self._running[-1]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        transaction = self._running.pop()
        transaction._end(commit=error is None)

    def __call__(self, work: Callable[Concatenate[Transaction, P], T]) -> Callable[P, T]:
        """Return `work` as a function that runs in a transaction, which it gets as its first argument."""

        @functools.wraps(work)
        def run(*args: P.args, **kwargs: P.kwargs) -> T:
            left = self._retry
            while True:
                transaction = self._begin()
                try:
                    value = work(transaction, *args, **kwargs)
                    transaction._end(commit=True)
                    return value
                except ConflictError:
                    transaction._end(commit=False)
                    if left == 0:
                        raise
                    left -= 1
                except BaseException:
                    transaction._end(commit=False)
                    raise

        return run

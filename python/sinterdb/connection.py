"""Opening databases, and running statements on them."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from sinterdb import _sinterdb, frames
from sinterdb._sinterdb import Frame, Outcome, ProgrammingError
from sinterdb.cursor import Cursor
from sinterdb.kv import KeyValue
from sinterdb.naming import Naming
from sinterdb.relation import Relation

if TYPE_CHECKING:
    from sinterdb.transaction import Transactions

_DEFAULT_SCHEMA = "public"
"""Where names without a schema are looked for, and registered frames stand."""

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:([KMGT])(i?)B?|B)?\s*", re.IGNORECASE)


def connect(
    path: str | os.PathLike[str] | None = None,
    *,
    memory_limit: int | str | None = None,
    threads: int | None = None,
    synchronous: str = "full",
    read_only: bool = False,
    create: bool = True,
) -> Connection:
    """Open a database: a file, created where it is absent, or memory for None and ":memory:".

    `memory_limit` is a number of bytes or a text such as "4GB" or "512MiB", and without it three quarters of what the
    machine has or the container may use; `threads` are the threads per query, by default as many as the machine has;
    `synchronous` is "full" (a commit is on disk when it returns), "normal" (synced in the background) or "off";
    `read_only` refuses changes and never creates; `create=False` refuses a file that does not exist.

    A file that this process has open already is shared, if the options are the same: each call gives a connection of
    its own.
    """
    if threads is not None and not 1 <= threads <= 1024:
        raise ProgrammingError(f"threads is a number from 1 to 1024, not {threads}")
    return Connection(
        _sinterdb.Connection.open(
            None if path is None or path == ":memory:" else os.fspath(path),
            memory_limit_bytes=None if memory_limit is None else _bytes(memory_limit),
            threads=threads,
            synchronous=synchronous,
            read_only=read_only,
            create=create,
        )
    )


def _bytes(size: int | str) -> int:
    """Return the bytes that `size` stands for: KB, MB, GB and TB count in thousands, KiB and so on in 1024s."""
    if isinstance(size, str):
        match = _SIZE.fullmatch(size)
        if match is None:
            raise ProgrammingError(f"memory_limit is a number of bytes or a text such as '4GB', not {size!r}")
        number, unit, binary = match.groups()
        size = int(float(number) * (1024 if binary else 1000) ** (" KMGT".index(unit.upper()) if unit else 0))
    if size <= 0:
        raise ProgrammingError(f"memory_limit is more than 0 bytes, not {size}")
    return size


class Connection:
    """A connection to a database. Made by `connect`.

    Threads may share it: each statement sees its own snapshot. Every statement commits by itself, outside of
    `transaction` and of BEGIN and COMMIT. A context manager: leaving it closes the connection.
    """

    Warning = _sinterdb.Warning
    Error = _sinterdb.Error
    InterfaceError = _sinterdb.InterfaceError
    DatabaseError = _sinterdb.DatabaseError
    DataError = _sinterdb.DataError
    OperationalError = _sinterdb.OperationalError
    IntegrityError = _sinterdb.IntegrityError
    InternalError = _sinterdb.InternalError
    ProgrammingError = _sinterdb.ProgrammingError
    NotSupportedError = _sinterdb.NotSupportedError

    def __init__(self, raw: _sinterdb.Connection) -> None:
        self._raw = raw
        self._naming = Naming()

    # Statements

    def execute(self, sql: str, parameters: Sequence[Any] | None = None) -> Cursor:
        """Run a statement, with one parameter per `?`, and return a cursor over its rows."""
        return self.cursor()._execute(sql, parameters, sys._getframe(1))

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> Cursor:
        """Run a statement once per row of parameters.

        An INSERT of one row of VALUES is one commit: all rows or none. Any other statement is one commit per row, and
        the rows before one that fails stay.
        """
        return self.cursor().executemany(sql, rows)

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        if self.closed:
            raise ProgrammingError("the connection is closed")
        return Cursor(self)

    def sql(self, sql: str, parameters: Sequence[Any] | None = None) -> Relation:
        """Plan a query, and return its result, which runs when its rows are asked for. Commands run at once."""
        outcome, found = self._run(sql, parameters, sys._getframe(1))
        return Relation(self, sql, parameters, outcome, found)

    def _run(
        self, sql: str, parameters: Sequence[Any] | None, scope: FrameType | None
    ) -> tuple[Outcome, dict[str, Frame]]:
        """Run a script; tables that the database does not know are looked for among the variables of `scope`."""
        statements = self._raw.statements(sql) if ";" in sql else [sql]
        if len(statements) > 1 and parameters:
            raise ProgrammingError("parameters go with one statement, not with several")
        for statement in statements[:-1]:
            outcome, _ = self._run_one(statement, None, scope)
            if outcome.rows is not None:
                outcome.rows.close()
        return self._run_one(statements[-1] if statements else sql, parameters, scope)

    def _run_one(
        self, sql: str, parameters: Sequence[Any] | None, scope: FrameType | None
    ) -> tuple[Outcome, dict[str, Frame]]:
        found: dict[str, Frame] = {}
        while True:
            try:
                outcome = self._run_with(sql, parameters, found)
                break
            except ProgrammingError as error:
                # Tables are looked up when a statement is planned, so nothing has been done yet; one at a time is told.
                name = frames.missing(error)
                frame = None if name is None or name in found else frames.find(name, sql, scope)
                if name is None or frame is None:
                    raise
                found[name] = frame
        for note in outcome.notes:
            # Told as the caller's line, however many of ours lie between.
            place = ("sinterdb", 0) if scope is None else (scope.f_code.co_filename, scope.f_lineno)
            warnings.warn_explicit(note, _sinterdb.Warning, *place)
        return outcome, found

    def _run_with(self, sql: str, parameters: Sequence[Any] | None, found: dict[str, Frame]) -> Outcome:
        """Run a statement while `found` stand under their names; a plan keeps what it refers to.

        Names that the database knows by now, as tables or registered, are left alone.
        """
        if not found:
            with self._naming.shared():
                return self._raw.run(sql, parameters)
        with self._naming.alone():
            known = {name for schema, name in self._raw.table_names() if schema == _DEFAULT_SCHEMA}
            lent = {name: frame for name, frame in found.items() if name not in known}
            try:
                for name, frame in lent.items():
                    self._raw.register(name, frame)
                return self._raw.run(sql, parameters)
            finally:
                for name in lent:
                    self._raw.unregister(name)

    def _run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        """Run a statement once per row of parameters, and return the rows changed."""
        # Read first: what yields the rows may run statements of this connection itself.
        taken = list(rows)
        with self._naming.shared():
            return self._raw.run_many(sql, taken)

    def interrupt(self) -> None:
        """End what this connection is running, in whatever thread, with CancelledError."""
        self._raw.interrupt()

    # Frames

    def register(self, name: str, frame: Any) -> None:
        """Let statements of this connection refer to a frame by name; a table of that name comes before it.

        `frame` is anything with `__arrow_c_stream__`: a pyarrow Table or reader, a pandas or Polars frame, a Relation.
        It is read once, here. The name stands as it is: in SQL, one with capitals needs double quotes.

        A variable of the caller's needs no registering: where a statement names a table that there is not, and a
        variable of that name holds a frame, the statement reads that.
        """
        read = frames.read(frame)
        # Not while another thread's statement has frames of its own under their names.
        with self._naming.shared():
            self._raw.register(name, read)

    def unregister(self, name: str) -> bool:
        """Forget a registered frame; False when there was none."""
        with self._naming.shared():
            return self._raw.unregister(name)

    def append(self, table: str, frame: Any) -> int:
        """Append a frame to a table in one commit, columns by name, and return the rows appended."""
        stream = frames.stream_of(frame)
        return self._raw.append(table, frame if stream is None else stream)

    # What there is

    def storage(self, table: str) -> Relation:
        """Return what each column of a table costs: scheme, values, bytes plain and stored, ratio."""
        name = table.replace("'", "''")
        return self.sql(f"SELECT * FROM storage('{name}')")

    def kv(
        self,
        name: str,
        *,
        key: str | None = None,
        value: str | None = None,
        codec: str = "auto",
        duplicates: bool | None = None,
    ) -> KeyValue:
        """Open the key-value tree of that name, which is made where there is none.

        `key` is "u32", "u64", "i64", "bytes" or "str"; `value` is "bytes", "str", "u32", "u64", "i64", "f64",
        "fixed(16)" (so many bytes each) or "none"; `codec` is how whole numbers are written: "bp128", "simd_for",
        "for", "vbyte", "masked_vbyte", "varint_gb", "none", or "auto"; with `duplicates` a key has any number of
        values, in order, each once. What is not given is as the tree has it; of one that is made, keys are "u32" and
        values "bytes", one of each key.
        """
        return KeyValue(self._raw.kv(name, key=key, value=value, codec=codec, duplicates=duplicates))

    def load_kv(
        self,
        name: str,
        pairs: Mapping[Any, Any] | Iterable[tuple[Any, Any]],
        *,
        key: str | None = None,
        value: str | None = None,
        codec: str = "auto",
        duplicates: bool | None = None,
    ) -> KeyValue:
        """Make a key-value tree of entries that come in the order of their keys: a mapping, or pairs.

        This is the quickest way to a large tree, and the smallest: full leaves go to the file as they come, and the log
        has none of the keys. The tree must not be there yet; `key`, `value`, `codec` and `duplicates` are as in `kv`.

        >>> db = sinterdb.connect()
        >>> squares = db.load_kv("squares", ((key, key * key) for key in range(1000)), key="u64", value="u64")
        >>> squares[12]
        144
        """
        entries = pairs.items() if isinstance(pairs, Mapping) else pairs
        raw = self._raw.load_kv(name, entries, key=key, value=value, codec=codec, duplicates=duplicates)
        return KeyValue(raw)

    def memory(self) -> Relation:
        """Return what the database holds in memory."""
        return self.sql("SHOW MEMORY")

    @property
    def path(self) -> str | None:
        """The file; None in memory."""
        return self._raw.path

    @property
    def notes(self) -> list[str]:
        """What opening the file had to do or noticed, such as transactions replayed."""
        return self._raw.notes

    # The end

    # Transactions

    def transaction(self, *, read_only: bool = False, retry: int = 0) -> Transactions:
        """Return a context manager, and decorator, for statements that happen together or not at all.

        `read_only` sees one state and cannot conflict; `retry` says how often a decorated function is run again where
        it conflicts with other transactions.
        """
        # It is a connection itself.
        from sinterdb.transaction import Transactions

        return Transactions(self, read_only=read_only, retry=retry)

    def _another(self) -> _sinterdb.Connection:
        """Return another connection to the same database."""
        return self._raw.another()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is under way on this connection, begun by BEGIN."""
        return self._raw.in_transaction()

    def commit(self) -> None:
        """End the transaction that BEGIN began; outside of one every statement has committed by itself."""
        if self._raw.in_transaction():
            self._raw.commit()

    def rollback(self) -> None:
        """Take back the transaction that BEGIN began; outside of one there is nothing to take back."""
        if self._raw.in_transaction():
            self._raw.roll_back()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._raw.closed

    def close(self) -> None:
        """Close the connection, and the database with its last connection. Closing again does nothing."""
        self._raw.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<sinterdb.Connection, closed>"
        return f"<sinterdb.Connection to {self.path or 'memory'}>"

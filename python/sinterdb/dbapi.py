"""The constants, type objects and constructors that DB-API 2.0 (PEP 249) asks of a module."""

from __future__ import annotations

import datetime

apilevel = "2.0"
"""The version of the DB-API."""

threadsafety = 2
"""Threads may share the module and connections."""

paramstyle = "qmark"
"""Parameters are written as `?`."""


class TypeGroup:
    """Equal to the type names of one kind, as they stand in `Cursor.description`."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            base = other.partition("(")[0]
            return base in self._names and not other.endswith("[]")
        return self is other

    def __hash__(self) -> int:
        return hash(self._names)

    def __repr__(self) -> str:
        return f"TypeGroup({', '.join(sorted(self._names))})"


STRING = TypeGroup("VARCHAR")
BINARY = TypeGroup("BLOB")
NUMBER = TypeGroup(
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "TINYINT UNSIGNED",
    "SMALLINT UNSIGNED",
    "INTEGER UNSIGNED",
    "BIGINT UNSIGNED",
    "REAL",
    "DOUBLE",
    "DECIMAL",
)
DATETIME = TypeGroup("DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "INTERVAL")
ROWID = TypeGroup()

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """Return the local date of a number of seconds since the epoch."""
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:
    """Return the local time of day of a number of seconds since the epoch."""
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """Return the local date and time of a number of seconds since the epoch."""
    return datetime.datetime.fromtimestamp(ticks)


Description = tuple[str, str, None, None, None, None, bool]
"""One column of a result: name, type in SQL, four places that we leave empty, whether it may be NULL."""


def describe(columns: list[tuple[str, str, bool]]) -> list[Description]:
    """Return PEP 249's description of columns."""
    return [(name, kind, None, None, None, None, nullable) for name, kind, nullable in columns]

"""The tables of a database: their columns, rows, and how they are laid out in row groups and delta batches.

Columns that can be joined draw from a **pool**: the ids of a table, or a few values that several tables share. A table
comes in batches, each an INSERT; a checkpoint after some of them presses what has come so far, so that a table is
of several row groups, and what comes after the last one stays a delta batch.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from random_queries import kinds, values
from random_queries.kinds import Family, Kind

QUERIES_PER_DATABASE = 40

_SIZES = ((0, 0, 1), (1, 1, 1), (2, 9, 3), (10, 60, 8), (60, 300, 10), (1000, 1100, 2), (1500, 4000, 2))
"""Least and most rows, and how often."""

_WHOLE = ("raw", "constant", "rle", "bitpack", "for", "pfor", "delta", "pfor_delta", "dict", "pdict", "base_delta")
_FLOATS = ("raw", "constant", "rle", "dict", "alp", "alp_rd", "fixed_point")
_TEXTS = ("raw", "constant", "rle", "dict", "pdict", "fsst", "front")


def schemes(kind: Kind) -> tuple[str, ...]:
    """Return the compression schemes that a column of this type can be forced to, without losing anything."""
    if kind.family is Family.TEXT:
        return _TEXTS
    if kind.family is Family.DOUBLE:
        return _FLOATS if kind == kinds.REAL else (*_FLOATS, "single")
    return (*_WHOLE, "halves" if kind.precision > 18 else "multiple")


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    kind: Kind
    scheme: str | None = None
    """The compression scheme that is forced."""
    pool: str | None = None
    """Columns of the same pool have values in common."""


@dataclass(frozen=True)
class Batch:
    """Rows that are inserted together."""

    rows: tuple[tuple[Any, ...], ...]
    pressed: bool
    """Whether a checkpoint follows."""


@dataclass(frozen=True)
class Table:
    """A table; the column `id` is unique and never NULL."""

    name: str
    columns: tuple[Column, ...]
    batches: tuple[Batch, ...]
    deleted: str | None = None
    """A condition for rows that are deleted again."""

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """All rows, those that are deleted included."""
        return [row for batch in self.batches for row in batch.rows]

    def create(self, options: bool) -> str:
        """Return the CREATE TABLE; only SinterDB knows the options."""
        columns = ", ".join(f"{column.name} {column.kind.name}" for column in self.columns)
        schemes = [f"compression_{column.name} = '{column.scheme}'" for column in self.columns if column.scheme]
        forced = f" WITH ({', '.join(schemes)})" if options and schemes else ""
        return f"CREATE TABLE {self.name} ({columns}){forced}"

    def statements(self) -> list[str]:
        """Return all that makes the table, as SQL for SinterDB."""
        made = [self.create(options=True)]
        for batch in self.batches:
            rows = [
                "(" + ", ".join(map(kinds.plain, row, [column.kind for column in self.columns])) + ")"
                for row in batch.rows
            ]
            if rows:
                made.append(f"INSERT INTO {self.name} VALUES " + ", ".join(rows))
            if batch.pressed:
                made.append("CHECKPOINT")
        if self.deleted:
            made.append(f"DELETE FROM {self.name} WHERE {self.deleted}")
        return made


_SETTINGS = (
    (),
    (),
    ("SET sinter.vector_rows = 5",),
    ("SET sinter.operator_memory = '1B'",),
    ("SET sinter.operator_memory = '1B'", "SET sinter.spill_compression = 'none'"),
)
"""As usual; vectors of few rows; spilling whatever can be spilled, compressed or not."""


@dataclass(frozen=True)
class Database:
    """Tables, and how a query on them runs."""

    tables: tuple[Table, ...]
    threads: int
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Pool:
    name: str
    family: Family
    values: Sequence[Any]


def database(seed: int, number: int) -> Database:
    """Return a database of a seed."""
    rng = random.Random(f"{seed}, database {number}")
    pools = _shared_pools(rng)
    tables: list[Table] = []
    for place in range(rng.randint(4, 6)):
        least, most, _ = rng.choices(_SIZES, weights=[weight for *_, weight in _SIZES])[0]
        # The first two have rows, so that there is always something to join.
        count = rng.randint(20, 300) if place < 2 else rng.randint(least, most)
        table = _table(rng, f"t{place}", count, pools)
        tables.append(table)
        pools.append(_Pool(table.name, Family.INTEGER, [row[0] for row in table.rows] or [0]))
    return Database(tuple(tables), threads=rng.choice((1, 2)), settings=rng.choice(_SETTINGS))


def _shared_pools(rng: random.Random) -> list[_Pool]:
    start = datetime.date(2000 + rng.randint(0, 25), 1, 1)
    numbers = range(rng.choice((3, 8, 25)))
    days = [start + datetime.timedelta(days=day) for day in range(rng.choice((4, 20)))]
    amounts = [Decimal(cents).scaleb(-2) for cents in range(0, 1000, rng.choice((50, 125)))]
    texts = rng.choice(
        (["", "a", "b", "Ä", "🦀"], [f"key {number}" for number in range(12)], ["red", "green", "blue", "x" * 40])
    )
    return [
        _Pool("numbers", Family.INTEGER, numbers),
        _Pool("texts", Family.TEXT, texts),
        rng.choice((_Pool("days", Family.DATE, days), _Pool("amounts", Family.DECIMAL, amounts))),
    ]


def _table(rng: random.Random, name: str, count: int, pools: list[_Pool]) -> Table:
    ids = list(range(start := rng.choice((0, 1, 100)), start + count))
    if rng.random() < 0.3:
        rng.shuffle(ids)
    columns = [Column("id", rng.choice((kinds.INTEGER, kinds.INTEGER, kinds.BIGINT, kinds.UINTEGER)), pool=name)]
    data: list[list[Any]] = [ids]
    for pool in rng.sample(pools, min(len(pools), rng.randint(2, 4))):
        columns.append(Column(f"k{len(columns)}", _kind_of_pool(rng, pool), pool=pool.name))
        data.append(values.with_nulls(rng, values.drawn(rng, pool.values, count)))
    for _ in range(rng.randint(2, 6)):
        kind = _any_kind(rng)
        columns.append(Column(f"{kind.family.value}{len(columns)}", kind))
        data.append(values.column(rng, kind, count))
    columns = [
        Column(column.name, column.kind, rng.choice(schemes(column.kind)), column.pool)
        if rng.random() < 0.25
        else column
        for column in columns
    ]
    deleted = f"id % {rng.choice((3, 7, 20))} = 0" if rng.random() < 0.2 else None
    return Table(name, tuple(columns), _batches(rng, list(zip(*data, strict=True))), deleted)


def _kind_of_pool(rng: random.Random, pool: _Pool) -> Kind:
    if pool.family is Family.INTEGER:
        return rng.choice(values.references(kinds.INTEGERS, max(pool.values)))
    if pool.family is Family.DECIMAL:
        return rng.choice((kinds.decimal(9, 2), kinds.decimal(15, 2), kinds.decimal(18, 4)))
    return {Family.TEXT: kinds.VARCHAR, Family.DATE: kinds.DATE}[pool.family]


def _any_kind(rng: random.Random) -> Kind:
    return rng.choice(
        (
            rng.choice(kinds.INTEGERS),
            rng.choice((kinds.INTEGER, kinds.BIGINT)),
            rng.choice(kinds.DECIMALS),
            rng.choice((kinds.DOUBLE, kinds.DOUBLE, kinds.DOUBLE, kinds.REAL)),
            kinds.VARCHAR,
            kinds.VARCHAR,
            kinds.DATE,
            kinds.TIMESTAMP,
            kinds.BOOLEAN,
        )
    )


def _batches(rng: random.Random, rows: list[tuple[Any, ...]]) -> tuple[Batch, ...]:
    cuts = sorted(rng.randint(0, len(rows)) for _ in range(rng.choice((0, 0, 1, 2, 4))))
    ends = [*cuts, len(rows)]
    return tuple(
        Batch(tuple(rows[start:end]), pressed=rng.random() < 0.6) for start, end in zip([0, *cuts], ends, strict=True)
    )

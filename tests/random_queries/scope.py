"""What a query can name while it is being written, and the dice."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from random_queries import values
from random_queries.kinds import Family, Kind
from random_queries.schema import Column, Database, Table
from random_queries.tree import Node, Rows, phrase

_T = TypeVar("_T")

_SAMPLES_MAX = 48


@dataclass(frozen=True)
class Value:
    """An expression, and what is known of its values."""

    node: Node
    kind: Kind
    samples: tuple[Any, ...] = ()
    """Some of its values in order, without NULL; none where nothing is known."""
    bound: float | None = None
    """As in `values.bound`."""
    pool: str | None = None
    distinct: int = 0
    """About how many different values there are; 0 where nothing is known."""
    exact: bool = True
    """Whether it is without rounding errors."""

    def named(self, name: str) -> Value:
        """Return the column of that name which has these values."""
        return replace(self, node=phrase(name))


@dataclass(frozen=True)
class Relation:
    """Something that stands in FROM."""

    node: Node
    columns: tuple[Value, ...]
    rows: int
    """About how many there are, at most."""
    key: tuple[Value, ...] | None
    """Columns that no two rows have in common; None where there are none."""
    width: int = 1
    """How many relations are joined."""
    where: tuple[Node, ...] = ()
    """Conditions of joins that stand in WHERE."""
    has_comma: bool = False
    """Whether the last join is a comma: what is joined by a word after it does not see what stands before."""


@dataclass(frozen=True)
class Named:
    """A query in WITH."""

    name: str
    rows: Rows
    relation: Callable[[str], Relation]
    """What it is in FROM, under an alias."""


@dataclass
class Writer:
    """Who writes one query: the dice, the tables, and names that are not taken yet."""

    rng: random.Random
    database: Database
    named: list[Named] = field(default_factory=list)
    _aliases: int = 0

    def alias(self) -> str:
        """Return a name that is not taken."""
        self._aliases += 1
        return f"q{self._aliases}"

    def chance(self, share: float) -> bool:
        """Return true so often."""
        return self.rng.random() < share

    def pick(self, items: Sequence[_T]) -> _T:
        """Return one of them."""
        return self.rng.choice(items)

    def any_of(self, *ways: tuple[float, Callable[[], _T | None]]) -> _T | None:
        """Return what a way leads to, the first one drawn by the weights that leads anywhere; None where none does."""
        left = [way for way in ways if way[0] > 0]
        while left:
            place = self.rng.choices(range(len(left)), weights=[weight for weight, _ in left])[0]
            found = left.pop(place)[1]()
            if found is not None:
                return found
        return None


def in_order(known: Sequence[Any]) -> list[Any]:
    """Return values in order, NaN last."""
    return sorted(known, key=lambda value: (isinstance(value, float) and math.isnan(value), value))


def table_relation(table: Table, alias: str) -> Relation:
    """Return a table as it stands in FROM."""
    rows = table.rows
    columns = tuple(_value(column, alias, [row[place] for row in rows]) for place, column in enumerate(table.columns))
    return Relation(phrase(f"{table.name} AS {alias}"), columns, len(rows), key=columns[:1])


def _value(column: Column, alias: str, stored: list[Any]) -> Value:
    known = [value for value in stored if value is not None]
    step = max(1, len(known) // _SAMPLES_MAX)
    return Value(
        phrase(f"{alias}.{column.name}"),
        column.kind,
        samples=tuple(in_order(known[::step])),
        bound=values.bound(column.kind, known),
        pool=column.pool,
        distinct=len(set(known)),
    )


def of_family(columns: Sequence[Value], *families: Family) -> list[Value]:
    """Return those of some families."""
    return [column for column in columns if column.kind.family in families]

"""A query as a tree that can be written as SQL, and made smaller step by step.

Nodes know their text and what might stand in their place, and nothing of what it means: a smaller query may be one that
no engine understands, and whoever shrinks finds that out by asking. What has to stay as it is for the answer to be the
only right one, such as an order that leaves no ties before a LIMIT, is no part that can be left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace


class Node:
    """A piece of a query."""

    def sql(self) -> str:
        """Return its text."""
        raise NotImplementedError

    def smaller(self) -> Iterator[Node]:
        """Yield what might stand in its place, one step smaller, the boldest steps first."""
        raise NotImplementedError

    def features(self) -> Iterator[str]:
        """Yield the names of what it and its parts are worth being counted for."""
        raise NotImplementedError


@dataclass(frozen=True)
class Phrase(Node):
    """Texts and nodes one after the other."""

    parts: tuple[str | Node, ...]
    instead: tuple[Node, ...] = ()
    """What may stand in its place."""
    feature: str | None = None

    def sql(self) -> str:
        """Return its text."""
        return "".join(part if isinstance(part, str) else part.sql() for part in self.parts)

    def smaller(self) -> Iterator[Node]:
        """Yield what may stand in its place, then itself with smaller parts."""
        yield from self.instead
        for place, part in enumerate(self.parts):
            if isinstance(part, Node):
                for smaller in part.smaller():
                    yield replace(self, parts=(*self.parts[:place], smaller, *self.parts[place + 1 :]))

    def features(self) -> Iterator[str]:
        """Yield its own, then those of its parts."""
        if self.feature:
            yield self.feature
        for part in self.parts:
            if isinstance(part, Node):
                yield from part.features()


def phrase(*parts: str | Node, instead: tuple[Node, ...] = (), feature: str | None = None) -> Phrase:
    """Return texts and nodes as one node."""
    return Phrase(parts, instead, feature)


@dataclass(frozen=True)
class Several(Node):
    """Nodes of which some may be left out: conditions, keys, arguments."""

    items: tuple[Node, ...]
    separator: str = ", "
    before: str = ""
    """Stands before them, where there is one."""
    after: str = ""
    least: int = 0

    def sql(self) -> str:
        """Return its text; that of no item is empty."""
        if not self.items:
            return ""
        return self.before + self.separator.join(item.sql() for item in self.items) + self.after

    def smaller(self) -> Iterator[Node]:
        """Yield itself without each half, without each item, then with smaller items."""
        count = len(self.items)
        half = count // 2
        if half > 1 and count - half >= self.least:
            yield replace(self, items=self.items[half:])
            yield replace(self, items=self.items[:half])
        for place in range(count):
            if count > self.least:
                yield replace(self, items=self.items[:place] + self.items[place + 1 :])
        for place, item in enumerate(self.items):
            for smaller in item.smaller():
                yield replace(self, items=(*self.items[:place], smaller, *self.items[place + 1 :]))

    def features(self) -> Iterator[str]:
        """Yield those of the items."""
        for item in self.items:
            yield from item.features()


@dataclass(frozen=True)
class Item:
    """A column of a SELECT."""

    node: Node
    name: str
    exact: bool = True
    """Whether its values are without rounding errors."""


class Rows(Node):
    """Something with columns: a SELECT, or several of them put together."""

    @property
    def items(self) -> tuple[Item, ...]:
        """The columns; those of the first SELECT, which names them."""
        raise NotImplementedError

    def without(self, place: int) -> Rows:
        """Return the same without one of several columns."""
        raise NotImplementedError


@dataclass(frozen=True)
class Select(Rows):
    """A SELECT up to its HAVING or QUALIFY."""

    columns: tuple[Item, ...]
    rest: Node
    distinct: bool = False
    is_key: bool = False
    """Whether somebody counts on its rows being different."""

    @property
    def items(self) -> tuple[Item, ...]:
        """The columns."""
        return self.columns

    def without(self, place: int) -> Select:
        """Return the same without one of several columns."""
        return replace(self, columns=self.columns[:place] + self.columns[place + 1 :])

    def sql(self) -> str:
        """Return its text."""
        columns = ", ".join(f"{item.node.sql()} AS {item.name}" for item in self.columns)
        return f"SELECT {'DISTINCT ' if self.distinct else ''}{columns} {self.rest.sql()}"

    def smaller(self) -> Iterator[Node]:
        """Yield itself without each column, with a smaller rest, with smaller columns."""
        if len(self.columns) > 1:
            for place in range(len(self.columns)):
                yield self.without(place)
        if self.distinct and not self.is_key:
            yield replace(self, distinct=False)
        for rest in self.rest.smaller():
            yield replace(self, rest=rest)
        for place, item in enumerate(self.columns):
            for smaller in item.node.smaller():
                changed = replace(item, node=smaller)
                yield replace(self, columns=(*self.columns[:place], changed, *self.columns[place + 1 :]))

    def features(self) -> Iterator[str]:
        """Yield DISTINCT, and those of its parts."""
        if self.distinct:
            yield "DISTINCT"
        for item in self.columns:
            yield from item.node.features()
        yield from self.rest.features()


@dataclass(frozen=True)
class SetOperation(Rows):
    """UNION, INTERSECT or EXCEPT."""

    operator: str
    left: Rows
    right: Rows

    @property
    def items(self) -> tuple[Item, ...]:
        """The columns of the left side; they are as exact as both sides are."""
        pairs = zip(self.left.items, self.right.items, strict=True)
        return tuple(replace(left, exact=left.exact and right.exact) for left, right in pairs)

    def without(self, place: int) -> SetOperation:
        """Return the same without a column on both sides."""
        return replace(self, left=self.left.without(place), right=self.right.without(place))

    def sql(self) -> str:
        """Return its text, each side in parentheses where it is of several itself."""
        left, right = (f"({side.sql()})" if isinstance(side, SetOperation) else side.sql() for side in self._sides())
        return f"{left} {self.operator} {right}"

    def _sides(self) -> tuple[Rows, Rows]:
        return self.left, self.right

    def smaller(self) -> Iterator[Node]:
        """Yield each side, itself without each column, and with smaller sides."""
        yield from self._sides()
        if len(self.left.items) > 1:
            for place in range(len(self.left.items)):
                yield self.without(place)
        for left in self.left.smaller():
            if isinstance(left, Rows) and len(left.items) == len(self.right.items):
                yield replace(self, left=left)
        for right in self.right.smaller():
            if isinstance(right, Rows) and len(right.items) == len(self.left.items):
                yield replace(self, right=right)

    def features(self) -> Iterator[str]:
        """Yield its own, and those of both sides."""
        yield "set operation"
        for side in self._sides():
            yield from side.features()


@dataclass(frozen=True)
class Query(Node):
    """A whole query: WITH, rows, and where there is an order, one over all columns, so that only equal rows tie."""

    rows: Rows
    names: tuple[tuple[str, Rows], ...] = ()
    """What stands in WITH."""
    order: tuple[tuple[int, str], ...] = ()
    """Each column's place, and its direction."""
    limit: str = ""

    def sql(self) -> str:
        """Return its text."""
        named = ", ".join(f"{name} AS ({rows.sql()})" for name, rows in self.names)
        items = self.rows.items
        keys = ", ".join(f"{items[place].name} {direction}" for place, direction in self.order)
        order = f" ORDER BY {keys}" if keys else ""
        return f"{f'WITH {named} ' if named else ''}{self.rows.sql()}{order}{self.limit}"

    def _without(self, place: int) -> Query:
        order = tuple((at - (at > place), direction) for at, direction in self.order if at != place)
        return replace(self, rows=self.rows.without(place), order=order)

    def smaller(self) -> Iterator[Node]:
        """Yield itself without LIMIT, order, columns, what WITH names, and with smaller rows."""
        if self.limit:
            yield replace(self, limit="")
        elif self.order:
            yield replace(self, order=())
        if len(self.rows.items) > 1:
            for place in range(len(self.rows.items)):
                yield self._without(place)
        for place in range(len(self.names)):
            yield replace(self, names=self.names[:place] + self.names[place + 1 :])
        for rows in self.rows.smaller():
            if isinstance(rows, Rows) and len(rows.items) == len(self.rows.items):
                yield replace(self, rows=rows)
        for place, (name, named) in enumerate(self.names):
            for rows in named.smaller():
                if isinstance(rows, Rows):
                    yield replace(self, names=(*self.names[:place], (name, rows), *self.names[place + 1 :]))

    def features(self) -> Iterator[str]:
        """Yield its own, and those of its parts."""
        if self.limit:
            yield "LIMIT"
        if self.order:
            yield "ORDER BY"
        for _, rows in self.names:
            yield "WITH"
            yield from rows.features()
        yield from self.rows.features()


@dataclass(frozen=True)
class Nested(Node):
    """A query in parentheses."""

    query: Query | Rows

    def sql(self) -> str:
        """Return its text."""
        return f"({self.query.sql()})"

    def smaller(self) -> Iterator[Node]:
        """Yield itself with smaller queries."""
        for query in self.query.smaller():
            if isinstance(query, (Query, Rows)):
                yield Nested(query)

    def features(self) -> Iterator[str]:
        """Yield those of the query."""
        yield from self.query.features()

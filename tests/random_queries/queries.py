"""Whole queries: SELECTs of several shapes, what they are put together to, and what they stand in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from random_queries import kinds, relations
from random_queries.aggregates import aggregate, aggregates
from random_queries.expressions import (
    as_bigint,
    as_kind,
    condition,
    condition_on,
    conditions,
    expression,
    of_kind,
)
from random_queries.kinds import BIGINT, DOUBLE, Family
from random_queries.scope import Named, Relation, Value, Writer
from random_queries.subqueries import subquery_condition, subquery_value
from random_queries.tree import Item, Nested, Node, Query, Rows, Select, SetOperation, Several, phrase
from random_queries.windows import direction, window

_ROWS_SHOWN = 500
"""A query of more rows mostly ends with a LIMIT."""


@dataclass(frozen=True)
class Written:
    """Rows, and what is known of their columns."""

    rows: Rows
    values: tuple[Value, ...]
    count: int
    """About how many rows, at most."""
    key: tuple[int, ...] | None = None
    """Places of the columns that no two rows have in common."""

    def relation(self, alias: str, node: Node) -> Relation:
        """Return what it is in FROM."""
        columns = tuple(
            value.named(f"{alias}.{item.name}") for value, item in zip(self.values, self.rows.items, strict=True)
        )
        key = None if self.key is None else tuple(columns[place] for place in self.key)
        return Relation(node, columns, self.count, key)


def query(writer: Writer) -> Query:
    """Return a query."""
    names: list[tuple[str, Rows]] = []
    while len(names) < 2 and writer.chance(0.15):
        names.append(_name(writer))
    written = _any(writer, depth=2)
    order: tuple[tuple[int, str], ...] = ()
    limit = ""
    if writer.chance(0.85 if written.count > _ROWS_SHOWN else 0.45):
        order = _order(writer, written.rows)
        if writer.chance(0.9 if written.count > _ROWS_SHOWN else 0.5):
            limit = _limit(writer, written.count)
    used = written.rows.sql()
    for name, rows in reversed(names):
        used += rows.sql() if f"{name} AS" in used else ""
    return Query(written.rows, tuple(entry for entry in names if f"{entry[0]} AS" in used), order, limit)


def _order(writer: Writer, rows: Rows) -> tuple[tuple[int, str], ...]:
    """Return an order over all columns, so that rows that tie are equal; the exact ones first."""
    places = list(range(len(rows.items)))
    writer.rng.shuffle(places)
    places.sort(key=lambda place: not rows.items[place].exact)
    return tuple((place, direction(writer)) for place in places)


def _limit(writer: Writer, count: int) -> str:
    most = writer.pick((1, 3, 10, 10, 50, 200))
    return f" LIMIT {most}" + (f" OFFSET {writer.rng.randint(1, 3)}" if writer.chance(0.2) and count > 100 else "")


def _any(writer: Writer, depth: int) -> Written:
    found = writer.any_of(
        (22, lambda: _plain(writer, depth)),
        (22, lambda: _grouped(writer, depth)),
        (13, lambda: _grouping_sets(writer, depth)),
        (16, lambda: _windowed(writer, depth)),
        (6, lambda: _aggregated(writer, depth)),
        (15, lambda: _set_operation(writer, depth)),
    )
    assert found is not None
    return found


# FROM and WHERE


def _leaf(writer: Writer, depth: int) -> Relation:
    if writer.named and writer.chance(0.5):
        return writer.pick(writer.named).relation(writer.alias())
    if depth and writer.chance(0.12):
        return _derived(writer, depth - 1)
    return relations.table(writer)


def _from(writer: Writer, depth: int) -> Relation:
    width = writer.rng.choices((1, 2, 3, 4), weights=(36, 34, 22, 8))[0]
    return relations.joined(writer, lambda: _leaf(writer, depth), width)


def _derived(writer: Writer, depth: int) -> Relation:
    written = _any(writer, depth)
    alias = writer.alias()
    inner: Query | Rows = written.rows
    count = written.count
    if writer.chance(0.15):
        inner = Query(written.rows, order=_order(writer, written.rows), limit=f" LIMIT {writer.pick((5, 20, 100))}")
        count = min(count, 100)
    node = phrase(Nested(inner), f" AS {alias}", feature="derived table")
    return replace(written, count=count).relation(alias, node)


def _name(writer: Writer) -> tuple[str, Rows]:
    """Write a query for WITH."""
    written = _any(writer, 1)
    name = f"w{len(writer.named) + 1}"
    writer.named.append(Named(name, written.rows, lambda alias: written.relation(alias, phrase(f"{name} AS {alias}"))))
    return name, written.rows


def _where(writer: Writer, relation: Relation, depth: int) -> Several:
    filters = conditions(writer, relation.columns, 2)
    if depth and writer.chance(0.27):
        found = subquery_condition(writer, relation)
        if found is not None:
            other = condition(writer, relation.columns, 0)
            either = phrase("(", found, " OR ", other, ")", instead=(found, other))
            filters += (either if writer.chance(0.15) else found,)
    return relations.where_clause(relation, *filters)


def _rest(relation: Relation, where: Node, *more: Node) -> Node:
    return phrase(relations.from_clause(relation), where, *more)


# SELECT


def _items(writer: Writer, values: Sequence[Value]) -> tuple[Item, ...]:
    prefix = writer.alias()
    return tuple(Item(value.node, f"{prefix}_{place}", value.exact) for place, value in enumerate(values, 1))


def _columns(writer: Writer, relation: Relation, most: int) -> tuple[list[Value], tuple[int, ...] | None]:
    """Return some expressions, sometimes with the key of the rows, and then its places."""
    values = [expression(writer, relation.columns) for _ in range(writer.rng.randint(1, most))]
    if relation.key is None or len(relation.key) > 3 or writer.chance(0.5):
        return values, None
    return [*relation.key, *values], tuple(range(len(relation.key)))


def _plain(writer: Writer, depth: int) -> Written:
    relation = _from(writer, depth)
    values, key = _columns(writer, relation, 4)
    if depth and writer.chance(0.2):
        found = subquery_value(writer, relation)
        if found is not None:
            values.append(replace(found, exact=False) if not found.exact else found)
    if depth and writer.chance(0.01):
        asked = subquery_condition(writer, relation)
        if asked is not None:
            values.append(Value(phrase("CASE WHEN ", asked, " THEN 1 ELSE 0 END"), BIGINT, samples=(0, 1), bound=1.0))
    distinct = writer.chance(0.2)
    rest = _rest(relation, _where(writer, relation, depth))
    rows = Select(_items(writer, values), rest, distinct, is_key=True)
    return Written(rows, tuple(values), relation.rows, tuple(range(len(values))) if distinct else key)


def _aggregated(writer: Writer, depth: int) -> Written:
    relation = _from(writer, depth)
    values = aggregates(writer, relation.columns, relation.rows, 4)
    rest = _rest(relation, _where(writer, relation, depth))
    return Written(Select(_items(writer, values), rest), tuple(values), 1, key=())


def _keys(writer: Writer, relation: Relation, most: int) -> list[Value]:
    """Return keys to group by: mostly columns of few values, no two the same."""
    few = [column for column in relation.columns if 0 < column.distinct <= 40] or list(relation.columns)
    found: dict[str, Value] = {}
    for _ in range(writer.rng.randint(1, most)):
        key = writer.pick(few) if writer.chance(0.7) else expression(writer, relation.columns, 1)
        found.setdefault(key.node.sql(), key)
    return list(found.values())


def _having(writer: Writer, relation: Relation, share: float) -> Several:
    if not writer.chance(share):
        return Several(())
    asked = condition_on(writer, aggregate(writer, relation.columns, relation.rows))
    return Several((asked,), before=" HAVING ")


def _grouped(writer: Writer, depth: int) -> Written:
    relation = _from(writer, depth)
    keys = _keys(writer, relation, 3)
    values = keys + aggregates(writer, relation.columns, relation.rows, 3)
    items = _items(writer, values)
    windowed = writer.chance(0.12)
    by_name = not windowed and writer.chance(0.3)
    grouped = [phrase(item.name) if by_name else key.node for key, item in zip(keys, items, strict=False)]
    rest = _rest(
        relation,
        _where(writer, relation, depth),
        Several(tuple(grouped), before=" GROUP BY "),
        _having(writer, relation, 0.25),
    )
    groups = _group_count(relation, keys)
    written = Written(Select(items, rest), tuple(values), groups, key=tuple(range(len(keys))))
    if windowed:
        return _windowed_groups(writer, relation, keys, rest, groups)
    return written


def _group_count(relation: Relation, keys: Sequence[Value]) -> int:
    count = 1
    for key in keys:
        count *= (key.distinct or relation.rows) + 1
    return min(count, relation.rows)


def _windowed_groups(writer: Writer, relation: Relation, keys: list[Value], rest: Node, groups: int) -> Written:
    """Return window functions over groups: what they name are keys and aggregates."""
    values = keys + aggregates(writer, relation.columns, relation.rows, 2)
    exact = [value for value in values if value.exact]
    seen = Relation(relation.node, tuple(exact), groups, key=tuple(keys))
    values = [*values, window(writer, seen)]
    return Written(Select(_items(writer, values), rest), tuple(values), groups, key=tuple(range(len(keys))))


def _grouping_sets(writer: Writer, depth: int) -> Written | None:
    relation = _from(writer, depth)
    keys = _keys(writer, relation, 3)
    if len(keys) < 2:
        return None
    nodes = [key.node for key in keys]
    shape = writer.pick(("ROLLUP", "ROLLUP", "CUBE", "GROUPING SETS", "GROUPING SETS", "mixed"))
    if shape == "mixed":
        grouped: Node = phrase(nodes[0], ", ROLLUP", Several(tuple(nodes[1:]), before=" (", after=")", least=1))
    elif shape == "GROUPING SETS":
        sets = [writer.rng.sample(nodes, writer.rng.randint(0, len(nodes))) for _ in range(writer.rng.randint(2, 4))]
        # A key that no set has would be a column that is not grouped by.
        sets.append(nodes)
        listed = tuple(phrase("(", Several(tuple(found)), ")") for found in sets)
        grouped = phrase("GROUPING SETS (", Several(listed, least=1), ")")
    else:
        grouped = phrase(f"{shape} (", Several(tuple(nodes), least=1), ")")
    clause = phrase(" GROUP BY ", grouped, feature="grouping sets")
    values = keys + aggregates(writer, relation.columns, relation.rows, 3)
    if writer.chance(0.4):
        key = writer.pick(nodes)
        values.append(
            Value(phrase("CAST(grouping(", key, ") AS BIGINT)"), BIGINT, samples=(0, 1), bound=1.0, distinct=2)
        )
    rest = _rest(relation, _where(writer, relation, depth), clause, _having(writer, relation, 0.15))
    # NULL stands for all values, too.
    values = [replace(value, pool=None) if value in keys else value for value in values]
    return Written(Select(_items(writer, values), rest), tuple(values), 4 * _group_count(relation, keys))


def _windowed(writer: Writer, depth: int) -> Written:
    relation = _from(writer, depth)
    values, key = _columns(writer, relation, 3)
    values += [window(writer, relation) for _ in range(writer.pick((1, 1, 2, 3)))]
    qualify: tuple[Node, ...] = ()
    if writer.chance(0.12):
        asked = condition_on(writer, window(writer, relation))
        qualify = (Several((asked,), before=" QUALIFY "),)
    rest = _rest(relation, _where(writer, relation, depth), *qualify)
    return Written(Select(_items(writer, values), rest), tuple(values), relation.rows, key)


# UNION, INTERSECT, EXCEPT


def _set_operation(writer: Writer, depth: int) -> Written:
    """Return two or three SELECTs put together; mostly over the same tables, so that they have rows in common."""
    state = writer.rng.getstate()
    relation = _side_relation(writer, depth)
    count = min(len(relation.columns), writer.rng.randint(1, 4))
    places = writer.rng.sample(range(len(relation.columns)), count)
    sides = [_side(writer, relation, [_widest(relation.columns[place]) for place in places], depth)]
    wanted = [value.kind for value in sides[0].values]
    operators: list[str] = []
    for _ in range(writer.pick((1, 1, 1, 2))):
        if writer.chance(0.6):
            # What the same dice choose: the same tables under other names.
            now = writer.rng.getstate()
            writer.rng.setstate(state)
            relation = _side_relation(writer, depth)
            writer.rng.setstate(now)
            sides.append(_side(writer, relation, [_widest(relation.columns[place]) for place in places], depth))
            operators.append(writer.pick(("UNION", "UNION ALL", "INTERSECT", "INTERSECT", "EXCEPT")))
        else:
            relation = _side_relation(writer, depth)
            sides.append(_side(writer, relation, [of_kind(writer, relation.columns, kind) for kind in wanted], depth))
            operators.append(writer.pick(("UNION", "UNION ALL", "EXCEPT")))
    rows: Rows = sides[0].rows
    for side, operator in zip(sides[1:], operators, strict=True):
        operator += " ALL" if operator in ("INTERSECT", "EXCEPT") and writer.chance(0.3) else ""
        pair = (rows, side.rows) if writer.chance(0.8) else (side.rows, rows)
        rows = SetOperation(operator, *pair)
    values = tuple(_either(alike) for alike in zip(*(side.values for side in sides), strict=True))
    return Written(rows, values, sum(side.count for side in sides))


def _either(alike: Sequence[Value]) -> Value:
    """Return what is known of a column of which each value is one of these columns'."""
    bounds = [value.bound for value in alike]
    known = [bound for bound in bounds if bound is not None]
    return replace(
        alike[0],
        bound=max(known) if len(known) == len(bounds) else None,
        distinct=sum(value.distinct for value in alike),
        exact=all(value.exact for value in alike),
    )


def _side_relation(writer: Writer, depth: int) -> Relation:
    return relations.joined(writer, lambda: _leaf(writer, depth and depth - 1), writer.pick((1, 1, 2)))


def _side(writer: Writer, relation: Relation, values: list[Value], depth: int) -> Written:
    rest = _rest(relation, _where(writer, relation, depth))
    return Written(Select(_items(writer, values), rest), tuple(values), relation.rows)


def _widest(value: Value) -> Value:
    """Return the value in the one type that its family has in set operations: the engines widen in their own ways."""
    if value.kind.family is Family.INTEGER and value.kind != kinds.UBIGINT:
        return as_bigint(value)
    return as_kind(value, DOUBLE) if value.kind.family is Family.DOUBLE else value

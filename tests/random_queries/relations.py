"""What stands in FROM: tables and other relations, joined on columns that have values in common.

About how many rows come out is kept in mind, so that no query makes millions of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from random_queries.expressions import comparable, condition
from random_queries.scope import Relation, Value, Writer, table_relation
from random_queries.tree import Node, Several, phrase

ROWS_MAX = 20_000

_TRIES = 5
"""Relations that are tried as the partner of a join before it stays without one."""


def table(writer: Writer) -> Relation:
    """Return one of the tables."""
    tables = writer.database.tables
    many = [table for table in tables if len(table.rows) > 9]
    return table_relation(writer.pick(tables if writer.chance(0.1) else many), writer.alias())


def joined(writer: Writer, leaf: Callable[[], Relation], width: int) -> Relation:
    """Return up to so many relations, joined one after the other."""
    left = leaf()
    while left.width < width:
        for _ in range(_TRIES):
            found = _join(writer, left, leaf())
            if found is not None:
                left = found
                break
        else:
            return left
    return left


def partners(left: tuple[Value, ...], right: tuple[Value, ...]) -> list[tuple[Value, Value]]:
    """Return the pairs of columns that have values in common."""
    return [(one, other) for one in left for other in right if one.pool and one.pool == other.pool]


def expected_rows(left: Relation, right: Relation, pair: tuple[Value, Value]) -> int:
    """Return about how many pairs of rows have equal values there."""
    return 1 + 2 * left.rows * right.rows // max(1, pair[0].distinct, pair[1].distinct)


def _join(writer: Writer, left: Relation, right: Relation) -> Relation | None:
    if left.has_comma:
        return _equal_join(writer, left, right)
    return writer.any_of(
        (20, lambda: _equal_join(writer, left, right)),
        (1, lambda: _cross_join(writer, left, right)),
        (1.5, lambda: _unequal_join(writer, left, right)),
    )


def _equal_join(writer: Writer, left: Relation, right: Relation) -> Relation | None:
    pairs = partners(left.columns, right.columns)
    if writer.chance(0.04):
        pairs += [(one, other) for one in left.columns for other in right.columns if comparable(one.kind, other.kind)]
    if not pairs:
        return None
    pair = writer.pick(pairs)
    rows = expected_rows(left, right, pair)
    if rows > ROWS_MAX:
        return None
    operator = " = " if writer.chance(0.94) else " IS NOT DISTINCT FROM "
    sides = pair if writer.chance(0.7) else (pair[1], pair[0])
    equal = phrase(sides[0].node, operator, sides[1].node)
    word = writer.rng.choices(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", ","), weights=(40, 24, 12, 10, 14))[0]
    if word == "," or left.has_comma:
        node = phrase(left.node, ", ", right.node, instead=(left.node, right.node), feature="inner join")
        return replace(_together(left, right, node, rows, (equal,)), has_comma=True)
    others = [phrase(one.node, " = ", other.node) for one, other in pairs if (one, other) != pair]
    more: list[Node] = []
    if others and writer.chance(0.1):
        more.append(writer.pick(others))
    if writer.chance(0.2):
        more.append(condition(writer, writer.pick((left.columns, right.columns, left.columns + right.columns)), 1))
    on = Several((equal, *more), " AND ", least=1)
    feature = "inner join" if word == "JOIN" else "outer join"
    node = phrase(left.node, f" {word} ", right.node, " ON ", on, instead=(left.node, right.node), feature=feature)
    extra = {"LEFT JOIN": left.rows, "RIGHT JOIN": right.rows, "FULL JOIN": left.rows + right.rows}.get(word, 0)
    return _together(left, right, node, rows + extra, ())


def _cross_join(writer: Writer, left: Relation, right: Relation) -> Relation | None:
    rows = left.rows * right.rows
    if rows > ROWS_MAX // 8:
        return None
    node = phrase(left.node, " CROSS JOIN ", right.node, instead=(left.node, right.node), feature="cross join")
    return _together(left, right, node, rows, ())


def _unequal_join(writer: Writer, left: Relation, right: Relation) -> Relation | None:
    rows = left.rows * right.rows
    pairs = [(one, other) for one in left.columns for other in right.columns if comparable(one.kind, other.kind)]
    if rows > ROWS_MAX or not pairs:
        return None
    one, other = writer.pick(pairs)
    # A FULL JOIN without an equality is one that DuckDB has not got.
    word = writer.pick(("JOIN", "LEFT JOIN", "RIGHT JOIN"))
    on = phrase(one.node, f" {writer.pick(('<', '<=', '>', '>='))} ", other.node)
    feature = "inner join" if word == "JOIN" else "outer join"
    node = phrase(left.node, f" {word} ", right.node, " ON ", on, instead=(left.node, right.node), feature=feature)
    return _together(left, right, node, rows, ())


def _together(left: Relation, right: Relation, node: Node, rows: int, where: tuple[Node, ...]) -> Relation:
    key = left.key + right.key if left.key is not None and right.key is not None else None
    return Relation(
        node,
        left.columns + right.columns,
        rows,
        key,
        left.width + right.width,
        where=(*left.where, *right.where, *where),
    )


def from_clause(relation: Relation) -> Node:
    """Return FROM with the relation."""
    return phrase("FROM ", relation.node, feature="three-way join" if relation.width > 2 else None)


def where_clause(relation: Relation, *conditions: Node) -> Several:
    """Return WHERE with the conditions, those of the joins first."""
    return Several((*relation.where, *conditions), " AND ", before=" WHERE ")

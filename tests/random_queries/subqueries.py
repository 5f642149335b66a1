"""Conditions and values that ask a query of their own, about the row around it or about none.

What is not written: values of a subquery that may have several rows, an error in both; conditions of `NOT IN` that are
NULL for nearly all rows, which are true, but say little.
"""

from __future__ import annotations

from dataclasses import replace

from random_queries import relations
from random_queries.aggregates import aggregate
from random_queries.expressions import comparable, condition, condition_on, conditions
from random_queries.scope import Relation, Value, Writer
from random_queries.tree import Node, Several, phrase

_CORRELATED, _UNCORRELATED = "correlated subquery", "subquery"

_SAME_ROWS_MAX = 2_000
"""Rows of a relation that a subquery in one of its conditions may be of once more."""


def subquery_condition(writer: Writer, outer: Relation) -> Node | None:
    """Return a condition with a subquery."""
    return writer.any_of(
        (4, lambda: _exists(writer, outer)),
        (3, lambda: _in(writer, outer)),
        (2, lambda: _compared_with_set(writer, outer)),
        (3, lambda: _compared(writer, outer)),
    )


def _inner(writer: Writer) -> Relation:
    return relations.joined(writer, lambda: relations.table(writer), 2 if writer.chance(0.15) else 1)


def _inner_alone(writer: Writer, outer: Relation) -> Relation:
    """Return what a subquery may be of that is about no row around it: perhaps the outer relation, names and all."""
    if outer.width <= 2 and outer.rows <= _SAME_ROWS_MAX and writer.chance(0.3):
        return outer
    return _inner(writer)


def _tied(writer: Writer, outer: Relation, inner: Relation) -> Node | None:
    """Return what ties a row of the inner relation to one of the outer one."""
    pairs = relations.partners(outer.columns, inner.columns)
    if not pairs:
        return None
    one, other = writer.pick(pairs)
    return phrase(*((other.node, " = ", one.node) if writer.chance(0.7) else (one.node, " = ", other.node)))


def _also_tied(writer: Writer, outer: Relation, inner: Relation, share: float) -> tuple[Node, ...]:
    """Return a condition about both rows besides, so often."""
    pairs = [(one, two) for one in outer.columns for two in inner.columns if comparable(one.kind, two.kind)]
    if not pairs or not writer.chance(share):
        return ()
    one, other = writer.pick(pairs)
    return (phrase(other.node, f" {writer.pick(('<>', '<=', '>='))} ", one.node),)


def _loosely_tied(writer: Writer, outer: Relation, inner: Relation) -> Node | None:
    """Return a condition about both rows that no join has for a key."""
    more, tie = _also_tied(writer, outer, inner, 1), _tied(writer, outer, inner)
    if more and tie is not None and writer.chance(0.5):
        return phrase("(", tie, " OR ", *more, ")")
    return more[0] if more else None


def _exists(writer: Writer, outer: Relation) -> Node | None:
    inner = _inner(writer)
    tie = _tied(writer, outer, inner)
    if tie is None:
        return None
    where = relations.where_clause(
        inner, tie, *conditions(writer, inner.columns, 1), *_also_tied(writer, outer, inner, 0.2)
    )
    word = writer.pick(("EXISTS", "EXISTS", "NOT EXISTS"))
    end = " OFFSET 1)" if writer.chance(0.1) else ")"
    return phrase(f"{word} (SELECT 1 ", relations.from_clause(inner), where, end, feature=_CORRELATED)


def _in(writer: Writer, outer: Relation) -> Node | None:
    inner = _inner_alone(writer, outer)
    pairs = relations.partners(outer.columns, inner.columns)
    if not pairs:
        return None
    one, other = writer.pick(pairs)
    negated = writer.chance(0.35)
    more = () if inner is outer else _also_tied(writer, outer, inner, 0.3)
    filters = conditions(writer, inner.columns, 1)
    if negated:
        # Else hardly a row is left, as one NULL among the inner ones is enough.
        filters += (condition(writer, inner.columns, 0),)
        filters += (phrase(other.node, " IS NOT NULL"),) if writer.chance(0.7) else ()
    word = "NOT IN" if negated else "IN"
    where = relations.where_clause(inner, *filters, *more)
    parts = (one.node, f" {word} (SELECT ", other.node, " ", relations.from_clause(inner), where, ")")
    return phrase(*parts, feature=_CORRELATED if more else _UNCORRELATED)


def _compared_with_set(writer: Writer, outer: Relation) -> Node | None:
    inner = _inner_alone(writer, outer)
    pairs = [(one, two) for one in outer.columns for two in inner.columns if comparable(one.kind, two.kind)]
    if not pairs:
        return None
    one, other = writer.pick(pairs)
    word = writer.pick(("ANY", "ALL"))
    more = () if inner is outer else _also_tied(writer, outer, inner, 0.3)
    filters = conditions(writer, inner.columns, 1)
    if word == "ALL" and writer.chance(0.7):
        # As with NOT IN.
        filters += (phrase(other.node, " IS NOT NULL"),)
    where = relations.where_clause(inner, *filters, *more)
    operator = writer.pick(("=", "<>", "<", "<=", ">", ">="))
    parts = (one.node, f" {operator} {word} (SELECT ", other.node, " ", relations.from_clause(inner), where, ")")
    feature = _CORRELATED if more else _UNCORRELATED
    if writer.chance(0.2):
        return phrase("(", *parts, f") IS {writer.pick(('NOT TRUE', 'NOT FALSE', 'NOT NULL'))}", feature=feature)
    return phrase(*parts, feature=feature)


def _compared(writer: Writer, outer: Relation) -> Node | None:
    value = subquery_value(writer, outer)
    if value is None:
        return None
    others = [column for column in outer.columns if comparable(column.kind, value.kind)]
    if others and writer.chance(0.7):
        return phrase(writer.pick(others).node, f" {writer.pick(('<=', '>=', '<>', '<', '>'))} ", value.node)
    return condition_on(writer, value)


def subquery_value(writer: Writer, outer: Relation) -> Value | None:
    """Return a subquery of one row."""
    return writer.any_of(
        (3, lambda: _aggregated(writer, outer)),
        (0.5, lambda: _at_a_place(writer, outer)),
        (0.1, lambda: _found_by_key(writer, outer)),
        (1, lambda: _of_no_row(writer)),
    )


def _aggregated(writer: Writer, outer: Relation) -> Value | None:
    inner = _inner(writer)
    tie = _loosely_tied(writer, outer, inner) if writer.chance(0.2) else _tied(writer, outer, inner)
    if tie is None:
        return None
    value = aggregate(writer, inner.columns, inner.rows)
    where = relations.where_clause(inner, tie, *conditions(writer, inner.columns, 1))
    return _as_subquery(value, inner, where, _CORRELATED)


def _at_a_place(writer: Writer, outer: Relation) -> Value | None:
    """Return a column of the first or second of the rows that are tied, by the order of that column."""
    inner = _inner(writer)
    tie = _loosely_tied(writer, outer, inner) if writer.chance(0.2) else _tied(writer, outer, inner)
    if tie is None:
        return None
    value = writer.pick(inner.columns)
    where = relations.where_clause(inner, tie, *conditions(writer, inner.columns, 1))
    order = f"{writer.pick(('ASC', 'DESC'))} NULLS {writer.pick(('FIRST', 'LAST'))}"
    place = writer.pick(("LIMIT 1", "LIMIT 1 OFFSET 1"))
    rows = (value.node, " ", relations.from_clause(inner), where, " ORDER BY ", value.node)
    node = phrase("(SELECT ", *rows, f" {order} {place})", feature=_CORRELATED)
    return replace(value, node=node, pool=None)


def _found_by_key(writer: Writer, outer: Relation) -> Value | None:
    """Return a column of the one row that a key names."""
    inner = relations.table(writer)
    assert inner.key is not None
    pairs = relations.partners(outer.columns, inner.key)
    if not pairs:
        return None
    one, other = writer.pick(pairs)
    where = Several((phrase(other.node, " = ", one.node),), before=" WHERE ", least=1)
    return _as_subquery(writer.pick(inner.columns), inner, where, _CORRELATED)


def _of_no_row(writer: Writer) -> Value:
    """Return an aggregate that has nothing to do with the row around it."""
    inner = _inner(writer)
    value = aggregate(writer, inner.columns, inner.rows)
    return _as_subquery(
        value, inner, relations.where_clause(inner, *conditions(writer, inner.columns, 1)), _UNCORRELATED
    )


def _as_subquery(value: Value, inner: Relation, where: Several, feature: str) -> Value:
    node = phrase("(SELECT ", value.node, " ", relations.from_clause(inner), where, ")", feature=feature)
    return replace(value, node=node, pool=None)

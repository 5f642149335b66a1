"""Aggregates, and what they are of.

What is not written, since both engines may rightly answer differently: sums of numbers that are rounded on the way,
where the order of additions decides (`values.bound`); averages of decimals, a double there and a decimal here; medians
and quantiles, which interpolate there alone; variances of numbers whose squares are rounded. Sums are cast to a type that they fit into, since they are wider there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from random_queries import kinds
from random_queries.expressions import condition, expression
from random_queries.kinds import BIGINT, BOOLEAN, DOUBLE, VARCHAR, Family
from random_queries.scope import Value, Writer, of_family
from random_queries.tree import Node, phrase

_SUM_MAX = 4e18
_EXACT_MAX = 2.0**51
"""Sums of quarters up to here are exact in a double."""

_SPREAD_MAX = 1000.0
"""Of no greater numbers are variances compared."""

Finish = Callable[[Node], Node]
"""What becomes of a call: it gets a FILTER, or a window."""


def aggregate(writer: Writer, columns: Sequence[Value], rows: int) -> Value:
    """Return an aggregate over about so many rows."""

    def filtered(call: Node) -> Node:
        if not writer.chance(0.18):
            return call
        return phrase(call, " FILTER (WHERE ", condition(writer, columns, 1), ")", instead=(call,), feature="FILTER")

    found = writer.any_of(
        (20, lambda: plain_aggregate(writer, columns, rows, filtered)),
        (1.5, lambda: _count_distinct(writer, columns, rows, filtered)),
        (0.5, lambda: _sum(writer, columns, rows, filtered, "DISTINCT ")),
        (0.5, lambda: _of_booleans(writer, columns, filtered)),
        (1, lambda: _spread(writer, columns, filtered)),
        (0.15, lambda: _list_of_texts(writer, columns)),
    )
    assert found is not None
    return found


def aggregates(writer: Writer, columns: Sequence[Value], rows: int, most: int) -> list[Value]:
    """Return one to so many aggregates."""
    return [aggregate(writer, columns, rows) for _ in range(writer.rng.randint(1, most))]


def plain_aggregate(writer: Writer, columns: Sequence[Value], rows: int, finish: Finish) -> Value:
    """Return count, sum, avg, min or max."""
    found = writer.any_of(
        (4, lambda: Value(finish(phrase("count(*)")), BIGINT, samples=(1, 1, 2), bound=float(rows))),
        (2, lambda: _count(writer, columns, rows, finish)),
        (6, lambda: _sum(writer, columns, rows, finish)),
        (3, lambda: _average(writer, columns, finish)),
        (8, lambda: _extreme(writer, columns, finish)),
    )
    assert found is not None
    return found


def _argument(writer: Writer, columns: Sequence[Value], *families: Family) -> Value | None:
    """Return a column, or something computed, of one of the families that may be summed."""
    for _ in range(3):
        value = expression(writer, columns, 1) if writer.chance(0.4) else writer.pick(columns)
        if value.kind.family in families and value.bound is not None:
            return value
    fitting = [column for column in of_family(columns, *families) if column.bound is not None]
    return writer.pick(fitting) if fitting else None


def _count(writer: Writer, columns: Sequence[Value], rows: int, finish: Finish) -> Value:
    call = phrase("count(", expression(writer, columns, 1).node, ")")
    return Value(finish(call), BIGINT, bound=float(rows))


def _count_distinct(writer: Writer, columns: Sequence[Value], rows: int, finish: Finish) -> Value:
    call = phrase("count(DISTINCT ", expression(writer, columns, 1).node, ")", feature="DISTINCT aggregate")
    return Value(finish(call), BIGINT, bound=float(rows))


def _sum(writer: Writer, columns: Sequence[Value], rows: int, finish: Finish, distinct: str = "") -> Value | None:
    argument = _argument(writer, columns, Family.INTEGER, Family.DECIMAL, Family.DOUBLE)
    if argument is None or argument.bound is None:
        return None
    most = argument.bound * rows
    if most > (_EXACT_MAX if argument.kind.family is Family.DOUBLE else _SUM_MAX):
        return None
    call = finish(phrase(f"sum({distinct}", argument.node, ")", feature="DISTINCT aggregate" if distinct else None))
    if argument.kind.family is Family.DOUBLE:
        return Value(call, DOUBLE, bound=most)
    kind = BIGINT if argument.kind.family is Family.INTEGER else kinds.decimal(38, argument.kind.scale)
    return Value(phrase("CAST(", call, f" AS {kind.name})", instead=(call,)), kind, bound=most)


def _average(writer: Writer, columns: Sequence[Value], finish: Finish) -> Value | None:
    argument = _argument(writer, columns, Family.INTEGER, Family.DOUBLE)
    if argument is None:
        return None
    return Value(finish(phrase("avg(", argument.node, ")")), DOUBLE, exact=False)


def _spread(writer: Writer, columns: Sequence[Value], finish: Finish) -> Value | None:
    argument = _argument(writer, columns, Family.INTEGER, Family.DOUBLE)
    if argument is None or argument.bound is None or argument.bound > _SPREAD_MAX:
        return None
    name = writer.pick(("stddev(", "stddev_pop(", "var_samp(", "var_pop("))
    return Value(finish(phrase(name, argument.node, ")")), DOUBLE, exact=False)


def _extreme(writer: Writer, columns: Sequence[Value], finish: Finish) -> Value:
    argument = expression(writer, columns, 1)
    call = phrase(writer.pick(("min(", "max(")), argument.node, ")")
    return replace(argument, node=finish(call), pool=None)


def _of_booleans(writer: Writer, columns: Sequence[Value], finish: Finish) -> Value | None:
    name = writer.pick(("bool_and(", "bool_or("))
    return Value(finish(phrase(name, condition(writer, columns, 0), ")")), BOOLEAN)


def _list_of_texts(writer: Writer, columns: Sequence[Value]) -> Value | None:
    texts = of_family(columns, Family.TEXT)
    if not texts:
        return None
    argument = writer.pick(texts).node
    # Ties in the order are equal texts, and change nothing.
    return Value(phrase("string_agg(", argument, ", ',' ORDER BY ", argument, ")"), VARCHAR)

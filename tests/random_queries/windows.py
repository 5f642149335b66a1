"""Window functions.

What depends on the order of rows that tie is asked of rows that have a key only, which then ends the order. Numbers and
ranks are cast to BIGINT, since they are UBIGINT here, which subtraction leaves and `-` refuses.
"""

from __future__ import annotations

from dataclasses import replace

from random_queries.aggregates import plain_aggregate
from random_queries.expressions import constant
from random_queries.kinds import BIGINT, DATE, DOUBLE, INTEGER
from random_queries.scope import Relation, Value, Writer
from random_queries.tree import Node, Several, phrase

_FEW = 40


def direction(writer: Writer) -> str:
    """Return a direction; where NULLs go is said each time, since the default is not the same."""
    return f"{writer.pick(('ASC', 'DESC'))} NULLS {writer.pick(('FIRST', 'LAST'))}"


def window(writer: Writer, relation: Relation) -> Value:
    """Return a window function over the rows."""
    if not relation.columns:
        # Groups without keys, of which nothing is exact.
        return _number(relation, _over("count(*)", Several(()), ""))
    found = writer.any_of(
        (3, lambda: _numbering(writer, relation)),
        (2, lambda: _ranking(writer, relation)),
        (3, lambda: _neighbour(writer, relation)),
        (3, lambda: _over_frame_of_rows(writer, relation)),
        (3, lambda: _over_peers(writer, relation)),
        (1, lambda: _over_range(writer, relation)),
    )
    assert found is not None
    return found


def _partition(writer: Writer, relation: Relation) -> Several:
    few = [column for column in relation.columns if 0 < column.distinct <= _FEW]
    if not few or writer.chance(0.25):
        return Several(())
    keys = [writer.pick(few).node for _ in range(writer.pick((1, 1, 2)))]
    return Several(tuple(keys), before="PARTITION BY ")


def _order(writer: Writer, keys: list[Value]) -> Node:
    """Return the whole order; nothing of it may be left out."""
    return phrase(
        *(
            part
            for place, key in enumerate(keys)
            for part in (", " if place else " ORDER BY ", key.node, f" {direction(writer)}")
        )
    )


def _some(writer: Writer, relation: Relation, least: int) -> list[Value]:
    return [writer.pick(relation.columns) for _ in range(writer.rng.randint(least, 2))]


def _total_order(writer: Writer, relation: Relation) -> Node | None:
    return None if relation.key is None else _order(writer, [*_some(writer, relation, 0), *relation.key])


def _over(call: str | Node, partition: Node, order: Node | str, frame: str = "") -> Node:
    return phrase(call, " OVER (", partition, order, frame, ")", feature="window")


def _numbering(writer: Writer, relation: Relation) -> Value | None:
    order = _total_order(writer, relation)
    if order is None:
        return None
    call = writer.pick(("row_number()", "row_number()", f"ntile({writer.rng.randint(2, 5)})"))
    return _number(relation, _over(call, _partition(writer, relation), order))


def _number(relation: Relation, node: Node) -> Value:
    return Value(phrase("CAST(", node, " AS BIGINT)"), BIGINT, samples=(1, 1, 2, 3), bound=float(relation.rows))


def _ranking(writer: Writer, relation: Relation) -> Value:
    call = writer.pick(("rank()", "rank()", "dense_rank()", "dense_rank()", "percent_rank()", "cume_dist()"))
    order = _order(writer, _some(writer, relation, 1))
    node = _over(call, _partition(writer, relation), order)
    if call in ("percent_rank()", "cume_dist()"):
        return Value(node, DOUBLE, exact=False)
    return _number(relation, node)


def _neighbour(writer: Writer, relation: Relation) -> Value | None:
    order = _total_order(writer, relation)
    if order is None:
        return None
    value = writer.pick(relation.columns)
    name = writer.pick(("lag", "lead", "lag", "lead", "first_value", "last_value", "nth_value"))
    frame = ""
    if name in ("lag", "lead"):
        default = constant(writer, value) if writer.chance(0.3) else None
        offset = writer.rng.randint(0, 3)
        # Of the same type as the value, or one engine would return a wider one.
        more = f", {offset}, CAST({default} AS {value.kind.name})" if default else writer.pick(("", f", {offset}"))
    else:
        more = f", {writer.rng.randint(1, 4)}" if name == "nth_value" else ""
        frame = writer.pick(("", "", _frame(writer, "ROWS")))
    node = _over(phrase(f"{name}(", value.node, f"{more})"), _partition(writer, relation), order, frame)
    return replace(value, node=node, pool=None)


def _over_frame_of_rows(writer: Writer, relation: Relation) -> Value | None:
    order = _total_order(writer, relation)
    return None if order is None else _aggregate_over(writer, relation, order, _frame(writer, "ROWS"))


def _over_peers(writer: Writer, relation: Relation) -> Value | None:
    """Return an aggregate whose frame has all peers of a row or none, so that ties do not matter."""
    keys = _some(writer, relation, 0)
    if not keys:
        return _aggregate_over(writer, relation, "", "")
    frame = writer.pick(
        (
            "",
            "",
            " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            " RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            _frame(writer, "GROUPS"),
        )
    )
    return _aggregate_over(writer, relation, _order(writer, keys), frame)


def _over_range(writer: Writer, relation: Relation) -> Value | None:
    """Return an aggregate over a frame of values up to some distance."""
    # Of types that a distance can be taken from without leaving them.
    keys = [key for key in relation.columns if key.kind in (INTEGER, BIGINT, DATE) and key.bound is not None]
    if not keys:
        return None
    key = writer.pick(keys)
    distances = [str(number) for number in sorted(writer.rng.sample(range(20), 2))]
    if key.kind == DATE:
        distances = [f"INTERVAL '{distance} days'" for distance in distances]
    frame = writer.pick(
        (
            f" RANGE BETWEEN {distances[0]} PRECEDING AND {distances[1]} FOLLOWING",
            f" RANGE BETWEEN {distances[1]} PRECEDING AND {distances[0]} PRECEDING",
            f" RANGE BETWEEN {distances[0]} FOLLOWING AND {distances[1]} FOLLOWING",
            f" RANGE BETWEEN {distances[0]} PRECEDING AND CURRENT ROW",
            f" RANGE BETWEEN CURRENT ROW AND {distances[1]} FOLLOWING",
        )
    )
    return _aggregate_over(writer, relation, _order(writer, [key]), frame)


def _aggregate_over(writer: Writer, relation: Relation, order: Node | str, frame: str) -> Value:
    partition = _partition(writer, relation)
    value = plain_aggregate(writer, relation.columns, relation.rows, lambda call: _over(call, partition, order, frame))
    return replace(value, samples=(), pool=None)


def _frame(writer: Writer, unit: str) -> str:
    near, far = sorted(writer.rng.sample(range(6), 2))
    return writer.pick(
        (
            f" {unit} BETWEEN {far} PRECEDING AND {near} FOLLOWING",
            f" {unit} BETWEEN {far} PRECEDING AND {near} PRECEDING",
            f" {unit} BETWEEN {near} FOLLOWING AND {far} FOLLOWING",
            f" {unit} BETWEEN UNBOUNDED PRECEDING AND {near} FOLLOWING",
            f" {unit} BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            f" {unit} BETWEEN {near} PRECEDING AND UNBOUNDED FOLLOWING",
            f" {unit} BETWEEN CURRENT ROW AND {far} FOLLOWING",
            f" {unit} {far} PRECEDING",
        )
    )

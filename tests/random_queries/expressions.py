"""Scalar expressions, and conditions that some rows fulfil.

Constants are taken from what is known of a column's values, at a place among them that keeps a good part of the rows.

What is not written, since both engines may rightly answer differently:

- arithmetic on narrow integers, where one widens `smallint + 1` and the other does not: BIGINT is written around them;
- arithmetic on numbers that may overflow: it is an error in both, but which rows are computed before a filter is open;
- `/` and `%` of integers: a double there and an integer here, NULL there and an error here for 0. Doubles are
  divided, and 0 is kept out by NULLIF;
- casts of doubles and decimals to integers, which round there and cut off here; of doubles and timestamps to text,
  which look differently;
- text functions on combined characters, which `reverse` and `length` may count as one; LIKE with a backslash, which
  escapes here unless told otherwise.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from random_queries import kinds
from random_queries.kinds import BIGINT, BOOLEAN, DATE, DOUBLE, TIMESTAMP, VARCHAR, Family, Kind, literal
from random_queries.scope import Value, Writer, in_order, of_family
from random_queries.tree import Node, Several, phrase

_BOUND_MAX = 1e9
"""Where products of integers end; sums of some thousand of them still fit."""

_COMPARABLE = ("=", "<>", "<", "<=", ">", ">=")


def constant(writer: Writer, value: Value, low: float = 0.0, high: float = 1.0) -> str | None:
    """Return one of the values between two shares of all that are known, as SQL; None where none is known."""
    known = value.samples
    if not known:
        return None
    place = writer.rng.uniform(low, high) * (len(known) - 1)
    return literal(known[round(place)], value.kind)


def _known(writer: Writer, columns: Sequence[Value]) -> Value | None:
    known = [column for column in columns if column.samples]
    return writer.pick(known) if known else None


# Conditions


def condition(writer: Writer, columns: Sequence[Value], depth: int = 2) -> Node:
    """Return a condition over the columns."""
    if depth and writer.chance(0.3):
        return _compound(writer, columns, depth - 1)
    found = writer.any_of(
        (5, lambda: _compared(writer, columns)),
        (2, lambda: _between(writer, columns)),
        (2, lambda: _in_list(writer, columns)),
        (2, lambda: _like(writer, columns)),
        (2, lambda: _is_null(writer, columns)),
        (1, lambda: _compared_columns(writer, columns)),
        (1, lambda: _distinct_from(writer, columns)),
        (1, lambda: _boolean(writer, columns)),
        (2 if depth else 0, lambda: _compared_expression(writer, columns)),
        (1 if depth else 0, lambda: _case_condition(writer, columns)),
    )
    return found or phrase("TRUE")


def condition_on(writer: Writer, value: Value) -> Node:
    """Return a condition that names a value once, since it may be a long one."""
    found = _compared(writer, [value]) if writer.chance(0.7) else None
    return found or _boolean(writer, [value]) or _is_null(writer, [value])


def conditions(writer: Writer, columns: Sequence[Value], most: int) -> tuple[Node, ...]:
    """Return up to so many conditions, mostly few."""
    count = min(most, writer.pick((0, 0, 0, 0, 1, 1, 1, 2)))
    return tuple(condition(writer, columns) for _ in range(count))


def _compound(writer: Writer, columns: Sequence[Value], depth: int) -> Node:
    def parts(count: int) -> tuple[Node, ...]:
        return tuple(condition(writer, columns, depth) for _ in range(count))

    shape = writer.pick(("or", "or", "or", "and", "not"))
    if shape == "not":
        only = parts(1)
        return phrase("NOT (", *only, ")", instead=only)
    several = parts(writer.pick((2, 2, 3)))
    return phrase("(", Several(several, " OR " if shape == "or" else " AND ", least=1), ")", instead=several)


def _compared(writer: Writer, columns: Sequence[Value]) -> Node | None:
    value = _known(writer, columns)
    if value is None or value.kind.family is Family.BOOLEAN:
        return None
    return _compared_with_constant(writer, value)


def _compared_with_constant(writer: Writer, value: Value) -> Node | None:
    few = 1 < value.distinct <= 12
    operators = ["<=", ">=", "<=", ">="] + (["<", ">", "<>"] if value.distinct > 1 else [])
    operator = "=" if few and writer.chance(0.15) else writer.pick(operators)
    low, high = {"<": (0.6, 1.0), "<=": (0.5, 1.0), ">": (0.0, 0.4), ">=": (0.0, 0.5)}.get(operator, (0.0, 1.0))
    found = constant(writer, value, low, high)
    if found is None:
        return None
    if writer.chance(0.15):
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
        return phrase(f"{found} {mirrored} ", value.node)
    return phrase(value.node, f" {operator} {found}")


def _between(writer: Writer, columns: Sequence[Value]) -> Node | None:
    value = _known(writer, columns)
    if value is None or value.kind.family is Family.BOOLEAN:
        return None
    low, high = constant(writer, value, 0.0, 0.3), constant(writer, value, 0.6, 1.0)
    if writer.chance(0.2):
        low, high = constant(writer, value, 0.3, 0.5), constant(writer, value, 0.5, 0.7)
        return phrase(value.node, f" NOT BETWEEN {low} AND {high}")
    return phrase(value.node, f" BETWEEN {low} AND {high}")


def _in_list(writer: Writer, columns: Sequence[Value]) -> Node | None:
    value = _known(writer, columns)
    if value is None or value.kind.family is Family.BOOLEAN:
        return None
    negated = writer.chance(0.3)
    count = writer.rng.randint(1, 3) if negated else writer.rng.randint(2, 8)
    items = [found for _ in range(count) if (found := constant(writer, value)) is not None]
    if writer.chance(0.1):
        items.insert(writer.rng.randint(0, len(items)), "NULL")
    several = Several(tuple(map(phrase, items)), least=1)
    return phrase(value.node, " NOT IN (" if negated else " IN (", several, ")")


def _like(writer: Writer, columns: Sequence[Value]) -> Node | None:
    texts = [column for column in of_family(columns, Family.TEXT) if column.samples]
    if not texts:
        return None
    value = writer.pick(texts)
    text = str(writer.pick(value.samples)).replace("%", "").replace("_", "")
    start = writer.rng.randint(0, len(text))
    part = text[start : start + writer.rng.randint(1, 4)]
    pattern = writer.pick(
        (f"{text[:2]}%", f"%{text[-2:]}", f"%{part}%", f"%{part}%", f"_{text[1:]}", f"{text[:1]}%{text[-1:]}")
    )
    operator = writer.pick(("LIKE", "LIKE", "LIKE", "NOT LIKE", "ILIKE"))
    return phrase(value.node, f" {operator} {literal(pattern, VARCHAR)}")


def _is_null(writer: Writer, columns: Sequence[Value]) -> Node:
    value = writer.pick(columns)
    return phrase(value.node, writer.pick((" IS NOT NULL",) * 5 + (" IS NULL",)))


def _pair(writer: Writer, columns: Sequence[Value]) -> tuple[Value, Value] | None:
    """Return two columns that can be compared."""
    one = writer.pick(columns)
    same = [other for other in columns if other is not one and comparable(one.kind, other.kind)]
    return (one, writer.pick(same)) if same else None


def comparable(one: Kind, other: Kind) -> bool:
    """Return whether values of both compare in the same way in both engines."""
    # A single and a double, or a decimal and a double, meet as doubles; 38 digits and fractions together have no type.
    if {one.family, other.family} <= {Family.INTEGER, Family.DECIMAL}:
        return max(one.precision, other.precision) <= 18 or one == other
    return one.family is other.family


def _compared_columns(writer: Writer, columns: Sequence[Value]) -> Node | None:
    pair = _pair(writer, columns)
    if pair is None:
        return None
    return phrase(pair[0].node, f" {writer.pick(('<>', '<', '<=', '>', '>=', '<='))} ", pair[1].node)


def _distinct_from(writer: Writer, columns: Sequence[Value]) -> Node | None:
    negation = writer.pick(("", "", "", "NOT "))
    if writer.chance(0.5) and (pair := _pair(writer, columns)):
        return phrase(pair[0].node, " IS DISTINCT FROM ", pair[1].node)
    value = _known(writer, columns)
    if value is None:
        return None
    return phrase(value.node, f" IS {negation}DISTINCT FROM {constant(writer, value)}")


def _boolean(writer: Writer, columns: Sequence[Value]) -> Node | None:
    booleans = of_family(columns, Family.BOOLEAN)
    if not booleans:
        return None
    value = writer.pick(booleans)
    shape = writer.pick(("{}", "NOT {}", "{} IS TRUE", "{} IS NOT TRUE", "{} IS FALSE", "{} = TRUE", "{} IS NOT FALSE"))
    before, after = shape.split("{}")
    return phrase(before, value.node, after)


def _compared_expression(writer: Writer, columns: Sequence[Value]) -> Node | None:
    value = expression(writer, columns, depth=1)
    if value.kind.family is Family.BOOLEAN:
        return value.node
    if value.samples:
        return _compared_with_constant(writer, value)
    others = [column for column in columns if comparable(value.kind, column.kind)]
    if not others:
        return None
    return phrase(value.node, f" {writer.pick(_COMPARABLE[1:])} ", writer.pick(others).node)


def _case_condition(writer: Writer, columns: Sequence[Value]) -> Node | None:
    when, then, otherwise = (condition(writer, columns, 0) for _ in range(3))
    return phrase("CASE WHEN ", when, " THEN ", then, " ELSE ", otherwise, " END", instead=(then, otherwise))


# Values


def expression(writer: Writer, columns: Sequence[Value], depth: int = 2) -> Value:
    """Return a column, or something computed from some."""
    value = writer.pick(columns)
    for _ in range(writer.pick((0, 1, 1, 2)) if depth else 0):
        value = _STEPS[value.kind.family](writer, value, columns)
        if writer.chance(0.12):
            value = _of_any_type(writer, value, columns)
    return value


def mapped(value: Value, node: Node, kind: Kind, step: Callable[[Any], Any], **changes: Any) -> Value:
    """Return a value of which each is computed from the one before."""
    changed = replace(
        value, node=node, kind=kind, pool=None, samples=tuple(in_order([step(one) for one in value.samples]))
    )
    return replace(changed, **changes)


def as_bigint(value: Value) -> Value:
    """Return an integer in a type that it cannot leave."""
    if value.kind == BIGINT:
        return value
    return replace(value, node=phrase("CAST(", value.node, " AS BIGINT)", instead=(value.node,)), kind=BIGINT)


def as_kind(value: Value, kind: Kind) -> Value:
    """Return the same value, of a type that holds it."""
    if value.kind == kind:
        return value
    return replace(value, node=phrase("CAST(", value.node, f" AS {kind.name})"), kind=kind)


def _integer_step(writer: Writer, value: Value, columns: Sequence[Value]) -> Value:
    number = as_bigint(value)
    if value.bound is None or value.bound > _BOUND_MAX:
        return _text_of_integer(value) if writer.chance(0.1) else value
    bound = value.bound
    constant = writer.rng.randint(1, 9)
    instead = (value.node,)
    shape = writer.pick(("+", "-", "*", "%", "abs", "minus", "double", "text", "two", "two", "share", "sign"))
    if shape == "+":
        node = phrase("(", number.node, f" + {constant})", instead=instead)
        return mapped(number, node, BIGINT, lambda one: one + constant, bound=bound + constant)
    if shape == "-":
        node = phrase("(", f"{constant} - ", number.node, ")", instead=instead)
        return mapped(number, node, BIGINT, lambda one: constant - one, bound=bound + constant)
    if shape == "*":
        node = phrase("(", number.node, f" * {constant})", instead=instead)
        return mapped(number, node, BIGINT, lambda one: one * constant, bound=bound * constant)
    if shape == "%":
        node = phrase("(", number.node, f" % {constant})", instead=instead)
        remainder = lambda one: int(math.fmod(one, constant))  # noqa: E731
        return mapped(
            number, node, BIGINT, remainder, bound=float(constant), distinct=min(value.distinct, 2 * constant)
        )
    if shape == "abs":
        return mapped(number, phrase("abs(", number.node, ")", instead=instead), BIGINT, abs)
    if shape == "minus":
        return mapped(number, phrase("(- ", number.node, ")", instead=instead), BIGINT, lambda one: -one)
    if shape == "double":
        return mapped(value, phrase("CAST(", value.node, " AS DOUBLE)"), DOUBLE, float)
    if shape == "text":
        return _text_of_integer(value)
    other = writer.pick(of_family(columns, Family.INTEGER) or [value])
    if other.bound is None or bound * max(other.bound, 1.0) > _BOUND_MAX:
        return value
    if shape == "two":
        operator = writer.pick("+-*")
        most = bound * other.bound if operator == "*" else bound + other.bound
        node = phrase("(", number.node, f" {operator} ", as_bigint(other).node, ")", instead=(*instead, other.node))
        return Value(node, BIGINT, bound=most)
    if shape == "share":
        top, bottom = as_kind(value, DOUBLE).node, as_kind(other, DOUBLE).node
        return Value(phrase("(", top, " / NULLIF(", bottom, ", CAST('0' AS DOUBLE)))", instead=(top, bottom)), DOUBLE)
    node = phrase("(CASE WHEN ", value.node, " < ", other.node, " THEN 1 WHEN ", value.node, " > ", other.node)
    return Value(phrase(node, " THEN -1 ELSE 0 END)"), BIGINT, samples=(-1, 0, 1), bound=1.0, distinct=3)


def _text_of_integer(value: Value) -> Value:
    return mapped(value, phrase("CAST(", value.node, " AS VARCHAR)"), VARCHAR, str, bound=None)


def _decimal_step(writer: Writer, value: Value, columns: Sequence[Value]) -> Value:
    if value.bound is None or value.bound > _BOUND_MAX / 100 or value.kind.precision > 18:
        return value
    scale = value.kind.scale
    kind = kinds.decimal(18, scale)
    shape = writer.pick(("+", "*", "round", "double", "two", "abs"))
    if shape == "+":
        amount = Decimal(writer.rng.randint(1, 999)).scaleb(-scale)
        node = phrase(f"CAST(({literal(amount, kind)} + ", value.node, f") AS {kind.name})")
        return mapped(value, node, kind, lambda one: one + amount, bound=value.bound + float(amount))
    if shape == "*":
        factor = writer.rng.randint(2, 9)
        node = phrase("CAST((", value.node, f" * {factor}) AS {kind.name})")
        return mapped(value, node, kind, lambda one: one * factor, bound=value.bound * factor)
    if shape == "round" and scale > 0:
        rounded = kinds.decimal(16, scale - 1)
        step = Decimal(1).scaleb(1 - scale)
        node = phrase("CAST(", value.node, f" AS {rounded.name})")
        return mapped(value, node, rounded, lambda one: one.quantize(step, ROUND_HALF_UP), bound=value.bound + 1)
    if shape == "double":
        return mapped(value, phrase("CAST(", value.node, " AS DOUBLE)"), DOUBLE, float, bound=None)
    if shape == "two":
        others = of_family(columns, Family.DECIMAL, Family.INTEGER) or [value]
        other = writer.pick(others)
        if other.bound is None or other.kind.precision > 18 or other.kind.scale > scale:
            return value
        sign = writer.pick("+-")
        node = phrase("CAST((", value.node, f" {sign} ", as_kind(other, kind).node, f") AS {kind.name})")
        return Value(node, kind, bound=value.bound + other.bound)
    return mapped(value, phrase("abs(", value.node, ")", instead=(value.node,)), value.kind, abs)


def _double_step(writer: Writer, value: Value, columns: Sequence[Value]) -> Value:
    if value.kind != DOUBLE:
        return mapped(value, phrase("CAST(", value.node, " AS DOUBLE)", instead=(value.node,)), DOUBLE, float)
    shape = writer.pick(("+", "*", "abs", "floor", "two", "minus"))
    instead = (value.node,)
    if shape == "+":
        half = literal(0.5, DOUBLE)
        bound = None if value.bound is None else value.bound + 0.5
        return mapped(
            value, phrase("(", value.node, f" + {half})", instead=instead), DOUBLE, lambda one: one + 0.5, bound=bound
        )
    if shape == "*":
        node = phrase("(", value.node, f" * {literal(2.0, DOUBLE)})", instead=instead)
        return mapped(value, node, DOUBLE, lambda one: one * 2, bound=None)
    if shape == "minus":
        return mapped(value, phrase("(- ", value.node, ")", instead=instead), DOUBLE, lambda one: -one)
    if shape == "floor":
        name = writer.pick(("floor", "ceil"))
        return replace(value, node=phrase(f"{name}(", value.node, ")", instead=instead), samples=(), pool=None)
    if shape == "abs":
        return mapped(value, phrase("abs(", value.node, ")", instead=instead), DOUBLE, abs)
    others = [other for other in of_family(columns, Family.DOUBLE) if other.kind == DOUBLE]
    if not others:
        return value
    other = writer.pick(others)
    node = phrase("(", value.node, f" {writer.pick('+-*')} ", other.node, ")", instead=(*instead, other.node))
    return Value(node, DOUBLE)


def _text_step(writer: Writer, value: Value, columns: Sequence[Value]) -> Value:
    node, instead = value.node, (value.node,)
    shape = writer.pick(("upper", "lower", "substr", "||", "length", "replace", "trim", "two", "left"))
    if shape == "upper":
        return mapped(value, phrase("upper(", node, ")", instead=instead), VARCHAR, str.upper)
    if shape == "lower":
        return mapped(value, phrase("lower(", node, ")", instead=instead), VARCHAR, str.lower)
    if shape == "substr":
        start, count = writer.rng.randint(1, 4), writer.rng.randint(1, 5)
        cut = phrase("substr(", node, f", {start}, {count})", instead=instead)
        return mapped(value, cut, VARCHAR, lambda one: one[start - 1 : start - 1 + count])
    if shape == "||":
        return mapped(value, phrase("(", node, " || '-x')", instead=instead), VARCHAR, lambda one: one + "-x")
    if shape == "length":
        return mapped(
            value, phrase("length(", node, ")"), BIGINT, len, bound=10_000.0, distinct=min(value.distinct, 40)
        )
    if shape == "replace":
        return mapped(
            value, phrase("replace(", node, ", 'e', '')", instead=instead), VARCHAR, lambda one: one.replace("e", "")
        )
    if shape == "trim":
        return mapped(value, phrase("trim(", node, ")", instead=instead), VARCHAR, lambda one: one.strip(" "))
    if shape == "left":
        count = writer.rng.randint(1, 3)
        return mapped(value, phrase("left(", node, f", {count})", instead=instead), VARCHAR, lambda one: one[:count])
    other = writer.pick(of_family(columns, Family.TEXT) or [value])
    return Value(phrase("(", node, " || ", other.node, ")", instead=(*instead, other.node)), VARCHAR)


def _date_step(writer: Writer, value: Value, columns: Sequence[Value]) -> Value:
    node = value.node
    shape = writer.pick(("year", "month", "month start", "days", "timestamp"))
    if shape == "year":
        return mapped(
            value, phrase("CAST(extract(year FROM ", node, ") AS BIGINT)"), BIGINT, lambda one: one.year, bound=9999.0
        )
    if shape == "month":
        part = phrase("CAST(extract(month FROM ", node, ") AS BIGINT)")
        return mapped(value, part, BIGINT, lambda one: one.month, bound=12.0, distinct=12)
    if value.bound is None:
        return value
    if shape == "month start":
        start = phrase("CAST(date_trunc('month', ", node, ") AS DATE)", instead=(node,))
        return mapped(value, start, DATE, lambda one: one.replace(day=1))
    if shape == "days":
        days = writer.rng.randint(1, 40)
        later = phrase("CAST(", node, f" + INTERVAL '{days} days' AS DATE)", instead=(node,))
        return mapped(value, later, DATE, lambda one: one + datetime.timedelta(days=days))
    moment = phrase("CAST(", node, " AS TIMESTAMP)")
    return mapped(value, moment, TIMESTAMP, lambda one: datetime.datetime(one.year, one.month, one.day))


def _timestamp_step(writer: Writer, value: Value, columns: Sequence[Value]) -> Value:
    node = value.node
    shape = writer.pick(("date", "hour", "later", "hour start"))
    if shape == "date":
        return mapped(value, phrase("CAST(", node, " AS DATE)"), DATE, datetime.datetime.date)
    if shape == "hour":
        part = phrase("CAST(extract(hour FROM ", node, ") AS BIGINT)")
        return mapped(value, part, BIGINT, lambda one: one.hour, bound=24.0, distinct=24)
    if value.bound is None:
        return value
    if shape == "hour start":
        start = phrase("date_trunc('hour', ", node, ")", instead=(node,))
        return mapped(value, start, TIMESTAMP, lambda one: one.replace(minute=0, second=0, microsecond=0))
    minutes = writer.rng.randint(1, 600)
    later = phrase("(", node, f" + INTERVAL '{minutes} minutes')", instead=(node,))
    return mapped(value, later, TIMESTAMP, lambda one: one + datetime.timedelta(minutes=minutes))


def _boolean_step(writer: Writer, value: Value, columns: Sequence[Value]) -> Value:
    if writer.chance(0.5):
        number = phrase("CAST(", value.node, " AS INTEGER)")
        return mapped(value, number, kinds.INTEGER, int, bound=1.0)
    other = condition(writer, columns, 0)
    return Value(
        phrase("(", value.node, writer.pick((" AND (", " OR (")), other, "))", instead=(value.node, other)), BOOLEAN
    )


_STEPS: dict[Family, Callable[[Writer, Value, Sequence[Value]], Value]] = {
    Family.INTEGER: _integer_step,
    Family.DECIMAL: _decimal_step,
    Family.DOUBLE: _double_step,
    Family.TEXT: _text_step,
    Family.DATE: _date_step,
    Family.TIMESTAMP: _timestamp_step,
    Family.BOOLEAN: _boolean_step,
}


def _of_any_type(writer: Writer, value: Value, columns: Sequence[Value]) -> Value:
    """Return what there is for every type: CASE, COALESCE, NULLIF, or a condition about it."""
    known, node, kind = constant(writer, value), value.node, value.kind
    if known is None:
        return value
    instead = (node,)
    shape = writer.pick(("case", "coalesce", "nullif", "condition", "least"))
    if shape == "case":
        when, otherwise = condition(writer, columns, 0), writer.pick((known, f"CAST(NULL AS {kind.name})"))
        return replace(
            value, node=phrase("CASE WHEN ", when, " THEN ", node, f" ELSE {otherwise} END", instead=instead), pool=None
        )
    if shape == "coalesce":
        return replace(value, node=phrase("coalesce(", node, f", {known})", instead=instead), pool=None)
    if shape == "nullif":
        return replace(value, node=phrase("nullif(", node, f", {known})", instead=instead), pool=None)
    if shape == "condition" or kind.family in (Family.BOOLEAN, Family.DOUBLE):
        return Value(phrase("(", condition_on(writer, value), ")"), BOOLEAN, samples=(False, True), distinct=2)
    name = writer.pick(("least", "greatest"))
    # Of the same type as the value, or the narrower one would be widened in one engine alone.
    return replace(
        value, node=phrase(f"{name}(", node, f", CAST({known} AS {kind.name}))", instead=instead), samples=(), pool=None
    )


def of_kind(writer: Writer, columns: Sequence[Value], kind: Kind) -> Value:
    """Return something of this type: a column that can become it, or a constant."""
    fitting = [column for column in columns if column.kind == kind]
    if kind == BIGINT:
        fitting = [as_bigint(column) for column in of_family(columns, Family.INTEGER) if column.kind != kinds.UBIGINT]
    elif kind == DOUBLE:
        fitting += [as_kind(column, DOUBLE) for column in of_family(columns, Family.INTEGER)]
    elif kind.family is Family.DECIMAL:
        whole = kind.precision - kind.scale
        fitting += [
            as_kind(column, kind)
            for column in of_family(columns, Family.INTEGER)
            if column.bound is not None and column.bound < 10**whole
        ]
    if fitting and writer.chance(0.95):
        return writer.pick(fitting)
    return Value(phrase(literal(_default(writer, kind), kind)), kind)


def _default(writer: Writer, kind: Kind) -> Any:
    if writer.chance(0.3):
        return None
    return {
        Family.INTEGER: 1,
        Family.DECIMAL: Decimal(1).scaleb(-kind.scale),
        Family.DOUBLE: 0.25,
        Family.TEXT: "a",
        Family.DATE: datetime.date(2020, 2, 29),
        Family.TIMESTAMP: datetime.datetime(2020, 2, 29, 12),
        Family.BOOLEAN: True,
    }[kind.family]

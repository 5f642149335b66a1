"""Whether two engines answered the same.

Whole numbers, texts, dates and decimals of the same scale are equal exactly. Engines differ in the type of an average
or a quotient: a double, or a decimal of some scale. Such values are equal within one unit of the last digit of the
coarser decimal, doubles within 1e-9 relative. Rows count as a set: order is held by the tests, where no ties are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

RELATIVE = 1e-9


def value(encoded: Any) -> Any:
    """Read a value back that `worker.plain` wrote."""
    if isinstance(encoded, dict):
        return Decimal(encoded["decimal"]) if "decimal" in encoded else float(encoded["double"])
    return encoded


def same(left: Any, right: Any) -> bool:
    """Compare two values."""
    if isinstance(left, bool) or isinstance(right, bool) or not _is_number(left) or not _is_number(right):
        return bool(left == right)
    if isinstance(left, float) or isinstance(right, float):
        steps = [_step(number) for number in (left, right) if isinstance(number, Decimal)]
        return math.isclose(left, right, rel_tol=RELATIVE, abs_tol=max(steps, default=0.0))
    if isinstance(left, Decimal) and isinstance(right, Decimal) and _step(left) != _step(right):
        return abs(left - right) < max(_step(left), _step(right))
    return bool(left == right)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal))


def _step(number: Decimal) -> float:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return float(10.0**exponent)


def _key(row: Sequence[Any]) -> tuple[Any, ...]:
    """Sort by what is exact first, so that rounding moves no row."""
    exact = tuple(str(value) for value in row if not _is_number(value) or isinstance(value, int))
    rounded = tuple(float(value) for value in row if _is_number(value) and not isinstance(value, int))
    return (exact, rounded)


def difference(left: Sequence[Sequence[Any]], right: Sequence[Sequence[Any]]) -> str | None:
    """Return the first difference between two answers, in words; None when they are the same."""
    if len(left) != len(right):
        return f"{len(left)} rows instead of {len(right)}"
    rows = zip(
        sorted(([value(cell) for cell in row] for row in left), key=_key),
        sorted(([value(cell) for cell in row] for row in right), key=_key),
        strict=True,
    )
    for number, (mine, theirs) in enumerate(rows):
        if len(mine) != len(theirs):
            return f"{len(mine)} columns instead of {len(theirs)}"
        for place, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            if not same(one, other):
                return f"row {number + 1}, column {place + 1}: {one!r} instead of {other!r}"
    return None

"""Whether two answers are the same.

Rows count as often as they are there, in any order unless the query gives one. Whole numbers, decimals, texts, dates
and truth are equal exactly, and of the same sort; doubles within 1e-9 relative, NaN equal to NaN and 0.0 to -0.0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

RELATIVE = 1e-9

_DIGITS = 11
"""Digits by which doubles are put in order and counted; which of two close ones comes first is then looked at."""

Row = Sequence[Any]


def difference(ours: Sequence[Row], theirs: Sequence[Row], ordered: bool) -> str | None:
    """Return the first difference between our rows and DuckDB's, in words; None when they are the same."""
    if len(ours) != len(theirs):
        return _count_difference(ours, theirs)
    if not ordered:
        if Counter(map(_rounded, ours)) == Counter(map(_rounded, theirs)):
            return None
        ours, theirs = sorted(ours, key=_key), sorted(theirs, key=_key)
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True), 1):
        if len(mine) != len(other):
            return f"{len(mine)} columns, DuckDB has {len(other)}"
        for place, (one, two) in enumerate(zip(mine, other, strict=True), 1):
            if not same(one, two):
                rows = f"\n    ours:   {tuple(mine)!r}\n    DuckDB: {tuple(other)!r}"
                return f"row {number} of {len(ours)}, column {place}: {one!r}, DuckDB has {two!r}{rows}"
    return None


def _count_difference(ours: Sequence[Row], theirs: Sequence[Row]) -> str:
    mine, other = Counter(map(_rounded, ours)), Counter(map(_rounded, theirs))
    found = f"{len(ours)} rows, DuckDB has {len(theirs)}"
    for sign, extra in (("too many", mine - other), ("missing", other - mine)):
        if extra:
            found += f"\n    {sign}: {sum(extra.values())}, such as {next(iter(extra))[:20]!r}"
    return found


def same(one: Any, other: Any) -> bool:
    """Return whether two values are the same."""
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return math.isclose(one, other, rel_tol=RELATIVE)
    return _sort(one) == _sort(other) and bool(one == other)


def _sort(value: Any) -> str:
    """Return which sort of value it is; a decimal without fraction is as good as a whole number."""
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return "number"
    return type(value).__name__


def _rounded(row: Row) -> tuple[Any, ...]:
    """Return the row in a form in which equal rows are equal, but for doubles at the edge of rounding."""
    return tuple(_form(value) for value in row)


def _form(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        # As text, since 1.0 is no 1, and NaN equals nothing.
        return f"{value + 0.0:.{_DIGITS}g}f"
    return value


def _key(row: Row) -> tuple[Any, ...]:
    """Sort by what is exact first, so that rounding moves no row."""
    exact = tuple("" if isinstance(value, float) else f"{_sort(value)} {value}" for value in row)
    doubles = tuple((math.isnan(value), value) for value in row if isinstance(value, float))
    return (exact, doubles)

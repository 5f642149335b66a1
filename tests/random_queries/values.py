"""What is in a column: values of every shape that a compression scheme is made for, and those that break something.

A shape is drawn for each column: all the same, few different ones, runs, a sequence, a narrow range with outliers, the
ends of the type's range, texts that share prefixes, and so on; NULLs come on top.
"""

from __future__ import annotations

import datetime
import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

from random_queries.kinds import DOUBLE, REAL, UTINYINT, Family, Kind, scaled

_WORDS = (
    "",
    "a",
    "ab",
    "amber",
    "apple",
    "apple pie",
    "b",
    "Berlin",
    "cobalt",
    "it's",
    "kiln",
    "powder",
    "press",
    "zinc",
)
_UNICODE = ("ä", "Äpfel", "żółw", "Жук", "日本", "日本語", "🦀", "🦀🦀 crab", "naïve", "z🦀")
_SPECIAL = (float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 5e-324, 1.7976931348623157e308, -1.5, 1e16, 0.1)
_SPECIAL_SINGLE = (float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 0.5, -1.5, 3.4028234663852886e38)
_DAY_MIN, _DAY_MAX = datetime.date(1, 1, 1), datetime.date(9999, 12, 31)
_AT_MIN, _AT_MAX = datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)
_NULL_SHARES = (*(0.0,) * 8, 0.02, 0.02, *(0.1,) * 6, *(0.3,) * 3, 0.9)


def column(rng: random.Random, kind: Kind, count: int) -> list[Any]:
    """Return so many values of a type, NULLs among them."""
    values = _FAMILIES[kind.family](rng, kind, count)
    if rng.random() < 0.25 and kind.family is not Family.DOUBLE:
        values.sort()
    return with_nulls(rng, values)


def with_nulls(rng: random.Random, values: list[Any]) -> list[Any]:
    """Return the values, of which some share became NULL: here and there, or all at one end."""
    share = rng.choice(_NULL_SHARES)
    if rng.random() < 0.01:
        share = 1.0
    if rng.random() < 0.2:
        kept = len(values) - int(len(values) * share)
        return values[:kept] + [None] * (len(values) - kept)
    return [None if rng.random() < share else value for value in values]


def drawn(rng: random.Random, pool: Sequence[Any], count: int) -> list[Any]:
    """Return so many values out of a pool: evenly, or the first ones more often than the last ones."""
    if rng.random() < 0.5:
        return rng.choices(pool, k=count)
    return rng.choices(pool, weights=[1 / (rank + 1) for rank in range(len(pool))], k=count)


def _of_runs(rng: random.Random, pool: Sequence[Any], count: int) -> list[Any]:
    values: list[Any] = []
    while len(values) < count:
        values += [rng.choice(pool)] * rng.randint(1, 60)
    return values[:count]


def _of_range(rng: random.Random, low: int, high: int, count: int) -> list[int]:
    """Return integers of some shape between two bounds."""
    reach = min(high, 1_000_000)
    floor = max(low, -reach)
    shape = rng.choice(("same", "few", "runs", "sequence", "jitter", "narrow", "wide", "outliers", "multiples", "ends"))
    if shape == "same":
        return [rng.randint(floor, reach)] * count
    if shape in ("few", "runs"):
        pool = [rng.randint(floor, reach) for _ in range(rng.randint(2, 9))]
        return drawn(rng, pool, count) if shape == "few" else _of_runs(rng, pool, count)
    if shape in ("sequence", "jitter"):
        step = max(1, min(rng.choice((1, 1, 2, 10)), (reach - floor) // max(count, 1)))
        start = rng.randint(floor, max(floor, reach - step * count))
        noise = 0 if shape == "sequence" else 3
        return [min(reach, max(floor, start + step * row + rng.randint(-noise, noise))) for row in range(count)]
    if shape == "multiples":
        factor = rng.choice((5, 10, 25))
        return [factor * rng.randint(-(-floor // factor), reach // factor) for _ in range(count)]
    if shape == "wide":
        return [rng.randint(low, high) for _ in range(count)]
    if shape == "ends":
        pool = [value for value in (low, low + 1, -1, 0, 1, high - 1, high) if low <= value <= high]
        return drawn(rng, pool, count)
    width = min(reach - floor, rng.choice((10, 100, 1000)))
    start = rng.randint(floor, reach - width)
    values = [start + rng.randint(0, width) for _ in range(count)]
    if shape == "outliers":
        return [rng.choice((low, high, reach)) if rng.random() < 0.02 else value for value in values]
    return values


def _integers(rng: random.Random, kind: Kind, count: int) -> list[Any]:
    return list(_of_range(rng, kind.low, kind.high, count))


def _decimals(rng: random.Random, kind: Kind, count: int) -> list[Any]:
    return [scaled(value, kind.scale) for value in _of_range(rng, kind.low, kind.high, count)]


def _doubles(rng: random.Random, kind: Kind, count: int) -> list[Any]:
    shape = rng.choice(("same", "few", "quarters", "quarters", "cents", "whole", "bits", "special"))
    if shape == "same":
        values = [rng.randint(-4000, 4000) / 4] * count
    elif shape == "few":
        values = drawn(rng, [rng.randint(-400, 400) / 4 for _ in range(rng.randint(2, 9))], count)
    elif shape == "quarters":
        values = [rng.randint(-40_000, 40_000) / 4 for _ in range(count)]
    elif shape == "cents":
        values = [rng.randint(-100_000, 100_000) / 100 for _ in range(count)]
    elif shape == "whole":
        values = [float(value) for value in _of_range(rng, -1_000_000, 1_000_000, count)]
    elif shape == "bits":
        values = [rng.gauss(0, 1000) for _ in range(count)]
    else:
        special = _SPECIAL_SINGLE if kind == REAL else _SPECIAL
        values = [rng.choice(special) if rng.random() < 0.5 else rng.randint(-40, 40) / 4 for _ in range(count)]
    if kind == REAL:
        values = [struct.unpack("f", struct.pack("f", value))[0] for value in values]
    return values


def _texts(rng: random.Random, kind: Kind, count: int) -> list[Any]:
    shape = rng.choice(("few", "few", "runs", "names", "words", "unicode", "long", "mixed"))
    if shape in ("few", "runs"):
        pool = rng.sample(_WORDS + _UNICODE, rng.randint(2, 9))
        return drawn(rng, pool, count) if shape == "few" else _of_runs(rng, pool, count)
    if shape == "names":
        prefix = rng.choice(("item ", "item-", "https://example.org/", "Ж"))
        return [f"{prefix}{rng.randint(0, 3 * count):05}" for _ in range(count)]
    if shape == "unicode":
        return [rng.choice(_UNICODE) + rng.choice(_WORDS) for _ in range(count)]
    if shape == "long":
        return [" ".join(rng.choices(_WORDS + _UNICODE, k=rng.randint(0, 30))) for _ in range(count)]
    words = [rng.choice(_WORDS) + rng.choice(("", " ", "-")) + rng.choice(_WORDS) for _ in range(count)]
    if shape == "mixed":
        return [rng.choice(_UNICODE) if rng.random() < 0.1 else word for word in words]
    return words


def _dates(rng: random.Random, kind: Kind, count: int) -> list[Any]:
    start = datetime.date(rng.randint(1950, 2040), rng.randint(1, 12), rng.randint(1, 28))
    shape = rng.choice(("few", "sequence", "months", "years", "years", "ends"))
    if shape == "ends":
        return drawn(rng, (_DAY_MIN, datetime.date(1970, 1, 1), datetime.date(1969, 12, 31), start, _DAY_MAX), count)
    if shape == "sequence":
        return [start + datetime.timedelta(days=row // rng.choice((1, 1, 7))) for row in range(count)]
    days = {"few": 4, "months": 90, "years": 3000}[shape]
    return [start + datetime.timedelta(days=rng.randint(0, days)) for _ in range(count)]


def _timestamps(rng: random.Random, kind: Kind, count: int) -> list[Any]:
    start = datetime.datetime(rng.randint(1950, 2040), rng.randint(1, 12), rng.randint(1, 28), rng.randint(0, 23))
    shape = rng.choice(("few", "seconds", "microseconds", "sequence", "hours", "ends"))
    if shape == "ends":
        return drawn(rng, (_AT_MIN, datetime.datetime(1970, 1, 1), start, _AT_MAX), count)
    if shape == "sequence":
        return [start + datetime.timedelta(minutes=7 * row) for row in range(count)]
    if shape == "few":
        return [start + datetime.timedelta(hours=rng.randint(0, 5)) for _ in range(count)]
    seconds = rng.choice((3600, 86_400 * 400))
    if shape == "hours":
        return [start + datetime.timedelta(hours=rng.randint(0, 2000)) for _ in range(count)]
    if shape == "seconds":
        return [start + datetime.timedelta(seconds=rng.randint(0, seconds)) for _ in range(count)]
    return [start + datetime.timedelta(microseconds=rng.randint(0, seconds * 1_000_000)) for _ in range(count)]


def _booleans(rng: random.Random, kind: Kind, count: int) -> list[Any]:
    share = rng.choice((0.5, 0.5, 0.1, 0.95))
    return [rng.random() < share for _ in range(count)]


_FAMILIES: dict[Family, Callable[[random.Random, Kind, int], list[Any]]] = {
    Family.INTEGER: _integers,
    Family.DECIMAL: _decimals,
    Family.DOUBLE: _doubles,
    Family.TEXT: _texts,
    Family.DATE: _dates,
    Family.TIMESTAMP: _timestamps,
    Family.BOOLEAN: _booleans,
}


def bound(kind: Kind, values: Sequence[Any]) -> float | None:
    """Return how far from 0 numbers are, where sums of them are exact in any order; None for what is not to be summed.

    Dates and timestamps that an interval may be added to have the bound 0.
    """
    known = [value for value in values if value is not None]
    if kind.family in (Family.INTEGER, Family.DECIMAL):
        most = max((abs(value) for value in known), default=0)
        return float(most) if most <= 1_000_000 else None
    if kind == DOUBLE:
        # In a double's digits, quarters of this size add up without being rounded.
        if all(abs(value) <= 1_000_000 and (4 * value).is_integer() for value in known):
            return float(max((abs(value) for value in known), default=0))
        return None
    if kind.family in (Family.DATE, Family.TIMESTAMP):
        return 0.0 if all(1900 < value.year < 2200 for value in known) else None
    return None


def references(kinds: Sequence[Kind], most: int) -> list[Kind]:
    """Return the integers that can hold numbers from 0 up to `most`."""
    return [kind for kind in kinds if kind.high >= most and kind != UTINYINT]

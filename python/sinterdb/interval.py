"""Intervals that a timedelta cannot hold."""

from typing import NamedTuple


class Interval(NamedTuple):
    """A span of calendar months, days and nanoseconds, which are not convertible into each other.

    Results hold a `datetime.timedelta` where that is exact, and an `Interval` where there are months or fractions of
    a microsecond.
    """

    months: int
    days: int
    nanoseconds: int

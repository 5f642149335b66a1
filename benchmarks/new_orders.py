"""What TPC-H's refresh functions write, from a seed: new orders with their lineitems, and keys of old ones to delete.

TPC-H 3.0.1, sections 2.6, 2.7 and 4.2.3. A set is SF * 1500 new orders (RF1) and then the keys of as many old ones
(RF2), both in commits of a few orders each. We differ in two points: new keys follow the largest one instead of filling
the gaps between old ones, and old orders are deleted from all over the table instead of from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy
import pyarrow

FIRST_DAY, CURRENT_DAY, LAST_DAY = (
    int(numpy.datetime64(day, "D").astype(int)) for day in ("1992-01-01", "1995-06-17", "1998-08-02")
)
"""Orders are made from the first to the last; what was received by the current day is done."""

PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
WORDS = (
    *("carefully", "quickly", "furiously", "blithely", "final", "regular", "express", "ironic", "pending", "special"),
    *("requests", "deposits", "accounts", "packages", "theodolites", "foxes", "instructions", "sleep", "haggle", "nag"),
)

MONEY = pyarrow.decimal128(15, 2)


@dataclass(frozen=True)
class Insert:
    """A commit of RF1."""

    orders: pyarrow.Table
    lineitems: pyarrow.Table


@dataclass(frozen=True)
class Delete:
    """A commit of RF2."""

    keys: list[int]


@dataclass(frozen=True)
class Population:
    """How many there are of what at a scale factor."""

    scale_factor: float

    def count(self, at_one: int) -> int:
        """Return how many there are of what scale factor 1 has so many."""
        return round(at_one * self.scale_factor)

    @property
    def order_count(self) -> int:
        """How many orders there are before any refresh."""
        return self.count(1_500_000)

    @property
    def set_orders(self) -> int:
        """How many orders one RF1 inserts and one RF2 deletes."""
        return self.count(1500)


def commits(scale_factor: float, seed: int, orders_per_commit: int) -> Iterator[Insert | Delete]:
    """Yield the commits of set after set, until there are no old orders any more."""
    population = Population(scale_factor)
    cell = population.order_count // population.set_orders
    offsets = numpy.random.default_rng(seed).integers(0, cell, population.set_orders)
    for number in range(cell):
        random = numpy.random.default_rng([seed, number])
        yield from insertions(population, number, random, orders_per_commit)
        # One order of each of as many equal parts of the table, another one each time.
        numbers = numpy.arange(population.set_orders) * cell + (offsets + number) % cell + 1
        keys = order_key(random.permutation(numbers)).tolist()
        for first in range(0, len(keys), orders_per_commit):
            yield Delete(keys[first : first + orders_per_commit])


def order_key(number: Any) -> Any:
    """Return the key of the n-th order, from 1: eight of each 32 keys are used."""
    return (number >> 3 << 5) | (number & 7)


def insertions(
    population: Population, number: int, random: numpy.random.Generator, orders_per_commit: int
) -> Iterator[Insert]:
    """Yield the commits of the RF1 of a set."""
    count = population.set_orders
    largest = order_key(population.order_count)
    keys = largest + 1 + number * count + numpy.arange(count)
    dates = random.integers(FIRST_DAY, LAST_DAY + 1, count)
    per_order = random.integers(1, 8, count)
    ends = numpy.cumsum(per_order)
    order = numpy.repeat(numpy.arange(count), per_order)
    lineitems, prices, open_ = make_lineitems(population, random, keys[order], dates[order])
    totals = numpy.bincount(order, prices, count).round().astype(numpy.int64)
    still_open = numpy.bincount(order, open_, count)
    # Customers whose key is a multiple of three never order.
    customers = random.integers(0, max(population.count(150_000) // 3, 1), count) * 3 + random.integers(1, 3, count)
    states = numpy.where(still_open == 0, "F", numpy.where(still_open == per_order, "O", "P"))
    orders = pyarrow.table(
        {
            "o_orderkey": keys,
            "o_custkey": customers,
            "o_orderstatus": states.tolist(),
            "o_totalprice": money(totals),
            "o_orderdate": days(dates),
            "o_orderpriority": chosen(random, PRIORITIES, count),
            "o_clerk": [f"Clerk#{clerk:09}" for clerk in random.integers(1, max(population.count(1000), 1) + 1, count)],
            "o_shippriority": pyarrow.array(numpy.zeros(count, dtype=numpy.int32)),
            "o_comment": comments(random, count, 8),
        }
    )
    for first in range(0, count, orders_per_commit):
        last = min(first + orders_per_commit, count)
        begin, end = int(ends[first] - per_order[first]), int(ends[last - 1])
        yield Insert(orders.slice(first, last - first), lineitems.slice(begin, end - begin))


def make_lineitems(
    population: Population,
    random: numpy.random.Generator,
    keys: numpy.ndarray[Any, Any],
    dates: numpy.ndarray[Any, Any],
) -> tuple[pyarrow.Table, numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
    """Return lineitems of orders with these keys and dates, what each costs in cents, and which are not shipped yet."""
    count = len(keys)
    # Keys ascend, so each order's first line is where its key would be put.
    starts = numpy.searchsorted(keys, keys)
    parts = random.integers(1, population.count(200_000) + 1, count)
    suppliers = population.count(10_000)
    supplier = (parts + random.integers(0, 4, count) * (suppliers // 4 + (parts - 1) // suppliers)) % suppliers + 1
    quantities = random.integers(1, 51, count)
    extended = quantities * (90_000 + parts // 10 % 20_001 + 100 * (parts % 1000))
    discounts, taxes = random.integers(0, 11, count), random.integers(0, 9, count)
    shipped = dates + random.integers(1, 122, count)
    received = shipped + random.integers(1, 31, count)
    open_ = shipped > CURRENT_DAY
    returned = numpy.where(received <= CURRENT_DAY, numpy.where(random.random(count) < 0.5, "R", "A"), "N")
    table = pyarrow.table(
        {
            "l_orderkey": keys,
            "l_partkey": parts,
            "l_suppkey": supplier,
            "l_linenumber": (numpy.arange(count) - starts + 1).astype(numpy.int32),
            "l_quantity": money(quantities * 100),
            "l_extendedprice": money(extended),
            "l_discount": money(discounts),
            "l_tax": money(taxes),
            "l_returnflag": returned.tolist(),
            "l_linestatus": numpy.where(open_, "O", "F").tolist(),
            "l_shipdate": days(shipped),
            "l_commitdate": days(dates + random.integers(30, 91, count)),
            "l_receiptdate": days(received),
            "l_shipinstruct": chosen(random, INSTRUCTIONS, count),
            "l_shipmode": chosen(random, MODES, count),
            "l_comment": comments(random, count, 4),
        }
    )
    return table, extended * (100 - discounts) * (100 + taxes) / 10_000, open_


def money(cents: numpy.ndarray[Any, Any]) -> pyarrow.Array:
    """Return amounts of cents as decimals."""
    # As 128 bits, the low half first; no amount is negative.
    halves = numpy.zeros((len(cents), 2), dtype=numpy.int64)
    halves[:, 0] = cents
    return pyarrow.Array.from_buffers(MONEY, len(cents), [None, pyarrow.py_buffer(halves)])


def days(since_1970: numpy.ndarray[Any, Any]) -> pyarrow.Array:
    """Return dates."""
    return pyarrow.array(since_1970.astype(numpy.int32)).cast(pyarrow.date32())


def chosen(random: numpy.random.Generator, texts: tuple[str, ...], count: int) -> list[str]:
    """Return texts chosen at random."""
    return [texts[place] for place in random.integers(0, len(texts), count)]


def comments(random: numpy.random.Generator, count: int, words: int) -> list[str]:
    """Return comments of so many words."""
    return [" ".join(WORDS[place] for place in places) for places in random.integers(0, len(WORDS), (count, words))]

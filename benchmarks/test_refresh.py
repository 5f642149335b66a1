"""What refreshes insert and delete, and what there should be afterwards."""

import itertools
from decimal import Decimal
from pathlib import Path

import numpy
import pyarrow
import pyarrow.parquet

from benchmarks import new_orders, refresh
from benchmarks.new_orders import Delete, Insert

SCALE_FACTOR = 0.01
"""15 orders a set."""


def first(count: int, seed: int = 1) -> list[Insert | Delete]:
    return list(itertools.islice(new_orders.commits(SCALE_FACTOR, seed, 10), count))


def test_a_set_inserts_and_then_deletes_in_commits() -> None:
    commits = first(8)
    assert [commit.orders.num_rows if isinstance(commit, Insert) else -len(commit.keys) for commit in commits] == [
        *(10, 5, -10, -5),
        *(10, 5, -10, -5),
    ]


def test_a_seed_makes_the_same_commits() -> None:
    assert first(4) == first(4)
    assert first(4) != first(4, seed=2)


def test_no_key_comes_or_goes_twice() -> None:
    commits = first(400)
    gone = [key for commit in commits if isinstance(commit, Delete) for key in commit.keys]
    new = [key for commit in commits if isinstance(commit, Insert) for key in commit.orders["o_orderkey"].to_pylist()]
    assert len(gone) == len(set(gone)) == len(new) == len(set(new)) == 1500
    assert max(gone) <= new_orders.order_key(15_000) < min(new)
    assert {key % 32 for key in gone} == set(range(8))


def test_lineitems_belong_to_the_orders_of_their_commit() -> None:
    commit = first(1)[0]
    assert isinstance(commit, Insert)
    lines: dict[int, list[int]] = {}
    prices: dict[int, Decimal] = {}
    for line in commit.lineitems.to_pylist():
        lines.setdefault(line["l_orderkey"], []).append(line["l_linenumber"])
        price = line["l_extendedprice"] * (1 - line["l_discount"]) * (1 + line["l_tax"])
        prices[line["l_orderkey"]] = prices.get(line["l_orderkey"], Decimal()) + price
    assert list(lines) == commit.orders["o_orderkey"].to_pylist()
    assert all(numbers == list(range(1, len(numbers) + 1)) and len(numbers) <= 7 for numbers in lines.values())
    for order in commit.orders.to_pylist():
        assert abs(order["o_totalprice"] - prices[order["o_orderkey"]]) <= Decimal("0.01")


def test_what_there_should_be_is_the_old_less_the_deleted_and_the_new(tmp_path: Path) -> None:
    commits = first(4)
    gone = next(commit for commit in commits if isinstance(commit, Delete)).keys[0]
    old = {
        "orders": {"o_orderkey": [gone, 10**9], "o_totalprice": new_orders.money(numpy.array([100, 250]))},
        "lineitem": {
            "l_orderkey": [gone, gone],
            "l_quantity": new_orders.money(numpy.array([100, 100])),
            "l_extendedprice": new_orders.money(numpy.array([100, 100])),
        },
    }
    for table, columns in old.items():
        pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / f"{table}.parquet")
    settings = refresh.Settings(
        scale_factor=SCALE_FACTOR,
        threads=1,
        engines=[],
        queries=[],
        rounds=1,
        sets=1,
        orders_per_commit=10,
        seed=1,
        on_file=False,
        data=None,
        timeout_s=1.0,
        out=None,
    )
    tables = {table: str(tmp_path / f"{table}.parquet") for table in old}
    inserted = [commit for commit in commits if isinstance(commit, Insert)]
    found = refresh.expected(settings, tables, len(commits))
    assert found[0] == 16
    assert found[2] == Decimal("2.50") + sum(sum(commit.orders["o_totalprice"].to_pylist()) for commit in inserted)
    assert found[3] == sum(commit.lineitems.num_rows for commit in inserted)
    assert settings.commits_alone == len(commits)

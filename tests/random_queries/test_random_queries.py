"""Random queries, without asking many of them: that is `python -m random_queries`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from random_queries.comparison import Row, difference
from random_queries.engines import Answer, Engines
from random_queries.report import SHARE_MIN, WANTED
from random_queries.running import write
from random_queries.schema import QUERIES_PER_DATABASE, Database, database
from random_queries.shrinking import Shrinker
from random_queries.tree import Query

NAN = float("nan")


def written(seed: int, count: int) -> list[tuple[Database, Query]]:
    databases = [database(seed, number) for number in range(-(-count // QUERIES_PER_DATABASE))]
    numbers = [(number, databases[number // QUERIES_PER_DATABASE]) for number in range(count)]
    return [(tables, write(seed, number, tables)) for number, tables in numbers]


def test_a_seed_gives_the_same_tables_and_queries_again() -> None:
    # As texts, since NaN is not equal to itself.
    first, second = (
        [(query.sql(), [table.statements() for table in tables.tables]) for tables, query in written(5, 60)]
        for _ in range(2)
    )
    assert first == second


def test_enough_queries_have_each_feature() -> None:
    features = [set(query.features()) for _, query in written(3, 300)]
    for feature in WANTED:
        assert sum(feature in found for found in features) > SHARE_MIN * len(features), feature


def test_each_step_that_makes_a_query_smaller_makes_it_shorter_in_the_end() -> None:
    for _, query in written(4, 40):
        steps = 0
        smaller = next(query.smaller(), None)
        while smaller is not None:
            steps += 1
            assert steps < 500
            smaller = next(smaller.smaller(), None)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([(1,), (None,)], [(None,), (1,)]),
        ([(NAN, 1)], [(NAN, 1)]),
        ([(-0.0,)], [(0.0,)]),
        ([(0.1 + 0.2, "a"), (0.3, "b")], [(0.3, "b"), (0.3, "a")]),
        ([(1.0000000000049999,)], [(1.0000000000050001,)]),
    ],
)
def test_these_answers_are_the_same(ours: list[tuple[object, ...]], theirs: list[tuple[object, ...]]) -> None:
    assert difference(ours, theirs, ordered=False) is None


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([(1,)], [(1,), (1,)]),
        ([(1,), (1,), (2,)], [(1,), (2,), (2,)]),
        ([(1,)], [(1.0,)]),
        ([(True,)], [(1,)]),
        ([(None,)], [(0,)]),
        ([("",)], [(None,)]),
        ([(NAN,)], [(float("inf"),)]),
        ([(1.0,)], [(1.0001,)]),
        ([(1, 2)], [(1,)]),
    ],
)
def test_these_answers_differ(ours: list[tuple[object, ...]], theirs: list[tuple[object, ...]]) -> None:
    assert difference(ours, theirs, ordered=False) is not None


def test_order_counts_where_the_query_gives_one() -> None:
    assert difference([(1,), (2,)], [(2,), (1,)], ordered=True) is not None
    assert difference([(1,), (2,)], [(2,), (1,)], ordered=False) is None


def test_what_duckdb_answers_with_its_optimizer_alone_is_no_difference() -> None:
    ours: list[Row] = [(1,)]
    theirs: list[Row] = [(2,)]
    assert Answer(ours, theirs).differs(ordered=False) is not None
    assert Answer(ours, theirs, unoptimized=theirs).differs(ordered=False) is not None
    assert Answer(ours, theirs, unoptimized="an error").differs(ordered=False) is not None
    assert Answer(ours, theirs, unoptimized=ours).differs(ordered=False) is None
    assert Answer(ours, theirs, unoptimized=ours).duckdb_contradicts_itself(ordered=False)
    assert not Answer("an error", theirs, unoptimized=ours).duckdb_contradicts_itself(ordered=False)


def test_a_fault_is_shrunk_to_a_small_query_on_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault: a LEFT JOIN loses the rows that have NULL in their first column."""
    ask = Engines.ask

    def wrong(engines: Engines, query: Query) -> Answer:
        answer = ask(engines, query)
        if "LEFT JOIN" not in query.sql() or isinstance(answer.ours, str):
            return answer
        return replace(answer, ours=[row for row in answer.ours if row[0] is not None])

    monkeypatch.setattr(Engines, "ask", wrong)
    for tables, query in written(1, 120):
        if query.names:
            continue
        engines = Engines(tables)
        found = engines.ask(query).differs(bool(query.order))
        engines.close()
        if found is not None:
            small, shrunk = Shrinker(tables, query, seconds=30.0).run()
            assert "LEFT JOIN" in shrunk.sql()
            assert len(shrunk.sql()) < 200
            assert sum(len(table.rows) for table in small.tables) <= 6
            return
    pytest.fail("no query shows the fault")

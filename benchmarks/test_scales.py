"""How slopes are found, and what is drawn of them."""

from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks import plot, scales


def engine(factor: float, **medians: float) -> dict[str, Any]:
    return {
        "queries": {query: {"median_ms": median, "answer": "same"} for query, median in medians.items()},
        "resident_bytes": 1e6 * factor,
    }


SCALES = {
    0.1: {"sinter": engine(1.0, q01=10.0, q02=1.0), "duckdb": engine(2.0, q01=10.0)},
    1.0: {"sinter": engine(10.0, q01=100.0, q02=1.0), "duckdb": engine(20.0, q01=50.0, q02=2.0)},
    10.0: {"sinter": engine(100.0, q01=1000.0, q02=1.0), "duckdb": engine(200.0, q01=250.0, q02=4.0)},
}


def test_what_grows_as_the_data_has_slope_one() -> None:
    assert scales.slope([(0.1, 3.0), (1.0, 30.0), (10.0, 300.0)]) == pytest.approx(1.0)
    assert scales.slope([(1.0, 5.0), (4.0, 10.0)]) == pytest.approx(0.5)
    assert scales.slope([(1.0, 5.0), (1.0, 6.0)]) is None


def test_growth_names_the_query_that_grows_fastest() -> None:
    found = scales.growth(SCALES, "sinter")
    assert found["query_slopes"] == pytest.approx({"q01": 1.0, "q02": 0.0})
    assert found["greatest"] == "q01"
    assert found["slopes"]["geometric_mean_ms"] == pytest.approx(0.5)
    assert found["slopes"]["resident_bytes"] == pytest.approx(1.0)


def test_a_query_without_a_time_at_each_scale_is_left_out() -> None:
    found = scales.growth(SCALES, "duckdb")
    assert found["queries_timed"] == 1
    assert found["points"]["total_ms"] == [(0.1, 10.0), (1.0, 50.0), (10.0, 250.0)]


def test_a_plot_is_xml_with_each_engine_and_unit() -> None:
    record = {
        "growth": {name: scales.growth(SCALES, name) for name in ("sinter", "duckdb")},
        "queries": ["q01", "q02"],
        "machine": {"cpu": "A & B", "memory_bytes": 8e9},
        "threads": 2,
        "commit": "0",
        "date": "2026-11-24 12:00 UTC",
    }
    drawn = ElementTree.fromstring(scales.drawing(record))
    words = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"sinter total, 0.98", "duckdb total, 0.70", "sinter, 1.00", "100 ms", "100 MB"} <= set(words)


def test_labels_keep_their_distance_and_stay_within() -> None:
    assert plot.apart([10, 11, 12], 5, 0, 100) == [10, 15, 20]
    assert plot.apart([98, 99], 5, 0, 100) == [95, 100]


def test_ticks_are_round() -> None:
    assert plot.ticks(8, 130) == [10, 20, 50, 100]
    assert plot.ticks(8, 2e6) == [10, 100, 1000, 10_000, 100_000, 1_000_000]
    assert [plot.seconds(100), plot.seconds(2000), plot.size(5e7)] == ["100 ms", "2 s", "50 MB"]

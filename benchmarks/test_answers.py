"""What counts as the same answer."""

from decimal import Decimal

import pytest

from benchmarks import answers, report, tpch


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1),
        (1, Decimal("1.00")),
        (1.0, 1.0 + 1e-12),
        (Decimal("25.537587"), 25.537587116854997),
        (Decimal("25.537587"), Decimal("25.53758711")),
        ("a", "a"),
        (None, None),
    ],
)
def test_same(left: object, right: object) -> None:
    assert answers.same(left, right)
    assert answers.same(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 2),
        (1.0, 1.0 + 1e-6),
        (Decimal("1.00"), Decimal("1.01")),
        (Decimal("25.53"), 25.55),
        ("1", 1),
        (None, 0),
        ("a", "b"),
    ],
)
def test_different(left: object, right: object) -> None:
    assert not answers.same(left, right)
    assert not answers.same(right, left)


def test_rows_are_a_set() -> None:
    assert answers.difference([["a", 1], ["b", 2]], [["b", 2], ["a", 1]]) is None
    assert answers.difference([["a", 1]], [["a", 1], ["a", 1]]) == "1 rows instead of 2"
    assert answers.difference([["a", 1]], [["a", 2]]) == "row 1, column 2: 1 instead of 2"
    assert answers.difference([["a"]], [["a", 2]]) is not None


def test_small_things() -> None:
    assert tpch.numbers("1,6,13-15") == ["q01", "q06", "q13", "q14", "q15"]
    assert report.geometric_mean([1, 100]) == pytest.approx(10)
    assert report.geometric_mean([]) is None

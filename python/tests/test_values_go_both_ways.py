"""Python values to SQL and back, through parameters and through tables."""

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import sinterdb

UTC = dt.timezone.utc

# Type of a column, and values that it keeps as they are.
KEPT: list[tuple[str, list[Any]]] = [
    ("BOOLEAN", [True, False]),
    ("TINYINT", [-128, 0, 127]),
    ("SMALLINT", [-(2**15), 2**15 - 1]),
    ("INTEGER", [-(2**31), 2**31 - 1]),
    ("BIGINT", [-(2**63), 2**63 - 1]),
    ("BIGINT UNSIGNED", [0, 2**64 - 1]),
    ("DECIMAL(38, 0)", [Decimal(10**38 - 1), Decimal(-(10**38) + 1)]),
    ("DECIMAL(10, 2)", [Decimal("0.00"), Decimal("-12345678.90"), Decimal("99999999.99")]),
    ("REAL", [0.5, -1.25]),
    ("DOUBLE", [0.1, -1e308, 5e-324, math.inf, -math.inf]),
    ("VARCHAR", ["", "a", "Zoë", "日本語", "\0", "it's", "🐎" * 100]),
    ("BLOB", [b"", b"\0\xff", bytes(range(256))]),
    ("DATE", [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2000, 2, 29), dt.date(9999, 12, 31)]),
    ("TIME", [dt.time(0), dt.time(23, 59, 59, 999999)]),
    ("TIMESTAMP(6)", [dt.datetime(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime.max]),
    ("TIMESTAMP", [dt.datetime(1970, 1, 1), dt.datetime(2024, 2, 29, 1, 2, 3, 456789)]),
]


@pytest.mark.parametrize(("kind", "values"), KEPT, ids=[kind for kind, _ in KEPT])
def test_a_table_keeps_values(db: sinterdb.Connection, kind: str, values: list[Any]) -> None:
    db.execute(f"CREATE TABLE t (i INTEGER, v {kind})")
    db.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate([*values, None])))
    found = [value for (value,) in db.execute("SELECT v FROM t ORDER BY i").fetchall()]
    assert found == [*values, None]
    assert [type(value) for value in found[:-1]] == [type(value) for value in values]
    # A value finds itself.
    for value in values:
        assert db.execute("SELECT count(*) FROM t WHERE v = ?", [value]).fetchone() == (1,), value


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1,
        -(2**63),
        1.5,
        "text",
        b"bytes",
        Decimal("1.50"),
        Decimal("-0.001"),
        dt.date(2020, 1, 1),
        dt.time(1, 2, 3, 4),
        dt.datetime(2020, 1, 1, 1, 1, 1, 1),
        dt.datetime(2020, 1, 1, tzinfo=UTC),
    ],
    ids=repr,
)
def test_a_parameter_comes_back(db: sinterdb.Connection, value: Any) -> None:
    (found,) = db.execute("SELECT ?", [value]).fetchall()[0]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("value", [2**63, 2**64, 10**37, -(10**38) + 1])
def test_large_whole_numbers_are_exact(db: sinterdb.Connection, value: int) -> None:
    assert db.execute("SELECT ?", [value]).fetchone() == (value,)


def test_not_a_number_stays_one(db: sinterdb.Connection) -> None:
    (found,) = db.execute("SELECT ?", [math.nan]).fetchall()[0]
    assert math.isnan(found)


@pytest.mark.parametrize("value", [10**38, -(10**38), Decimal("NaN"), Decimal("Infinity"), Decimal(10) ** 40])
def test_numbers_without_a_type_are_refused(db: sinterdb.Connection, value: Any) -> None:
    with pytest.raises(sinterdb.DataError, match="38 digits"):
        db.execute("SELECT ?", [value])


@pytest.mark.parametrize("value", [object(), 1j, lambda: 1])
def test_objects_without_a_type_are_refused(db: sinterdb.Connection, value: Any) -> None:
    with pytest.raises(sinterdb.NotSupportedError, match=type(value).__name__):
        db.execute("SELECT ?", [value])


def test_moments_with_a_zone_are_the_same_moment(db: sinterdb.Connection) -> None:
    berlin = dt.datetime(2020, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    (found,) = db.execute("SELECT ?", [berlin]).fetchall()[0]
    assert found == berlin
    db.execute("CREATE TABLE t (v TIMESTAMP WITH TIME ZONE)")
    db.execute("INSERT INTO t VALUES (?)", [berlin])
    (found,) = db.execute("SELECT v FROM t").fetchall()[0]
    assert found == berlin
    assert found.tzinfo is not None


def test_uuids(db: sinterdb.Connection) -> None:
    value = uuid.UUID("12345678-1234-5678-1234-567812345678")
    db.execute("CREATE TABLE t (v UUID)")
    db.execute("INSERT INTO t VALUES (?)", [value])
    assert db.execute("SELECT v FROM t").fetchall() == [(value,)]


def test_intervals(db: sinterdb.Connection) -> None:
    rows = db.execute("SELECT INTERVAL '1' DAY, INTERVAL '1' MONTH, INTERVAL '-90' SECOND").fetchall()
    assert rows == [(dt.timedelta(days=1), sinterdb.Interval(1, 0, 0), dt.timedelta(seconds=-90))]
    db.execute("CREATE TABLE t (v INTERVAL)")
    spans = [dt.timedelta(days=2, microseconds=5), dt.timedelta(days=-3, seconds=7), dt.timedelta(0)]
    db.executemany("INSERT INTO t VALUES (?)", [[span] for span in spans])
    assert db.execute("SELECT v FROM t").fetchall() == [(span,) for span in spans]


def test_intervals_of_months_go_in_as_they_come_out(db: sinterdb.Connection) -> None:
    db.execute("CREATE TABLE t (v INTERVAL)")
    spans = [sinterdb.Interval(14, -2, -500_000_001), sinterdb.Interval(-1, 0, 0), sinterdb.Interval(0, 0, 1)]
    db.executemany("INSERT INTO t VALUES (?)", [[span] for span in spans])
    assert db.execute("SELECT v FROM t").fetchall() == [(span,) for span in spans]
    with pytest.raises(sinterdb.DataError, match="Interval"):
        db.execute("INSERT INTO t VALUES (?)", [sinterdb.Interval(2**31, 0, 0)])


def test_an_interval_longer_than_a_timedelta_is_told(db: sinterdb.Connection) -> None:
    db.execute("CREATE TABLE t AS SELECT CAST('2000000000 days' AS INTERVAL) AS v")
    with pytest.raises(sinterdb.DataError, match="to_arrow"):
        db.execute("SELECT v FROM t").fetchall()


def test_lists_and_structs(db: sinterdb.Connection) -> None:
    db.execute("CREATE TABLE t (l INTEGER[], s STRUCT<a INTEGER, b VARCHAR>)")
    db.execute("INSERT INTO t VALUES ([1, NULL, 3], {'a': 1, 'b': 'x'}), ([], NULL), (NULL, {'a': NULL, 'b': NULL})")
    assert db.execute("SELECT l, s FROM t").fetchall() == [
        ([1, None, 3], {"a": 1, "b": "x"}),
        ([], None),
        (None, {"a": None, "b": None}),
    ]


def test_scalars_of_numpy_and_pandas(db: sinterdb.Connection) -> None:
    numpy = pytest.importorskip("numpy")
    pandas = pytest.importorskip("pandas")
    row = [numpy.int32(7), numpy.float64(1.5), numpy.bool_(True), pandas.NA, pandas.NaT, pandas.Timestamp("2020-01-01")]
    assert db.execute("SELECT ?, ?, ?, ?, ?, ?", row).fetchone() == (
        *(7, 1.5, True, None, None),
        dt.datetime(2020, 1, 1),
    )


# Unit, value and what it is: `item()` of numpy gives a whole number for some of these.
MOMENTS: list[tuple[str, str, Any]] = [
    ("2020-01-02T03:04:05", "ns", dt.datetime(2020, 1, 2, 3, 4, 5)),
    ("1969-12-31T23:59:59.999999", "ns", dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    ("2020-01-02T03:04:05.678901", "us", dt.datetime(2020, 1, 2, 3, 4, 5, 678901)),
    ("1960-01-02T03:04:05.678", "ms", dt.datetime(1960, 1, 2, 3, 4, 5, 678000)),
    ("9999-12-31T23:59:59", "s", dt.datetime(9999, 12, 31, 23, 59, 59)),
    ("0001-01-01T00:00", "m", dt.datetime(1, 1, 1)),
    ("2020-01-02T03", "h", dt.datetime(2020, 1, 2, 3)),
    ("1970-01-01T00:00:50", "25s", dt.datetime(1970, 1, 1, 0, 0, 50)),
    ("1970-01-01T00:00:01", "ps", dt.datetime(1970, 1, 1, 0, 0, 1)),
    ("2020-02-29", "D", dt.date(2020, 2, 29)),
    ("1969-12-25", "W", dt.date(1969, 12, 25)),
    ("1969-11", "M", dt.date(1969, 11, 1)),
    ("2020", "Y", dt.date(2020, 1, 1)),
    *[("NaT", unit, None) for unit in ("ns", "us", "D", "Y")],
]


@pytest.mark.parametrize(("text", "unit", "moment"), MOMENTS, ids=[f"{text}[{unit}]" for text, unit, _ in MOMENTS])
def test_moments_of_numpy(db: sinterdb.Connection, text: str, unit: str, moment: Any) -> None:
    numpy = pytest.importorskip("numpy")
    (found,) = db.execute("SELECT ?", [numpy.datetime64(text, unit)]).fetchall()[0]
    assert found == moment
    assert type(found) is type(moment)
    if isinstance(moment, dt.datetime) and 1700 < moment.year < 2200:
        db.execute("CREATE TABLE t (v TIMESTAMP)")
        db.executemany("INSERT INTO t VALUES (?)", [[numpy.datetime64(text, unit)]])
        assert db.execute("SELECT v FROM t").fetchall() == [(moment,)]


def test_moments_of_numpy_that_a_parameter_does_not_hold(db: sinterdb.Connection) -> None:
    numpy = pytest.importorskip("numpy")
    for moment in (numpy.datetime64("2020-01-01T00:00:00.000000001", "ns"), numpy.datetime64(-1, "ns")):
        with pytest.raises(sinterdb.DataError, match=r"nanoseconds.*datetime64\[us\]"):
            db.execute("SELECT ?", [moment])
    for count, unit in ((10**12, "s"), (-(10**12), "s"), (8030, "Y"), (-1970, "Y"), (10**7, "D"), (2**62, "M")):
        with pytest.raises(sinterdb.DataError, match="years 1 to 9999"):
            db.execute("SELECT ?", [numpy.datetime64(count, unit)])


SPANS: list[tuple[int, str, Any]] = [
    (1_500_000_000, "ns", dt.timedelta(seconds=1.5)),
    (-1000, "ns", dt.timedelta(microseconds=-1)),
    (1, "ns", sinterdb.Interval(0, 0, 1)),
    (7, "us", dt.timedelta(microseconds=7)),
    (-7, "ms", dt.timedelta(milliseconds=-7)),
    (90, "s", dt.timedelta(seconds=90)),
    (-36, "h", dt.timedelta(hours=-36)),
    (3, "D", dt.timedelta(days=3)),
    (2, "W", dt.timedelta(weeks=2)),
    (14, "M", sinterdb.Interval(14, 0, 0)),
    (-1, "Y", sinterdb.Interval(-12, 0, 0)),
]


@pytest.mark.parametrize(("count", "unit", "span"), SPANS, ids=[f"{count}[{unit}]" for count, unit, _ in SPANS])
def test_spans_of_numpy(db: sinterdb.Connection, count: int, unit: str, span: Any) -> None:
    numpy = pytest.importorskip("numpy")
    db.execute("CREATE TABLE t (v INTERVAL)")
    rows = [[numpy.timedelta64(count, unit)], [numpy.timedelta64("NaT", unit)]]
    db.executemany("INSERT INTO t VALUES (?)", rows)
    assert db.execute("SELECT v FROM t").fetchall() == [(span,), (None,)]


def test_spans_of_numpy_that_are_none(db: sinterdb.Connection) -> None:
    numpy = pytest.importorskip("numpy")
    for count, unit, why in (
        (1, "ps", "nanosecond"),
        (2**62, "W", "longer"),
        (2**62, "M", "longer"),
        (5, "generic", "has no unit"),
    ):
        with pytest.raises(sinterdb.DataError, match=why):
            db.execute("SELECT ?", [numpy.timedelta64(count, unit)])


def test_spans_of_pandas_keep_their_nanoseconds(db: sinterdb.Connection) -> None:
    pandas = pytest.importorskip("pandas")
    db.execute("CREATE TABLE t (v INTERVAL)")
    db.execute("INSERT INTO t VALUES (?)", [pandas.Timedelta(1_000_000_001, "ns")])
    assert db.execute("SELECT v FROM t").fetchall() == [(sinterdb.Interval(0, 0, 1_000_000_001),)]

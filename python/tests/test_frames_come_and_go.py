"""Arrow data in and out: pyarrow, pandas, Polars, and whatever else speaks the PyCapsule interface."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

import sinterdb

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def table() -> Any:
    return pa.table(
        {
            "i": pa.array([1, None, 3], pa.int64()),
            "s": ["x", None, "a text longer than twelve"],
            "d": pa.array([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(10, 2)),
            "t": pa.array([dt.datetime(2020, 1, 1), None, dt.datetime(1960, 1, 1)], pa.timestamp("us")),
            "l": pa.array([[1, None], None, []], pa.list_(pa.int32())),
            "o": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]),
            "c": pa.array(["red", "blue", "red"]).dictionary_encode(),
        }
    )


def test_a_registered_table_comes_back(db: sinterdb.Connection, table: Any) -> None:
    db.register("t", table)
    result = db.sql("SELECT * FROM t").to_arrow()
    assert result.column_names == table.column_names
    assert result.to_pylist() == table.to_pylist()
    assert db.sql("SELECT * FROM t").fetchall() == [tuple(row.values()) for row in table.to_pylist()]


def test_a_table_is_made_of_a_frame(db: sinterdb.Connection, table: Any) -> None:
    db.register("frame", table)
    db.execute("CREATE TABLE kept AS SELECT * FROM frame")
    assert db.unregister("frame")
    assert not db.unregister("frame")
    assert db.sql("SELECT * FROM kept").to_arrow().to_pylist() == table.to_pylist()


def test_append_takes_frames_by_the_names_of_columns(db: sinterdb.Connection) -> None:
    db.execute("CREATE TABLE t (a BIGINT, b VARCHAR)")
    assert db.append("t", pa.table({"b": ["x", "y"], "a": [1, 2]})) == 2
    assert db.append("t", pa.table({"a": [3], "b": ["z"]}).to_reader()) == 1
    assert db.sql("SELECT * FROM t ORDER BY a").fetchall() == [(1, "x"), (2, "y"), (3, "z")]


def test_append_keeps_nothing_of_a_frame_that_does_not_fit(db: sinterdb.Connection) -> None:
    db.execute("CREATE TABLE t (a BIGINT)")
    with pytest.raises(sinterdb.Error):
        db.append("t", pa.table({"a": ["no number"]}))
    with pytest.raises(sinterdb.Error):
        db.append("t", pa.table({"other": [1]}))

    def batches() -> Any:
        yield pa.record_batch({"a": [1]})
        raise ValueError("the producer failed")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches())
    with pytest.raises(sinterdb.Error, match="the producer failed"):
        db.append("t", reader)
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(0,)]


def test_pandas_in_and_out(db: sinterdb.Connection) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}, index=[7, 8, 9])
    db.register("frame", frame)
    result = db.sql("SELECT * FROM frame WHERE a > 1").to_pandas()
    assert list(result.columns) == ["a", "b"], "the index is no column"
    assert result["a"].tolist() == [2, 3]
    assert result["b"].isna().tolist() == [True, False]


def test_polars_in_and_out(db: sinterdb.Connection) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]})
    db.register("eager", frame)
    db.register("lazy", frame.lazy().filter(polars.col("a") > 1))
    assert db.sql("SELECT * FROM eager").to_polars().equals(frame)
    assert db.sql("SELECT a FROM lazy").fetchall() == [(2,), (3,)]


def test_others_read_a_relation_by_its_capsule(db: sinterdb.Connection, table: Any) -> None:
    polars = pytest.importorskip("polars")
    db.register("t", table)
    relation = db.sql("SELECT i, s FROM t")
    assert pa.table(relation).to_pylist() == table.select(["i", "s"]).to_pylist()
    assert polars.DataFrame(relation).rows() == [(1, "x"), (None, None), (3, "a text longer than twelve")]
    assert pa.RecordBatchReader.from_stream(relation).read_all().num_rows == 3


def test_a_relation_goes_into_another_database(db: sinterdb.Connection, table: Any) -> None:
    db.register("t", table)
    with sinterdb.connect() as other:
        other.register("copy", db.sql("SELECT i FROM t"))
        assert other.sql("SELECT i FROM copy").fetchall() == [(1,), (None,), (3,)]


def test_a_stream_yields_batches(db: sinterdb.Connection) -> None:
    db.register("t", pa.table({"a": range(100_000)}))
    batches = list(db.sql("SELECT a FROM t").stream())
    assert sum(len(batch) for batch in batches) == 100_000
    assert len(batches) > 1
    assert batches[0].columns == ["a"]
    assert pa.table(batches[0]).num_rows == len(batches[0])


def test_a_stream_may_be_left_early(db: sinterdb.Connection) -> None:
    db.register("t", pa.table({"a": range(100_000)}))
    for _batch in db.sql("SELECT a FROM t").stream():
        break
    assert db.sql("SELECT count(*) FROM t").fetchone() == (100_000,)


def test_a_relation_runs_again_and_fetching_goes_on(db: sinterdb.Connection) -> None:
    db.execute("CREATE TABLE t (a BIGINT)")
    relation = db.sql("SELECT a FROM t ORDER BY a")
    assert relation.to_arrow().num_rows == 0
    db.execute("INSERT INTO t VALUES (1), (2), (3)")
    assert relation.to_arrow().num_rows == 3
    assert relation.fetchone() == (1,)
    assert relation.to_arrow().num_rows == 3
    assert relation.fetchmany(1) == [(2,)]
    assert relation.fetchall() == [(3,)]
    assert relation.fetchall() == []
    assert list(relation) == [(1,), (2,), (3,)]


def test_no_rows_still_have_columns(db: sinterdb.Connection) -> None:
    result = db.sql("SELECT 1 AS a, 'x' AS b WHERE false")
    assert result.to_arrow().column_names == ["a", "b"]
    assert result.to_pandas().columns.tolist() == ["a", "b"]
    assert result.to_polars().columns == ["a", "b"]
    assert result.fetchall() == []


@pytest.mark.parametrize("value", [None, 1, "text", [1], {"a": [1]}, object()])
def test_what_is_no_frame_is_refused(db: sinterdb.Connection, value: Any) -> None:
    with pytest.raises(sinterdb.NotSupportedError):
        db.register("t", value)


def test_a_column_alone_is_refused(db: sinterdb.Connection) -> None:
    with pytest.raises(sinterdb.Error):
        db.register("t", pa.chunked_array([[1, 2]]))


def test_pandas_without_pyarrow(db: sinterdb.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    frame = db.sql("SELECT 1 AS a, 'x' AS b").to_pandas()
    assert frame.columns.tolist() == ["a", "b"]
    assert frame.values.tolist() == [[1, "x"]]

"""How Vortex files are queried through DataFusion."""

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

pytest.importorskip("datafusion")
pytest.importorskip("vortex")

from benchmarks.engines.vortex import Vortex

ROWS = 100_000


@pytest.fixture
def engine(tmp_path: Path) -> Vortex:
    numbers = list(range(ROWS))
    rows = pyarrow.table({"number": numbers, "text": [f"text {number % 10}" for number in numbers]})
    pyarrow.parquet.write_table(rows, tmp_path / "t.parquet")
    engine = Vortex(str(tmp_path / "contest.db"), 2)
    engine.load("t", str(tmp_path / "t.parquet"))
    return engine


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("true", ROWS),
        ("number < 10", 10),
        ("text = 'text 3'", ROWS // 10),
        ("text IN ('text 3', 'text 4') AND number >= 50000", ROWS // 10),
        ("text LIKE '%3'", ROWS // 10),
        ("number = -1", 0),
    ],
)
def test_each_row_is_found_once(engine: Vortex, condition: str, count: int) -> None:
    found = engine.rows(engine.query(f"SELECT count(*) FROM t WHERE {condition}"))
    assert found.column(0).to_pylist() == [count]


def test_columns_come_in_the_order_asked_for(engine: Vortex) -> None:
    found = engine.rows(engine.query("SELECT text, number FROM t WHERE number = 77777;"))
    assert found.to_pylist() == [{"text": "text 7", "number": 77777}]

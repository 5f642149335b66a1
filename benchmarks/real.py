"""Forty-three queries on real tables, as they are or tiled to millions of shuffled rows, on each engine.

    scripts/benchmark real --data FOLDER [--rows 50000000] [--queries 1-43]

The folder holds what `SOURCES` names. It is read once, and kept as Parquet under target/real.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from benchmarks import contest, machine
from benchmarks.contest import Contest
from benchmarks.report import say

QUERIES = Path(__file__).resolve().parent / "real" / "queries.sql"
SEED = 20261123
ROW_GROUP_ROWS = 1 << 20


@dataclass(frozen=True)
class Source:
    """Where a table comes from."""

    files: str
    """A glob in the folder; rows of several files follow each other by name."""
    names: dict[str, str] = field(default_factory=dict)
    """Columns that are called otherwise here."""
    nulls: tuple[str, ...] = ()
    """What stands for NULL."""


@dataclass(frozen=True)
class Settings:
    """What was asked for on the command line."""

    data: Path
    rows: int | None
    threads: int
    runs: int
    engines: list[str]
    queries: str
    timeout_s: float
    pairs: bool
    out: Path | None


SOURCES = {
    "flights": Source("nycflights13/flights.csv.zst", nulls=("NA",)),
    "names": Source("us_babynames/babynames.csv.zst"),
    "reviews": Source(
        "anon_reviews/anonreviews.csv.bz2", {"reviewerId": "reviewer", "vendorId": "vendor", "date": "written"}
    ),
    "air": Source("beijing_air_prsa/*.csv.zst", {"PM2.5": "pm25"}, nulls=("NA",)),
    "cities": Source("geonames_cities1000/rg_cities1000.csv.zst"),
}


def queries(text: str, chosen: str) -> dict[str, str]:
    """Return the queries of a script by number; `chosen` is such as "1,6,13-15"."""
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    all_ = [query.strip() for query in "\n".join(lines).split(";") if query.strip()]
    numbers = contest.numbers(chosen)
    return {f"r{number:02}": query for number, query in enumerate(all_, 1) if number in numbers}


def read(source: Source, folder: Path) -> pyarrow.Table:
    """Read the rows of a table."""
    options = pyarrow.csv.ConvertOptions(null_values=list(source.nulls), strings_can_be_null=bool(source.nulls))
    files = sorted(folder.glob(source.files))
    if not files:
        raise SystemExit(f"there is no {folder / source.files}")
    parts = []
    for file in files:
        with pyarrow.input_stream(str(file), compression="detect") as stream:
            parts.append(pyarrow.csv.read_csv(stream, convert_options=options))
    rows = pyarrow.concat_tables(parts, promote_options="permissive")
    for place, column in enumerate(rows.schema):
        name = source.names.get(column.name, column.name.lower())
        values = rows.column(place)
        if pyarrow.types.is_timestamp(column.type):
            values = values.cast(pyarrow.timestamp("us", column.type.tz)).cast(pyarrow.timestamp("us"))
        rows = rows.set_column(place, name, values)
    return rows


def tables(folder: Path, names: Iterable[str], rows: int | None) -> dict[str, str]:
    """Return the Parquet file of each table; write those that are not there."""
    kept = machine.ROOT / "target" / "real" / ("given" if rows is None else str(rows))
    kept.mkdir(parents=True, exist_ok=True)
    files = {name: kept / f"{name}.parquet" for name in names}
    for name, path in files.items():
        if path.exists():
            continue
        say(f"writing {name}")
        # As it was read once, where it has been.
        table = pyarrow.parquet.read_table(tables(folder, [name], None)[name]) if rows else read(SOURCES[name], folder)
        write(table.combine_chunks(), path, rows)
    return {name: str(file) for name, file in files.items()}


def write(table: pyarrow.Table, path: Path, rows: int | None) -> None:
    """Write a table as it is, or with so many rows: all of its rows equally often, shuffled."""
    partial = path.with_suffix(".partial")
    with pyarrow.parquet.ParquetWriter(partial, table.schema) as writer:
        if rows is None:
            writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        else:
            order = numpy.random.default_rng(SEED).permutation(rows)
            for first in range(0, rows, ROW_GROUP_ROWS):
                writer.write_table(table.take(pyarrow.array(order[first : first + ROW_GROUP_ROWS] % table.num_rows)))
    partial.rename(path)


def run(settings: Settings) -> int:
    """Run the contest; 1 when an answer differs or is missing."""
    as_is = settings.rows is None
    chosen = queries(QUERIES.read_text(), settings.queries)
    named = [table for table in SOURCES if any(contest.names(sql, table) for sql in chosen.values())]
    queries_on_tables = Contest(
        suite="real",
        name="real" if as_is else f"real-{settings.rows}",
        title="real tables" if as_is else f"real tables, {settings.rows} rows each",
        tables=tables(settings.data, named, settings.rows),
        queries=chosen,
        engines=settings.engines,
        threads=settings.threads,
        runs=settings.runs,
        timeout_s=settings.timeout_s,
        files=False,
        out=settings.out,
        pairs=settings.pairs,
        apart=settings.rows is not None,
    )
    return contest.run(queries_on_tables, {"rows": settings.rows})

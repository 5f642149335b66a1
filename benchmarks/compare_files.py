"""Every CSV, TSV, PSV and JSON file of a folder: loaded, compared value by value, written back and read again.

    scripts/compare-files FOLDER [--only GLOB] [--json OUT]

Per file, one after the other:

1. SinterDB loads it into a table in memory, with CREATE TABLE AS, or COPY where the file needs options. That is timed;
   MB are those of the unpacked text.
2. DuckDB reads it. Where DuckDB refuses a file with a delimiter, pandas does.
3. Names, types and all values are compared, a column at a time, in Arrow. Types that differ are cast to one that holds
   both, so the values are compared in any case. Doubles are equal when all their bits are, or when both are NaN.
4. COPY TO writes the table in the file's own format, and COPY FROM reads that into a second table with the types of
   the first. Values and NULLs must be the same.

`READINGS` names the files that have to be read with options, `DIFFERENCES` the columns that are read otherwise here
than there, each with its reason; docs/csv-differences.md tells the reasons at length. An entry says how the other's
values become ours, and after that they have to be equal: it explains one difference and hides no second one. What no
entry explains is printed as a failure and makes the exit status 1.
"""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pyarrow
import pyarrow.compute

import sinterdb
from benchmarks import machine

DELIMITERS = {".csv": ",", ".tsv": "\t", ".psv": "|"}
JSON = (".json", ".jsonl", ".ndjson")
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
READ_PACKED = (".gz", ".zst")
"""Compressions that both engines read; a file with another one is unpacked for them."""


@dataclass(frozen=True)
class Reading:
    """The options that a file is read with, and why. Names are globs on the file's name without its compression."""

    files: str
    why: str
    sinter: dict[str, str] = field(default_factory=dict)
    duckdb: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Difference:
    """Columns that are read otherwise here than there, why, and how the other's values become ours."""

    files: str
    columns: tuple[str, ...]
    reason: str
    null: tuple[str, ...] = ()
    """Texts there that are NULL here."""
    trim: bool = False
    """Whether spaces at the start of a text there are not part of it here."""
    words: tuple[str, str] | None = None
    """The texts here of what is true and false there."""

    def apply(self, values: pyarrow.ChunkedArray) -> tuple[pyarrow.ChunkedArray, int]:
        """Return the values as they should be here, and how many of them that changed."""
        changed = 0
        if self.trim:
            trimmed = pyarrow.compute.utf8_ltrim(values, " ")
            changed += _count(pyarrow.compute.not_equal(trimmed, values))
            values = trimmed
        if self.null:
            marked = pyarrow.compute.is_in(values, pyarrow.array(self.null, values.type))
            changed += _count(marked)
            values = pyarrow.compute.if_else(marked, pyarrow.scalar(None, values.type), values)
        if self.words:
            changed += len(values) - values.null_count
            values = plain(pyarrow.compute.if_else(values, *self.words))
        return values, changed


READINGS = (
    Reading(
        "allyears2k_headers.csv",
        "two tail numbers are not UTF-8, and which encoding they are in is not guessed",
        {"encoding": "latin-1"},
        {"encoding": "latin-1"},
    ),
    Reading(
        "zip_codes.csv",
        "line 39,808 has typographic quotes and so a field too few; both refuse it unless told to skip",
        {"on_error": "skip"},
        {"ignore_errors": True},
    ),
    Reading(
        "*.lists.csv",
        "lines of differing length are one column without a name; DuckDB has to be told, and of lines over 2 MB",
        {},
        {"delim": "|", "header": False, "max_line_size": 4_000_000},
    ),
)

NUMBERS_OR_NA = "NA among numbers is NULL; for DuckDB it makes the column VARCHAR"
NUMBERS_OR_NULL = "null among numbers is NULL; for DuckDB it makes the column VARCHAR"

DIFFERENCES = (
    Difference(
        "adult.csv",
        (
            *("workclass", "education", "marital-status", "occupation", "relationship", "race", "sex"),
            *("native-country", "Salary"),
        ),
        "the space after every comma belongs to the delimiter; for DuckDB it belongs to the text",
        trim=True,
    ),
    Difference(
        "allyears2k_headers.csv",
        (
            *("DepTime", "ArrTime", "ActualElapsedTime", "CRSElapsedTime", "AirTime", "ArrDelay", "DepDelay"),
            *("Distance", "TaxiIn", "TaxiOut", "CarrierDelay", "WeatherDelay", "NASDelay", "SecurityDelay"),
            "LateAircraftDelay",
        ),
        NUMBERS_OR_NA,
        null=("NA",),
    ),
    Difference(
        "allyears2k_headers.csv",
        ("IsArrDelayed", "IsDepDelayed"),
        "YES and NO are words; for DuckDB they are BOOLEAN",
        words=("YES", "NO"),
    ),
    Difference(
        "PRSA_Data_*.csv",
        ("PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN", "WSPM"),
        NUMBERS_OR_NA,
        null=("NA",),
    ),
    Difference(
        "flights.csv", ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"), NUMBERS_OR_NA, null=("NA",)
    ),
    Difference("planes.csv", ("year", "speed"), NUMBERS_OR_NA, null=("NA",)),
    Difference(
        "weather.csv",
        ("temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "pressure"),
        NUMBERS_OR_NA,
        null=("NA",),
    ),
    Difference("IGlocations1_1.psv", ("column00",), NUMBERS_OR_NULL, null=("null",)),
    Difference("IUBLibrary_1.psv", ("column16",), NUMBERS_OR_NULL, null=("null",)),
    Difference("zip_codes.csv", ("column1",), "a number may have a plus sign; for DuckDB it makes the column VARCHAR"),
)


@dataclass
class Column:
    """What comparing one column found."""

    name: str
    here: str
    there: str
    changed: int = 0
    """Values that the explanation changed before they were equal."""
    reason: str | None = None
    needless: str | None = None
    """The reason of an explanation that there was nothing to explain for."""
    failure: str | None = None


@dataclass
class Comparison:
    """What there is to say about one file."""

    file: str
    text_bytes: int = 0
    rows: int = 0
    seconds: float = 0.0
    other: str = "DuckDB"
    other_seconds: float = 0.0
    options: str | None = None
    notes: list[str] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    written_back: bool = False
    failures: list[str] = field(default_factory=list)

    @property
    def explained(self) -> list[Column]:
        """The columns that differ for a reason."""
        return [column for column in self.columns if column.reason and not column.failure]

    @property
    def unexplained(self) -> list[str]:
        """What went wrong, in words."""
        return [f"{column.name}: {column.failure}" for column in self.columns if column.failure] + self.failures


def main() -> int:
    """Compare all files; 1 when anything is unexplained, or there is no file."""
    parser = argparse.ArgumentParser(prog="scripts/compare-files", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the files are, in folders of any depth")
    parser.add_argument("--only", metavar="GLOB", default="*", help="the files whose name or path in the folder fits")
    parser.add_argument("--threads", type=int, default=1, help="threads of each engine (1)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write what was found as JSON")
    arguments = parser.parse_args()
    files = list(text_files(arguments.folder, arguments.only))
    if not files:
        parser.error(f"no file under {arguments.folder} fits {arguments.only}")
    width = max(len(str(file.relative_to(arguments.folder))) for file in files)
    print(line(width, "file", "rows", "columns", "MB", "seconds", "MB/s", "explained", "written back"))
    comparisons = []
    for file in files:
        with tempfile.TemporaryDirectory() as scratch:
            comparison = compare(file, str(file.relative_to(arguments.folder)), Path(scratch), arguments.threads)
        comparisons.append(comparison)
        print(row(width, comparison), flush=True)
    print("\n".join(findings(comparisons)))
    if arguments.json:
        arguments.json.write_text(json.dumps(record(comparisons, arguments.threads), indent=1) + "\n")
    return 1 if any(comparison.unexplained for comparison in comparisons) else 0


def text_files(folder: Path, only: str) -> Iterator[Path]:
    """Yield the files of a folder that are CSV, TSV, PSV or JSON by their name, compressed or not."""
    for file in sorted(folder.rglob("*")):
        if file.is_file() and unpacked(file).suffix.lower() in (*DELIMITERS, *JSON):
            name = str(file.relative_to(folder))
            if fnmatch.fnmatch(name, only) or fnmatch.fnmatch(file.name, only):
                yield file


def unpacked(file: Path) -> Path:
    """Return the name without the extension of its compression."""
    return file.with_suffix("") if file.suffix.lower() in COMPRESSIONS else file


def reading_of(file: Path) -> Reading:
    """Return the options that a file is read with."""
    name = unpacked(file).name
    return next((known for known in READINGS if fnmatch.fnmatch(name, known.files)), Reading("", ""))


def compare(file: Path, name: str, scratch: Path, threads: int) -> Comparison:
    """Load, read, compare and write back one file."""
    comparison = Comparison(name)
    source, comparison.text_bytes = readable(file, scratch)
    plain_name, reading = unpacked(file).name, reading_of(file)
    comparison.options = reading.why or None
    with sinterdb.connect(threads=threads) as database:
        try:
            load(database, source, reading, comparison)
        except sinterdb.Error as error:
            comparison.failures.append(f"SinterDB does not load it: {error}")
            return comparison
        try:
            with other_reading(source, reading, comparison, threads) as other:
                compare_columns(database, other, plain_name, comparison)
        except (duckdb.Error, ValueError) as error:
            comparison.failures.append(f"nothing to compare with: {error}")
        try:
            write_back(database, scratch / ("written" + "".join(suffixes(source))), comparison)
        except sinterdb.Error as error:
            comparison.failures.append(f"written back: {error}")
    return comparison


def readable(file: Path, scratch: Path) -> tuple[Path, int]:
    """Return the file, unpacked where the engines could not, and the bytes of its text."""
    is_packed = file.suffix.lower() in COMPRESSIONS
    copy = scratch / unpacked(file).name
    text_bytes = 0
    with text_of(file) as text, copy.open("wb") as out:
        while piece := text.read(1 << 20):
            text_bytes += len(piece)
            if is_packed and file.suffix.lower() not in READ_PACKED:
                out.write(piece)
    return (copy if copy.stat().st_size else file), text_bytes


def text_of(file: Path) -> pyarrow.NativeFile:
    """Open a file for reading its unpacked bytes."""
    return pyarrow.input_stream(str(file), compression=COMPRESSIONS.get(file.suffix.lower()))


def suffixes(file: Path) -> list[str]:
    """Return what a file written in the same format ends with, such as .csv and .zst."""
    return [unpacked(file).suffix, *([file.suffix] if unpacked(file) != file else [])]


def load(database: sinterdb.Connection, source: Path, reading: Reading, comparison: Comparison) -> None:
    """Load the file into the table `loaded`."""
    path = literal(str(source))
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        begin = time.perf_counter()
        if reading.sinter:
            database.execute(f"CREATE TABLE loaded AS SELECT * FROM {path} LIMIT 0")
            options = ", ".join(f"{name} {literal(value)}" for name, value in reading.sinter.items())
            database.execute(f"COPY loaded FROM {path} ({options})")
        else:
            database.execute(f"CREATE TABLE loaded AS SELECT * FROM {path}")
        comparison.seconds = time.perf_counter() - begin
    comparison.notes = list(dict.fromkeys(str(note.message).replace(str(source), source.name) for note in notes))
    comparison.rows = database.sql("SELECT count(*) FROM loaded").fetchall()[0][0]


@contextmanager
def other_reading(
    source: Path, reading: Reading, comparison: Comparison, threads: int
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Read the file into the table `loaded` of DuckDB; where DuckDB refuses it, through pandas."""
    with duckdb.connect(config={"threads": threads}) as other:
        other.execute("SET TimeZone = 'UTC'")
        function = "read_json" if unpacked(source).suffix.lower() in JSON else "read_csv"
        options = "".join(f", {name} = {literal(value)}" for name, value in reading.duckdb.items())
        begin = time.perf_counter()
        try:
            other.execute(f"CREATE TABLE loaded AS SELECT * FROM {function}({literal(str(source))}{options})")
        except duckdb.Error as error:
            if unpacked(source).suffix.lower() in JSON:
                raise
            comparison.other = f"pandas, since DuckDB refuses it: {str(error).splitlines()[0]}"
            other.register("frame", frame_of(source, reading))
            other.execute("CREATE TABLE loaded AS SELECT * FROM frame")
        comparison.other_seconds = time.perf_counter() - begin
        yield other


def frame_of(source: Path, reading: Reading) -> pandas.DataFrame:
    """Read a file with a delimiter through pandas, with what it can use of DuckDB's options."""
    has_header = reading.duckdb.get("header", True)
    frame = pandas.read_csv(
        text_of(source),
        sep=reading.duckdb.get("delim", DELIMITERS[unpacked(source).suffix.lower()]),
        header=0 if has_header else None,
        encoding=reading.duckdb.get("encoding", "utf-8"),
        keep_default_na=False,
        na_values=[""],
        dtype_backend="pyarrow",
    )
    if not has_header:
        digits = len(str(len(frame.columns) - 1))
        frame.columns = [f"column{place:0{digits}}" for place in range(len(frame.columns))]
    return frame


def compare_columns(
    database: sinterdb.Connection, other: duckdb.DuckDBPyConnection, plain_name: str, comparison: Comparison
) -> None:
    """Compare the two tables called `loaded`, a column at a time."""
    here = database.sql("SELECT * FROM loaded")
    there = other.sql("SELECT * FROM loaded")
    other_rows = other.sql("SELECT count(*) FROM loaded").fetchall()[0][0]
    for what, ours, theirs in (
        ("columns", len(here.columns), len(there.columns)),
        ("rows", comparison.rows, other_rows),
    ):
        if ours != theirs:
            comparison.failures.append(f"{ours} {what} here, {theirs} there")
            return
    for place, name in enumerate(here.columns):
        column = Column(name, here.types[place], str(there.types[place]))
        comparison.columns.append(column)
        if name != there.columns[place]:
            column.failure = f"is called {there.columns[place]} there"
        else:
            explanation = next(
                (known for known in DIFFERENCES if fnmatch.fnmatch(plain_name, known.files) and name in known.columns),
                None,
            )
            ours = database.sql(f"SELECT {quoted(name)} FROM loaded").to_arrow().column(0)
            theirs = other.sql(f"SELECT {quoted(name)} FROM loaded").to_arrow_table().column(0)
            compare_column(column, plain(ours), plain(theirs), explanation)


def compare_column(
    column: Column, ours: pyarrow.ChunkedArray, theirs: pyarrow.ChunkedArray, explanation: Difference | None
) -> None:
    """Compare the values of one column, as explained or as they are, and note what was found."""
    types_differ = ours.type != theirs.type
    if explanation is not None:
        if not types_differ and first_difference(ours, theirs) is None:
            column.needless = explanation.reason
            return
        column.reason = explanation.reason
    try:
        if explanation is not None:
            theirs, column.changed = explanation.apply(theirs)
        common = common_type(ours.type, theirs.type)
        column.failure = first_difference(ours.cast(common), theirs.cast(common))
    except pyarrow.ArrowException as error:
        column.failure = f"{column.here} here, {column.there} there: {error}"
        return
    if types_differ and explanation is None:
        values = column.failure or "the values are equal when cast"
        column.failure = f"{column.here} here, {column.there} there; {values}"


def write_back(database: sinterdb.Connection, path: Path, comparison: Comparison) -> None:
    """Write the table `loaded`, read it into a second table with its types, and compare the two."""
    database.execute(f"COPY loaded TO {literal(str(path))}")
    database.execute("CREATE TABLE reread AS SELECT * FROM loaded LIMIT 0")
    database.execute(f"COPY reread FROM {literal(str(path))}")
    rows = database.sql("SELECT count(*) FROM reread").fetchall()[0][0]
    if rows != comparison.rows:
        comparison.failures.append(f"written back: {rows} rows instead of {comparison.rows}")
        return
    for name in database.sql("SELECT * FROM loaded").columns:
        loaded, reread = (
            plain(database.sql(f"SELECT {quoted(name)} FROM {table}").to_arrow().column(0))
            for table in ("loaded", "reread")
        )
        failure = first_difference(loaded, reread)
        if failure is not None:
            comparison.failures.append(f"written back, {name}: {failure}")
    comparison.written_back = not any(failure.startswith("written back") for failure in comparison.failures)


def plain(values: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    """Return the values in one of the several Arrow types that mean the same."""
    return values.cast(plain_type(values.type))


def plain_type(kind: pyarrow.DataType) -> pyarrow.DataType:
    """Return the type with texts of one sort, elements of one name and UTC of one spelling."""
    types = pyarrow.types
    if types.is_string(kind) or types.is_string_view(kind) or types.is_large_string(kind):
        return pyarrow.large_string()
    if types.is_timestamp(kind) and kind.tz is not None:
        return pyarrow.timestamp(kind.unit, "UTC")
    if types.is_list(kind):
        return pyarrow.list_(plain_type(kind.value_type))
    if types.is_struct(kind):
        return pyarrow.struct([(part.name, plain_type(part.type)) for part in kind])
    return kind


def common_type(left: pyarrow.DataType, right: pyarrow.DataType) -> pyarrow.DataType:
    """Return a type that holds the values of both; a text gives way, since it may hold values of the other."""
    types = pyarrow.types
    if left == right or types.is_large_string(right):
        return left
    if types.is_large_string(left):
        return right
    for floating in (left, right):
        if types.is_floating(floating):
            return pyarrow.float64()
    if types.is_timestamp(left) or types.is_timestamp(right):
        units = [kind.unit for kind in (left, right) if types.is_timestamp(kind)]
        zones = [kind.tz for kind in (left, right) if types.is_timestamp(kind)]
        return pyarrow.timestamp("ns" if "ns" in units else "us", zones[0])
    if types.is_time(left) and types.is_time(right):
        return pyarrow.time64("ns")
    if types.is_integer(left) or types.is_integer(right):
        return pyarrow.decimal128(38, 0)
    return left


def first_difference(left: pyarrow.ChunkedArray, right: pyarrow.ChunkedArray) -> str | None:
    """Return where two columns of one type differ first and how often, in words; None where they are equal."""
    compute = pyarrow.compute
    if pyarrow.types.is_nested(left.type) or pyarrow.types.is_nested(right.type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        differ = pyarrow.array([one != other for one, other in pairs], pyarrow.bool_())
    else:
        unequal = compute.not_equal(bits(left), bits(right))
        if pyarrow.types.is_floating(left.type):
            unequal = compute.and_(unequal, compute.invert(compute.and_(compute.is_nan(left), compute.is_nan(right))))
        differ = compute.or_(compute.fill_null(unequal, False), compute.xor(left.is_null(), right.is_null()))
    first = compute.index(differ, True).as_py()
    if first < 0:
        return None
    count = f"{_count(differ)} of {len(differ)} values differ"
    return f"{count}; row {first + 1}: {shown(left[first])} here, {shown(right[first])} there"


def bits(values: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    """Return floating-point numbers as the integers of the same bits, so that 0 and -0 differ; others as they are."""
    if not pyarrow.types.is_floating(values.type):
        return values
    whole = pyarrow.int64() if values.type.bit_width == 64 else pyarrow.int32()
    return pyarrow.chunked_array([chunk.view(whole) for chunk in values.chunks], whole)


def shown(value: pyarrow.Scalar) -> str:
    """Return a value for a message."""
    text = "NULL" if not value.is_valid else repr(value.as_py())
    return text if len(text) <= 60 else text[:57] + "..."


def _count(flags: pyarrow.ChunkedArray) -> int:
    """Return how many are true."""
    return pyarrow.compute.sum(flags).as_py() or 0


def literal(value: Any) -> str:
    """Return a value as SQL writes it."""
    return str(value).lower() if isinstance(value, bool) else "'" + str(value).replace("'", "''") + "'"


def quoted(name: str) -> str:
    """Return the name of a column as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def line(width: int, *cells: str) -> str:
    """Return a line of the table."""
    widths = (10, 7, 8, 8, 6, 9, 12)
    return cells[0].ljust(width) + "".join(f"  {cell:>{width}}" for cell, width in zip(cells[1:], widths, strict=True))


def row(width: int, comparison: Comparison) -> str:
    """Return a file's line of the table."""
    megabytes = comparison.text_bytes / 1e6
    return line(
        width,
        comparison.file,
        f"{comparison.rows:,}",
        str(len(comparison.columns)),
        f"{megabytes:.1f}",
        f"{comparison.seconds:.2f}",
        f"{megabytes / comparison.seconds:.0f}" if comparison.seconds else "-",
        str(len(comparison.explained)),
        "equal" if comparison.written_back else "NO",
    )


def findings(comparisons: list[Comparison]) -> list[str]:
    """Return the explained differences one by one, the unexplained ones, and the counts."""
    lines = ["", "Explained:"]
    for comparison in comparisons:
        if comparison.options:
            lines.append(f"  {comparison.file}: read with options: {comparison.options}")
        if comparison.other != "DuckDB":
            lines.append(f"  {comparison.file}: compared with {comparison.other}")
        for reason in dict.fromkeys(column.reason for column in comparison.explained):
            columns = [column for column in comparison.explained if column.reason == reason]
            listed = ", ".join(
                f"{column.name} ({column.here} / {column.there}, {column.changed:,} values)" for column in columns
            )
            lines.append(f"  {comparison.file}: {reason}: {listed}")
    unexplained = [f"  {comparison.file}: {text}" for comparison in comparisons for text in comparison.unexplained]
    lines += ["", "NOT EXPLAINED:", *unexplained] if unexplained else []
    needless = [
        f"  {comparison.file}: {column.name}: {column.needless}"
        for comparison in comparisons
        for column in comparison.columns
        if column.needless
    ]
    lines += ["", "Explained, but equal:", *needless] if needless else []
    rows = sum(comparison.rows for comparison in comparisons)
    values = sum(comparison.rows * len(comparison.columns) for comparison in comparisons)
    column_count = sum(len(comparison.columns) for comparison in comparisons)
    return [
        *lines,
        "",
        f"{len(comparisons)} files, {rows:,} rows, {column_count} columns, {values:,} values; "
        f"{sum(len(comparison.explained) for comparison in comparisons)} columns differ for a reason, "
        f"{len(unexplained)} differences are unexplained; "
        f"{sum(comparison.written_back for comparison in comparisons)} files written back equal",
    ]


def record(comparisons: list[Comparison], threads: int) -> dict[str, Any]:
    """Return what was found for programs."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "suite": "files",
        "date": now.strftime("%Y-%m-%d %H:%M UTC"),
        "machine": machine.describe(),
        "commit": machine.commit(),
        "versions": machine.versions(),
        "threads": threads,
        "files": [
            {**vars(comparison), "columns": [vars(column) for column in comparison.columns]}
            for comparison in comparisons
        ],
    }


if __name__ == "__main__":
    sys.exit(main())

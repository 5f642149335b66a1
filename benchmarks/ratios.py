"""How small each column of real data becomes, here and in other formats.

    scripts/benchmark ratios --data FOLDER [--only GLOB] [--columns] [--out OUT]

Every CSV and JSON file of the folder is loaded as `scripts/compare-files` does, every text file as one column of lines,
and the columns are kept, each by itself, by

- SinterDB, the automatic choice: `bytes` of `storage('t')`, statistics and null bitmaps included;
- Vortex: `vortex.compress`, the bytes of the array's buffers; its metadata and file footer are not counted;
- Parquet with zstd, as pyarrow writes it: the column chunks, page headers and dictionaries included;
- DuckDB: a database after CHECKPOINT less an empty one, with blocks of 16 or of 256 KiB, whichever is smaller; so it is
  rounded up to whole blocks;
- pco: `simple_compress` of the numbers, and a bit per value where there are NULLs; all others as zstd has them;
- zstd at level 3: values as in Arrow (texts with 32-bit offsets), and the null bitmap.

SinterDB, Vortex and DuckDB give a vector of a column, some thousand values, without unpacking others. Parquet's pages
of a megabyte are zstd's as a whole, and so are the columns of pco and zstd, as used here.
A list or struct is one column with all its parts. The marks: of the formats that give a vector by itself, SinterDB has
the smallest total, and the greatest geometric mean of ratios.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pyarrow.parquet
import vortex
import zstandard
from pcodec import ChunkConfig, standalone

import sinterdb
from benchmarks import compare_files, machine
from benchmarks.report import columns as aligned
from benchmarks.report import say

RANDOM_ACCESS = ("sinterdb", "vortex", "duckdb")
"""Those that unpack no other values for a vector."""

PLAIN = "plain"


def parquet(values: pyarrow.ChunkedArray, scratch: Path) -> int:
    """Return the bytes of a column chunk in all row groups."""
    path = scratch / "column.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"c": values}), path, compression="zstd")
    metadata = pyarrow.parquet.read_metadata(path)
    groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
    return sum(group.column(0).total_compressed_size for group in groups)


def in_duckdb(values: pyarrow.ChunkedArray, scratch: Path) -> int:
    """Return by how many bytes a database grows, with small or usual blocks, whichever is less."""

    def size(rows: pyarrow.ChunkedArray, block_bytes: int) -> int:
        path = scratch / "column.duckdb"
        path.unlink(missing_ok=True)
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH '{path}' AS d (BLOCK_SIZE {block_bytes})")
            connection.register("arrow", pyarrow.table({"c": rows}))
            connection.execute("CREATE TABLE d.t AS SELECT c FROM arrow")
            connection.execute("CHECKPOINT d")
        return path.stat().st_size

    return min(size(values, block_bytes) - size(values.slice(0, 0), block_bytes) for block_bytes in (16384, 262144))


def zstd(values: pyarrow.ChunkedArray, _scratch: Path) -> int:
    """Return the bytes of all buffers, compressed one by one."""
    codec = zstandard.ZstdCompressor(level=3)
    whole = pyarrow.concat_arrays(values.chunks) if values.num_chunks != 1 else values.chunk(0)
    return sum(len(codec.compress(memoryview(buffer))) for buffer in whole.buffers() if buffer is not None)


def pco(values: pyarrow.ChunkedArray, scratch: Path) -> int:
    """Return the bytes of the numbers that are there, and of a bitmap of the NULLs."""
    kind = values.type
    if pyarrow.types.is_date32(kind):
        values = values.cast(pyarrow.int32())
    elif pyarrow.types.is_temporal(kind):
        values = values.cast(pyarrow.int64())
    if not (pyarrow.types.is_integer(values.type) or pyarrow.types.is_floating(values.type)):
        return zstd(values, scratch)
    if values.type.bit_width == 8:
        return zstd(values, scratch)
    null_bytes = (len(values) + 7) // 8 if values.null_count else 0
    return len(standalone.simple_compress(values.drop_null().to_numpy(), ChunkConfig())) + null_bytes


def in_vortex(values: pyarrow.ChunkedArray, _scratch: Path) -> int:
    """Return the bytes of the buffers of a compressed array."""
    return int(vortex.compress(vortex.array(pyarrow.concat_arrays(values.chunks))).nbytes)


OTHERS: dict[str, Callable[[pyarrow.ChunkedArray, Path], int]] = {
    "vortex": in_vortex,
    "parquet": parquet,
    "duckdb": in_duckdb,
    "pco": pco,
    "zstd": zstd,
}


def lines_of(file: Path) -> pyarrow.Table:
    """Return the lines of a text file, which is UTF-8 or else Latin-1."""
    text = compare_files.text_of(file).read()
    try:
        lines = text.decode()
    except UnicodeDecodeError:
        lines = text.decode("latin-1")
    return pyarrow.table({"line": lines.removesuffix("\n").split("\n")})


def text_files(folder: Path, only: str) -> Iterator[Path]:
    """Yield all files of lines, compressed or not; not what tells where data is from."""
    for file in sorted(folder.rglob("*")):
        is_text = file.is_file() and compare_files.unpacked(file).suffix == ".txt" and file.name != "SOURCE.txt"
        if is_text and any(fnmatch.fnmatch(name, only) for name in (str(file.relative_to(folder)), file.name)):
            yield file


def of_file(file: Path, scratch: Path) -> dict[str, dict[str, Any]]:
    """Return the bytes of each column of a file, by format."""
    database = sinterdb.connect()
    if compare_files.unpacked(file).suffix == ".txt":
        database.register("lines", lines_of(file))
        database.execute("CREATE TABLE loaded AS SELECT * FROM lines")
    else:
        source, _ = compare_files.readable(file, scratch)
        compare_files.load(database, source, compare_files.reading_of(file), compare_files.Comparison(file.name))
    database.execute("CHECKPOINT")
    table = database.sql("SELECT * FROM loaded").to_arrow()
    kept = database.sql("SELECT \"column\", bytes, scheme FROM storage('loaded')").fetchall()
    found: dict[str, dict[str, Any]] = {}
    for name, own_bytes, scheme in kept:
        values = table.column(name)
        if len(values) == 0:
            continue
        column: dict[str, Any] = {"rows": len(values), "type": str(values.type), "scheme": scheme}
        column[PLAIN] = sum(chunk.nbytes for chunk in values.chunks)
        column["sinterdb"] = own_bytes
        for other, measure in OTHERS.items():
            column[other] = measure(values, scratch)
        found[name] = column
    database.close()
    return found


def geometric_mean(ratios: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def run(data: Path, only: str, with_columns: bool, out: Path | None) -> int:
    """Measure all files, print the table, and write the record."""
    formats = ["sinterdb", *OTHERS]
    files: dict[str, dict[str, dict[str, Any]]] = {}
    lines = [["MB", "columns", PLAIN, *formats], []]
    for file in [*compare_files.text_files(data, only), *text_files(data, only)]:
        name = str(file.relative_to(data))
        say(name)
        with tempfile.TemporaryDirectory() as scratch:
            found = of_file(file, Path(scratch))
        if found:
            files[name] = found
    everything = [column for found in files.values() for column in found.values()]

    def line(title: str, some: list[dict[str, Any]]) -> None:
        sums = (sum(column[kind] for column in some) for kind in (PLAIN, *formats))
        lines.append([title, str(len(some)), *(f"{total / 1e6:.3f}" for total in sums)])

    for name, found in files.items():
        line(name, list(found.values()))
        if with_columns:
            for column, measured in found.items():
                line(f"  {column}: {measured['scheme']}", [measured])
    lines.append([])
    line("total", everything)
    means = {kind: geometric_mean([max(1, one[PLAIN]) / max(1, one[kind]) for one in everything]) for kind in formats}
    lines.append(["geometric mean of ratios", str(len(everything)), "", *(f"{means[kind]:.2f}" for kind in formats)])
    smallest = {kind: sum(one[kind] == min(one[other] for other in formats) for one in everything) for kind in formats}
    lines.append(["smallest of all, columns", "", "", *(str(smallest[kind]) for kind in formats)])
    smallest = {
        kind: sum(one[kind] == min(one[other] for other in RANDOM_ACCESS) for one in everything)
        for kind in RANDOM_ACCESS
    }
    lines.append(["... with random access", "", "", *(str(smallest.get(kind, "")) for kind in formats)])
    print("\n".join(aligned(lines)))
    sums = {kind: sum(column[kind] for column in everything) for kind in (PLAIN, *formats)}
    others = [kind for kind in RANDOM_ACCESS if kind != "sinterdb"]
    marks = {
        "smallest total among formats with random access": sums["sinterdb"] <= min(sums[kind] for kind in others),
        "greatest geometric mean among them": means["sinterdb"] >= max(means[kind] for kind in others),
    }
    for text, is_met in marks.items():
        print(f"{'met' if is_met else 'MISSED':<7} {text}")
    if out:
        totals = {"columns": len(everything), "bytes": sums, "geometric_mean_of_ratios": means, "marks": marks}
        record = machine.header("ratios") | {"totals": totals, "files": files}
        out.write_text(json.dumps(record, indent=1) + "\n")
        say(f"written to {out}")
    return 0


def add(suites: Any) -> None:
    """Take part in the command line."""
    suite: argparse.ArgumentParser = suites.add_parser("ratios", help="bytes of each column of real data, by format")
    suite.add_argument("--data", type=Path, required=True, help="folder with CSV, JSON and text files")
    suite.add_argument("--only", default="*", help="names of files, such as *.csv.zst")
    suite.add_argument("--columns", action="store_true", help="print each column, not only each file")
    suite.add_argument("--out", type=Path, help="JSON file to write")
    suite.set_defaults(
        run=lambda arguments: run(arguments.data, arguments.only, arguments.columns, arguments.out),
    )

"""TPC-H: load time, resident bytes, file bytes, and the 22 queries, of each engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks import contest, machine, report, rust
from benchmarks.contest import Contest
from benchmarks.report import say

TABLES = ("region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem")
QUERIES = machine.ROOT / "tpch" / "queries"
MARKS = {"geometric mean": 0.8, "worst": 1.4, "q01": 0.4, "q06": 0.25}
"""What ours should take at most, of what DuckDB's faster form takes."""

MARKS_OF_SCALE = {1.0: {report.RESIDENT: 220.0}}
"""More, at some scale factors."""


@dataclass(frozen=True)
class Settings:
    """What was asked for on the command line."""

    scale_factor: float
    threads: int
    runs: int
    engines: list[str]
    queries: list[str]
    data: Path | None
    timeout_s: float
    files: bool
    pairs: bool
    from_file: bool
    keep_files: bool
    out: Path | None


def numbers(text: str) -> list[str]:
    """Return the names of queries such as "1,6,13-15"."""
    return [f"q{number:02}" for number in sorted(contest.numbers(text)) if 1 <= number <= 22]


def files(data: Path | None, scale_factor: float) -> dict[str, str]:
    """Return the Parquet file of each table; generate them where there are none and no folder is given."""
    folder = data or machine.ROOT / "target" / "tpch" / f"sf{scale_factor:g}"
    found = {table: folder / f"{table}.parquet" for table in TABLES}
    if data is None and not all(file.exists() for file in found.values()):
        say(f"generating TPC-H at scale factor {scale_factor:g}")
        rust.generate(scale_factor, folder)
    missing = [str(file) for file in found.values() if not file.exists()]
    if missing:
        raise SystemExit(f"there is no {', '.join(missing)}")
    return {table: str(file.resolve()) for table, file in found.items()}


def run(settings: Settings) -> int:
    """Run the contest; 1 when an answer differs or is missing."""
    stored = machine.ROOT / "target" / f"tpch-sf{settings.scale_factor:g}-files" if settings.from_file else None
    queries = Contest(
        suite="tpch",
        name=f"tpch-sf{settings.scale_factor:g}{'-file' if settings.from_file else ''}",
        title=f"TPC-H, scale factor {settings.scale_factor:g}{', from file' if settings.from_file else ''}",
        tables=files(settings.data, settings.scale_factor),
        queries={query: (QUERIES / f"{query}.sql").read_text() for query in settings.queries},
        engines=settings.engines,
        threads=settings.threads,
        runs=settings.runs,
        timeout_s=settings.timeout_s,
        files=settings.files,
        out=settings.out,
        pairs=settings.pairs,
        marks=MARKS | (MARKS_OF_SCALE.get(settings.scale_factor, {}) if not settings.from_file else {}),
        stored=stored,
        keep_files=settings.keep_files,
    )
    return contest.run(queries, {"scale_factor": settings.scale_factor})

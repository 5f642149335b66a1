"""TPC-H far larger than `memory_limit`: loaded from CSV and from Parquet, and queried, beside DuckDB.

Each phase is a process of its own (`phase`), which tells the largest resident size that it had. All of it once as it
is, and once more where the system refuses memory beyond a limit.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import answers, machine, report, rust, tpch

ENGINES = ("duckdb", "sinter")

SPILLING = {
    "sinter-spill-none": "SET sinter.spill_compression = 'none'",
    "sinter-spill-all": "SET sinter.spill_compression = 'all'",
}
"""Ours, spilling in another way than it would; on demand: `--engines duckdb,sinter,sinter-spill-none`."""

FORMATS = ("csv", "parquet")

LIMITS = {
    "none": "nothing but memory_limit",
    "as": "RLIMIT_AS: addresses, used or not",
    "data": "RLIMIT_DATA: private memory that can be written, used or not",
    "cgroup": "a control group, the page cache of its files included",
}
"""What keeps a process from taking more."""

OPERATORS = {
    "join": "SELECT count(*), sum(l_extendedprice + o_totalprice) FROM lineitem JOIN orders ON l_orderkey = o_orderkey",
    "aggregate": "SELECT count(*), max(n) FROM (SELECT l_partkey, l_suppkey, l_shipmode, count(*) AS n FROM lineitem "
    "GROUP BY l_partkey, l_suppkey, l_shipmode)",
    "sort": "SELECT sum(k), count(*) FROM (SELECT l_orderkey AS k FROM lineitem ORDER BY l_extendedprice, l_orderkey, "
    "l_linenumber OFFSET 1000000)",
    "window": "SELECT sum(n), count(*) FROM (SELECT row_number() OVER (PARTITION BY l_suppkey ORDER BY l_shipdate) "
    "AS n FROM lineitem)",
}
"""What one operator has to keep, beside the 22 queries: `--queries 1-22,operators`."""

GROUPS = Path("/sys/fs/cgroup/memory")
"""Where the system has control groups of version 1; elsewhere systemd-run makes one."""


@dataclass(frozen=True)
class Settings:
    """What was asked for on the command line."""

    scale_factor: float
    engines: list[str]
    formats: list[str]
    limits: list[str]
    queries: list[str]
    limit_bytes: int
    memory_limit: str
    threads: int
    folder: Path
    timeout_s: float
    out: Path | None


def queries(text: str) -> list[str]:
    """Return the names of queries: numbers of TPC-H's, and `operators`."""
    numbers = ",".join(part for part in text.split(",") if part != "operators")
    return (tpch.numbers(numbers) if numbers else []) + (list(OPERATORS) if "operators" in text.split(",") else [])


def schema() -> dict[str, str]:
    """Return the statement that declares each table."""
    text = re.sub(r"--.*", "", (machine.ROOT / "tpch" / "schema.sql").read_text())
    statements = (statement.strip() for statement in text.split(";"))
    return {
        match[1]: match[0] for match in (re.match(r"CREATE TABLE (\w+) .*", one, re.S) for one in statements) if match
    }


def join(group: Path) -> None:
    """Put this process into a control group."""
    (group / "cgroup.procs").write_text(str(os.getpid()))


@contextmanager
def bound(limit: str, limit_bytes: int) -> Iterator[tuple[list[str], Callable[[], None] | None]]:
    """Yield what stands before a command, and what its process calls first, so that it has at most `limit_bytes`."""
    if limit in ("as", "data"):
        kind = resource.RLIMIT_AS if limit == "as" else resource.RLIMIT_DATA
        yield [], lambda: resource.setrlimit(kind, (limit_bytes, limit_bytes))
    elif limit == "cgroup" and GROUPS.is_dir():
        group = Path(tempfile.mkdtemp(dir=GROUPS, prefix="limited-"))
        try:
            (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
            if (swap := group / "memory.memsw.limit_in_bytes").exists():
                swap.write_text(str(limit_bytes))
            yield [], lambda: join(group)
        finally:
            group.rmdir()
    elif limit == "cgroup":
        scope = ["systemd-run", "--scope", "--quiet", "-p", f"MemoryMax={limit_bytes}", "-p", "MemorySwapMax=0"]
        yield scope, None
    else:
        yield [], None


def phase(settings: Settings, limit: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Run a phase; an error is part of the answer."""
    ask = {"memory_limit": settings.memory_limit, "threads": settings.threads, **asked}
    command = [sys.executable, "-m", "benchmarks.phase", json.dumps(ask)]
    try:
        with bound(limit, settings.limit_bytes) as (before, first):
            process = subprocess.run(
                [*before, *command],
                cwd=machine.ROOT,
                capture_output=True,
                text=True,
                timeout=settings.timeout_s,
                preexec_fn=first,
            )
    except subprocess.TimeoutExpired:
        return {"error": f"no end after {settings.timeout_s:.0f} s"}
    if process.returncode != 0:
        lines = process.stderr.strip().splitlines()
        return {"error": f"ended with {process.returncode}: {lines[-1] if lines else ''}"}
    answer: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return answer


def measure(settings: Settings, engine: str, form: str, limit: str, data: Path) -> dict[str, Any]:
    """Load and query one engine."""
    result: dict[str, Any] = {"engine": engine, "format": form, "limit": limit, "queries": {}}
    tables = {table: str(data / f"{table}.{form}") for table in tpch.TABLES}
    bytes_ = sum(Path(file).stat().st_size for file in tables.values())
    with tempfile.TemporaryDirectory(dir=settings.folder, prefix="limited-") as folder:
        path = str(Path(folder) / "t.db")
        asked: dict[str, Any] = {"engine": engine, "path": path}
        if engine in SPILLING:
            asked |= {"engine": "sinter", "settings": [SPILLING[engine]]}
        loaded = phase(settings, limit, {**asked, "do": "load", "format": form, "tables": tables, "schema": schema()})
        result["load"] = loaded
        if "error" in loaded:
            return result
        loaded["input_bytes"] = bytes_
        loaded["mb_per_second"] = bytes_ / 1e6 / loaded["seconds"]
        loaded["file_bytes"] = os.path.getsize(path)
        for query in settings.queries:
            sql = OPERATORS.get(query) or (tpch.QUERIES / f"{query}.sql").read_text()
            result["queries"][query] = one = phase(settings, limit, {**asked, "do": "query", "sql": sql})
            found = one.get("error") or f"{one['seconds']:.2f} s, {one['written_bytes'] / 1e6:.0f} MB written"
            report.say(f"{engine}, {query}: {found}")
    return result


def compare(results: list[dict[str, Any]], queries: list[str]) -> None:
    """Hold all answers to the first of DuckDB's."""
    for query in queries:
        found = [result["queries"][query] for result in results if "rows" in result["queries"].get(query, {})]
        base = next(
            (
                result
                for result in results
                if result["engine"] == "duckdb" and "rows" in result["queries"].get(query, {})
            ),
            None,
        )
        rows = base["queries"][query]["rows"] if base else None
        for one in found:
            differs = None if rows is None else answers.difference(one["rows"], rows)
            one["answer"] = "not compared" if rows is None else differs or "same"
        for one in found:
            del one["rows"]


def run(settings: Settings) -> int:
    """Measure all, write the record, print the table; 1 when something failed or an answer differs."""
    record: dict[str, Any] = {
        **machine.header("limited"),
        "scale_factor": settings.scale_factor,
        "memory_limit": settings.memory_limit,
        "limit_bytes": settings.limit_bytes,
        "limits": {limit: LIMITS[limit] for limit in settings.limits},
        "spilling": {engine: SPILLING[engine] for engine in settings.engines if engine in SPILLING},
        "threads": settings.threads,
        "queries": settings.queries,
    }
    data = settings.folder / f"tpch-sf{settings.scale_factor:g}"
    data.mkdir(parents=True, exist_ok=True)
    for form in settings.formats:
        if not all((data / f"{table}.{form}").exists() for table in tpch.TABLES):
            rust.generate(settings.scale_factor, data, form)
    results = []
    for limit in settings.limits:
        for form in settings.formats:
            for engine in settings.engines:
                results.append(measure(settings, engine, form, limit, data))
                report.say(" ".join(cells(results[-1])))
    compare(results, settings.queries)
    record["results"] = results
    report.write(record, f"limited-sf{settings.scale_factor:g}", settings.out)
    print(table(record))
    ours = [result for result in results if result["engine"] != "duckdb"]
    good = all(
        "error" not in result["load"] and result["queries"].get(query, {}).get("answer") in ("same", "not compared")
        for result in ours
        for query in settings.queries
    )
    return 0 if good else 1


def cells(result: dict[str, Any]) -> list[str]:
    """Return what the table shows of a result."""
    load = result["load"]
    out = [result["engine"], result["format"], result["limit"]]
    if "error" in load:
        return [*out, load["error"]]
    peaks = [load["peak_bytes"]]
    out += [f"{load['seconds']:.1f}", f"{load['mb_per_second']:.1f}", f"{load['peak_bytes'] / 1e6:.0f}"]
    out += [f"{load['file_bytes'] / 1e6:.0f}"]
    peaks += [one["peak_bytes"] for one in result["queries"].values() if "error" not in one]
    return [*out, f"{max(peaks) / 1e6:.0f}"]


def cells_of_query(result: dict[str, Any], query: str) -> list[str]:
    """Return what the table shows of a query."""
    one = result["queries"].get(query, {})
    out = [query, result["engine"], result["format"], result["limit"]]
    if "error" in one:
        return [*out, one["error"]]
    bytes_ = (one["peak_bytes"], one["written_bytes"])
    return [*out, f"{one['seconds']:.2f}", *(f"{some / 1e6:.0f}" for some in bytes_), one.get("answer", "")]


def beside_duckdb(record: dict[str, Any]) -> list[str]:
    """Return a line for each load: our times of the 22 queries as parts of DuckDB's, and the largest peaks."""
    lines = []
    results = {(one["engine"], one["format"], one["limit"]): one["queries"] for one in record["results"]}
    for (engine, form, limit), ours in results.items():
        theirs = results.get(("duckdb", form, limit))
        if engine != "sinter" or theirs is None:
            continue
        ratios = {
            query: ours[query]["seconds"] / theirs[query]["seconds"]
            for query in record["queries"]
            if query not in OPERATORS and all("seconds" in one.get(query, {}) for one in (ours, theirs))
        }
        if not ratios:
            continue
        worst = max(ratios, key=lambda query: ratios[query])
        peaks = [max(one.get("peak_bytes", 0) for one in queries.values()) / 1e9 for queries in (ours, theirs)]
        mean = report.geometric_mean(ratios.values()) or 0.0
        lines.append(
            f"{form}, limit {limit}: {len(ratios)} queries of TPC-H in {mean:.2f} of "
            f"DuckDB's time (geometric mean), worst {ratios[worst]:.2f} ({worst}); "
            f"largest peaks of all queries {peaks[0]:.2f} and {peaks[1]:.2f} GB"
        )
    return lines


def table(record: dict[str, Any]) -> str:
    """Return the record as text."""
    headings = ["engine", "from", "limit", "load, s", "MB/s", "peak, MB", "file, MB", "largest peak, MB"]
    lines = [headings, *(cells(result) for result in record["results"])]
    of_queries = [["query", "engine", "from", "limit", "s", "peak, MB", "written, MB", "answer"]]
    loaded = [result for result in record["results"] if "error" not in result["load"]]
    of_queries += [cells_of_query(result, query) for query in record["queries"] for result in loaded]
    return "\n".join(
        [
            f"TPC-H, scale factor {record['scale_factor']:g}, memory_limit = {record['memory_limit']}, "
            f"{record['threads']} threads; MB/s are those of the files that were read",
            "",
            *report.columns(lines),
            "",
            *report.columns(of_queries),
            "",
            *beside_duckdb(record),
            report.where(record),
            *(
                f"limit {name}, {record['limit_bytes'] / 1e6:.0f} MB: {what}"
                for name, what in record["limits"].items()
                if name != "none"
            ),
        ]
    )

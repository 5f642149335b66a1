"""Ordered key-value stores beside each other: SinterDB's trees, LMDB, RocksDB, redb, fjall, and a `BTreeMap`.

Each engine is measured in a process and a folder of its own, ours by `sinter-bench stores`, others by the program in
`benchmarks/stores`, for each number of keys, order in which they are loaded, and length of records. All have the same
keys, and promise the same: that what was committed survives the death of the process (`off`), or a power loss (`full`).
"""

from __future__ import annotations

import itertools
import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine, report, rust

ENGINES = ("sinter", "lmdb", "rocksdb", "redb", "fjall", "sinter-memory", "btree-map")
"""Those in memory have no file."""

IN_MEMORY = {"sinter-memory": "sinter", "btree-map": "btree-map"}
"""What the programs call them."""

OURS = ("sinter", "sinter-memory")

FIGURES = {
    "load, s": ("load_s", 1.0),
    "until settled, s": ("settle_s", 1.0),
    "closed and on disk after that, s": ("close_s", 1.0),
    "opened again, s": ("open_s", 1.0),
    "file, MB": ("file_bytes", 1e6),
    "memory when all was read, MB": ("reading.anonymous_bytes", 1e6),
    "mapped when all was read, MB": ("reading.mapped_bytes", 1e6),
    "peak of both until then, MB": ("reading.peak_bytes", 1e6),
    "the system's cache of files at the end, MB": ("page_cache_bytes", 1e6),
    "get, 1000/s": ("get_per_s", 1e3),
    "get, 2 threads, 1000/s": ("get_2_threads_per_s", 1e3),
    "range of 100, 1000/s": ("range_per_s", 1e3),
    "scan, million entries/s": ("scan_per_s", 1e6),
    "sum of keys, million/s": ("sum_per_s", 1e6),
    "insert, 1000/s": ("insert_per_s", 1e3),
    "the same until settled, 1000/s": ("insert_settled_per_s", 1e3),
    "delete, 1000/s": ("delete_per_s", 1e3),
    "the deletes until settled, 1000/s": ("delete_settled_per_s", 1e3),
    "get one by one, 1000/s": ("get_alone_per_s", 1e3),
    "the same beside a writer": ("get_beside_a_writer_per_s", 1e3),
    "puts one by one beside it": ("writes_beside_a_reader_per_s", 1e3),
}
"""What the table shows: where it stands in what was found, and its unit."""

WRITES = {"off": 1_000_000, "full": 200_000}
YCSB_OPERATIONS = {"off": 1_000_000, "full": 10_000}
"""As many by default: a commit that survives a power loss waits for the disk."""


@dataclass(frozen=True)
class Settings:
    """What was asked for on the command line."""

    engines: list[str]
    keys: list[int]
    distributions: list[str]
    orders: list[str]
    record_bytes: list[int]
    level: str
    operations: int
    writes: int | None
    ycsb_operations: int | None
    only_ycsb: bool
    timeout_s: float
    folder: Path
    out: Path | None


def run_one(settings: Settings, command: list[str], engine: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Measure one engine in a process and a folder of its own."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=settings.folder, prefix="stores-") as folder:
        arguments = {**asked, "engine": IN_MEMORY.get(engine, engine), "level": settings.level}
        arguments["operations"] = settings.operations
        arguments["writes"] = WRITES[settings.level] if settings.writes is None else settings.writes
        asked_ycsb = settings.ycsb_operations
        arguments["ycsb-operations"] = YCSB_OPERATIONS[settings.level] if asked_ycsb is None else asked_ycsb
        database = Path(folder) / "database"
        if engine not in IN_MEMORY:
            arguments["folder"] = str(database)
        options = [f"--{name}={value}" for name, value in arguments.items()]
        options += ["--only-ycsb"] if settings.only_ycsb else []
        try:
            process = subprocess.run(
                [*command, *options], cwd=machine.ROOT, capture_output=True, text=True, timeout=settings.timeout_s
            )
        except subprocess.TimeoutExpired:
            return {"error": f"no answer after {settings.timeout_s:.0f} s"}
        cached = page_cache_bytes(database) if engine not in IN_MEMORY else None
    if process.returncode != 0:
        lines = process.stderr.strip().splitlines()
        return {"error": lines[-1] if lines else f"the process ended with {process.returncode}"}
    try:
        found: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])["found"]
    except (IndexError, KeyError, json.JSONDecodeError):
        return {"error": f"no answer, but {process.stdout[-100:]!r}"}
    return found if cached is None else {**found, "page_cache_bytes": cached}


def page_cache_bytes(folder: Path) -> int | None:
    """Return how much of a folder's files the system has in memory, where the system can say."""
    files = [str(path) for path in folder.rglob("*") if path.is_file()]
    try:
        command = ["fincore", "--bytes", "--noheadings", "--output", "RES", *files]
        process = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return sum(int(line) for line in process.stdout.split())


def run(settings: Settings) -> int:
    """Measure all engines, print a table, and write a record."""
    ours, others = [str(rust.build()), "stores"], [str(rust.build_stores("rocksdb" in settings.engines))]
    record = machine.header("stores")
    record["versions"] |= rust.versions_of_stores()
    record |= {"level": settings.level, "results": []}
    cases = itertools.product(settings.keys, settings.distributions, settings.record_bytes, settings.orders)
    for number, (keys, distribution, record_bytes, order) in enumerate(cases):
        asked = {"keys": keys, "distribution": distribution, "record-bytes": record_bytes, "order": order}
        # Another one begins each time.
        first = number % len(settings.engines)
        found = {}
        for engine in settings.engines[first:] + settings.engines[:first]:
            found[engine] = run_one(settings, ours if engine in OURS else others, engine, asked)
            report.say(line({"engine": engine, **asked, **found[engine]}))
        record["results"] += [{"engine": engine, **asked, **found[engine]} for engine in settings.engines]
        report.write(record, "stores", settings.out)
    print(table(record))
    return 1 if any(failures(result) for result in record["results"]) else 0


def failures(result: dict[str, Any]) -> dict[str, str]:
    """Return what went wrong: of which phase, and how."""
    of_all = {"all of it": result["error"]} if "error" in result else {}
    return of_all | result.get("failures", {})


def line(result: dict[str, Any]) -> str:
    """Return a result as one line."""
    keys = f"{result['keys']} keys ({result['distribution']})"
    name = f"{keys}, {result['record-bytes']} bytes, {result['order']}, {result['engine']}"
    return f"{name}: " + (result.get("error") or f"loaded in {result['load_s']:.1f} s")


def figure(result: dict[str, Any], place: str) -> float | None:
    """Return what stands at a place within a result, such as "loaded.mapped_bytes"."""
    found: Any = result
    for name in place.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def table(record: dict[str, Any]) -> str:
    """Return the record as text: an engine each column."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for result in record["results"]:
        name = f"{result['keys']} keys ({result['distribution']}), records of {result['record-bytes']} bytes"
        groups.setdefault(f"{name}, loaded {result['order']}", []).append(result)
    lines: list[list[str]] = []
    notes = []
    for name, results in groups.items():
        lines += [[name, *(result["engine"] for result in results)]]
        rows = {title: (place, unit) for title, (place, unit) in FIGURES.items()}
        workloads = sorted({workload for result in results for workload in result.get("ycsb", {})})
        rows |= {f"YCSB {workload} threads, 1000/s": (f"ycsb.{workload}.per_s", 1e3) for workload in workloads}
        for title, (place, unit) in rows.items():
            found = [figure(result, place) for result in results]
            if any(value is not None for value in found):
                lines.append([title, *(report.number(None if value is None else value / unit) for value in found)])
        lines.append([])
        for result in results:
            notes += [f"{name}, {result['engine']}, {what}: {why}" for what, why in failures(result).items()]
    return "\n".join(
        [
            *report.columns(lines),
            report.where(record),
            f"commits to files survive {'a power loss' if record['level'] == 'full' else 'the death of the process'}; "
            "inserts and deletes in commits of 1000 keys; YCSB one by one, zipfian; engines settle as each can: "
            "a checkpoint, a sync, or a compaction of all",
            *notes,
        ]
    )

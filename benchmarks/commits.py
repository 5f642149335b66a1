"""Single-row commits per second, syncs and bytes per commit: SinterDB, SQLite, DuckDB, redb, and the bare disk.

Each engine commits at each level that it has an equivalent of, with one client and with several, in a process of its
own: `sinter-bench commits` for those with a Rust library, `benchmarks.committing` for those with a Python module. Each
runs twice: for the time and the latencies, and then for fewer commits under strace, whose log tells the calls that sync
and the bytes that calls write into the database's folder, between two marks.
"""

from __future__ import annotations

import collections
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine, report, rust
from benchmarks.committing import ENGINES as OF_PYTHON
from benchmarks.committing import MARK

ENGINES = {
    "disk": ("full", "off"),
    "sinter": ("full", "normal", "off"),
    "sqlite": ("full", "normal", "off"),
    "redb": ("full", "off"),
    "sinter-python": ("full", "normal", "off"),
    "duckdb": ("full", "off"),
}
"""The levels that each has."""

LEVELS = ("full", "normal", "off")

SYNCS = ("fsync", "fdatasync", "sync_file_range", "syncfs", "sync", "msync")
WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2")
MARKS = ("stat", "statx", "newfstatat")

_CALL = re.compile(r"^(?P<thread>\d+) +(?:<\.\.\. (?P<resumed>\w+) resumed>|(?P<name>\w+)\()(?P<rest>.*)$")
_RETURNED = re.compile(r" = (\d+)$")


@dataclass(frozen=True)
class Settings:
    """What was asked for on the command line."""

    engines: list[str]
    levels: list[str]
    works: list[str]
    clients: list[int]
    seconds: float
    traced_commits: int
    folder: Path
    bench: Path | None
    out: Path | None


def command(settings: Settings, bench: Path, asked: dict[str, Any]) -> list[str]:
    """Return the command that measures one engine."""
    if asked["engine"] in OF_PYTHON:
        return [sys.executable, "-m", "benchmarks.committing", json.dumps(asked)]
    arguments = [f"--{name}={value}" for name, value in asked.items() if value is not None]
    return [str(bench), "commits", *arguments]


def run_one(settings: Settings, bench: Path, asked: dict[str, Any], trace: Path | None = None) -> dict[str, Any]:
    """Measure one engine in a process of its own, in an empty folder; under strace where it is to be traced."""
    with tempfile.TemporaryDirectory(dir=settings.folder, prefix="commits-") as folder:
        ask = {**asked, "folder": folder}
        tracing = []
        if trace is not None:
            ask["commits"] = max(1, settings.traced_commits // asked["clients"])
            calls = ",".join([*SYNCS, *WRITES, *MARKS])
            tracing = [
                "strace",
                "-f",
                "--seccomp-bpf",
                "-qq",
                "-y",
                "-s",
                "0",
                "-e",
                f"trace={calls}",
                "-o",
                str(trace),
            ]
        process = subprocess.run(
            [*tracing, *command(settings, bench, ask)], cwd=machine.ROOT, capture_output=True, text=True
        )
        if process.returncode != 0:
            lines = process.stderr.strip().splitlines()
            return {"error": lines[-1] if lines else f"the process ended with {process.returncode}"}
        answer: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
        if trace is not None:
            answer["traced"] = counts(trace.read_text(), folder, answer["commits"])
        return answer


def counts(log: str, folder: str, commits: int) -> dict[str, Any]:
    """Count per commit, between the two marks: calls that sync, and bytes that calls write into the folder."""
    syncs: collections.Counter[str] = collections.Counter()
    written = 0
    marks = 0
    under_way: dict[str, bool] = {}
    for line in log.splitlines():
        call = _CALL.match(line)
        if call is None:
            continue
        name, rest, thread = call["name"] or call["resumed"], call["rest"], call["thread"]
        if name in MARKS:
            marks += MARK in rest
            continue
        if marks != 1:
            continue
        if name in SYNCS:
            syncs[name] += call["name"] is not None
        elif name in WRITES:
            # The file is named where the call begins, what was written where it ends.
            ours = f"<{folder}/" in rest if call["name"] else under_way.pop(thread, False)
            if (returned := _RETURNED.search(rest)) is None:
                under_way[thread] = ours
            elif ours:
                written += int(returned[1])
    return {
        "commits": commits,
        "syncs_per_commit": {name: count / commits for name, count in syncs.items()},
        "bytes_written_per_commit": written / commits,
    }


def run(settings: Settings) -> int:
    """Measure all, write the record, print the table; 1 when something failed."""
    record = {
        **machine.header("commits"),
        "seconds": settings.seconds,
        "traced_commits": settings.traced_commits,
        "folder": str(settings.folder),
        "results": [],
    }
    bench = settings.bench or rust.build(peers=True)
    settings.folder.mkdir(parents=True, exist_ok=True)
    traces = shutil.which("strace") is not None
    if not traces:
        report.say("there is no strace, so calls are not counted; it is in the package 'strace'")
    for work in settings.works:
        for level in settings.levels:
            for clients in settings.clients:
                for engine in settings.engines:
                    if level not in ENGINES[engine]:
                        continue
                    asked = {"engine": engine, "level": level, "work": work, "clients": clients}
                    asked |= {"seconds": settings.seconds, "commits": None}
                    result = run_one(settings, bench, asked)
                    if traces and "error" not in result:
                        with tempfile.TemporaryDirectory() as folder:
                            traced = run_one(settings, bench, asked, Path(folder) / "trace")
                        result["traced"] = traced.get("traced", traced)
                    record["versions"] |= result.pop("versions", {})
                    record["results"].append({**asked, **result})
                    report.say(line(record["results"][-1]))
    report.write(record, "commits", settings.out)
    print(table(record))
    failed = [result for result in record["results"] if "error" in result or "error" in result.get("traced", {})]
    return 1 if failed else 0


HEADINGS = (
    *("commits/s", "p50, ms", "p99, ms", "longest", "syncs/commit", "written/commit", "on device", "until closed"),
)


def cells(result: dict[str, Any]) -> list[str]:
    """Return what the table shows of a result."""
    if "error" in result:
        return [result["error"]]
    latency, traced = result["latency"], result.get("traced", {})
    syncs = traced.get("syncs_per_commit")
    return [
        f"{result['commits_per_second']:.0f}",
        *(f"{latency[f'ms_{name}']:.3f}" for name in ("p50", "p99", "max")),
        "-" if syncs is None else f"{sum(syncs.values()):.3f}",
        "-" if syncs is None else f"{traced['bytes_written_per_commit']:.0f}",
        f"{result['bytes_on_device_per_commit']:.0f}",
        f"{result['bytes_on_device_per_commit_until_closed']:.0f}",
    ]


def line(result: dict[str, Any]) -> str:
    """Return a result as one line."""
    name = f"{result['work']}, {result['level']}, {result['clients']} client(s), {result['engine']}"
    return f"{name}: " + (result.get("error") or f"{result['commits_per_second']:.0f} commits/s")


def table(record: dict[str, Any]) -> str:
    """Return the record as text."""
    lines = [["", *HEADINGS]]
    group = None
    for result in record["results"]:
        name = f"{result['work']}, synchronous = {result['level']}, {result['clients']} client(s)"
        if name != group:
            lines += [[], [name]]
            group = name
        lines.append([f"  {result['engine']}", *cells(result)])
    return "\n".join(
        [
            *report.columns(lines),
            "",
            report.where(record),
            "written: bytes that calls write into the database's folder, and syncs: both under strace, per commit.",
            "on device: bytes that the whole machine wrote to the disk meanwhile, without strace, per commit;",
            "until closed: with what the close writes.",
        ]
    )

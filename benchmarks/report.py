"""A record as a table for people."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks import machine

RECORDS = Path(__file__).resolve().parent / "record"

BASE = "duckdb"
"""Whom the others are compared with."""


def say(text: str) -> None:
    """Tell how far we are."""
    print(text, file=sys.stderr, flush=True)


def write(record: dict[str, Any], name: str, out: Path | None) -> None:
    """Write a record where it was asked for, or among the others; without paths that only this machine has."""
    out = out or RECORDS / f"{record['date'].split()[0]}-{name}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(machine.portable(record), indent=1) + "\n")
    say(f"written to {out}")


def columns(lines: list[list[str]]) -> list[str]:
    """Align cells; the first of each line to the left. A line of one cell is a heading."""
    widths = [
        max((len(line[place]) for line in lines if len(line) > max(place, 1)), default=0)
        for place in range(max(map(len, lines)))
    ]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=False))
        ).rstrip()
        for line in lines
    ]


def where(record: dict[str, Any]) -> str:
    """Return with what and where a record was made."""
    made_on, versions = record["machine"], record["versions"]
    packages = ", ".join(f"{package} {version}" for package, version in versions.items())
    return (
        f"{made_on['cpu']}, {made_on['cpus']} CPUs, {made_on['memory_bytes'] / 1e9:.0f} GB; "
        f"commit {record['commit']}; {record['date']}; load before {made_on['load_average_before']:.1f}\n{packages}"
    )


def geometric_mean(values: Iterable[float]) -> float | None:
    """Return the geometric mean; None of nothing."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None


def table(record: dict[str, Any]) -> str:
    """Return the whole record as text."""
    engines: dict[str, Any] = record["engines"]
    lines = [[record["title"], *engines], []]

    def line(title: str, cells: Iterable[str]) -> None:
        lines.append([title, *cells])

    line("load, s", (_number(engine.get("load_s")) for engine in engines.values()))
    line("resident, MB", (_megabytes(engine.get("resident_bytes")) for engine in engines.values()))
    line("by its own count, MB", (_megabytes(engine.get("held_bytes")) for engine in engines.values()))
    line("resident at most, MB", (_megabytes(engine.get("peak_bytes")) for engine in engines.values()))
    line("file, MB", (_megabytes(engine.get("file_bytes")) for engine in engines.values()))
    lines.append([])
    for query in record["queries"]:
        line(f"{query}, ms", (_query(engine["queries"].get(query)) for engine in engines.values()))
    lines.append([])
    line("geometric mean, ms", (_number(engine.get("geometric_mean_ms")) for engine in engines.values()))
    line(f"ratio to {BASE}", (_number(engine.get("ratio")) for engine in engines.values()))
    return "\n".join([*columns(lines), "", *notes(record)])


def notes(record: dict[str, Any]) -> list[str]:
    """Return what has to be known beside the numbers."""
    made_on = record["machine"]
    memory = made_on["memory_bytes"] / 1e9
    out = [
        f"{made_on['cpu']}, {made_on['cpus']} CPUs, {memory:.0f} GB; {record['threads']} threads; "
        f"medians of {record['runs']} warm runs, engines in turn; commit {record['commit']}; {record['date']}",
        ", ".join(f"{package} {version}" for package, version in record["versions"].items()),
        "resident: the process's resident size after loading, less that of the same process with nothing loaded",
    ]
    for name, engine in record["engines"].items():
        if "error" in engine:
            out.append(f"{name}: {engine['error']}")
        for query, result in engine["queries"].items():
            if result.get("answer") != "same":
                out.append(f"{name}, {query}: {result.get('error') or result.get('answer')}")
        missing = len(record["queries"]) - engine["queries_timed"]
        if missing:
            out.append(f"{name}: mean and ratio leave out {missing} queries")
    return out


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _megabytes(value: int | None) -> str:
    return "-" if value is None else f"{value / 1e6:.0f}"


def _query(result: dict[str, Any] | None) -> str:
    if result is None or "median_ms" not in result:
        return "-"
    mark = "" if result["answer"] == "same" else " !"
    return _number(result["median_ms"]) + mark

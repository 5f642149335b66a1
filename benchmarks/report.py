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

OURS = "sinter"

FORMS = ("duckdb", "duckdb-checkpoint")
FASTER = "DuckDB's faster form"
"""What is the faster of these in a query; our ratio to it is the larger one."""


def say(text: str) -> None:
    """Tell how far we are."""
    print(text, file=sys.stderr, flush=True)


def write(record: dict[str, Any], name: str, out: Path | None) -> Path:
    """Write a record where it was asked for, or among the others; without paths that only this machine has."""
    out = out or RECORDS / f"{record['date'].split()[0]}-{name}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(machine.portable(record), indent=1) + "\n")
    say(f"written to {out}")
    return out


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


def ratios(mine: dict[str, Any], theirs: dict[str, Any]) -> dict[str, float]:
    """Return the medians of an engine as multiples of another's, by query, where both have one."""
    others = theirs.get("queries", {})
    return {
        query: result["median_ms"] / others[query]["median_ms"]
        for query, result in mine["queries"].items()
        if "median_ms" in result and "median_ms" in others.get(query, {})
    }


def ours_to(record: dict[str, Any]) -> dict[str, Any]:
    """Return our ratios to each other engine, and to DuckDB's faster form in each query; means and worst queries."""
    pairs = record.get("pairs")
    if pairs is None:
        engines = record["engines"]
        pairs = {name: engines for name in engines if name != OURS} if OURS in engines else {}
    found = {rival: ratios(pair[OURS], pair[rival]) for rival, pair in pairs.items()}
    if set(FORMS) <= set(found):
        both = [found[form] for form in FORMS]
        found[FASTER] = {query: max(form[query] for form in both) for query in both[0] if query in both[1]}
    return {
        rival: {
            "queries": of_queries,
            "geometric_mean": geometric_mean(of_queries.values()),
            "worst": max(of_queries, key=lambda query: of_queries[query], default=None),
        }
        for rival, of_queries in found.items()
    }


def table(record: dict[str, Any]) -> str:
    """Return the whole record as text."""
    return "\n".join([*columns(of_pairs(record) if "pairs" in record else of_engines(record)), "", *notes(record)])


RESIDENT = "resident, MB"
"""The name of the mark of what ours takes after loading, whatever others take."""

FIGURES = {
    "load, s": "load_s",
    "open, s": "open_s",
    RESIDENT: "resident_bytes",
    "of it anonymous, MB": "anonymous_bytes",
    "by its own count, MB": "held_bytes",
    "resident at most, loading, MB": "peak_bytes",
    "resident at most, in a query, MB": "query_peak_bytes",
    "file, MB": "file_bytes",
}
"""What the table shows beside the queries, as far as any engine has it."""


def of_engines(record: dict[str, Any]) -> list[list[str]]:
    """Return the lines of engines that ran beside each other: a column each, and our ratio to DuckDB's faster form."""
    engines: dict[str, Any] = record["engines"]
    faster = record["ours_to"].get(FASTER)
    lines = [[record["title"], *engines, *([f"ours to {FASTER}"] if faster else [])], []]
    for title, figure in FIGURES.items():
        if any(engine.get(figure) is not None for engine in engines.values()):
            lines.append([title, *(_figure(figure, engine.get(figure)) for engine in engines.values())])
    lines.append([])
    for query in record["queries"]:
        ratio = [number(faster["queries"].get(query))] if faster else []
        lines.append([f"{query}, ms", *(_query(engine["queries"].get(query)) for engine in engines.values()), *ratio])
    lines.append([])
    means = [number(engine.get("geometric_mean_ms")) for engine in engines.values()]
    lines.append(["geometric mean, ms", *means, *([number(faster["geometric_mean"])] if faster else [])])
    lines.append([f"ratio to {BASE}", *(number(engine.get("ratio")) for engine in engines.values())])
    lines += [[], ["resident at most in each query, MB"]]
    for query in record["queries"]:
        results = (engine["queries"].get(query, {}) for engine in engines.values())
        lines.append([query, *(_figure("peak_bytes", result.get("peak_bytes")) for result in results)])
    return lines


def of_pairs(record: dict[str, Any]) -> list[list[str]]:
    """Return the lines of pairs: a column for each other engine, with its figures and our ratio to it."""
    pairs: dict[str, Any] = record["pairs"]
    ours_to_: dict[str, Any] = record["ours_to"]
    lines = [[record["title"], *ours_to_], ["ours / theirs"]]
    for title, figure in FIGURES.items():
        if all(engine.get(figure) is None for pair in pairs.values() for engine in pair.values()):
            continue
        cells = [
            f"{_figure(figure, pair[OURS].get(figure))} / {_figure(figure, pair[rival].get(figure))}"
            for rival, pair in pairs.items()
        ]
        lines.append([title, *cells])
    lines += [[], ["ours as a multiple of theirs"]]
    for query in record["queries"]:
        lines.append([query, *(number(rival["queries"].get(query)) for rival in ours_to_.values())])
    lines.append([])
    lines.append(["geometric mean", *(number(rival["geometric_mean"]) for rival in ours_to_.values())])
    return lines


def marks(record: dict[str, Any]) -> list[str]:
    """Return how our ratios to DuckDB's faster form, or to the form that took part, stand to the marks."""
    against = next((rival for rival in (FASTER, *FORMS) if rival in record["ours_to"]), None)
    if against is None or not (queries := record["ours_to"][against]["queries"]):
        return []
    worst = record["ours_to"][against]["worst"]
    found = {"geometric mean": record["ours_to"][against]["geometric_mean"], "worst": queries[worst], **queries}
    if resident := record.get("engines", {}).get(OURS, {}).get("resident_bytes"):
        found[RESIDENT] = resident / 1e6
    out = []
    for what, most in (record["marks"] or {"geometric mean": None, "worst": None}).items():
        if what in found:
            verdict = "" if most is None else f" ({'met' if found[what] <= most else 'missed'}: {most:g})"
            out.append(f"{what}{f', {worst},' if what == 'worst' else ''} {number(found[what])}{verdict}")
    return [f"ours to {against}: {'; '.join(out)}"]


def notes(record: dict[str, Any]) -> list[str]:
    """Return what has to be known beside the numbers."""
    made_on = record["machine"]
    memory = made_on["memory_bytes"] / 1e9
    pairs = "pairs" in record
    done = "opening or loading" if record.get("from_file") else "loading"
    out = [
        *marks(record),
        f"{made_on['cpu']}, {made_on['cpus']} CPUs, {memory:.0f} GB; {record['threads']} threads; "
        f"medians of {record['runs']} warm runs, {'two ' if pairs else ''}engines in turn; "
        f"commit {record['commit']}; {record['date']}",
        ", ".join(f"{package} {version}" for package, version in record["versions"].items()),
        f"resident: the process's resident size after {done}, less that of the same process with nothing loaded; "
        "anonymous: what of it is in no file: tables, and the heaps of threads",
    ]
    faces = record["pairs"].items() if pairs else [("", record["engines"])]
    for rival, engines in faces:
        for engine, found in engines.items():
            name = f"{engine} (beside {rival})" if pairs and engine == OURS else engine
            for table, part in found.get("tables", {"": found}).items():
                if "error" in part:
                    out.append(f"{name}{', ' if table else ''}{table}: {part['error']}")
            for query, result in found["queries"].items():
                if result.get("answer") != "same":
                    out.append(f"{name}, {query}: {result.get('error') or result.get('answer')}")
            missing = len(record["queries"]) - found["queries_timed"]
            if missing:
                out.append(f"{name}: mean and ratio leave out {missing} queries")
    return out


def number(value: float | None) -> str:
    """Return a figure with as many digits as are worth reading."""
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _figure(name: str, value: float | None) -> str:
    return number(value) if value is None or not name.endswith("_bytes") else f"{value / 1e6:.0f}"


def _query(result: dict[str, Any] | None) -> str:
    if result is None or "median_ms" not in result:
        return "-"
    mark = "" if result["answer"] == "same" else " !"
    return number(result["median_ms"]) + mark

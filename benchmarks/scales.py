"""TPC-H at several scale factors: how times and resident bytes grow with the data, as a record and as a plot.

A slope is that of the straight line that fits best through the logarithms (least squares): 1 where something grows as
the data does, less where it grows more slowly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import contest, machine, plot, report, tpch
from benchmarks.contest import Answers, Contest
from benchmarks.plot import Line, Panel
from benchmarks.report import OURS, say

ENGINES = ("sinter", *report.FORMS)
MOST = 1.0
"""What our slopes should be at most."""

MEASURES = {
    "geometric_mean_ms": "geometric mean",
    "total_ms": "total",
    "resident_bytes": "resident",
}
"""What has a slope."""


@dataclass(frozen=True)
class Settings:
    """What was asked for on the command line."""

    scale_factors: list[float]
    threads: int
    runs: int
    engines: list[str]
    queries: list[str]
    alone: bool
    data: Path | None
    timeout_s: float
    out: Path | None


def slope(points: Iterable[tuple[float, float]]) -> float | None:
    """Return the slope of the logarithms by least squares; None of fewer than two places."""
    logarithms = [(math.log(x), math.log(y)) for x, y in points]
    if len({x for x, _ in logarithms}) < 2:
        return None
    middle_x, middle_y = (sum(values) / len(logarithms) for values in zip(*logarithms, strict=True))
    rise = sum((x - middle_x) * (y - middle_y) for x, y in logarithms)
    return float(rise / sum((x - middle_x) ** 2 for x, _ in logarithms))


def measure(settings: Settings, scale_factor: float) -> dict[str, dict[str, Any]]:
    """Measure all engines at one scale factor: in turn, or each alone."""
    data = None if settings.data is None else settings.data / f"sf{scale_factor:g}"
    one = Contest(
        suite="scales",
        name="scales",
        title="",
        tables=tpch.files(data, scale_factor),
        queries={query: (tpch.QUERIES / f"{query}.sql").read_text() for query in settings.queries},
        engines=settings.engines,
        threads=settings.threads,
        runs=settings.runs,
        timeout_s=settings.timeout_s,
        files=False,
        out=None,
    )
    answers = Answers()
    if not settings.alone:
        return contest.face(one, settings.engines, answers)
    found: dict[str, dict[str, Any]] = {}
    # Who is compared with comes first.
    for name in sorted(settings.engines, key=lambda name: name != report.BASE):
        found |= contest.face(one, [name], answers)
    return {name: found[name] for name in settings.engines}


def times(scales: dict[float, dict[str, Any]], name: str) -> dict[str, list[tuple[float, float]]]:
    """Return by query an engine's time at each scale factor; only of queries that it has answered at all of them."""
    found: dict[str, list[tuple[float, float]]] = {}
    for scale_factor, engines in scales.items():
        for query, result in engines[name]["queries"].items():
            if "median_ms" in result:
                found.setdefault(query, []).append((scale_factor, result["median_ms"]))
    return {query: points for query, points in found.items() if len(points) == len(scales)}


def growth(scales: dict[float, dict[str, Any]], name: str) -> dict[str, Any]:
    """Return how an engine grows: its points and slopes, those of each query, and the query with the greatest."""
    by_query = times(scales, name)
    points: dict[str, list[tuple[float, float]]] = {measure: [] for measure in MEASURES}
    for number, scale_factor in enumerate(scales):
        medians = [of_query[number][1] for of_query in by_query.values()]
        if medians:
            points["geometric_mean_ms"].append((scale_factor, report.geometric_mean(medians) or 0.0))
            points["total_ms"].append((scale_factor, sum(medians)))
        if scales[scale_factor][name].get("resident_bytes", 0) > 0:
            points["resident_bytes"].append((scale_factor, scales[scale_factor][name]["resident_bytes"]))
    slopes = {query: found for query, of_query in by_query.items() if (found := slope(of_query)) is not None}
    return {
        "points": points,
        "slopes": {measure: slope(of_measure) for measure, of_measure in points.items()},
        "query_slopes": slopes,
        "greatest": max(slopes, key=lambda query: slopes[query], default=None),
        "queries_timed": len(by_query),
    }


def drawing(record: dict[str, Any]) -> str:
    """Return the plot of a record."""
    growths: dict[str, Any] = record["growth"]
    colours = dict(zip(growths, plot.COLOURS, strict=False))

    def lines(measure: str, words: str, dashed: bool = False) -> list[Line]:
        return [
            Line(label(name, words, found["slopes"][measure]), colours[name], found["points"][measure], dashed)
            for name, found in growths.items()
            if found["points"][measure]
        ]

    across = "scale factor (1 is about 1 GB of data)"
    means = lines("geometric_mean_ms", "mean", True)
    panels = [
        Panel("Time of the queries, warm", across, lines("total_ms", "total") + means, plot.seconds, "slope 1"),
        Panel("Resident size after loading", across, lines("resident_bytes", ""), plot.size, "slope 1"),
    ]
    made_on = record["machine"]
    count = len(record["queries"])
    notes = [
        f"Total: sum of the medians of {count} queries. Mean: their geometric mean, dashed. "
        "Numbers are slopes, by least squares: 1 is as the data grows.",
        f"{made_on['cpu']}, {record['threads']} threads, {made_on['memory_bytes'] / 1e9:.0f} GB; tables in memory; "
        f"commit {record['commit']}; {record['date'].split()[0]}",
    ]
    return plot.draw("TPC-H against scale factor", [panel for panel in panels if panel.lines], notes)


def label(name: str, words: str, found: float | None) -> str:
    """Return what stands at the end of a line."""
    return f"{name}{f' {words}' if words else ''}{'' if found is None else f', {found:.2f}'}"


def run(settings: Settings) -> int:
    """Measure all, write the record and the plot, print the table; 1 when an answer differs or is missing."""
    record: dict[str, Any] = {
        **machine.header("scales"),
        "title": "TPC-H against scale factor",
        "scale_factors": settings.scale_factors,
        "threads": settings.threads,
        "runs": settings.runs,
        "alone": settings.alone,
        "queries": settings.queries,
    }
    scales: dict[float, dict[str, Any]] = {}
    for scale_factor in settings.scale_factors:
        say(f"scale factor {scale_factor:g}")
        scales[scale_factor] = measure(settings, scale_factor)
    record["scales"] = {f"{scale_factor:g}": engines for scale_factor, engines in scales.items()}
    record["growth"] = {name: growth(scales, name) for name in settings.engines}
    written = report.write(record, "scales", settings.out)
    if any(found["points"]["total_ms"] for found in record["growth"].values()):
        drawn = written.with_suffix(".svg")
        drawn.write_text(drawing(record))
        say(f"drawn to {drawn}")
    print(table(record))
    complete = all(
        engine["queries"].get(query, {}).get("answer") == "same"
        for engines in scales.values()
        for engine in engines.values()
        for query in settings.queries
    )
    return 0 if complete else 1


FIGURES = {
    "load, s": ("load_s", 1.0),
    "resident, MB": ("resident_bytes", 1e6),
    "resident at most, in a query, MB": ("query_peak_bytes", 1e6),
    "geometric mean, ms": ("geometric_mean_ms", 1.0),
    "total, ms": ("total_ms", 1.0),
}
"""What the table shows of each engine at each scale factor."""


def table(record: dict[str, Any]) -> str:
    """Return the record as text."""
    growths: dict[str, Any] = record["growth"]
    scale_factors = list(record["scales"])
    lines = [[record["title"], *(f"SF {scale_factor}" for scale_factor in scale_factors), "slope"]]
    for name, found in growths.items():
        lines += [[], [name]]
        for title, (figure, scale) in FIGURES.items():
            values = (record["scales"][scale_factor][name].get(figure) for scale_factor in scale_factors)
            cells = [report.number(None if value is None else value / scale) for value in values]
            lines.append([f"  {title}", *cells, report.number(found["slopes"].get(figure))])
    lines += [[], ["slope of each query", *growths]]
    for query in record["queries"]:
        lines.append([query, *(report.number(found["query_slopes"].get(query)) for found in growths.values())])
    return "\n".join([*report.columns(lines), "", *notes(record)])


def notes(record: dict[str, Any]) -> list[str]:
    """Return what has to be known beside the numbers."""
    out = [*verdicts(record), report.where(record)]
    turns = "each engine alone" if record["alone"] else "engines in turn"
    out.append(f"{record['threads']} threads; medians of {record['runs']} warm runs, {turns}")
    for scale_factor, engines in record["scales"].items():
        for name, engine in engines.items():
            if "error" in engine:
                out.append(f"{name}, SF {scale_factor}: {engine['error']}")
            for query, result in engine["queries"].items():
                if result.get("answer") != "same":
                    out.append(f"{name}, SF {scale_factor}, {query}: {result.get('error') or result.get('answer')}")
    for name, found in record["growth"].items():
        if (missing := len(record["queries"]) - found["queries_timed"]) > 0:
            out.append(f"{name}: slopes and the plot leave out {missing} queries")
    return out


def verdicts(record: dict[str, Any]) -> Sequence[str]:
    """Return how our slopes stand to what they should be at most, and which query has the greatest."""
    ours = record["growth"].get(OURS)
    if ours is None:
        return []
    slopes = [(MEASURES[measure], found) for measure, found in ours["slopes"].items() if found is not None]
    out = [f"{what} {found:.2f} ({'met' if found <= MOST else 'missed'}: {MOST:g})" for what, found in slopes]
    if ours["greatest"] is not None:
        out.append(f"greatest of a query {ours['query_slopes'][ours['greatest']]:.2f}, {ours['greatest']}")
    return [f"our slopes: {'; '.join(out)}"] if out else []

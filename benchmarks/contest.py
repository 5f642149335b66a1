"""Queries on several engines in turn: load time, resident bytes, file bytes, medians, answers compared."""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import answers, machine, report
from benchmarks.engines import WITH_FILES
from benchmarks.process import EngineError, Process
from benchmarks.report import say

LOAD_TIMEOUT_S = 3600.0


@dataclass(frozen=True)
class Contest:
    """What runs, where, and how often."""

    suite: str
    name: str
    """Of the record."""
    title: str
    tables: dict[str, str]
    """The Parquet file of each table."""
    queries: dict[str, str]
    """The text of each query by its name."""
    engines: list[str]
    threads: int
    runs: int
    timeout_s: float
    files: bool
    """Whether databases are written to files, too, to see how long they are."""
    out: Path | None


def numbers(text: str) -> set[int]:
    """Return the numbers that a text such as "1,6,13-15" names."""
    chosen: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        chosen.update(range(int(first), int(last or first) + 1))
    return chosen


class Contender:
    """An engine in its process, and what was measured of it."""

    def __init__(self, name: str, contest: Contest) -> None:
        self.name = name
        self.record: dict[str, Any] = {"queries": {}}
        self._contest = contest
        self._process: Process | None = None

    def load(self) -> None:
        """Start the process, load the tables, and see what that takes."""
        try:
            process = Process(self.name, self._contest.threads, self._contest.timeout_s)
            process.ask("open", path=None)
            before = process.ask("memory")
            seconds = process.ask("load", tables=self._contest.tables, timeout_s=LOAD_TIMEOUT_S)["seconds"]
            after = process.ask("memory")
        except EngineError as error:
            self.record["error"] = str(error)
            say(f"{self.name}: {error}")
            return
        self._process = process
        if "load_s" not in self.record:
            self.record["load_s"] = seconds
            self.record["resident_bytes"] = after["resident"] - before["resident"]
            self.record["anonymous_bytes"] = after["anonymous"] - before["anonymous"]
            self.record["held_bytes"] = after["held"]
            self.record["peak_bytes"] = after["peak"] - before["resident"]
            self.record["empty_bytes"] = before["resident"]
        say(f"{self.name}: loaded in {seconds:.1f} s, {self.record['resident_bytes'] / 1e6:.0f} MB resident")

    def size(self) -> None:
        """Load into a file, in a process of its own, and see how long it is."""
        with tempfile.TemporaryDirectory() as folder:
            process = Process(self.name, self._contest.threads, self._contest.timeout_s)
            try:
                process.ask("open", path=str(Path(folder) / "contest.db"))
                loaded = process.ask("load", tables=self._contest.tables, timeout_s=LOAD_TIMEOUT_S)
                process.ask("close")
            except EngineError as error:
                self.record["file_error"] = str(error)
                say(f"{self.name}: {error}")
                return
            finally:
                process.end()
            self.record["file_load_s"] = loaded["seconds"]
            self.record["file_bytes"] = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        say(f"{self.name}: {self.record['file_bytes'] / 1e6:.0f} MB on file")

    def ask(self, do: str, query: str, sql: str) -> dict[str, Any] | None:
        """Run a query; None when that fails, which is noted. A process that is gone is started again."""
        if "error" in self.record or "error" in self.record["queries"].get(query, {}):
            return None
        if self._process is None or not self._process.alive:
            self.load()
            if self._process is None:
                return None
        try:
            return self._process.ask(do, sql=sql)
        except EngineError as error:
            self.record["queries"].setdefault(query, {})["error"] = str(error)
            say(f"{self.name}, {query}: {error}")
            return None

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.end()


def measure(query: str, sql: str, contenders: list[Contender], runs: int) -> None:
    """Run a query on all: once to warm up and compare, then in turn."""
    first: dict[str, dict[str, Any]] = {}
    for contender in contenders:
        answer = contender.ask("answer", query, sql)
        if answer is not None:
            first[contender.name] = answer
    times: dict[str, list[float]] = {name: [] for name in first}
    for _ in range(runs):
        for contender in contenders:
            if contender.name in first and (timed := contender.ask("query", query, sql)) is not None:
                times[contender.name].append(timed["seconds"] * 1000)
    base = report.BASE if report.BASE in first else next(iter(first), None)
    for contender in contenders:
        if base is None or contender.name not in first:
            continue
        result = contender.record["queries"].setdefault(query, {})
        answer = first[contender.name]
        differs = answers.difference(answer["rows"], first[base]["rows"])
        result["answer"] = "same" if differs is None else f"differs from {base}: {differs}"
        result["rows"] = len(answer["rows"])
        result["first_ms"] = answer["seconds"] * 1000
        if times[contender.name]:
            result["median_ms"] = statistics.median(times[contender.name])
            result["times_ms"] = times[contender.name]
    medians = {name: statistics.median(list_) for name, list_ in times.items() if list_}
    say(f"{query}: " + ", ".join(f"{name} {median:.1f} ms" for name, median in medians.items()))


def summarise(contenders: list[Contender]) -> None:
    """Add means, and ratios over the queries that both have."""
    medians = {
        contender.name: {
            query: result["median_ms"] for query, result in contender.record["queries"].items() if "median_ms" in result
        }
        for contender in contenders
    }
    base = medians.get(report.BASE, {})
    for contender in contenders:
        mine = medians[contender.name]
        contender.record["queries_timed"] = len(mine)
        contender.record["geometric_mean_ms"] = report.geometric_mean(mine.values())
        contender.record["ratio"] = report.geometric_mean(mine[query] / base[query] for query in mine if query in base)


def run(contest: Contest, header: dict[str, Any]) -> int:
    """Measure, write the record, print the table; 1 when an answer differs or is missing."""
    record: dict[str, Any] = {
        **machine.header(contest.suite),
        "title": contest.title,
        **header,
        "threads": contest.threads,
        "runs": contest.runs,
        "queries": list(contest.queries),
    }
    contenders = [Contender(name, contest) for name in contest.engines]
    try:
        for contender in contenders:
            contender.load()
        for query, sql in contest.queries.items():
            measure(query, sql, contenders, contest.runs)
    finally:
        for contender in contenders:
            contender.end()
    if contest.files:
        for contender in contenders:
            if contender.name in WITH_FILES:
                contender.size()
            elif contender.name == "datafusion-parquet":
                contender.record["file_bytes"] = sum(Path(file).stat().st_size for file in contest.tables.values())
    summarise(contenders)
    record["engines"] = {contender.name: contender.record for contender in contenders}
    report.write(record, contest.name, contest.out)
    print(report.table(record))
    complete = all(
        contender.record["queries"].get(query, {}).get("answer") == "same"
        for contender in contenders
        for query in contest.queries
    )
    return 0 if complete else 1

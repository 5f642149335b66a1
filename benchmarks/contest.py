"""Queries on several engines in turn: load time, resident bytes, file bytes, medians, answers compared.

All engines at once, each in its process; or in pairs, ours with each other one, so that two have the memory to
themselves; or table by table, where queries name one table each; or both. Tables are loaded into memory, or into a
database file, which is closed and opened again by the process that runs the queries.
"""

from __future__ import annotations

import random
import re
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import answers, machine, report
from benchmarks.engines import DATABASES, WITH_FILES
from benchmarks.process import EngineError, Process
from benchmarks.report import OURS, say

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
    pairs: bool = False
    """Whether ours runs with one other engine at a time."""
    apart: bool = False
    """Whether only one table is loaded at a time; each query names one."""
    stored: Path | None = None
    """The folder for database files, where engines that have such are to be asked from those."""
    keep_files: bool = False
    """Whether database files stay at the end."""
    marks: dict[str, float] = field(default_factory=dict)
    """What our ratios to DuckDB's faster form should not exceed: that of a query, "geometric mean", "worst"."""

    def parts(self) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
        """Yield the tables that are loaded together, and the queries on them."""
        if not self.apart:
            yield self.tables, self.queries
            return
        for table, file in self.tables.items():
            queries = {query: sql for query, sql in self.queries.items() if names(sql, table)}
            if queries:
                yield {table: file}, queries


def names(sql: str, table: str) -> bool:
    """Return whether a query reads a table."""
    return re.search(rf"\bFROM\s+{table}\b", sql) is not None


def numbers(text: str) -> set[int]:
    """Return the numbers that a text such as "1,6,13-15" names."""
    chosen: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        chosen.update(range(int(first), int(last or first) + 1))
    return chosen


class Contender:
    """An engine in its process, with the tables of one part of a contest, and what was measured of it."""

    def __init__(self, name: str, contest: Contest, tables: dict[str, str], stored: dict[str, Any] | None) -> None:
        self.name = name
        self.record: dict[str, Any] = {"queries": {}}
        self._contest = contest
        self._tables = tables
        self._stored = stored
        """What was measured when its database file was written, where it has one."""
        self._process: Process | None = None

    def load(self) -> None:
        """Start the process, load the tables or open the file with them, and see what that takes."""
        if self._stored is not None and "error" in self._stored:
            self.record["error"] = self._stored["error"]
            return
        process = Process(self.name, self._contest.threads, self._contest.timeout_s)
        try:
            found = self._load(process) if self._stored is None else self._open(process, self._stored)
        except EngineError as error:
            process.end()
            self.record["error"] = str(error)
            say(f"{self.name}: {error}")
            return
        self._process = process
        if "load_s" not in self.record:
            self.record |= found
        did = f"loaded in {found['load_s']:.1f} s" if self._stored is None else f"opened in {found['open_s']:.3f} s"
        say(f"{self.name}: {did}, {found['resident_bytes'] / 1e6:.0f} MB resident")

    def _load(self, process: Process) -> dict[str, Any]:
        process.ask("open", path=None)
        before = process.ask("memory")
        seconds = process.ask("load", tables=self._tables, timeout_s=LOAD_TIMEOUT_S)["seconds"]
        after = process.ask("memory")
        return {
            "load_s": seconds,
            **sizes(after, before["resident"], before["anonymous"]),
            "peak_bytes": after["peak"] - before["resident"],
            "empty_bytes": before["resident"],
        }

    def _open(self, process: Process, stored: dict[str, Any]) -> dict[str, Any]:
        path = database_file(self._contest, self.name)
        seconds = process.ask("open", path=path, timeout_s=LOAD_TIMEOUT_S)["seconds"]
        after = process.ask("memory")
        return {**stored, "open_s": seconds, **sizes(after, stored["empty_bytes"], stored["empty_anonymous_bytes"])}

    def ask(self, do: str, query: str, sql: str) -> dict[str, Any] | None:
        """Run a query; None when that fails, which is noted. A process that is gone is started again."""
        result = self.record["queries"].setdefault(query, {})
        if "error" in result:
            return None
        if "error" not in self.record and (self._process is None or not self._process.alive):
            self.load()
        if "error" in self.record or self._process is None:
            result["error"] = f"not loaded: {self.record['error']}"
            return None
        try:
            return self._process.ask(do, sql=sql)
        except EngineError as error:
            result["error"] = str(error)
            say(f"{self.name}, {query}: {error}")
            return None

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.end()


class Answers:
    """What was answered first, by DuckDB where it took part; all others are compared with that."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, Any]] = {}

    def compare(self, query: str, found: dict[str, dict[str, Any]]) -> dict[str, str]:
        """Return of each engine whether it answered the same."""
        if not found:
            return {}
        first = report.BASE if report.BASE in found else next(iter(found))
        if first == report.BASE or query not in self._first:
            self._first[query] = (first, found[first]["rows"])
        base, rows = self._first[query]
        differences = {name: answers.difference(answer["rows"], rows) for name, answer in found.items()}
        return {name: f"differs from {base}: {differs}" if differs else "same" for name, differs in differences.items()}


def sizes(after: dict[str, Any], resident: int, anonymous: int) -> dict[str, Any]:
    """Return what a process holds more than one with nothing loaded."""
    return {
        "resident_bytes": after["resident"] - resident,
        "anonymous_bytes": after["anonymous"] - anonymous,
        "held_bytes": after["held"],
    }


def turns(contenders: list[Contender], runs: int, query: str) -> Iterator[list[Contender]]:
    """Yield in which order they run a query, each time.

    Two alternate. More are shuffled, from the query's name: one that goes on working when it has answered would else
    slow always the same one, which comes next.
    """
    order, chance = list(contenders), random.Random(query)
    for _ in range(runs):
        if len(order) > 2:
            chance.shuffle(order)
        yield list(order)


def measure(query: str, sql: str, contenders: list[Contender], runs: int, first_answers: Answers) -> None:
    """Run a query on all: once to warm up and compare, then in turn."""
    first: dict[str, dict[str, Any]] = {}
    for contender in contenders:
        answer = contender.ask("answer", query, sql)
        if answer is not None:
            first[contender.name] = answer
    times: dict[str, list[float]] = {name: [] for name in first}
    for turn in turns(contenders, runs, query):
        for contender in turn:
            if contender.name in first and (timed := contender.ask("query", query, sql)) is not None:
                times[contender.name].append(timed["seconds"] * 1000)
    compared = first_answers.compare(query, first)
    for contender in contenders:
        if contender.name not in first:
            continue
        result = contender.record["queries"][query]
        answer = first[contender.name]
        result["answer"] = compared[contender.name]
        result["rows"] = len(answer["rows"])
        result["peak_bytes"] = answer["peak"] - contender.record["empty_bytes"]
        result["first_ms"] = answer["seconds"] * 1000
        if times[contender.name]:
            result["median_ms"] = statistics.median(times[contender.name])
            result["times_ms"] = times[contender.name]
    medians = {name: statistics.median(list_) for name, list_ in times.items() if list_}
    say(f"{query}: " + ", ".join(f"{name} {median:.1f} ms" for name, median in medians.items()))


def face(
    contest: Contest, engines: list[str], first_answers: Answers, stored: dict[str, dict[str, Any]] | None = None
) -> dict[str, dict[str, Any]]:
    """Load engines beside each other and run the queries in turn, part by part; return the record of each.

    `stored` tells what was measured of those that have their tables in a database file already.
    """
    records: dict[str, list[dict[str, Any]]] = {name: [] for name in engines}
    for tables, queries in contest.parts():
        if contest.apart:
            say(f"{' and '.join(engines)} with {', '.join(tables)}")
        contenders = [Contender(name, contest, tables, (stored or {}).get(name)) for name in engines]
        try:
            for contender in contenders:
                contender.load()
            for query, sql in queries.items():
                measure(query, sql, contenders, contest.runs, first_answers)
        finally:
            for contender in contenders:
                contender.end()
        for contender in contenders:
            if contest.apart:
                contender.record["table"] = next(iter(tables))
            records[contender.name].append(contender.record)
    found = {name: together(parts) if contest.apart else parts[0] for name, parts in records.items()}
    for record in found.values():
        summarise(record)
    for record in found.values():
        record["ratio"] = report.geometric_mean(report.ratios(record, found.get(report.BASE, {})).values())
    return found


SUMS = ("load_s", "resident_bytes", "anonymous_bytes", "held_bytes")


def together(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the record of an engine whose tables were loaded one at a time: sums over those, and the largest peak."""
    record: dict[str, Any] = {"queries": {}, "tables": {}}
    for part in parts:
        record["queries"] |= part.pop("queries")
        record["tables"][part.pop("table")] = part
    loaded = [part for part in parts if "load_s" in part]
    for what in SUMS:
        record[what] = sum(part[what] or 0 for part in loaded)
    record["peak_bytes"] = max((part["peak_bytes"] for part in loaded), default=None)
    return record


def summarise(record: dict[str, Any]) -> None:
    """Add an engine's mean and its largest peak."""
    results = record["queries"].values()
    medians = [result["median_ms"] for result in results if "median_ms" in result]
    record["queries_timed"] = len(medians)
    record["geometric_mean_ms"] = report.geometric_mean(medians)
    record["total_ms"] = sum(medians)
    record["query_peak_bytes"] = max(
        (result["peak_bytes"] for result in results if "peak_bytes" in result), default=None
    )


def on_file(contest: Contest, name: str) -> dict[str, Any]:
    """Load an engine into a file, in a process of its own, and see how long that is."""
    if name == "datafusion-parquet":
        return {"file_bytes": sum(Path(file).stat().st_size for file in contest.tables.values())}
    if name not in WITH_FILES:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        found = write(contest, name, Path(folder) / "contest.db")
    if "error" in found:
        return {"file_error": found["error"]}
    return {"file_load_s": found["load_s"], "file_bytes": found["file_bytes"]}


def write(contest: Contest, name: str, path: Path) -> dict[str, Any]:
    """Load an engine's tables into a file that has a folder of its own, in a process of its own, and close it."""
    process = Process(name, contest.threads, contest.timeout_s)
    try:
        process.ask("open", path=str(path))
        before = process.ask("memory")
        loaded = process.ask("load", tables=contest.tables, timeout_s=LOAD_TIMEOUT_S)
        peak = process.ask("memory")["peak"]
        process.ask("close", timeout_s=LOAD_TIMEOUT_S)
    except EngineError as error:
        say(f"{name}: {error}")
        return {"error": str(error)}
    finally:
        process.end()
    bytes_ = sum(file.stat().st_size for file in path.parent.rglob("*") if file.is_file())
    say(f"{name}: {bytes_ / 1e6:.0f} MB on file, in {loaded['seconds']:.1f} s")
    return {
        "load_s": loaded["seconds"],
        "peak_bytes": peak - before["resident"],
        "empty_bytes": before["resident"],
        "empty_anonymous_bytes": before["anonymous"],
        "file_bytes": bytes_,
    }


def database_file(contest: Contest, name: str) -> str:
    """Return where an engine has its database file."""
    assert contest.stored is not None
    return str(contest.stored / name / "contest.db")


@contextmanager
def database_files(contest: Contest) -> Iterator[dict[str, dict[str, Any]]]:
    """Write the database files that are asked for, and yield what that took; remove them where they are not kept."""
    if contest.stored is None:
        yield {}
        return
    try:
        found = {}
        for name in contest.engines:
            if name in DATABASES:
                path = Path(database_file(contest, name))
                shutil.rmtree(path.parent, ignore_errors=True)
                path.parent.mkdir(parents=True)
                found[name] = write(contest, name, path)
        yield found
    finally:
        if not contest.keep_files:
            shutil.rmtree(contest.stored, ignore_errors=True)


def run(contest: Contest, header: dict[str, Any]) -> int:
    """Measure, write the record, print the table; 1 when an answer differs or is missing."""
    record: dict[str, Any] = {
        **machine.header(contest.suite),
        "title": contest.title,
        **header,
        "threads": contest.threads,
        "runs": contest.runs,
        "from_file": contest.stored is not None,
        "queries": list(contest.queries),
    }
    first_answers = Answers()
    with database_files(contest) as stored:
        in_memory = [name for name in contest.engines if name not in stored]
        files = {name: on_file(contest, name) for name in in_memory} if contest.files else {}
        if contest.pairs:
            rivals = [name for name in contest.engines if name != OURS]
            record["pairs"] = {rival: face(contest, [OURS, rival], first_answers, stored) for rival in rivals}
            found = [one for pair in record["pairs"].values() for one in pair.items()]
        else:
            record["engines"] = face(contest, contest.engines, first_answers, stored)
            found = list(record["engines"].items())
    for name, one in found:
        one |= files.get(name, {})
    record["ours_to"] = report.ours_to(record)
    record["marks"] = contest.marks
    report.write(record, contest.name, contest.out)
    print(report.table(record))
    complete = all(
        one["queries"].get(query, {}).get("answer") == "same" for _, one in found for query in contest.queries
    )
    return 0 if complete else 1

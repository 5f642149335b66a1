"""TPC-H's refresh functions: orders are inserted (RF1) and deleted (RF2), alone and while the queries run.

Each engine in its process, one after the other: the queries alone, refreshes alone, both at once, and the queries once
more before and after a checkpoint presses what has come. At the end those that had done fewer refreshes do the rest;
then counts and sums are compared with what was committed, and the queries' answers between engines.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute
import pyarrow.parquet

from benchmarks import answers, machine, new_orders, report, tpch
from benchmarks.new_orders import Insert, Population
from benchmarks.process import EngineError, Process
from benchmarks.refreshing import WRITERS
from benchmarks.report import say
from benchmarks.worker import plain

ENGINES = tuple(WRITERS)

SUMMED = {
    "orders": ("o_orderkey", "o_totalprice"),
    "lineitem": ("l_orderkey", "l_quantity", "l_extendedprice"),
}
"""The columns whose sums are compared; the first is the order's key."""


@dataclass(frozen=True)
class Settings:
    """What was asked for on the command line."""

    scale_factor: float
    threads: int
    engines: list[str]
    queries: list[str]
    rounds: int
    sets: int
    orders_per_commit: int
    seed: int
    on_file: bool
    data: Path | None
    timeout_s: float
    out: Path | None

    @property
    def commits_alone(self) -> int:
        """How many commits are made while no queries run."""
        orders = Population(self.scale_factor).set_orders
        return self.sets * 2 * -(-orders // self.orders_per_commit)


class Contender:
    """An engine in its process, and what was measured of it."""

    def __init__(self, name: str, settings: Settings, path: str | None) -> None:
        self.name = name
        self.record: dict[str, Any] = {"memory": {}, "queries": {}, "refreshes": {}}
        self.commits = 0
        self._settings = settings
        self._path = path
        self._process = Process(name, settings.threads, settings.timeout_s, "benchmarks.refreshing")
        self._empty_bytes = 0

    def measure(self, tables: dict[str, str], queries: dict[str, str]) -> None:
        """Go through all phases."""
        settings, ask = self._settings, self._process.ask
        ask("open", path=self._path)
        self._empty_bytes = ask("memory")["resident"]
        self.record["load_s"] = ask("load", tables=tables)["seconds"]
        self.memory("loaded")
        sizes = {"scale_factor": settings.scale_factor, "seed": settings.seed}
        ask("prepare", **sizes, orders_per_commit=settings.orders_per_commit)
        ask("stream", queries=queries, rounds=1, beside=False)
        self.stream("alone", queries)
        self.refreshes("alone", ask("refresh", commits=settings.commits_alone))
        self.stream("beside refreshes", queries, beside=True)
        self.memory("refreshed")
        self.stream("refreshed", queries)
        self.record["press_s"] = ask("press")["seconds"]
        self.memory("pressed")
        self.stream("pressed", queries)
        if self._path is not None:
            self.record["file_bytes"] = sum(file.stat().st_size for file in Path(self._path).parent.iterdir())

    def memory(self, when: str) -> None:
        """Note what the process holds."""
        found = self._process.ask("memory")
        resident = found["resident"] - self._empty_bytes
        self.record["memory"][when] = {"resident_bytes": resident, "held_bytes": found["held"]}
        say(f"{self.name}, {when}: {resident / 1e6:.0f} MB resident")

    def stream(self, when: str, queries: dict[str, str], beside: bool = False) -> None:
        """Run the queries and note their medians; beside refreshes those, too."""
        found = self._process.ask("stream", queries=queries, rounds=self._settings.rounds, beside=beside)
        medians = {query: statistics.median(times) for query, times in found["times_ms"].items()}
        mean = report.geometric_mean(medians.values())
        self.record["queries"][when] = {"median_ms": medians, "times_ms": found["times_ms"], "geometric_mean_ms": mean}
        say(f"{self.name}, queries {when}: geometric mean {mean:.1f} ms")
        if beside:
            self.record["torn_orders"] = found["torn_orders"]
            self.record["beside_s"] = found["seconds"]
            self.refreshes("beside queries", found)

    def refreshes(self, when: str, found: dict[str, Any]) -> None:
        """Note refreshes."""
        kinds = {kind: found[kind] for kind in ("rf1", "rf2")}
        self.record["refreshes"][when] = kinds
        self.commits += sum(kind["commits"] for kind in kinds.values())
        rates = (f"{kind.upper()} {(one['rows_per_second'] or 0):.0f} rows/s" for kind, one in kinds.items())
        say(f"{self.name}, refreshes {when}: {', '.join(rates)}")

    def finish(self, commits: int, queries: dict[str, str]) -> tuple[list[Any], dict[str, Any]]:
        """Refresh until so many commits are done; return counts and sums, and the queries' answers."""
        self._process.ask("refresh", commits=commits - self.commits)
        totals = [answers.value(total) for total in self._process.ask("totals")["totals"]]
        return totals, {query: self._process.ask("answer", sql=sql)["rows"] for query, sql in queries.items()}

    def end(self) -> None:
        """End the process."""
        self._process.end()


def expected(settings: Settings, tables: dict[str, str], commits: int) -> list[Any]:
    """Return the counts and sums that there should be after so many commits, as the data and the seed have them."""
    done = list(
        itertools.islice(new_orders.commits(settings.scale_factor, settings.seed, settings.orders_per_commit), commits)
    )
    deleted = pyarrow.array([key for commit in done if not isinstance(commit, Insert) for key in commit.keys])
    out: list[Any] = []
    for table, columns in SUMMED.items():
        old = pyarrow.parquet.read_table(tables[table], columns=list(columns))
        gone = pyarrow.compute.is_in(old.column(columns[0]), deleted.cast(pyarrow.int64()))
        kept = old.filter(pyarrow.compute.invert(gone))
        inserted = [
            commit.orders if table == "orders" else commit.lineitems for commit in done if isinstance(commit, Insert)
        ]
        parts = [kept, *(part.select(columns) for part in inserted)]
        out.append(sum(part.num_rows for part in parts))
        for column in columns:
            sums = (pyarrow.compute.sum(part.column(column)).as_py() for part in parts)
            out.append(sum(one for one in sums if one is not None))
    return out


def compare(contenders: list[Contender], settings: Settings, tables: dict[str, str], queries: dict[str, str]) -> int:
    """Bring all to the same state and compare; return how many commits that took."""
    commits = max((contender.commits for contender in contenders if "error" not in contender.record), default=0)
    say(f"comparing after {commits} commits")
    wanted = expected(settings, tables, commits)
    base: tuple[str, dict[str, Any]] | None = None
    for contender in sorted(contenders, key=lambda contender: contender.name != report.BASE):
        record = contender.record
        if "error" in record:
            continue
        try:
            totals, found = contender.finish(commits, queries)
        except EngineError as error:
            record["error"] = str(error)
            continue
        rows = [[[plain(value) for value in one]] for one in (totals, wanted)]
        differs = answers.difference(*rows)
        record["totals"] = f"{differs}, after {commits} commits" if differs else "as committed"
        base = base or (contender.name, found)
        differences = {query: answers.difference(found[query], base[1][query]) for query in queries}
        record["answers"] = {
            query: f"differs from {base[0]}: {differs}" if differs else "same" for query, differs in differences.items()
        }
    return commits


def run(settings: Settings) -> int:
    """Measure all, write the record, print the table; 1 when something failed or differs."""
    record: dict[str, Any] = {
        **machine.header("refresh"),
        "title": f"TPC-H with refreshes, scale factor {settings.scale_factor:g}",
        "scale_factor": settings.scale_factor,
        "threads": settings.threads,
        "rounds": settings.rounds,
        "sets_alone": settings.sets,
        "orders_per_set": Population(settings.scale_factor).set_orders,
        "orders_per_commit": settings.orders_per_commit,
        "seed": settings.seed,
        "on_file": settings.on_file,
        "queries": settings.queries,
    }
    tables = tpch.files(settings.data, settings.scale_factor)
    queries = {query: (tpch.QUERIES / f"{query}.sql").read_text() for query in settings.queries}
    contenders: list[Contender] = []
    target = machine.ROOT / "target"
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target, prefix="refresh-") as folder:
        try:
            for name in settings.engines:
                own = Path(folder) / name
                own.mkdir()
                path = str(own / "refresh.db") if settings.on_file else None
                contenders.append(contender := Contender(name, settings, path))
                try:
                    contender.measure(tables, queries)
                except EngineError as error:
                    contender.record["error"] = str(error)
                    say(f"{name}: {error}")
            record["commits_compared"] = compare(contenders, settings, tables, queries)
        finally:
            for contender in contenders:
                contender.end()
    record["engines"] = {contender.name: contender.record for contender in contenders}
    for engine in record["engines"].values():
        engine["slow_down"] = slow_down(engine)
    report.write(record, f"refresh-sf{settings.scale_factor:g}", settings.out)
    print(table(record))
    return 0 if all(good(engine) for engine in record["engines"].values()) else 1


def good(engine: dict[str, Any]) -> bool:
    """Return whether an engine did all, and rightly."""
    return (
        "error" not in engine
        and engine["torn_orders"] == 0
        and engine["totals"] == "as committed"
        and set(engine["answers"].values()) == {"same"}
    )


def slow_down(engine: dict[str, Any]) -> dict[str, Any] | None:
    """Return how much longer queries take beside refreshes than alone: each, their geometric mean, and the worst."""
    if not {"alone", "beside refreshes"} <= set(engine["queries"]):
        return None
    alone, beside = (engine["queries"][when]["median_ms"] for when in ("alone", "beside refreshes"))
    ratios = {query: beside[query] / alone[query] for query in alone}
    worst = max(ratios, key=lambda query: ratios[query])
    return {"queries": ratios, "geometric_mean": report.geometric_mean(ratios.values()), "worst": worst}


def table(record: dict[str, Any]) -> str:
    """Return the record as text."""
    engines: dict[str, Any] = record["engines"]
    lines = [[record["title"], *engines], []]

    def add(title: str, *path: str, scale: float = 1.0) -> None:
        cells = []
        for engine in engines.values():
            value: Any = engine
            for step in path:
                value = value.get(step) if isinstance(value, dict) else None
            cells.append(report.number(None if value is None else value / scale))
        lines.append([title, *cells])

    add("load, s", "load_s")
    for when in ("loaded", "refreshed", "pressed"):
        add(f"resident, {when}, MB", "memory", when, "resident_bytes", scale=1e6)
    for when in ("loaded", "refreshed", "pressed"):
        add(f"by its own count, {when}, MB", "memory", when, "held_bytes", scale=1e6)
    add("pressing, s", "press_s")
    if record["on_file"]:
        add("file, pressed, MB", "file_bytes", scale=1e6)
    for kind in ("rf1", "rf2"):
        lines.append([])
        for when in ("alone", "beside queries"):
            add(f"{kind.upper()} {when}, rows/s", "refreshes", when, kind, "rows_per_second")
            add("  median of commits, ms", "refreshes", when, kind, "median_ms")
            add("  longest commit, ms", "refreshes", when, kind, "longest_ms")
    lines.append([])
    for when in ("alone", "beside refreshes", "refreshed", "pressed"):
        add(f"queries {when}, geometric mean, ms", "queries", when, "geometric_mean_ms")
    add("queries slow down beside refreshes", "slow_down", "geometric_mean")
    lines += [[], ["slow-down of each: ms alone x factor"]]
    for query in record["queries"]:
        cells = []
        for engine in engines.values():
            alone = engine["queries"].get("alone", {}).get("median_ms", {}).get(query)
            factor = (engine["slow_down"] or {}).get("queries", {}).get(query)
            cells.append(f"{report.number(alone)} x {report.number(factor)}")
        lines.append([query, *cells])
    return "\n".join([*report.columns(lines), "", *notes(record)])


def notes(record: dict[str, Any]) -> list[str]:
    """Return what has to be known beside the numbers."""
    out = [
        report.where(record),
        f"{record['threads']} threads; medians of {record['rounds']} warm rounds of the queries in turn; refreshes in "
        f"commits of {record['orders_per_commit']} orders, as fast as they go; rows/s: of the time in commits",
        f"compared after {record['commits_compared']} commits on each engine",
    ]
    for name, engine in record["engines"].items():
        if "error" in engine:
            out.append(f"{name}: {engine['error']}")
            continue
        out.append(f"{name}: totals {engine['totals']}; orders seen without lineitems: {engine['torn_orders']}")
        out += [f"{name}, {query}: {answer}" for query, answer in engine["answers"].items() if answer != "same"]
    return out

"""Many queries, on as many processes as there are cores.

A process has one database at a time and asks it some queries. One that dies, as our engine might make it, is a failure
of the query that it was at, and another one takes over.
"""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from random_queries import queries
from random_queries.engines import Engines
from random_queries.known import refusal
from random_queries.schema import QUERIES_PER_DATABASE, Database, database
from random_queries.scope import Writer
from random_queries.shrinking import Shrinker
from random_queries.tree import Query

SHRUNK_MAX = 10
"""Failures of one process that are shrunk; of more, the numbers are enough."""

CONTRADICTION = "DuckDB's optimizer changes its answer, which is SinterDB's without it"


@dataclass(frozen=True)
class Outcome:
    """What became of one query."""

    number: int
    features: frozenset[str] = frozenset()
    row_count: int = 0
    foreign: tuple[str, ...] | None = ()
    """The operators that DataFusion ran; None where there is no plan."""
    unjudged: str | None = None
    """Why the answers are not compared, where that is no failure."""
    error: str | None = None
    """What the one engine says that alone refuses."""
    failure: str | None = None
    """All there is to say about a difference."""


def write(seed: int, number: int, tables: Database) -> Query:
    """Return a query of a seed."""
    return queries.query(Writer(random.Random(f"{seed}, query {number}"), tables))


def ask(seed: int, number: int, tables: Database, both: Engines, shrink_seconds: float) -> Outcome:
    """Ask both engines, and look into what differs."""
    query = write(seed, number, tables)
    features = frozenset(query.features())
    answer = both.ask(query)
    error = answer.error()
    if isinstance(answer.ours, str) and isinstance(answer.theirs, str):
        return Outcome(number, features, foreign=None, unjudged=f"both refuse: {_first_line(answer.theirs)}")
    if error is not None and (known := refusal(*error)) is not None:
        return Outcome(number, features, foreign=None, unjudged=f"{known.engine} alone refuses: {known.reason}")
    if answer.duckdb_contradicts_itself(bool(query.order)):
        return Outcome(number, features, len(answer.ours), tuple(both.foreign_operators(query)), unjudged=CONTRADICTION)
    row_count = len(answer.theirs) if isinstance(answer.theirs, list) else 0
    foreign = None if isinstance(answer.ours, str) else tuple(both.foreign_operators(query))
    difference = answer.differs(bool(query.order))
    if difference is None:
        return Outcome(number, features, row_count, foreign)
    return Outcome(
        number,
        features,
        row_count,
        foreign,
        error=f"{error[0]}: {_first_line(error[1])}" if error else None,
        failure=_described(tables, query, difference, shrink_seconds),
    )


def _first_line(message: str) -> str:
    return message.splitlines()[0] if message else "(no message)"


def _described(tables: Database, query: Query, difference: str, shrink_seconds: float) -> str:
    lines = [difference, f"query: {query.sql()}"]
    if shrink_seconds:
        small, shrunk = Shrinker(tables, query, shrink_seconds).run()
        both = Engines(small)
        left = both.ask(shrunk).differs(bool(shrunk.order))
        both.close()
        lines += [
            f"shrunk, on {small.threads} threads: {left}",
            *(f"  {setting};" for setting in small.settings),
            *(f"  {statement};" for table in small.tables for statement in table.statements()),
            f"  {shrunk.sql()};",
        ]
    return "\n".join(lines)


def _work(channel: Connection, seed: int, shrink_seconds: float) -> None:
    """Ask what the parent sends numbers of, and tell of each."""
    shrunk = 0
    while (numbers := channel.recv()) is not None:
        tables = database(seed, numbers[0] // QUERIES_PER_DATABASE)
        both = Engines(tables)
        for number in numbers:
            outcome = ask(seed, number, tables, both, shrink_seconds if shrunk < SHRUNK_MAX else 0.0)
            shrunk += outcome.failure is not None
            channel.send(outcome)
        both.close()
        channel.send(None)


@dataclass
class _Worker:
    process: BaseProcess
    channel: Connection
    left: list[int] = field(default_factory=list)
    """Numbers that it has been given and not told of."""


def run(seed: int, numbers: range, jobs: int, shrink_seconds: float) -> Iterator[Outcome]:
    """Yield the outcome of each query, in no order."""
    blocks: list[list[int]] = []
    for number in numbers:
        if not blocks or number // QUERIES_PER_DATABASE != blocks[-1][0] // QUERIES_PER_DATABASE:
            blocks.append([])
        blocks[-1].append(number)
    blocks.reverse()
    # Not forked: threads of the engines would be missing in the child.
    context = multiprocessing.get_context("spawn")

    def start() -> _Worker:
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, seed, shrink_seconds), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def give(worker: _Worker) -> bool:
        worker.left = blocks.pop() if blocks else []
        worker.channel.send(worker.left or None)
        return bool(worker.left)

    workers = [worker for _ in range(min(jobs, len(blocks))) if give(worker := start())]
    while workers:
        ready = wait([worker.channel for worker in workers])
        for worker in [worker for worker in workers if worker.channel in ready]:
            try:
                told = worker.channel.recv()
            except EOFError:
                worker.process.join()
                workers.remove(worker)
                if worker.process.exitcode == 1:
                    raise RuntimeError("a process ended with the exception above") from None
                number = worker.left.pop(0)
                yield Outcome(number, foreign=None, failure=f"the process ended with {worker.process.exitcode}")
                if worker.left:
                    blocks.append(worker.left)
                if blocks:
                    workers.append(other := start())
                    give(other)
                continue
            if isinstance(told, Outcome):
                worker.left.remove(told.number)
                yield told
            elif told is None and not give(worker):
                worker.process.join()
                workers.remove(worker)

"""The process of one engine: takes commands as lines of JSON, answers with lines of JSON.

    {"do": "open", "path": null}          {"seconds": 0.01}
    {"do": "load", "tables": {...}}       {"seconds": 1.5}
    {"do": "memory"}                      {"resident": 123, "anonymous": 100, "peak": 200, "held": 90}
    {"do": "query", "sql": "..."}         {"seconds": 0.04}
    {"do": "answer", "sql": "..."}        {"seconds": 0.05, "peak": 150, "columns": [...], "rows": [...]}
    {"do": "close"}                       {}

An error is answered as {"error": "..."}; the process goes on.
"""

from __future__ import annotations

import ctypes
import datetime
import decimal
import gc
import json
import os
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks import engines

WAITING, WORKING = 200, 1000
"""How soon the system ends a worker where memory runs out; the parent has 0."""


class Worker:
    """One engine, and the commands it understands."""

    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._threads = threads
        self._engine: Any = None

    def open(self, path: str | None) -> dict[str, Any]:
        """Start the engine and let it run once, so that its code is in memory; return how long the start took."""
        make = engines.maker(self._name)
        begin = time.perf_counter()
        self._engine = make(path, self._threads)
        seconds = time.perf_counter() - begin
        with suppress(Exception):
            self._engine.rows(self._engine.query("SELECT 1 AS one"))
        return {"seconds": seconds}

    def load(self, tables: dict[str, str]) -> dict[str, Any]:
        """Load all tables."""
        begin = time.perf_counter()
        for table, path in tables.items():
            self._engine.load(table, path)
        self._engine.finish()
        return {"seconds": time.perf_counter() - begin}

    def memory(self) -> dict[str, Any]:
        """Return what the process holds, after freeing what it does not need."""
        gc.collect()
        pyarrow = sys.modules.get("pyarrow")
        if pyarrow is not None:
            pyarrow.default_memory_pool().release_unused()
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        time.sleep(1.0)
        held = None
        with suppress(Exception):
            held = self._engine.held_bytes()
        with open("/proc/self/smaps_rollup") as file:
            sizes = {key: int(value) * 1024 for key, value in re.findall(r"^(\w+): +(\d+) kB", file.read(), re.M)}
        return {
            "resident": sizes["Rss"],
            "anonymous": sizes["Anonymous"],
            "peak": peak_bytes(),
            "held": held,
        }

    def query(self, sql: str) -> dict[str, Any]:
        """Time one run."""
        begin = time.perf_counter()
        result = self._engine.query(sql)
        seconds = time.perf_counter() - begin
        del result
        return {"seconds": seconds}

    def answer(self, sql: str) -> dict[str, Any]:
        """Time one run and return its rows, and the largest resident size that the process had meanwhile."""
        forget_peak()
        begin = time.perf_counter()
        result = self._engine.query(sql)
        seconds = time.perf_counter() - begin
        peak = peak_bytes()
        table = self._engine.rows(result)
        columns = [[plain(value) for value in column.to_pylist()] for column in table.columns]
        return {
            "seconds": seconds,
            "peak": peak,
            "columns": [name.lower() for name in table.column_names],
            "rows": list(zip(*columns, strict=True)),
        }

    def close(self) -> dict[str, Any]:
        """Close the engine."""
        self._engine.close()
        return {}


def forget_peak() -> None:
    """Let the largest resident size be that of now."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_bytes(name: str = "VmHWM") -> int:
    """Return the most that this process has had: resident, or, for "VmPeak", of addresses, used or not."""
    peak = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    assert peak is not None
    return int(peak[1]) * 1024


def offer(share: int) -> None:
    """Tell the system how much sooner than others this process is ended where memory runs out: 0 to 1000."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(share))


def plain(value: Any) -> Any:
    """Return a value of an answer in a form that JSON keeps exactly; `answers.value` reads it back."""
    match value:
        case decimal.Decimal():
            return {"decimal": str(value)}
        case float():
            return {"double": repr(value)}
        case datetime.datetime():
            return value.date().isoformat() if value.time() == datetime.time() else value.isoformat()
        case datetime.date():
            return value.isoformat()
        case _:
            return value


def serve(make: Callable[[str, int], Worker] = Worker) -> None:
    """Serve commands until there are no more."""
    name, threads = sys.argv[1], int(sys.argv[2])
    # Only answers go where the parent listens; what libraries print goes to the error output.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = make(name, threads)
    # Where memory runs out, who works is to go: neither the parent, nor a worker that waits for its turn.
    offer(WAITING)
    for line in sys.stdin:
        command = json.loads(line)
        offer(WORKING)
        try:
            answer = getattr(worker, command.pop("do"))(**command)
        except BaseException as error:  # Panics of Rust libraries are no Exceptions.
            answer = {"error": f"{type(error).__name__}: {error}"}
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
        offer(WAITING)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve()

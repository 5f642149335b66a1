"""The parent's side of a worker: start it, talk to it, give up on it."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any


class EngineError(Exception):
    """An engine refused, or its process died, or took too long."""


class Process:
    """A worker process with one engine, bound to `threads` CPUs."""

    def __init__(self, engine: str, threads: int, timeout_s: float, module: str = "benchmarks.worker") -> None:
        self.engine = engine
        self._timeout_s = timeout_s
        limits = {"POLARS_MAX_THREADS": str(threads), "TOKIO_WORKER_THREADS": str(threads)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, engine, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parent.parent,
            env={**os.environ, **limits},
            preexec_fn=lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads]),
        )
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def ask(self, do: str, *, timeout_s: float | None = None, **what: Any) -> dict[str, Any]:
        """Send a command and return the answer; after a timeout the process is gone."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **what}) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise EngineError("the process is gone") from None
        patience = timeout_s or self._timeout_s
        try:
            line = self._answers.get(timeout=patience)
        except queue.Empty:
            self.end()
            raise EngineError(f"no answer after {patience:.0f} s") from None
        if not line:
            raise EngineError(f"the process ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise EngineError(answer["error"])
        return answer

    @property
    def alive(self) -> bool:
        """Whether the process can be asked."""
        return self._process.poll() is None

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

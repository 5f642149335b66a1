"""Where and with what a benchmark ran."""

from __future__ import annotations

import datetime
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from benchmarks.engines import PACKAGES

ROOT = Path(__file__).resolve().parent.parent

ELSEWHERE = "PATH"
"""What a record has for a path outside of the repository: the folders of a machine tell nobody anything."""

_ABSOLUTE = re.compile(r"""(?<![\w./:])/(?:[^\s/"'(),;]+/)+[^\s/"'(),;]*""")


def describe() -> dict[str, Any]:
    """Return the processor and which instructions for vectors it has, memory and system."""
    try:
        found = dict(re.findall(r"^(model name|flags)\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.M))
    except OSError:
        found = {}
    return {
        "cpu": found.get("model name", platform.processor()),
        "vector_instructions": [flag for flag in found.get("flags", "").split() if flag.startswith("avx")],
        "cpus": psutil.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "load_average_before": psutil.getloadavg()[0],
    }


def commit() -> str:
    """Return the commit of the repository; `-changed` where the sources differ from it."""

    def git(*command: str) -> str:
        return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    try:
        sources = ("crates", "python", "benchmarks", ":!benchmarks/record", "Cargo.toml", "Cargo.lock")
        changed = git("status", "--porcelain", "--", *sources)
        return git("rev-parse", "--short=12", "HEAD") + ("-changed" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def versions() -> dict[str, str]:
    """Return the versions of the engines that are installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def shown(path: Path) -> str:
    """Return a path as it is within the repository, or that it is elsewhere."""
    path = path.resolve()
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else ELSEWHERE


def portable(value: Any) -> Any:
    """Return a record, or a part of one, without the absolute paths of this machine."""
    if isinstance(value, str):
        return _ABSOLUTE.sub(lambda path: shown(Path(path[0])), value)
    if isinstance(value, dict):
        return {portable(key): portable(item) for key, item in value.items()}
    return [portable(item) for item in value] if isinstance(value, list) else value


def command(arguments: Sequence[str]) -> str:
    """Return the command line for these arguments as one can type it in the repository."""

    def argument(text: str) -> str:
        option, equals, value = text.rpartition("=") if text.startswith("-") else ("", "", text)
        return option + equals + (shown(Path(value)) if os.sep in value else value)

    return shlex.join(["python", "-m", "benchmarks", *map(argument, arguments)])


def header(suite: str) -> dict[str, Any]:
    """Return how a record begins; to be asked for before the measurement."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "command": command(sys.argv[1:]),
        "suite": suite,
        "date": now.strftime("%Y-%m-%d %H:%M UTC"),
        "machine": describe(),
        "commit": commit(),
        "versions": versions(),
    }

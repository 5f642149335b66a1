"""Where and with what a benchmark ran."""

from __future__ import annotations

import datetime
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from benchmarks.engines import PACKAGES

ROOT = Path(__file__).resolve().parent.parent


def describe() -> dict[str, Any]:
    """Return the processor, memory and system."""
    try:
        cpu = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        cpu = None
    return {
        "cpu": cpu[1] if cpu else platform.processor(),
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
        changed = git("status", "--porcelain", "--", "crates", "python", "Cargo.toml", "Cargo.lock")
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


def header(suite: str) -> dict[str, Any]:
    """Return how a record begins; to be asked for before the measurement."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "suite": suite,
        "date": now.strftime("%Y-%m-%d %H:%M UTC"),
        "machine": describe(),
        "commit": commit(),
        "versions": versions(),
    }

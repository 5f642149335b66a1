"""Command line: `python -m random_queries 10000 7`."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time

from random_queries import shrinking
from random_queries.report import Report
from random_queries.running import run

_PROGRESS_SECONDS = 10.0


def main() -> int:
    """Ask the queries; 1 where both engines differ."""
    parser = argparse.ArgumentParser(prog="scripts/random-queries", description="Random queries, compared with DuckDB.")
    parser.add_argument("count", type=int, nargs="?", default=10_000, help="how many queries (10,000)")
    parser.add_argument("seed", type=int, nargs="?", help="what all follows from (another one each time)")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="this query of the seed, instead of the first ones")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (one per core)")
    parser.add_argument(
        "--shrink",
        type=float,
        default=shrinking.SECONDS,
        metavar="SECONDS",
        help="for each failure (60); 0: not at all",
    )
    arguments = parser.parse_args()
    seed = random.randrange(1_000_000) if arguments.seed is None else arguments.seed
    numbers = (
        range(arguments.count) if arguments.only is None else range(arguments.only, arguments.only + arguments.count)
    )
    print(f"{len(numbers):,} queries of seed {seed}", flush=True)
    report = Report(seed)
    begun = told = time.monotonic()
    for outcome in run(seed, numbers, arguments.jobs or 1, arguments.shrink):
        report.add(outcome)
        if outcome.failure is not None:
            print(report.failure(outcome), flush=True)
        if time.monotonic() > told + _PROGRESS_SECONDS:
            told = time.monotonic()
            print(f"  {report.progress(len(numbers))}, {told - begun:.0f} s", flush=True)
    print("\n".join(report.lines(time.monotonic() - begun)))
    return 1 if report.failures or report.shortages() else 0


if __name__ == "__main__":
    sys.exit(main())

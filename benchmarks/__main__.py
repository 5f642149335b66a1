"""Command line: `python -m benchmarks tpch --sf 1 --threads 2`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks import tpch
from benchmarks.engines import ENGINES


def main() -> int:
    """Read the command line and run the suite."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="SinterDB beside other SQL engines.")
    suites = parser.add_subparsers(dest="suite", required=True)
    suite = suites.add_parser("tpch", help="TPC-H: load time, resident bytes, file bytes, 22 queries")
    suite.add_argument("--sf", type=float, default=1.0, help="scale factor (1)")
    suite.add_argument("--threads", type=int, default=os.cpu_count(), help="threads per query (all)")
    suite.add_argument("--runs", type=int, default=5, help="timed runs of each query, after one that warms up (5)")
    suite.add_argument("--engines", default=",".join(ENGINES), help="which, separated by commas (all)")
    suite.add_argument("--queries", default="1-22", help="such as 1,6,13-15 (1-22)")
    suite.add_argument("--data", type=Path, help="folder with the tables as Parquet (generated under target/)")
    suite.add_argument("--timeout", type=float, default=300.0, help="seconds before a query is given up (300)")
    suite.add_argument("--no-files", action="store_true", help="do not measure file sizes")
    suite.add_argument("--out", type=Path, help="JSON file to write (benchmarks/record/<date>-tpch-sf<SF>.json)")
    arguments = parser.parse_args()
    engines = arguments.engines.split(",")
    for engine in engines:
        if engine not in ENGINES:
            parser.error(f"there is no engine {engine}; there are {', '.join(ENGINES)}")
    return tpch.run(
        tpch.Settings(
            scale_factor=arguments.sf,
            threads=arguments.threads,
            runs=arguments.runs,
            engines=engines,
            queries=tpch.numbers(arguments.queries),
            data=arguments.data,
            timeout_s=arguments.timeout,
            files=not arguments.no_files,
            out=arguments.out,
        )
    )


if __name__ == "__main__":
    sys.exit(main())

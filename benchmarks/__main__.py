"""Command line: `python -m benchmarks tpch --sf 1 --threads 2`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks import commits, drawn, limited, machine, ratios, real, refresh, scales, stores, tpch
from benchmarks.engines import ENGINES, FROM_FILE


def main() -> int:
    """Read the command line and run the suite."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="SinterDB beside other engines.")
    suites = parser.add_subparsers(dest="suite", required=True)
    for add in (
        add_tpch,
        add_scales,
        add_refresh,
        add_real,
        add_commits,
        add_stores,
        add_limited,
        ratios.add,
        drawn.add,
    ):
        add(suites)
    arguments = parser.parse_args()
    return int(arguments.run(arguments))


def some(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what reads names separated by commas."""

    def read(text: str) -> list[str]:
        for name in (names := text.split(",")):
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no {name}; there are {', '.join(known)}")
        return names

    return read


def numbers(text: str) -> list[float]:
    """Read numbers separated by commas; return each once, ascending."""
    return sorted({float(number) for number in text.split(",")})


def add_tpch(suites: Any) -> None:
    """TPC-H in full."""
    suite = suites.add_parser("tpch", help="TPC-H: load time, resident bytes, file bytes, 22 queries")
    suite.add_argument("--sf", type=float, default=1.0, help="scale factor (1)")
    suite.add_argument("--threads", type=int, default=os.cpu_count(), help="threads per query (all)")
    suite.add_argument("--runs", type=int, default=5, help="timed runs of each query, after one that warms up (5)")
    suite.add_argument("--engines", type=some(ENGINES), help="separated by commas (all, or all on files)")
    suite.add_argument("--queries", default="1-22", help="such as 1,6,13-15 (1-22)")
    suite.add_argument("--data", type=Path, help="folder with the tables as Parquet (generated under target/)")
    suite.add_argument("--timeout", type=float, default=300.0, help="seconds before a query is given up (300)")
    suite.add_argument("--pairs", action="store_true", help="load ours and one other engine at a time")
    suite.add_argument("--from-file", action="store_true", help="load into database files, reopen, and query those")
    suite.add_argument("--keep-files", action="store_true", help="do not remove the database files of --from-file")
    suite.add_argument("--no-files", action="store_true", help="do not measure file sizes")
    suite.add_argument("--out", type=Path, help="JSON file to write (benchmarks/record/<date>-tpch-sf<SF>.json)")
    suite.set_defaults(
        run=lambda arguments: tpch.run(
            tpch.Settings(
                scale_factor=arguments.sf,
                threads=arguments.threads,
                runs=arguments.runs,
                engines=arguments.engines or list(FROM_FILE if arguments.from_file else ENGINES),
                queries=tpch.numbers(arguments.queries),
                data=arguments.data,
                timeout_s=arguments.timeout,
                files=not arguments.no_files,
                pairs=arguments.pairs,
                from_file=arguments.from_file,
                keep_files=arguments.keep_files,
                out=arguments.out,
            )
        )
    )


def add_scales(suites: Any) -> None:
    """TPC-H at several scale factors."""
    suite = suites.add_parser("scales", help="TPC-H at several scale factors: a plot of time and bytes, and slopes")
    names = list(scales.ENGINES)
    suite.add_argument("--sfs", type=numbers, default=[0.1, 1.0, 10.0], help="scale factors (0.1,1,10)")
    suite.add_argument("--threads", type=int, default=os.cpu_count(), help="threads per query (all)")
    suite.add_argument("--runs", type=int, default=5, help="timed runs of each query, after one that warms up (5)")
    suite.add_argument("--engines", type=some(ENGINES), default=names, help=f"separated by commas ({','.join(names)})")
    suite.add_argument("--queries", default="1-22", help="such as 1,6,13-15 (1-22)")
    suite.add_argument("--alone", action="store_true", help="load one engine at a time")
    suite.add_argument("--data", type=Path, help="folder with a folder sf<SF> of Parquet files each (target/tpch)")
    suite.add_argument("--timeout", type=float, default=300.0, help="seconds before a query is given up (300)")
    suite.add_argument(
        "--out", type=Path, help="JSON file to write, the plot beside it (benchmarks/record/<date>-scales.json)"
    )
    suite.set_defaults(
        run=lambda arguments: scales.run(
            scales.Settings(
                scale_factors=arguments.sfs,
                threads=arguments.threads,
                runs=arguments.runs,
                engines=arguments.engines,
                queries=tpch.numbers(arguments.queries),
                alone=arguments.alone,
                data=arguments.data,
                timeout_s=arguments.timeout,
                out=arguments.out,
            )
        )
    )


def add_refresh(suites: Any) -> None:
    """TPC-H's refresh functions."""
    suite = suites.add_parser("refresh", help="TPC-H's RF1 and RF2, alone and while queries run")
    names = list(refresh.ENGINES)
    suite.add_argument("--sf", type=float, default=1.0, help="scale factor (1)")
    suite.add_argument("--threads", type=int, default=os.cpu_count(), help="threads per query (all)")
    suite.add_argument("--engines", type=some(names), default=names, help="separated by commas (all)")
    suite.add_argument("--queries", default="1-22", help="such as 1,6,13-15 (1-22)")
    suite.add_argument("--rounds", type=int, default=3, help="how often the queries are run in each phase (3)")
    suite.add_argument("--sets", type=int, default=2, help="RF1 and RF2 so often while no queries run (2)")
    suite.add_argument("--orders-per-commit", type=int, default=100, help="orders, with their lineitems (100)")
    suite.add_argument("--seed", type=int, default=1, help="of new orders and of keys to delete (1)")
    suite.add_argument("--on-file", action="store_true", help="databases in files under target/, not in memory")
    suite.add_argument("--data", type=Path, help="folder with the tables as Parquet (generated under target/)")
    suite.add_argument("--timeout", type=float, default=3600.0, help="seconds before a phase is given up (3600)")
    suite.add_argument("--out", type=Path, help="JSON file to write (benchmarks/record/<date>-refresh-sf<SF>.json)")
    suite.set_defaults(
        run=lambda arguments: refresh.run(
            refresh.Settings(
                scale_factor=arguments.sf,
                threads=arguments.threads,
                engines=arguments.engines,
                queries=tpch.numbers(arguments.queries),
                rounds=arguments.rounds,
                sets=arguments.sets,
                orders_per_commit=arguments.orders_per_commit,
                seed=arguments.seed,
                on_file=arguments.on_file,
                data=arguments.data,
                timeout_s=arguments.timeout,
                out=arguments.out,
            )
        )
    )


def add_real(suites: Any) -> None:
    """Real tables."""
    suite = suites.add_parser("real", help="43 queries on real tables, as they are or tiled")
    suite.add_argument("--data", type=Path, required=True, help="folder with the files as published")
    suite.add_argument(
        "--rows",
        type=int,
        help="tile each table to so many rows, shuffled, and load one table at a time (as they are, all)",
    )
    suite.add_argument("--threads", type=int, default=os.cpu_count(), help="threads per query (all)")
    suite.add_argument("--runs", type=int, default=5, help="timed runs of each query, after one that warms up (5)")
    suite.add_argument("--engines", type=some(ENGINES), default=list(ENGINES), help="separated by commas (all)")
    suite.add_argument("--queries", default="1-43", help="such as 1,6,13-15 (1-43)")
    suite.add_argument("--timeout", type=float, default=300.0, help="seconds before a query is given up (300)")
    suite.add_argument("--pairs", action="store_true", help="load ours and one other engine at a time")
    suite.add_argument("--out", type=Path, help="JSON file to write (benchmarks/record/<date>-real.json)")
    suite.set_defaults(
        run=lambda arguments: real.run(
            real.Settings(
                data=arguments.data.resolve(),
                rows=arguments.rows,
                threads=arguments.threads,
                runs=arguments.runs,
                engines=arguments.engines,
                queries=arguments.queries,
                timeout_s=arguments.timeout,
                pairs=arguments.pairs,
                out=arguments.out,
            )
        )
    )


def add_commits(suites: Any) -> None:
    """Single-row commits."""
    suite = suites.add_parser("commits", help="single-row commits per second; syncs and bytes per commit")
    names, levels, works = list(commits.ENGINES), list(commits.LEVELS), ["insert", "update"]
    suite.add_argument("--engines", type=some(names), default=names, help="separated by commas (all)")
    suite.add_argument("--levels", type=some(levels), default=levels, help="full,normal,off (all)")
    suite.add_argument("--works", type=some(works), default=works, help="insert,update (both)")
    suite.add_argument("--clients", default="1,8", help="how many commit at once, separated by commas (1,8)")
    suite.add_argument("--seconds", type=float, default=5.0, help="of each timed run (5)")
    suite.add_argument("--traced-commits", type=int, default=2000, help="of each run under strace (2000)")
    suite.add_argument("--folder", type=Path, default=machine.ROOT / "target" / "commits", help="for the databases")
    suite.add_argument("--bench", type=Path, help="a sinter-bench with peers (built)")
    suite.add_argument("--out", type=Path, help="JSON file to write (benchmarks/record/<date>-commits.json)")
    suite.set_defaults(
        run=lambda arguments: commits.run(
            commits.Settings(
                engines=arguments.engines,
                levels=arguments.levels,
                works=arguments.works,
                clients=[int(count) for count in arguments.clients.split(",")],
                seconds=arguments.seconds,
                traced_commits=arguments.traced_commits,
                folder=arguments.folder.resolve(),
                bench=arguments.bench,
                out=arguments.out,
            )
        )
    )


def add_stores(suites: Any) -> None:
    """Ordered key-value stores."""
    suite = suites.add_parser("stores", help="ordered key-value stores: bytes, load, get, scan, insert, delete, YCSB")
    names, orders = list(stores.ENGINES), ["sorted", "random"]
    suite.add_argument("--engines", type=some(names), default=names, help="separated by commas (all)")
    suite.add_argument("--keys", type=numbers, default=[10_000_000], help="how many, separated by commas (10000000)")
    kinds = ["cluster", "uniform"]
    suite.add_argument("--distributions", type=some(kinds), default=kinds, help="of keys (cluster,uniform)")
    suite.add_argument("--orders", type=some(orders), default=orders, help="in which they are loaded (sorted,random)")
    suite.add_argument("--record-bytes", type=numbers, default=[8, 100], help="separated by commas (8,100)")
    suite.add_argument("--level", choices=["full", "off"], default="off", help="what commits promise (off)")
    suite.add_argument("--operations", type=int, default=1_000_000, help="look-ups; a tenth of ranges (1000000)")
    fewer = "where commits survive a power loss"
    suite.add_argument("--writes", type=int, help=f"keys inserted and deleted (1000000; 200000 {fewer})")
    suite.add_argument("--ycsb-operations", type=int, help=f"of each workload (1000000; 10000 {fewer})")
    suite.add_argument("--only-ycsb", action="store_true", help="nothing but the load and YCSB")
    suite.add_argument("--timeout", type=float, default=3600.0, help="seconds before an engine is given up (3600)")
    suite.add_argument("--folder", type=Path, default=machine.ROOT / "target" / "stores", help="for the databases")
    suite.add_argument("--out", type=Path, help="JSON file to write (benchmarks/record/<date>-stores.json)")
    suite.set_defaults(
        run=lambda arguments: stores.run(
            stores.Settings(
                engines=arguments.engines,
                keys=[int(count) for count in arguments.keys],
                distributions=arguments.distributions,
                orders=arguments.orders,
                record_bytes=[int(count) for count in arguments.record_bytes],
                level=arguments.level,
                operations=arguments.operations,
                writes=arguments.writes,
                ycsb_operations=arguments.ycsb_operations,
                only_ycsb=arguments.only_ycsb,
                timeout_s=arguments.timeout,
                folder=arguments.folder.resolve(),
                out=arguments.out,
            )
        )
    )


def add_limited(suites: Any) -> None:
    """More data than memory."""
    suite = suites.add_parser("limited", help="TPC-H larger than memory_limit: load, queries, peaks of resident size")
    names = list(limited.ENGINES)
    suite.add_argument("--sf", type=float, default=10.0, help="scale factor (10)")
    known = [*names, *limited.SPILLING]
    suite.add_argument("--engines", type=some(known), default=names, help=f"of {','.join(known)} (duckdb,sinter)")
    suite.add_argument(
        "--formats", type=some(limited.FORMATS), default=list(limited.FORMATS), help="csv,parquet (both)"
    )
    suite.add_argument(
        "--limits", type=some(limited.LIMITS), default=["none", "as"], help="none,as,data,cgroup (none,as)"
    )
    suite.add_argument("--queries", default="1,6", help="such as 1,6,13-15, and operators (1,6)")
    suite.add_argument("--limit-bytes", type=float, default=1.5e9, help="of the limits but none (1.5e9)")
    suite.add_argument("--memory-limit", default="1GB", help="what the engines are told (1GB)")
    suite.add_argument("--threads", type=int, default=os.cpu_count(), help="threads per query (all)")
    suite.add_argument(
        "--folder", type=Path, default=machine.ROOT / "target" / "limited", help="for data and databases"
    )
    suite.add_argument("--timeout", type=float, default=7200.0, help="seconds before a phase is given up (7200)")
    suite.add_argument("--out", type=Path, help="JSON file to write (benchmarks/record/<date>-limited-sf<SF>.json)")
    suite.set_defaults(
        run=lambda arguments: limited.run(
            limited.Settings(
                scale_factor=arguments.sf,
                engines=arguments.engines,
                formats=arguments.formats,
                limits=arguments.limits,
                queries=limited.queries(arguments.queries),
                limit_bytes=int(arguments.limit_bytes),
                memory_limit=arguments.memory_limit,
                threads=arguments.threads,
                folder=arguments.folder.resolve(),
                timeout_s=arguments.timeout,
                out=arguments.out,
            )
        )
    )


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes tpch/answers/sf<SF>/q01.csv .. q22.csv: what DuckDB answers to tpch/queries over the data in DIR.

    cargo run --release -p sinter-bench -- tpch-gen --sf 0.1 --out DIR
    pip install duckdb
    python scripts/tpch-answers.py --sf 0.1 --data DIR

DIR holds one Parquet file per table, or one folder of them. A header line names the
columns; rows stand in the query's order; decimals are written with all their digits, doubles with the shortest
text that reads back as the same double (so `repr`); dates as ISO. TPC-H has no NULL in any of these answers, and
the script refuses to write one.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

TABLES = ("region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem")
TPCH = Path(__file__).resolve().parent.parent / "tpch"


def text(value: object) -> str:
    """One value of an answer, as it stands in the CSV file."""
    if value is None:
        raise ValueError("an answer holds a NULL; the file cannot tell it from an empty text")
    return repr(value) if isinstance(value, float) else str(value)


def main() -> int:
    """Load the tables, run the queries, write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sf", required=True, help="scale factor of the data, names the folder (0.1 -> sf0.1)")
    parser.add_argument("--data", required=True, type=Path, help="folder with the tables as Parquet")
    arguments = parser.parse_args()

    import duckdb

    database = duckdb.connect()
    for table in TABLES:
        single = arguments.data / f"{table}.parquet"
        files = str(single) if single.exists() else str(arguments.data / table / "*.parquet")
        database.execute(f"CREATE TABLE {table} AS SELECT * FROM read_parquet(?)", [files])

    answers = TPCH / "answers" / f"sf{arguments.sf}"
    answers.mkdir(parents=True, exist_ok=True)
    for query in sorted((TPCH / "queries").glob("q*.sql")):
        result = database.sql(query.read_text())
        with (answers / f"{query.stem}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(result.columns)
            rows = result.fetchall()
            writer.writerows([text(value) for value in row] for row in rows)
        types = ", ".join(f"{name} {kind}" for name, kind in zip(result.columns, result.types, strict=True))
        print(f"{query.stem}: {len(rows)} rows ({types})")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""One phase of `limited` in a process of its own, so that its peak is its own; prints what it found as JSON.

python -m benchmarks.phase '{"engine": "duckdb", "do": "query", "path": "x.db", "sql": "...", ...}'
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.worker import peak_bytes, plain


def connect(asked: dict[str, Any]) -> Any:
    """Open the database; with `none` as its limit, as it is by itself."""
    limit = {} if asked["memory_limit"] == "none" else {"memory_limit": asked["memory_limit"]}
    if asked["engine"] == "sinter":
        import sinterdb

        database = sinterdb.connect(asked["path"], threads=asked["threads"], **limit)
        for setting in asked.get("settings", ()):
            database.execute(setting)
        return database
    import duckdb

    return duckdb.connect(asked["path"], config={"threads": asked["threads"], **limit})


def load(database: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Load all tables: CSV into declared tables, Parquet with the types that it has."""
    for table, file in asked["tables"].items():
        if asked["format"] == "csv":
            database.execute(asked["schema"][table])
            database.execute(f"COPY {table} FROM '{file}'")
        else:
            database.execute(f"CREATE TABLE {table} AS SELECT * FROM '{file}'")
    database.execute("CHECKPOINT")
    return {}


def written_bytes() -> int:
    """Return how many bytes this process has written."""
    written = re.search(r"^wchar: (\d+)", Path("/proc/self/io").read_text(), re.M)
    assert written is not None
    return int(written[1])


def query(database: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Run a query; return its rows, and how many bytes it wrote: what did not fit the memory."""
    before = written_bytes()
    rows = database.execute(asked["sql"]).fetchall()
    return {"written_bytes": written_bytes() - before, "rows": [[plain(value) for value in row] for row in rows]}


def main() -> None:
    """Do what was asked for; opening and closing count."""
    asked = json.loads(sys.argv[1])
    __import__("sinterdb" if asked["engine"] == "sinter" else "duckdb")
    empty = peak_bytes()
    begun = time.perf_counter()
    database = connect(asked)
    found = {"load": load, "query": query}[asked["do"]](database, asked)
    database.close()
    seconds = time.perf_counter() - begun
    peaks = {"peak_bytes": peak_bytes(), "addresses_bytes": peak_bytes("VmPeak"), "empty_bytes": empty}
    print(json.dumps({"seconds": seconds, **peaks, **found}))


if __name__ == "__main__":
    main()

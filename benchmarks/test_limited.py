"""What `limited` says of a record."""

from benchmarks import limited

NAMES = ("q01", "q02", "sort")


def test_ratios_are_of_queries_that_both_answered() -> None:
    """Operators and errors are left out of the mean; peaks are of all."""

    def one(engine: str, seconds: list[float], peak: float) -> dict[str, object]:
        queries = {name: {"seconds": time, "peak_bytes": peak} for name, time in zip(NAMES, seconds, strict=True)}
        return {"engine": engine, "format": "parquet", "limit": "none", "queries": {**queries, "q03": {"error": "no"}}}

    results = [one("duckdb", [1.0, 4.0, 1.0], 2e9), one("sinter", [2.0, 2.0, 9.0], 1e9)]
    (line,) = limited.beside_duckdb({"queries": ["q01", "q02", "q03", "sort"], "results": results})
    assert line == (
        "parquet, limit none: 2 queries of TPC-H in 1.00 of DuckDB's time (geometric mean), worst 2.00 (q01); "
        "largest peaks of all queries 1.00 and 2.00 GB"
    )


def test_names_of_queries() -> None:
    """Numbers and operators."""
    assert limited.queries("1,3-4,operators") == ["q01", "q03", "q04", *limited.OPERATORS]
    assert limited.queries("operators") == list(limited.OPERATORS)

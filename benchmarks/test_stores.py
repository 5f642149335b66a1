"""What a record of key-value stores shows."""

from typing import Any

from benchmarks import rust, stores

MACHINE = {"cpu": "A", "cpus": 2, "memory_bytes": 8e9, "load_average_before": 0.0}


def result(engine: str, **found: Any) -> dict[str, Any]:
    return {"engine": engine, "keys": 1000, "distribution": "cluster", "order": "sorted", "record-bytes": 8, **found}


def test_a_figure_is_found_by_its_place() -> None:
    found = result("sinter", loaded={"anonymous_bytes": 7e6}, ycsb={"A, 1": {"per_s": 5000.0}})
    assert stores.figure(found, "loaded.anonymous_bytes") == 7e6
    assert stores.figure(found, "ycsb.A, 1.per_s") == 5000.0
    assert stores.figure(found, "worked.anonymous_bytes") is None


def test_engines_stand_beside_each_other_and_failures_below() -> None:
    record = {
        "machine": MACHINE,
        "versions": {},
        "commit": "c",
        "date": "d",
        "level": "off",
        "results": [
            result("sinter", load_s=2.0, get_per_s=3e6, ycsb={"A, 1": {"per_s": 4e5}}),
            result("lmdb", load_s=4.0, get_per_s=1.5e6, ycsb={"A, 1": {"per_s": 2e5}}),
            result("redb", error="the process ended with -9"),
            result("fjall", load_s=1.0, failures={"scan_per_s": "a scan: 1, where it is 2"}),
        ],
    }
    lines = stores.table(record).splitlines()
    assert lines[0].split()[-4:] == ["sinter", "lmdb", "redb", "fjall"]
    cells = {line.rsplit(maxsplit=4)[0].strip(): line.split()[-4:] for line in lines[1:4]}
    assert cells == {
        "load, s": ["2.00", "4.00", "-", "1.00"],
        "get, 1000/s": ["3000", "1500", "-", "-"],
        "YCSB A, 1 threads, 1000/s": ["400", "200", "-", "-"],
    }
    assert any(line.endswith("redb, all of it: the process ended with -9") for line in lines)
    assert any(line.endswith("fjall, scan_per_s: a scan: 1, where it is 2") for line in lines)


def test_versions_of_the_others_are_those_that_are_built() -> None:
    assert rust.versions_of_stores().keys() == {"fjall", "heed", "librocksdb-sys", "lmdb-master-sys", "redb"}

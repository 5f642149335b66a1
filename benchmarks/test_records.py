"""What a record says of where and how it was made."""

import json
from pathlib import Path

import pytest

from benchmarks import machine, report


def test_a_command_can_be_typed_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(machine.ROOT)
    inside = str(machine.ROOT / "target" / "x")
    assert (
        machine.command(["tpch", "--sf", "1", "--data", inside]) == "python -m benchmarks tpch --sf 1 --data target/x"
    )
    outside = ["commits", "--works=insert,update", "--folder=/somewhere/else", "--out", "../x.json", "--bench", inside]
    assert machine.command(outside) == (
        "python -m benchmarks commits --works=insert,update --folder=PATH --out PATH --bench target/x"
    )


def test_a_record_is_written_without_local_folders(tmp_path: Path) -> None:
    record = {
        "suite": "none",
        "folder": "/somewhere/else",
        "data": f"{machine.ROOT}/target/data",
        "results": [{"error": 'cannot open "/somewhere/else/t.db": 5 MB/s, see https://example.org/a/b', "rows": 1}],
    }
    report.write(record, "none", tmp_path / "record.json")
    assert json.loads((tmp_path / "record.json").read_text()) == {
        "suite": "none",
        "folder": "PATH",
        "data": "target/data",
        "results": [{"error": 'cannot open "PATH": 5 MB/s, see https://example.org/a/b', "rows": 1}],
    }


def test_a_record_begins_with_its_command_and_date() -> None:
    header = machine.header("none")
    assert next(iter(header)) == "command"
    assert header["date"].endswith(" UTC")


@pytest.mark.parametrize("path", sorted(report.RECORDS.glob("*.json")), ids=lambda path: path.name)
def test_records_name_no_local_folder(path: Path) -> None:
    record = json.loads(path.read_text())
    assert machine.portable(record) == record

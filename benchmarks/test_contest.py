"""What a contest does with database files."""

from pathlib import Path

import pytest

from benchmarks import contest
from benchmarks.contest import Contender, Contest


def stored(folder: Path, keep_files: bool) -> Contest:
    return Contest(
        suite="none",
        name="none",
        title="none",
        tables={},
        queries={},
        engines=["sinter", "polars", "duckdb"],
        threads=1,
        runs=1,
        timeout_s=1.0,
        files=False,
        out=None,
        stored=folder,
        keep_files=keep_files,
    )


def test_two_alternate_and_more_come_in_any_order() -> None:
    names = ["sinter", "duckdb", "polars", "vortex"]
    four = [Contender(name, stored(Path(), False), {}, None) for name in names]
    turns = [[contender.name for contender in turn] for turn in contest.turns(four, 50, "q01")]
    assert all(sorted(turn) == sorted(names) for turn in turns)
    assert {turn[0] for turn in turns} == set(names)
    assert turns == [[contender.name for contender in turn] for turn in contest.turns(four, 50, "q01")]
    assert list(contest.turns(four[:2], 3, "q01")) == [four[:2]] * 3


@pytest.mark.parametrize("keep_files", [True, False])
def test_database_files_go_at_the_end_unless_they_are_kept(
    keep_files: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(of: Contest, name: str, path: Path) -> dict[str, object]:
        path.write_text("new")
        return {"load_s": 1.0}

    monkeypatch.setattr(contest, "write", write)
    (tmp_path / "files" / "sinter").mkdir(parents=True)
    (tmp_path / "files" / "sinter" / "contest.db").write_text("of the last time")
    with contest.database_files(stored(tmp_path / "files", keep_files)) as found:
        assert found == {"sinter": {"load_s": 1.0}, "duckdb": {"load_s": 1.0}}
        assert {path.read_text() for path in (tmp_path / "files").rglob("*.db")} == {"new"}
    assert (tmp_path / "files").exists() is keep_files

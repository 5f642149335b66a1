"""The stubs say what the compiled module has."""

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("mypy")


def test_stubtest_finds_no_difference(tmp_path: pathlib.Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "sinterdb._sinterdb"], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_user_is_type_checked(tmp_path: pathlib.Path) -> None:
    good = tmp_path / "good.py"
    good.write_text(
        "import sinterdb\n"
        "with sinterdb.connect('x', threads=2, memory_limit='1GB') as db:\n"
        "    count: int = db.execute('SELECT ?', [1]).rowcount\n"
        "    row: tuple[object, ...] | None = db.sql('SELECT 1').fetchone()\n"
        "    for batch in db.sql('SELECT 1').stream():\n"
        "        names: list[str] = batch.columns\n"
    )
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(good)], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.returncode == 0, run.stdout + run.stderr
    bad = tmp_path / "bad.py"
    bad.write_text("import sinterdb\nsinterdb.connect(threads='two')\n")
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(bad)], capture_output=True, text=True, cwd=tmp_path
    )
    assert "arg-type" in run.stdout

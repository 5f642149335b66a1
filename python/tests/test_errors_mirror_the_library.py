"""Each way to fail has its exception, and says what, where and what to do."""

import pathlib
import subprocess
import sys
import warnings

import pytest

import sinterdb


@pytest.mark.parametrize("sql", ["SELEC 1", "SELECT * FROM nowhere", "SELECT nothing", "", "  -- only a comment", ";"])
def test_statements_that_are_wrong(db: sinterdb.Connection, sql: str) -> None:
    with pytest.raises(sinterdb.ProgrammingError):
        db.execute(sql)


def test_an_unknown_table_is_named(db: sinterdb.Connection) -> None:
    with pytest.raises(sinterdb.ProgrammingError, match="nowhere"):
        db.sql("SELECT * FROM nowhere")


def test_values_that_do_not_fit(db: sinterdb.Connection) -> None:
    db.execute("CREATE TABLE t (a TINYINT NOT NULL)")
    for value in (1000, None, "x"):
        with pytest.raises(sinterdb.Error):
            db.execute("INSERT INTO t VALUES (?)", [value])
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(0,)]


def test_a_file_that_is_no_database(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 10_000)
    with pytest.raises(sinterdb.DamagedError, match=r"letter\.txt"):
        sinterdb.connect(path)
    assert path.read_text() == "Dear reader, " * 10_000


def test_a_file_that_is_not_there(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "absent.sinter"
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(sinterdb.OperationalError, match=r"absent\.sinter"):
            sinterdb.connect(path, **options)  # type: ignore[arg-type]
        assert not path.exists()


def test_a_folder_that_is_not_there(tmp_path: pathlib.Path) -> None:
    with pytest.raises(sinterdb.OperationalError):
        sinterdb.connect(tmp_path / "nowhere" / "x.sinter")


def test_a_file_held_by_another_process(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.sinter"
    program = "import sinterdb, sys; db = sinterdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(sinterdb.UnavailableError, match=str(other.pid)):
            sinterdb.connect(path)
        other.communicate("")
    sinterdb.connect(path).close()


def test_a_file_opened_twice_in_a_process_is_shared(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.sinter"
    first = sinterdb.connect(path)
    first.execute("CREATE TABLE t (a INTEGER)")
    second = sinterdb.connect(str(path))
    second.execute("INSERT INTO t VALUES (1)")
    first.close()
    assert second.sql("SELECT a FROM t").fetchall() == [(1,)]
    with pytest.raises(sinterdb.UnavailableError, match="other options"):
        sinterdb.connect(path, threads=1)
    second.close()
    with sinterdb.connect(path, threads=1) as third:
        assert third.sql("SELECT a FROM t").fetchall() == [(1,)]
        assert third.path == str(path)


def test_a_read_only_database_refuses_changes(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.sinter"
    with sinterdb.connect(path) as db:
        db.execute("CREATE TABLE t AS SELECT 1 AS a")
    with sinterdb.connect(path, read_only=True) as db:
        assert db.sql("SELECT a FROM t").fetchall() == [(1,)]
        with pytest.raises(sinterdb.Error):
            db.execute("INSERT INTO t VALUES (2)")


@pytest.mark.parametrize(
    "options",
    [
        {"threads": 0},
        {"threads": -1},
        {"memory_limit": 0},
        {"memory_limit": "much"},
        {"memory_limit": "4XB"},
        {"synchronous": "maybe"},
    ],
)
def test_options_that_make_no_sense(options: dict[str, object]) -> None:
    with pytest.raises(sinterdb.ProgrammingError, match=next(iter(options))):
        sinterdb.connect(**options)  # type: ignore[arg-type]


def test_options_that_do() -> None:
    for options in (
        {"threads": 1, "memory_limit": "512MiB"},
        {"memory_limit": 1 << 28, "synchronous": "off"},
        {"memory_limit": "0.5GB", "synchronous": "NORMAL"},
    ):
        with sinterdb.connect(**options) as db:  # type: ignore[arg-type]
            assert db.sql("SELECT 1").fetchall() == [(1,)]
            assert db.path is None


def test_skipped_rows_are_a_warning(db: sinterdb.Connection, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a\n1\nnone\n3\n")
    db.execute("CREATE TABLE t (a INTEGER)")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        db.execute(f"COPY t FROM '{path}' (on_error 'skip')")
    assert db.sql("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (3,)]
    assert any(issubclass(warning.category, sinterdb.Warning) for warning in caught)
    assert {warning.filename for warning in caught} == {__file__}

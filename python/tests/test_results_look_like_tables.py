"""What a terminal and a notebook show."""

import pytest

import sinterdb
from sinterdb import table


def test_a_relation_prints_as_a_table(db: sinterdb.Connection, capsys: pytest.CaptureFixture[str]) -> None:
    db.sql("SELECT 1 AS a, 'x' AS b UNION ALL SELECT NULL, 'a\nb' ORDER BY b DESC").show(max_width=80)
    assert capsys.readouterr().out.splitlines() == [
        "┌────────┬─────────┐",
        "│ a      │ b       │",
        "│ BIGINT │ VARCHAR │",
        "├────────┼─────────┤",
        "│      1 │ x       │",
        "│   NULL │ a\\nb    │",
        "└────────┴─────────┘",
        "2 rows",
    ]


def test_only_the_first_rows_are_shown(db: sinterdb.Connection) -> None:
    db.execute("CREATE TABLE t AS SELECT value AS a FROM range(1000) AS r(value)")
    text = repr(db.sql("SELECT a FROM t"))
    assert text.endswith("first 20 rows; there are more")
    assert len(text.splitlines()) == 20 + 6


def test_a_command_tells_what_it_did(db: sinterdb.Connection) -> None:
    assert repr(db.sql("CREATE TABLE t (a INTEGER)")).startswith("CREATE TABLE")
    made = db.sql("INSERT INTO t VALUES (1), (2)")
    assert repr(made) == "INSERT 2"
    assert made.fetchall() == []
    assert repr(made) == "INSERT 2"
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(2,)], "a command runs once"
    with pytest.raises(sinterdb.ProgrammingError):
        made.to_arrow()


def test_html_is_escaped(db: sinterdb.Connection) -> None:
    page = db.sql("""SELECT '<script>' AS "<b>" """)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "&lt;b&gt;" in page


def test_wide_letters_and_many_columns_keep_their_places() -> None:
    text = table.as_text(["a", "日本"], ["VARCHAR", "VARCHAR"], [("日本語", "e\u0301")], more=False, width=80)
    assert len({table._width(line) for line in text.splitlines()[:-1]}) == 1
    names = [f"column_{number}" for number in range(30)]
    text = table.as_text(names, ["BIGINT"] * 30, [tuple(range(30))], more=False, width=80)
    assert all(table._width(line) <= 80 for line in text.splitlines())
    assert "column_0 " in text
    assert "column_29" in text
    assert " … " in text


def test_long_values_are_cut() -> None:
    text = table.as_text(["a"], ["VARCHAR"], [("x" * 1000,)], more=False, width=200)
    assert max(map(len, text.splitlines())) < 60
    assert "…" in text


def test_explain_is_text(db: sinterdb.Connection) -> None:
    db.execute("CREATE TABLE t (a INTEGER)")
    relation = db.sql("SELECT sum(a) FROM t WHERE a > 5")
    assert "t" in relation.explain()
    assert relation.explain(analyze=True)


def test_storage_and_memory_are_relations(db: sinterdb.Connection) -> None:
    db.execute('CREATE TABLE "it\'s" AS SELECT 1 AS a')
    storage = db.storage("it's")
    assert {"column", "type", "scheme", "values", "nulls", "plain_bytes", "bytes", "ratio"} <= set(storage.columns)
    assert storage.fetchall()
    assert db.memory().fetchall()

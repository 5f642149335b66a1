"""Key-value trees are mappings, in the order of keys, alone and in transactions."""

import pathlib
import random

import pytest

import sinterdb


def test_a_tree_is_a_mapping(db: sinterdb.Connection) -> None:
    kv = db.kv("sessions", key="u32", value="str")
    assert (len(kv), bool(kv), kv.first(), list(kv)) == (0, False, None, [])
    kv[7] = "seven"
    kv.update({3: "three", 5: "five"})
    kv.update((key, str(key)) for key in range(10, 20))
    assert kv[7] == "seven"
    assert kv.get(8) is None
    assert kv.get(8, "none") == "none"
    assert 5 in kv
    assert 6 not in kv
    assert list(kv)[:4] == [3, 5, 7, 10]
    assert list(reversed(kv))[:2] == [19, 18]
    assert kv[4:11] == [(5, "five"), (7, "seven"), (10, "10")]
    with pytest.raises(sinterdb.DataError):
        kv[4:"x"]
    assert dict(kv.items())[5] == "five"
    assert next(iter(kv.values())) == "three"
    assert kv.pop(5) == "five"
    assert kv.setdefault(5, "fünf") == "fünf"
    del kv[5]
    with pytest.raises(KeyError):
        kv[5]
    with pytest.raises(KeyError):
        del kv[5]
    assert kv == {3: "three", 7: "seven", **{key: str(key) for key in range(10, 20)}}
    kv.remove([3, 4])
    assert kv.first() == (7, "seven")
    assert (kv.sum(), kv.sum(7, 12), kv.average(10, 12), kv.average(100)) == (152, 28, 10.5, None)
    with pytest.raises(sinterdb.DataError):
        db.kv("names", key="str").sum()
    kv.clear()
    assert not kv
    assert repr(kv) == "<key-value tree 'sessions': u32 to str>"


def test_the_nearest_key_is_found(db: sinterdb.Connection) -> None:
    kv = db.kv("numbers", key="i64", value="none")
    kv.update((key, None) for key in (-5, 0, 5))
    found = [kv.find(how, 0) for how in ("<", "<=", "==", ">=", ">")]
    assert found == [(-5, None), (0, None), (0, None), (0, None), (5, None)]
    assert kv.find("==", 1) is None
    assert kv.last() == (5, None)
    cursor = kv.cursor()
    assert cursor.seek(">", -5) == (0, None)
    assert cursor.next() == (5, None)
    assert cursor.next() is None
    with pytest.raises(sinterdb.ProgrammingError):
        kv.find("~", 1)


@pytest.mark.parametrize(
    ("value", "examples"),
    [
        ("bytes", [b"", b"x" * 3000]),
        ("str", ["", "ä" * 100]),
        ("u32", [0, 2**32 - 1]),
        ("u64", [0, 2**64 - 1]),
        ("i64", [-(2**63), 2**63 - 1]),
        ("f64", [0.0, -1.5, float("inf")]),
        ("fixed(3)", [b"abc", b"\0\0\0"]),
        ("none", [None]),
    ],
)
def test_values_come_back(db: sinterdb.Connection, value: str, examples: list[object]) -> None:
    kv = db.kv("values", key="str", value=value)
    kv.update((str(index), example) for index, example in enumerate(examples))
    assert list(kv.values()) == examples
    assert kv.value_type == value
    with pytest.raises(sinterdb.DataError):
        kv["x"] = object()
    with pytest.raises(sinterdb.DataError):
        kv[1] = examples[0]


def test_changes_depend_on_what_is_there(db: sinterdb.Connection) -> None:
    kv = db.kv("counters", key="bytes", value="u64")
    assert kv.insert(b"a", 1)
    assert not kv.insert(b"a", 2)
    assert kv.compare_and_swap(b"a", 1, 2)
    assert not kv.compare_and_swap(b"a", 1, 3)
    assert kv[b"a"] == 2


def test_a_tree_is_part_of_a_transaction(db: sinterdb.Connection) -> None:
    db.execute("CREATE TABLE t (a INTEGER)")
    kv = db.kv("s", key="u32", value="str")
    with db.transaction() as tx:
        inside = tx.kv("s")
        inside[1] = "one"
        tx.execute("INSERT INTO t VALUES (1)")
        assert (list(inside), list(kv)) == ([1], [])
    assert list(kv) == [1]

    class Wrong(Exception):
        pass

    with pytest.raises(Wrong), db.transaction() as tx:
        tx.kv("s")[2] = "two"
        tx.execute("INSERT INTO t VALUES (2)")
        raise Wrong
    assert list(kv) == [1]
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(1,)]

    @db.transaction(retry=3)
    def count(tx: sinterdb.Transaction) -> int:
        inside = tx.kv("s")
        tries = int(inside.get(9, "0")) + 1
        if tries < 3:
            kv[9] = str(tries)
        inside[8] = "done"
        return tries

    assert count() == 3


def test_a_tree_comes_back_from_its_file(tmp_path: pathlib.Path) -> None:
    path, random_ = tmp_path / "kv.sinter", random.Random(1)
    expected = {random_.randrange(2**32): random_.randbytes(20) for _ in range(20_000)}
    with sinterdb.connect(path) as db:
        db.kv("s", key="u32", value="bytes", codec="simd_for").update(expected)
    with sinterdb.connect(path) as db:
        kv = db.kv("s")
        assert (kv.key_type, kv.value_type) == ("u32", "bytes")
        assert dict(kv.items()) == expected
        assert list(kv) == sorted(expected)
        with pytest.raises(sinterdb.ProgrammingError):
            db.kv("s", key="str")
    with sinterdb.connect(path, read_only=True) as db, pytest.raises(sinterdb.OperationalError):
        db.kv("s")[1] = b""


def test_a_tree_is_loaded_in_the_order_of_keys(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "kv.sinter"
    expected = {key * key: f"{key}" for key in range(20_000)}
    with sinterdb.connect(path) as db:
        kv = db.load_kv("s", expected, key="u64", value="str")
        assert dict(kv.items()) == expected
        with pytest.raises(sinterdb.DataError, match="3 is not behind the key before it"):
            db.load_kv("t", [(3, b""), (4, b""), (3, b"")])
        with pytest.raises(sinterdb.ProgrammingError, match="'s' is there already"):
            db.load_kv("s", [])
        with pytest.raises(ZeroDivisionError):
            db.load_kv("t", ((1 // key, b"") for key in (1, 0)))
        assert [
            row[0]
            for row in db.sql(
                "SELECT DISTINCT table_name FROM information_schema.tables WHERE table_schema = 'public'"
            ).fetchall()
        ] == ["s"]
    with sinterdb.connect(path) as db:
        assert dict(db.kv("s").items()) == expected


def test_keys_of_a_slice_go_at_once() -> None:
    with sinterdb.connect() as db:
        kv = db.kv("s", key="str", value="none")
        kv.update((f"{key:04}", None) for key in range(3000))
        del kv["0010":"2000"]
        assert (len(kv), list(kv)[9:11]) == (1010, ["0009", "2000"])
        del kv["5":"4"]
        with pytest.raises(ValueError, match="step"):
            del kv["1"::"2"]
        with db.transaction() as tx:
            inside = tx.kv("s")
            inside["2500x"] = None
            del inside["2500":]
            assert len(inside) == 510
            assert len(kv) == 1010
        assert len(kv) == 510
        kv.clear()
        assert not kv


def test_a_key_has_any_number_of_values(db: sinterdb.Connection) -> None:
    tags = db.kv("tags", key="str", value="i64", duplicates=True)
    tags["b"] = 2
    tags.update([("b", -1), ("a", 7), ("b", 2)])
    assert tags.has_duplicates
    assert (len(tags), tags["b"], tags.get_all("b"), tags.get_all("c")) == (3, -1, [-1, 2], [])
    assert list(tags.items()) == [("a", 7), ("b", -1), ("b", 2)]
    assert ("b", 2) in tags.items()
    assert ("b", 3) not in tags.items()
    assert 2 in tags.values()
    assert tags != {"a": 7, "b": -1}
    assert (tags.find("==", "aa"), tags.find("==", "b")) == (None, ("b", -1))
    assert (tags.insert("b", 2), tags.insert("b", 3), tags.discard("b", -1), tags.discard("b", -1)) == (
        False,
        True,
        True,
        False,
    )
    assert (tags.pop("b"), tags.get_all("b"), tags.popitem()) == (2, [3], ("a", 7))
    assert tags.find("<=", "z") == ("b", 3)
    assert db.sql("SELECT key, value FROM tags").fetchall() == [("b", 3)]
    del tags["b"]
    with pytest.raises(KeyError):
        tags.pop("b")
    loaded = db.load_kv("loaded", [(1, "x"), (1, "y")], key="u32", value="str", duplicates=True)
    assert loaded[0:2] == [(1, "x"), (1, "y")]
    with pytest.raises(sinterdb.ProgrammingError, match="several values"):
        db.kv("loaded", duplicates=False)


def test_values_have_any_length(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "kv.sinter"
    expected = {key: random.Random(key).randbytes(key * 1001) for key in range(60)}
    with sinterdb.connect(path) as db:
        kv = db.kv("s", key="u32", value="bytes")
        kv.update(expected)
        assert kv == expected
        cursor = kv.cursor()
        cursor.first()
        assert [len(cursor.take(100, end)) for end in (10, 20, None)] == [10, 10, 40]
        with db.transaction() as tx:
            inside = tx.kv("s")
            inside[59] = b"short"
            inside[60] = expected[59]
            assert inside[60] == expected[59]
    with sinterdb.connect(path) as db:
        kv = db.kv("s")
        assert (kv[58], kv[59], kv[60]) == (expected[58], b"short", expected[59])
        kv.clear()
        assert db.sql("SELECT value_bytes FROM trees()").fetchall() == [(0,)]

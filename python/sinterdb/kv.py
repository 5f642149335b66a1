"""Key-value trees: ordered mappings whose keys stay compressed."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sinterdb import _sinterdb

_CHUNK = 1000
"""So many entries are fetched at a time."""

_ABSENT = object()


class KeyValue(MutableMapping[Any, Any]):
    """A key-value tree: a mapping whose keys are in order. Made by `Connection.kv`.

    >>> import sinterdb
    >>> db = sinterdb.connect()
    >>> kv = db.kv("sessions", key="u32", value="str")
    >>> kv[7] = "seven"
    >>> kv.update((key, str(key)) for key in range(10, 20))
    >>> kv[7], kv[8:12], len(kv)
    ('seven', [(10, '10'), (11, '11')], 11)

    Each change is a commit of its own, and each reading is of the last state that is durable; iterating sees one state.
    Of a transaction's connection all of it is part of the transaction:

    >>> with db.transaction() as tx:
    ...     tx.kv("sessions")[8] = "eight"

    Made with `duplicates`, a key has any number of values, in their order, each once. `kv[key] = value` adds one, `del
    kv[key]` takes all away, `kv[key]` is the first; slices, `items()` and cursors have each of them beside its key.

    >>> tags = db.kv("tags", key="str", value="str", duplicates=True)
    >>> tags.update([("red", "rose"), ("red", "brick"), ("green", "leaf")])
    >>> tags.get_all("red"), len(tags), tags.discard("red", "rose")
    (['brick', 'rose'], 3, True)
    """

    def __init__(self, raw: _sinterdb.Kv) -> None:
        self._raw = raw

    @property
    def name(self) -> str:
        """What the tree is called."""
        return self._raw.name

    @property
    def key_type(self) -> str:
        """What the keys are: "u32", "u64", "i64", "bytes" or "str"."""
        return self._raw.key_type

    @property
    def value_type(self) -> str:
        """What the values are: "none", "u32", "u64", "i64", "f64", "bytes", "str" or "fixed(BYTES)"."""
        return self._raw.value_type

    @property
    def has_duplicates(self) -> bool:
        """Whether a key has any number of values."""
        return self._raw.has_duplicates

    def __getitem__(self, key: Any) -> Any:
        """Return the key's value; for a slice the pairs of keys from its start and before its stop."""
        if isinstance(key, slice):
            return list(self._pairs(key))
        value = self._raw.get(key, _ABSENT)
        if value is _ABSENT:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        """Give the key this value."""
        self._raw.put(key, value)

    def __delitem__(self, key: Any) -> None:
        """Take the key away; for a slice, in one commit, all from its start and before its stop."""
        if isinstance(key, slice):
            _check_step(key)
            self._raw.delete_range(key.start, key.stop)
        elif not self._raw.delete(key):
            raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        """Return whether the key is there."""
        return key in self._raw

    def __len__(self) -> int:
        """Return how many entries there are; the tree's leaves are counted."""
        return len(self._raw)

    def __eq__(self, other: object) -> bool:
        """Return whether another mapping has the same entries."""
        if not isinstance(other, Mapping):
            return NotImplemented
        mine, others = list(self.items()), list(other.items())
        if self.has_duplicates and isinstance(other, KeyValue) and other.has_duplicates:
            return mine == others
        # Each key of a mapping has one value.
        return len(mine) == len(others) == len(dict(mine)) and dict(mine) == dict(others)

    def pop(self, key: Any, default: Any = _ABSENT) -> Any:
        """Take the key's value away and return it, of several the first; or `default`, where it is not there."""
        while (value := self.get(key, _ABSENT)) is not _ABSENT:
            # Somebody else may have been quicker.
            if self.discard(key, value):
                return value
        if default is _ABSENT:
            raise KeyError(key)
        return default

    def popitem(self) -> tuple[Any, Any]:
        """Take the first entry away and return it."""
        while (entry := self.first()) is not None:
            if self.discard(*entry):
                return entry
        raise KeyError("the key-value tree is empty")

    def __bool__(self) -> bool:
        """Return whether there are keys."""
        return self.first() is not None

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the keys, in their order."""
        return (key for key, _ in self._pairs(slice(None)))

    def __reversed__(self) -> Iterator[Any]:
        """Iterate over the keys, from the last."""
        cursor = self.cursor()
        entry = cursor.last()
        while entry is not None:
            yield entry[0]
            entry = cursor.previous()

    def __repr__(self) -> str:
        """Return what it is, without what is in it."""
        return f"<key-value tree {self.name!r}: {self.key_type} to {self.value_type}>"

    def items(self) -> ItemsView[Any, Any]:
        """Return the pairs of keys and values, in the order of keys."""
        return _Items(self)

    def values(self) -> ValuesView[Any]:
        """Return the values, in the order of keys."""
        return _Values(self)

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the key's value, or `default` where it is not there."""
        return self._raw.get(key, default)

    def get_all(self, key: Any) -> list[Any]:
        """Return the key's values, in their order: several where the tree has duplicates."""
        return self._raw.get_all(key)

    def discard(self, key: Any, value: Any) -> bool:
        """Take one value of the key away; return whether it had it."""
        return self._raw.discard(key, value)

    def update(self, other: Any = (), /, **named: Any) -> None:
        """Give keys values, in one commit: those of a mapping, or of pairs."""
        pairs: Iterable[tuple[Any, Any]] = other.items() if isinstance(other, Mapping) else other
        self._raw.update([*pairs, *named.items()])

    def sum(self, start: Any = None, end: Any = None) -> int:
        """Return the sum of the keys, which are whole numbers, from `start` on and before `end`."""
        return self._raw.sums(start, end)[1]

    def average(self, start: Any = None, end: Any = None) -> float | None:
        """Return the average of such keys; None where there are none."""
        count, total = self._raw.sums(start, end)
        return total / count if count else None

    def remove(self, keys: Iterable[Any]) -> None:
        """Take keys away, in one commit, whether they are there or not."""
        self._raw.remove(keys)

    def clear(self) -> None:
        """Take all keys away, in one commit."""
        self._raw.delete_range()

    def insert(self, key: Any, value: Any) -> bool:
        """Give the key this value if it is not there; return whether it was not."""
        return self._raw.insert(key, value)

    def compare_and_swap(self, key: Any, old: Any, new: Any) -> bool:
        """Give the key the value `new` where it has `old`; return whether it had."""
        return self._raw.compare_and_swap(key, old, new)

    def find(self, how: str, key: Any) -> tuple[Any, Any] | None:
        """Return the nearest entry by "<", "<=", "==", ">=" or ">", or None."""
        return self._raw.find(how, key)

    def first(self) -> tuple[Any, Any] | None:
        """Return the entry with the least key."""
        return self.cursor().first()

    def last(self) -> tuple[Any, Any] | None:
        """Return the entry with the greatest key."""
        return self.cursor().last()

    def cursor(self) -> _sinterdb.KvCursor:
        """Return a cursor, on no entry yet: `seek`, `first`, `last`, `next`, `previous` return where they come to."""
        return self._raw.cursor()

    def _pairs(self, keys: slice) -> Iterator[tuple[Any, Any]]:
        _check_step(keys)
        cursor = self.cursor()
        if keys.start is None:
            cursor.first()
        else:
            cursor.seek(">=", keys.start)
        while chunk := cursor.take(_CHUNK, keys.stop):
            yield from chunk


def _check_step(keys: slice) -> None:
    if keys.step is not None:
        raise ValueError("a slice of keys has no step")


class _Items(ItemsView[Any, Any]):
    """Pairs of one state, which a look-up of each key would not be."""

    def __init__(self, tree: KeyValue) -> None:
        super().__init__(tree)
        self._tree = tree

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self._tree._pairs(slice(None))

    def __contains__(self, item: object) -> bool:
        match item:
            case (key, value):
                return value in self._tree.get_all(key)
        return False


class _Values(ValuesView[Any]):
    """Values of one state."""

    def __init__(self, tree: KeyValue) -> None:
        super().__init__(tree)
        self._tree = tree

    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in self._tree._pairs(slice(None)))

    def __contains__(self, value: object) -> bool:
        return any(value == known for known in self)

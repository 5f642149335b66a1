"""Data that others hold: anything that can hand out an Arrow stream, given or found by name in the caller's scope."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import FrameType
from typing import Any

from sinterdb._sinterdb import Frame, NotSupportedError


def stream_of(value: Any) -> Any:
    """Return an object with `__arrow_c_stream__` that holds `value`'s rows; None where there is no way to one."""
    kind = type(value)
    module = kind.__module__.partition(".")[0]
    if module == "pandas" and kind.__name__ == "DataFrame":
        return _stream_of_pandas(value)
    if module == "polars" and kind.__name__ == "LazyFrame":
        return value.collect()
    if getattr(kind, "__arrow_c_stream__", None) is not None:
        return value
    if module == "pyarrow" and hasattr(kind, "scanner"):
        return value.scanner().to_reader()
    return None


def read(value: Any) -> Frame:
    """Read all of a frame into memory, or refuse what is none."""
    stream = stream_of(value)
    if stream is None:
        raise NotSupportedError(f"a {type(value).__qualname__} has no __arrow_c_stream__, so it cannot be read")
    return Frame.read(stream)


def _stream_of_pandas(value: Any) -> Any:
    """Pandas' own stream makes columns of an index that is no range; SQL has no use for them."""
    try:
        import pyarrow
    except ImportError:
        raise NotSupportedError("reading a pandas DataFrame needs pyarrow: pip install pyarrow") from None
    return pyarrow.Table.from_pandas(value, preserve_index=False)


# Texts and comments are passed over; of the rest only names count. In quotes a name is itself, without them it is
# looked for in lower case, as SQL does.
_TOKENS = re.compile(
    r"""
    --[^\n]* | /\*.*?\*/ | '(?:[^']|'')*'
    | "(?P<quoted>(?:[^"]|"")+)"
    | (?P<bare>[^\W\d]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)


def _names(sql: str) -> Iterator[tuple[str, str]]:
    """Yield the names in a statement: as Python writes them, and as SQL looks for them."""
    for token in _TOKENS.finditer(sql):
        if token["quoted"]:
            name = token["quoted"].replace('""', '"')
            yield name, name
        elif token["bare"]:
            yield token["bare"], token["bare"].lower()


# How the library says that a statement names a table that there is not.
_MISSING = re.compile(r"there is no table '(.*?)'(?:;|$)", re.DOTALL)


def missing(error: Exception) -> str | None:
    """Return the name of the table that a statement asked for in vain; None where it failed of something else."""
    match = _MISSING.match(str(error))
    return None if match is None else match[1]


def find(wanted: str, sql: str, scope: FrameType | None) -> Frame | None:
    """Read the frame in the variable of `scope` that `sql` calls `wanted`, if there is one; a local before a global."""
    if scope is None:
        return None
    variables, module = scope.f_locals, scope.f_globals
    for variable, name in _names(sql):
        if name != wanted:
            continue
        value = variables[variable] if variable in variables else module.get(variable)
        stream = None if value is None else stream_of(value)
        if stream is not None:
            return Frame.read(stream)
    return None

"""Rows of a result, in memory as Arrow data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sinterdb._sinterdb import Frame

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Batch:
    """Some or all rows of a result. Immutable; readable by whatever takes `__arrow_c_stream__`, and again."""

    __slots__ = ("_frame",)

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [name for name, _, _ in self._frame.columns]

    @property
    def types(self) -> list[str]:
        """Types of the columns, as SQL calls them."""
        return [kind for _, kind, _ in self._frame.columns]

    def __len__(self) -> int:
        return self._frame.num_rows

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows as tuples."""
        return self._frame.rows()

    def to_arrow(self) -> pyarrow.Table:
        """Return a pyarrow Table over the same memory."""
        import pyarrow

        return pyarrow.table(self._frame)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas DataFrame; made of Python objects where pyarrow is not installed."""
        import pandas

        try:
            import pyarrow
        except ImportError:
            # Column by column, since two columns may have one name.
            rows = self.fetchall()
            columns = [pandas.Series([row[place] for row in rows]) for place in range(len(self.columns))]
            return pandas.concat(columns, axis=1, keys=self.columns) if columns else pandas.DataFrame()
        return pyarrow.table(self._frame).to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return a Polars DataFrame."""
        import polars

        return polars.DataFrame(self._frame)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind, _ in self._frame.columns)
        return f"<sinterdb.Batch of {len(self)} rows ({columns})>"

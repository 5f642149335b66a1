"""The types of columns and expressions, and how SQL writes their values."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from decimal import Context, Decimal
from enum import Enum
from typing import Any

import pyarrow


class Family(Enum):
    """Types whose values can be compared with each other."""

    INTEGER = "i"
    DECIMAL = "d"
    DOUBLE = "f"
    TEXT = "s"
    DATE = "day"
    TIMESTAMP = "at"
    BOOLEAN = "b"


@dataclass(frozen=True)
class Kind:
    """A type of SQL."""

    name: str
    family: Family
    bits: int = 0
    signed: bool = True
    precision: int = 0
    scale: int = 0

    @property
    def low(self) -> int:
        """The least integer, before the scale of a decimal."""
        if self.family is Family.DECIMAL:
            return -self.high
        return -(1 << self.bits - 1) if self.signed else 0

    @property
    def high(self) -> int:
        """The greatest integer, before the scale of a decimal."""
        if self.family is Family.DECIMAL:
            return int("9" * self.precision)
        return (1 << self.bits - self.signed) - 1

    def arrow(self) -> pyarrow.DataType:
        """Return the type in Arrow."""
        if self.family is Family.INTEGER:
            return pyarrow.type_for_alias(f"{'' if self.signed else 'u'}int{self.bits}")
        if self.family is Family.DECIMAL:
            return pyarrow.decimal128(self.precision, self.scale)
        if self.family is Family.DOUBLE:
            return pyarrow.float32() if self.bits == 32 else pyarrow.float64()
        return {
            Family.TEXT: pyarrow.string(),
            Family.DATE: pyarrow.date32(),
            Family.TIMESTAMP: pyarrow.timestamp("us"),
            Family.BOOLEAN: pyarrow.bool_(),
        }[self.family]


_EXACTLY = Context(prec=60)
"""Python's own context rounds to 28 digits."""


def decimal(precision: int, scale: int) -> Kind:
    """Return a DECIMAL."""
    return Kind(f"DECIMAL({precision}, {scale})", Family.DECIMAL, precision=precision, scale=scale)


TINYINT = Kind("TINYINT", Family.INTEGER, 8)
SMALLINT = Kind("SMALLINT", Family.INTEGER, 16)
INTEGER = Kind("INTEGER", Family.INTEGER, 32)
BIGINT = Kind("BIGINT", Family.INTEGER, 64)
UTINYINT = Kind("UTINYINT", Family.INTEGER, 8, signed=False)
USMALLINT = Kind("USMALLINT", Family.INTEGER, 16, signed=False)
UINTEGER = Kind("UINTEGER", Family.INTEGER, 32, signed=False)
UBIGINT = Kind("UBIGINT", Family.INTEGER, 64, signed=False)
REAL = Kind("REAL", Family.DOUBLE, 32)
DOUBLE = Kind("DOUBLE", Family.DOUBLE, 64)
VARCHAR = Kind("VARCHAR", Family.TEXT)
DATE = Kind("DATE", Family.DATE)
TIMESTAMP = Kind("TIMESTAMP", Family.TIMESTAMP)
BOOLEAN = Kind("BOOLEAN", Family.BOOLEAN)

INTEGERS = (TINYINT, SMALLINT, INTEGER, BIGINT, UTINYINT, USMALLINT, UINTEGER, UBIGINT)
DECIMALS = (decimal(4, 1), decimal(9, 2), decimal(15, 2), decimal(18, 4), decimal(30, 3), decimal(38, 0))


def scaled(units: int, scale: int) -> Decimal:
    """Return a decimal of so many units of its last digit."""
    return Decimal(units).scaleb(-scale, _EXACTLY)


def literal(value: Any, kind: Kind) -> str:
    """Return a value as an expression of exactly this type, in both engines."""
    if value is None:
        return f"CAST(NULL AS {kind.name})"
    if kind.family in (Family.TEXT, Family.BOOLEAN, Family.DATE, Family.TIMESTAMP):
        return plain(value, kind)
    if kind in (INTEGER, BIGINT) and abs(value) < 1 << 31:
        # A number of this size is an INTEGER there and a BIGINT here, and fits into whatever it meets.
        return str(value)
    return f"CAST('{number(value)}' AS {kind.name})"


def plain(value: Any, kind: Kind) -> str:
    """Return a value as it stands in an INSERT, where the column says the type."""
    if value is None:
        return "NULL"
    if kind.family is Family.TEXT:
        return "'" + str(value).replace("'", "''") + "'"
    if kind.family is Family.BOOLEAN:
        return "TRUE" if value else "FALSE"
    if kind.family is Family.DATE:
        return f"DATE '{value.isoformat()}'"
    if kind.family is Family.TIMESTAMP:
        assert isinstance(value, datetime.datetime)
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    # As text, since a number with a point is a decimal, which has neither NaN nor -0.
    return f"'{number(value)}'" if kind.family is Family.DOUBLE else number(value)


def number(value: int | float | Decimal) -> str:
    """Return the digits of a number."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return f"{value:f}" if isinstance(value, Decimal) else repr(value)

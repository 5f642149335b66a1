"""SinterDB: an embedded database that keeps everything compressed and works on the compressed form.

>>> import sinterdb
>>> db = sinterdb.connect()  # or sinterdb.connect("shop.sinter")
>>> _ = db.execute("CREATE TABLE t (a INTEGER, b VARCHAR)")
>>> _ = db.execute("INSERT INTO t VALUES (?, ?)", [1, "one"])
>>> db.sql("SELECT * FROM t").fetchall()
[(1, 'one')]

`connect` opens a database; `Connection` runs statements (DB-API 2.0, PEP 249); `Connection.sql` gives a `Relation`,
whose rows come as tuples, Arrow, pandas or Polars.
"""

from sinterdb._sinterdb import (
    CancelledError,
    ConflictError,
    DamagedError,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    IoError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    UnavailableError,
    Warning,
    __version__,
)
from sinterdb.batch import Batch
from sinterdb.connection import Connection, connect
from sinterdb.cursor import Cursor
from sinterdb.dbapi import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
    apilevel,
    paramstyle,
    threadsafety,
)
from sinterdb.interval import Interval
from sinterdb.kv import KeyValue
from sinterdb.relation import Relation
from sinterdb.transaction import Transaction, Transactions

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Batch",
    "Binary",
    "CancelledError",
    "ConflictError",
    "Connection",
    "Cursor",
    "DamagedError",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Interval",
    "IoError",
    "KeyValue",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Relation",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Transaction",
    "Transactions",
    "UnavailableError",
    "Warning",
    "__version__",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

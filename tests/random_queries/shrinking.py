"""The smallest query and the smallest tables for which both engines still differ in the same way.

Greedy: whatever step makes it smaller and keeps the difference is taken, and then all steps are tried anew, until none
is left or the time is up. First tables go that the query does not name, then parts of the query, then rows, columns and
the layout of tables, then parts of the query again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from random_queries.engines import Answer, Engines
from random_queries.schema import Batch, Database, Table
from random_queries.tree import Query

SECONDS = 60.0


def sort_of_difference(answer: Answer, ordered: bool) -> str | None:
    """Return what has to stay while a failure gets smaller: who refuses and why, or that rows differ."""
    error = answer.error()
    if error is not None:
        # Without names, numbers and texts, which change.
        return f"{error[0]}: {re.sub(r'[^ A-Za-z]+[A-Za-z0-9_.]*', '', error[1].splitlines()[0])[:60]}"
    return "rows differ" if answer.differs(ordered) is not None else None


class Shrinker:
    """One failure on its way."""

    def __init__(self, database: Database, query: Query, seconds: float) -> None:
        self._database = database
        self._query = query
        self._end = time.monotonic() + seconds
        self._engines = Engines(database)
        self._sort = self._sort_of(self._engines, query)
        self._tried: set[str] = set()

    def run(self) -> tuple[Database, Query]:
        """Return what is left."""
        if self._sort is not None:
            self._shrink_database(self._fewer_tables)
            self._shrink_query()
            self._shrink_rows()
            self._shrink_database(self._simpler_tables)
            self._tried.clear()
            self._shrink_query()
            self._shrink_database(self._fewer_tables)
            self._shrink_database(self._simpler_tables)
        self._engines.close()
        return self._database, self._query

    @staticmethod
    def _sort_of(engines: Engines, query: Query) -> str | None:
        return sort_of_difference(engines.ask(query), bool(query.order))

    def _shrink_query(self) -> None:
        going_on = True
        while going_on:
            going_on = False
            for smaller in self._query.smaller():
                if time.monotonic() > self._end:
                    return
                if not isinstance(smaller, Query) or (sql := smaller.sql()) in self._tried:
                    continue
                self._tried.add(sql)
                if self._sort_of(self._engines, smaller) == self._sort:
                    self._query = smaller
                    going_on = True
                    break

    def _shrink_database(self, steps: Callable[[], Iterator[Database]]) -> None:
        going_on = True
        while going_on:
            going_on = False
            for smaller in steps():
                if time.monotonic() > self._end:
                    return
                if self._takes(smaller):
                    going_on = True
                    break

    def _shrink_rows(self) -> None:
        """Leave out halves, quarters and so on of each batch, down to single rows."""
        for place in range(len(self._database.tables)):
            for number in range(len(self._database.tables[place].batches)):
                size = len(self._database.tables[place].batches[number].rows)
                while size and time.monotonic() < self._end:
                    start = 0
                    while start < len(rows := self._database.tables[place].batches[number].rows):
                        rows = rows[:start] + rows[start + size :]
                        if not self._takes(self._with_rows(place, number, rows)):
                            start += size
                        if time.monotonic() > self._end:
                            return
                    size = size // 2

    def _with_rows(self, place: int, number: int, rows: tuple[tuple[Any, ...], ...]) -> Database:
        table = self._database.tables[place]
        batch = replace(table.batches[number], rows=rows)
        return self._with(place, replace(table, batches=(*table.batches[:number], batch, *table.batches[number + 1 :])))

    def _takes(self, smaller: Database) -> bool:
        """Return whether both still differ on a smaller database, and then go on with it."""
        engines = Engines(smaller)
        if self._sort_of(engines, self._query) != self._sort:
            engines.close()
            return False
        self._engines.close()
        self._database, self._engines = smaller, engines
        return True

    def _fewer_tables(self) -> Iterator[Database]:
        sql = self._query.sql()
        named = tuple(table for table in self._database.tables if re.search(rf"\b{table.name} AS", sql))
        if len(named) < len(self._database.tables):
            yield replace(self._database, tables=named)

    def _with(self, place: int, table: Table) -> Database:
        tables = self._database.tables
        return replace(self._database, tables=(*tables[:place], table, *tables[place + 1 :]))

    def _simpler_tables(self) -> Iterator[Database]:
        sql = self._query.sql()
        if self._database.threads > 1:
            yield replace(self._database, threads=1)
        if self._database.settings:
            yield replace(self._database, settings=())
        for place, table in enumerate(self._database.tables):
            if table.deleted:
                yield self._with(place, replace(table, deleted=None))
            if len(table.batches) > 1 or table.batches[0].pressed:
                yield self._with(place, replace(table, batches=(Batch(tuple(table.rows), pressed=False),)))
            if len(table.batches) > 1:
                yield self._with(place, replace(table, batches=(Batch(tuple(table.rows), pressed=True),)))
            for at, column in enumerate(table.columns):
                if column.scheme:
                    columns = (*table.columns[:at], replace(column, scheme=None), *table.columns[at + 1 :])
                    yield self._with(place, replace(table, columns=columns))
                if len(table.columns) > 1 and not re.search(rf"\.{column.name}\b", sql) and not table.deleted:
                    yield self._with(place, _without(table, at))


def _without(table: Table, at: int) -> Table:
    batches = tuple(
        replace(batch, rows=tuple(row[:at] + row[at + 1 :] for row in batch.rows)) for batch in table.batches
    )
    return replace(table, columns=table.columns[:at] + table.columns[at + 1 :], batches=batches)

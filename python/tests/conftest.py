"""What the tests share."""

from collections.abc import Iterator

import pytest

import sinterdb


@pytest.fixture
def db() -> Iterator[sinterdb.Connection]:
    """Open an empty database in memory."""
    with sinterdb.connect() as connection:
        yield connection


@pytest.fixture
def slow() -> str:
    """Return a query that runs for many seconds unless it is stopped."""
    return "SELECT sum(value % 7) FROM range(20000000000)"

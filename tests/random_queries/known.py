"""What SinterDB refuses, by design or for now, while DuckDB answers it; and the other way round.

Each with its reason. A query that ends so counts as unjudged and not as a difference; the report says how many there
are. Wrong answers have no place here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """An error of one engine that is no difference."""

    engine: str
    message: str
    """A pattern that is in the message."""
    reason: str


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "SinterDB",
        "Projections require unique expression names",
        "a column and a cast of it, both grouped by or both keys of a subquery, are taken for one",
    ),
    Refusal(
        "SinterDB",
        "a subquery that refers to the rows around it .* join with the subquery instead",
        "what a subquery refers to may be other values when it is read twice, such as those of lag()",
    ),
    Refusal(
        "DuckDB",
        "INTERNAL Error: Failed to bind column reference",
        "a column that its optimizer has left behind (DuckDB 2.0.0, with IN of a subquery)",
    ),
    Refusal(
        "DuckDB",
        "dict-surviving cache: global dictionary column",
        "a defect of its dictionaries (DuckDB 2.0.0); none of its answers is to be had until it gets other tables",
    ),
    Refusal(
        "DuckDB",
        "must appear in the GROUP BY clause or must be part of an aggregate function",
        "a key `a OR b`, or one with AND, within a longer chain, of which it makes one before it looks for keys",
    ),
)


def refusal(engine: str, message: str) -> Refusal | None:
    """Return why an error of this engine alone is known."""
    for known in REFUSALS:
        if known.engine == engine and re.search(known.message, message):
            return known
    return None

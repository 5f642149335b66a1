"""What is told of many queries."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from random_queries.running import Outcome

SHARE_MIN = 0.05
ROWS_SHARE_MIN = 0.8
OURS_SHARE_MIN = 0.95
"""Of the queries whose plans were looked at, those in which no operator is DataFusion's."""

WANTED = ("outer join", "three-way join", "correlated subquery", "window", "grouping sets", "set operation")
"""Features that at least `SHARE_MIN` of the queries have, once there are enough queries to tell."""

ENOUGH = 500


@dataclass
class Report:
    """Counts over outcomes."""

    seed: int
    count: int = 0
    agree: int = 0
    with_rows: int = 0
    planned: int = 0
    ours_alone: int = 0
    features: Counter[str] = field(default_factory=Counter)
    foreign: Counter[str] = field(default_factory=Counter)
    unjudged: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    failures: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count one more."""
        self.count += 1
        self.features.update(outcome.features)
        self.with_rows += outcome.row_count > 0
        if outcome.foreign is not None:
            self.planned += 1
            self.ours_alone += not outcome.foreign
            self.foreign.update(set(outcome.foreign))
        if outcome.failure is not None:
            self.failures.append(outcome)
            if outcome.error:
                self.errors[outcome.error] += 1
        elif outcome.unjudged is not None:
            self.unjudged[outcome.unjudged] += 1
        else:
            self.agree += 1

    def shortages(self) -> list[str]:
        """Return what there is too little of, in words."""
        if self.count < ENOUGH:
            return []
        found = [
            f"too few queries have: {feature}" for feature in WANTED if self.features[feature] < SHARE_MIN * self.count
        ]
        if self.with_rows < ROWS_SHARE_MIN * self.count:
            found.append("too few queries return rows")
        if self.ours_alone < OURS_SHARE_MIN * self.planned:
            found.append("too many queries have an operator of DataFusion's")
        return found

    def progress(self, total: int) -> str:
        """Return where it stands."""
        return f"{self.count:,} of {total:,} queries, {len(self.failures)} differ"

    def failure(self, outcome: Outcome) -> str:
        """Return all there is to say about a failure."""
        again = f"scripts/random-queries --only {outcome.number} 1 {self.seed}"
        return f"\nDIFFERENT: query {outcome.number} of seed {self.seed}; again with {again}\n{outcome.failure}\n"

    def lines(self, seconds: float) -> list[str]:
        """Return the whole report."""
        lines = [f"{self.count:,} queries of seed {self.seed} in {seconds:.0f} s"]

        def say(name: str, number: int, of: int) -> None:
            share = f"{100 * number / of:.1f} %" if of else "-"
            lines.append(f"  {name:<28}{number:>8,}{share:>10}")

        say("agree", self.agree, self.count)
        say("differ", len(self.failures), self.count)
        say("unjudged", sum(self.unjudged.values()), self.count)
        say("return rows", self.with_rows, self.count)
        say("no operator of DataFusion's", self.ours_alone, self.planned)
        for title, counts in (
            ("queries with", self.features),
            ("queries in which DataFusion runs", self.foreign),
            ("unjudged", self.unjudged),
            ("errors of one engine alone", self.errors),
        ):
            if counts:
                lines.append(f"{title}:")
                for name, number in counts.most_common():
                    say(name, number, self.count) if len(name) < 28 else lines.append(f"  {number:>6,}  {name}")
        if self.failures:
            lines.append("differ: queries " + ", ".join(str(outcome.number) for outcome in self.failures))
        return lines + self.shortages()

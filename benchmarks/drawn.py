"""Draws a record anew, or for the first time where what wrote it draws nothing (`sinter-bench throttled`)."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks import scales, throttled
from benchmarks.report import say

DRAWINGS = {"scales": scales.drawing, "throttled": throttled.drawing}
"""By the record's suite."""


def add(suites: Any) -> None:
    """Add the command."""
    suite = suites.add_parser("draw", help=f"the plot of a record ({', '.join(DRAWINGS)}), into an SVG beside it")
    suite.add_argument("records", type=Path, nargs="+", metavar="RECORD.json")
    suite.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Draw all; 1 where there is a record of another suite, which has no plot."""
    for path in arguments.records:
        record = json.loads(path.read_text())
        if record.get("suite") not in DRAWINGS:
            say(f"{path}: there are plots of {', '.join(DRAWINGS)}, and none of {record.get('suite')}")
            return 1
        drawn = path.with_suffix(".svg")
        drawn.write_text(DRAWINGS[record["suite"]](record))
        say(f"drawn to {drawn}")
    return 0

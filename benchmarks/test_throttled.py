"""What is drawn of a record of `sinter-bench throttled`."""

import argparse
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks import drawn, throttled

SVG = "{http://www.w3.org/2000/svg}"


def cell(form: str, mb_per_second: int | None, **seconds: float) -> dict[str, Any]:
    parts = {part: seconds.get(part, 0.0) for part in throttled.PARTS}
    return {"query": "q06", "form": form, "mb_per_second": mb_per_second, "time_s": sum(parts.values()), **parts}


RECORD = {
    "suite": "throttled",
    "scale_factor": 1.0,
    "threads": 1,
    "runs": 3,
    "machine": {"cpu": "A & B"},
    "commit": "0",
    "date": "2026-11-28 12:00 UTC",
    "results": [
        cell(f"{layout}{form}", disk, **seconds)
        for layout in throttled.LAYOUTS
        for disk in (80, None)
        for form, seconds in (
            ("", {"io_s": 3.0, "other_s": 1.0}),
            (", compressed", {"io_s": 0.5, "decompression_s": 0.5, "other_s": 1.0}),
        )
    ],
}


def test_bars_are_in_parts_of_the_plain_ones_time() -> None:
    root = ElementTree.fromstring(throttled.drawing(RECORD))
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert words.count("2\N{MULTIPLICATION SIGN}") == 4
    assert {"80 MB/s, by column (DSM)", "from memory, by row group (PAX)", "Q06", "decompression"} <= set(words)
    bars = [float(bar.attrib["width"]) for bar in root.iter(f"{SVG}rect") if bar.attrib["height"] == f"{throttled.BAR}"]
    of_first_panel = [width / throttled.PANEL_WIDTH for width in bars[:5]]
    assert of_first_panel == pytest.approx([0.75, 0.25, 0.125, 0.125, 0.25], abs=0.001)


def test_what_is_compressed_may_take_longer() -> None:
    assert throttled.ticks(1.3) == [0.0, 0.5, 1.0]
    assert throttled.ticks(2.0) == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert throttled.ticks(7.0) == [0.0, 2.0, 4.0, 6.0]


def test_a_record_is_drawn_beside_itself(tmp_path: Path) -> None:
    record, other = tmp_path / "record.json", tmp_path / "other.json"
    record.write_text(json.dumps(RECORD))
    other.write_text(json.dumps({"suite": "commits"}))
    assert drawn.run(argparse.Namespace(records=[record])) == 0
    assert record.with_suffix(".svg").read_text() == throttled.drawing(RECORD)
    assert drawn.run(argparse.Namespace(records=[other])) == 1
    assert not other.with_suffix(".svg").exists()

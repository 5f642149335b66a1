"""What `sinter-bench throttled` measured, drawn as in figure 8 of Zukowski et al., ICDE 2006: how time divides.

For each query a bar of what is not compressed, and below it one of what is, both in parts of the first one's time. A
panel is of a layout on a disk. There is no background, as in `plot`.
"""

from __future__ import annotations

import math
from typing import Any

from benchmarks import plot
from benchmarks.plot import FONT, GRID, LINE_HEIGHT, text

LAYOUTS = {"dsm": "by column (DSM)", "pax": "by row group (PAX)"}
PARTS = {
    "io_s": ("waiting for the disk", GRID),
    "decompression_s": ("decompression", plot.COLOURS[0]),
    "other_s": ("other work", plot.COLOURS[1]),
}

PANEL_WIDTH, BAR, GROUP = 250, 9, 25
"""A panel's plot; the height of a bar, and of a query's two with the space between queries."""
LEFT, RIGHT, TOP, HEADING, BELOW = 44, 64, 78, 30, 46
"""Names of queries, the factor beside a bar; the title with the legend, a panel's title, the scale below it."""


def disk(mb_per_second: int | None) -> str:
    """Return what a panel's data come from."""
    return "from memory" if mb_per_second is None else f"{mb_per_second} MB/s"


def ticks(longest: float) -> list[float]:
    """Return round parts of the first bar's time, up to the longest bar's."""
    step = 0.5 if longest <= 2 else 2.0 ** math.ceil(math.log2(longest / 4))
    return [step * number for number in range(math.floor(longest / step) + 1)]


def draw_panel(title: str, pairs: dict[str, list[dict[str, Any]]], left: float, top: float) -> list[str]:
    """Return the elements of a panel whose plot begins at `left`: pairs are of what is plain and compressed."""
    longest = max([1.0, *(pressed["time_s"] / plain["time_s"] for plain, pressed in pairs.values())])
    bottom = top + HEADING + GROUP * len(pairs)

    def across(part: float) -> float:
        return left + PANEL_WIDTH * part / longest

    out = [text(left, top + 12, title, weight="bold")]
    for part in ticks(longest):
        out.append(plot.stroke([(across(part), top + HEADING - 6), (across(part), bottom)], GRID, 0.6))
        out.append(text(across(part), bottom + 18, f"{part:.0%}", anchor="middle"))
    for number, (query, (plain, pressed)) in enumerate(pairs.items()):
        begin = top + HEADING + GROUP * number
        out.append(text(left - 8, begin + 14, query.upper(), anchor="end"))
        for place, cell in enumerate((plain, pressed)):
            done = 0.0
            for part, (_, colour) in PARTS.items():
                share = cell.get(part, 0.0) / plain["time_s"]
                if share == 0.0:
                    continue
                out.append(
                    f'<rect x="{across(done):.1f}" y="{begin + place * (BAR + 1):.1f}" '
                    f'width="{across(share) - left:.1f}" height="{BAR}" fill="{colour}"/>'
                )
                done += share
        end = across(pressed["time_s"] / plain["time_s"])
        out.append(text(end + 6, begin + 18, f"{plain['time_s'] / pressed['time_s']:.2g}\N{MULTIPLICATION SIGN}"))
    return out


def drawing(record: dict[str, Any]) -> str:
    """Return the plot of a record."""
    cells = {(cell["form"], cell["mb_per_second"], cell["query"]): cell for cell in record["results"]}
    disks = list(dict.fromkeys(cell["mb_per_second"] for cell in record["results"]))
    queries = list(dict.fromkeys(cell["query"] for cell in record["results"]))
    step, row = LEFT + PANEL_WIDTH + RIGHT, HEADING + GROUP * len(queries) + BELOW
    width, height = step * len(disks), TOP + row * len(LAYOUTS) + 3 * LINE_HEIGHT
    title = "TPC-H, plain (upper bars) and compressed (lower)"
    out = plot.begin(title, width, height, LEFT)
    place = float(LEFT)
    for name, colour in PARTS.values():
        out.append(f'<rect x="{place:.1f}" y="44" width="11" height="11" fill="{colour}"/>')
        out.append(text(place + 17, 54, name))
        place += 17 + 0.62 * FONT * len(name) + 24
    for down, (layout, words) in enumerate(LAYOUTS.items()):
        for across, mb_per_second in enumerate(disks):
            forms = (layout, f"{layout}, compressed")
            pairs = {query: [cells[form, mb_per_second, query] for form in forms] for query in queries}
            panel = draw_panel(f"{disk(mb_per_second)}, {words}", pairs, LEFT + step * across, TOP + row * down)
            out += ["<g>", *panel, "</g>"]
    notes = (
        "Each query's bars are in parts of the plain one's time; the number says how many times as fast compressed is.",
        f"Scale factor {record['scale_factor']:g}, {record['threads']} thread(s), medians of {record['runs']} runs; "
        f"{record['machine']['cpu']}; commit {record['commit']}; {record['date'].split()[0]}",
    )
    for number, note in enumerate(reversed(notes)):
        out.append(text(LEFT, height - LINE_HEIGHT * (number + 1), note))
    return "\n".join([*out, "</svg>"]) + "\n"

"""Lines in panels with logarithmic axes, as SVG: each line is labelled where it ends, so there is no legend.

There is no background, and all colours are of middle lightness, so that a plot can be read on white and on dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape

TEXT = "#7b818a"
"""Its contrast is 3.9 to 1 on white and 4.8 to 1 on near black; that of lines is at least 3.6 to 1 on both."""
GRID = "#8b929c"
COLOURS = ("#e0521b", "#3b82d6", "#15977a", "#a667d8", "#a87b12", "#d1497f")
"""Told apart by people who see few colours as well; a line's label has its colour."""

PANEL_WIDTH, PANEL_HEIGHT = 330, 330
LEFT, RIGHT, TOP, BOTTOM = 74, 200, 78, 92
"""Around a panel: values, labels of lines, headings, the scale below."""
FONT = 13
LINE_HEIGHT = 17


@dataclass(frozen=True)
class Line:
    """Points that belong together."""

    label: str
    colour: str
    points: list[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """A pair of axes and its lines."""

    title: str
    across: str
    """What the horizontal axis is."""
    lines: list[Line]
    figure: Callable[[float], str]
    """How a value of the vertical axis is written, with its unit."""
    guide: str | None = None
    """The label of a line of slope 1, where there is to be one."""
    places: list[float] = field(default_factory=list)
    """Where the horizontal axis has its values; where points are, if empty."""

    def xs(self) -> list[float]:
        """Return where the horizontal axis has its values."""
        return self.places or sorted({x for line in self.lines for x, _ in line.points})


def seconds(value_ms: float) -> str:
    """Write milliseconds in the unit that suits them."""
    return f"{value_ms:g} ms" if value_ms < 1000 else f"{value_ms / 1000:g} s"


def size(bytes_: float) -> str:
    """Write bytes in the unit that suits them."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if bytes_ >= factor:
            return f"{bytes_ / factor:g} {unit}"
    return f"{bytes_:g} bytes"


def ticks(low: float, high: float) -> list[float]:
    """Return round values of a logarithmic axis: powers of ten, with others between where those are few."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    span = math.log10(high / low)
    steps = (1, 2, 5) if span < 2 else (1, 3) if span < 3 else (1,)
    return [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]


def bounds(values: list[float], room: float) -> tuple[float, float]:
    """Return the ends of an axis with some room beyond the values, as a share of their range."""
    low, high = min(values), max(values)
    beyond = (high / low) ** room if high > low else 2.0
    return low / beyond, high * beyond


def apart(wanted: list[float], gap: float, low: float, high: float) -> list[float]:
    """Return where labels go that would like to be at `wanted`, ascending: `gap` apart, between low and high."""
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + gap if places else low))
    limit = high
    for number in reversed(range(len(places))):
        places[number] = min(places[number], limit)
        limit = places[number] - gap
    return places


def text(x: float, y: float, words: str, colour: str = TEXT, anchor: str = "start", weight: str = "normal") -> str:
    """Return a text element."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(words, quote=False)}</text>"
    )


def stroke(points: list[tuple[float, float]], colour: str, width: float, more: str = "") -> str:
    """Return a line through points."""
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="{width:g}"{more}/>'


def draw_panel(panel: Panel, left: float) -> list[str]:
    """Return the elements of a panel whose plot begins at `left`."""
    xs = panel.xs()
    x_low, x_high = bounds([*xs, *(x for line in panel.lines for x, _ in line.points)], 0.04)
    y_low, y_high = bounds([y for line in panel.lines for _, y in line.points], 0.06)
    right, bottom = left + PANEL_WIDTH, TOP + PANEL_HEIGHT

    def across(x: float) -> float:
        return left + PANEL_WIDTH * math.log(x / x_low) / math.log(x_high / x_low)

    def up(y: float) -> float:
        return bottom - PANEL_HEIGHT * math.log(y / y_low) / math.log(y_high / y_low)

    out = [text(left, TOP - 14, panel.title, weight="bold")]
    for y in ticks(y_low, y_high):
        out.append(stroke([(left, up(y)), (right, up(y))], GRID, 0.6, ' stroke-opacity="0.35"'))
        out.append(text(left - 8, up(y) + 4, panel.figure(y), anchor="end"))
    out.append(stroke([(left, bottom), (right, bottom)], GRID, 1))
    for x in xs:
        out.append(stroke([(across(x), bottom), (across(x), bottom + 5)], GRID, 1))
        out.append(text(across(x), bottom + 21, f"{x:g}", anchor="middle"))
    out.append(text(left + PANEL_WIDTH / 2, bottom + 44, panel.across, anchor="middle"))
    if panel.guide is not None and len(xs) > 1:
        out += draw_guide(panel.guide, [(across(x), up(y)) for x, y in guide(panel, xs, y_low, y_high)])
    ends = sorted(panel.lines, key=lambda line: up(line.points[-1][1]))
    labels = apart([up(line.points[-1][1]) for line in ends], LINE_HEIGHT, TOP + 4, bottom)
    for line, label in zip(ends, labels, strict=True):
        points = [(across(x), up(y)) for x, y in line.points]
        dashes = ' stroke-dasharray="5 4"' if line.dashed else ""
        out.append(stroke(points, line.colour, 2.2, f'{dashes} stroke-linejoin="round"'))
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4" fill="{line.colour}"/>' for x, y in points]
        x, y = points[-1]
        if abs(label - y) > 3:
            out.append(stroke([(x + 6, y), (right + 6, label)], line.colour, 0.8, ' stroke-opacity="0.6"'))
        out.append(text(right + 10, label + 4, line.label, line.colour))
    return out


def guide(panel: Panel, xs: list[float], y_low: float, y_high: float) -> list[tuple[float, float]]:
    """Return the ends of a line of slope 1, below all others where the panel has room, and within it."""
    lowest = min(y / x for line in panel.lines for x, y in line.points)
    first, last = xs[0], xs[-1]
    factor = max(lowest * 0.6, y_low / last * 2)
    begin = max(first, y_low / factor)
    return [(begin, begin * factor), (min(last, y_high / factor), min(last, y_high / factor) * factor)]


def draw_guide(label: str, points: list[tuple[float, float]]) -> list[str]:
    """Return a line to compare with, and its label."""
    (x, y), (end_x, end_y) = points
    middle = ((x + end_x) / 2 + 8, (y + end_y) / 2 + 16)
    return [stroke(points, GRID, 1.2, ' stroke-dasharray="1 4" stroke-linecap="round"'), text(*middle, label)]


def begin(title: str, width: float, height: float, left: float) -> list[str]:
    """Return the head of a drawing of that size, with its title, which begins at `left`."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="{FONT}" role="img" aria-label="{escape(title)}">',
        f'<g font-size="16">{text(left, 30, title, weight="bold")}</g>',
    ]


def draw(title: str, panels: list[Panel], notes: list[str]) -> str:
    """Return a drawing: panels side by side under a title, with notes below."""
    step = LEFT + PANEL_WIDTH + RIGHT
    width, height = step * len(panels), TOP + PANEL_HEIGHT + BOTTOM + LINE_HEIGHT * max(len(notes) - 1, 0)
    lines = begin(title, width, height, LEFT)
    for number, panel in enumerate(panels):
        lines += ["<g>", *draw_panel(panel, LEFT + step * number), "</g>"]
    for number, note in enumerate(notes):
        lines.append(text(LEFT, TOP + PANEL_HEIGHT + 76 + LINE_HEIGHT * number, note))
    return "\n".join([*lines, "</svg>"]) + "\n"

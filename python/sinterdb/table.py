"""Rows as a table of text, for terminals, and as HTML, for notebooks."""

from __future__ import annotations

import html
import shutil
import unicodedata
from collections.abc import Sequence
from typing import Any

from sinterdb.dbapi import NUMBER

ROW_COUNT_MAX = 20
"""Rows shown unless asked otherwise."""

_CELL_WIDTH_MAX = 48


def cell(value: Any) -> str:
    """Return one value as it stands in a table."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    # Control characters would tear the table apart.
    return "".join(_visible(character) for character in str(value))


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def _width(text: str) -> int:
    """Columns of a terminal that `text` takes: wide letters take two, combining marks none."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) != 0 for character in text)


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    while _width(text) > width - 1:
        text = text[:-1]
    return text + "…"


def _pad(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks


def _fit(widths: list[int], room: int) -> list[int | None]:
    """Return the columns that fit into `room`, from both ends; None stands for those left out between them."""
    if sum(widths) + 3 * len(widths) + 1 <= room:
        return list(range(len(widths)))
    left: list[int | None] = [0]
    right: list[int | None] = []
    used = widths[0] + 4 + 4
    for step in range(1, len(widths)):
        place = step // 2 + 1 if step % 2 == 0 else len(widths) - (step + 1) // 2
        used += widths[place] + 3
        if used > room:
            break
        (left if step % 2 == 0 else right).append(place)
    return [*left, None, *reversed(right)]


def as_text(
    columns: Sequence[str], types: Sequence[str], rows: Sequence[tuple[Any, ...]], more: bool, width: int | None = None
) -> str:
    """Return a table; `more` says that there are rows besides these."""
    room = width or shutil.get_terminal_size((120, 24)).columns
    lines = [[cell(name) for name in columns], list(types)]
    lines += [[_cut(cell(value), _CELL_WIDTH_MAX) for value in row] for row in rows]
    lines = [[_cut(text, _CELL_WIDTH_MAX) for text in line] for line in lines]
    widths = [max(_width(line[place]) for line in lines) for place in range(len(columns))]
    places = _fit(widths, room)
    number = [NUMBER == kind for kind in types]

    def rule(left: str, middle: str, right: str) -> str:
        return left + middle.join("─" * ((1 if place is None else widths[place]) + 2) for place in places) + right

    def row(line: list[str], right: list[bool]) -> str:
        cells = ["…" if place is None else _pad(line[place], widths[place], right[place]) for place in places]
        return "│ " + " │ ".join(cells) + " │"

    left = [False] * len(columns)
    out = [rule("┌", "┬", "┐"), row(lines[0], left), row(lines[1], left), rule("├", "┼", "┤")]
    out += [row(line, number) for line in lines[2:]]
    out += [rule("└", "┴", "┘"), count(len(rows), more)]
    return "\n".join(out)


def as_html(columns: Sequence[str], types: Sequence[str], rows: Sequence[tuple[Any, ...]], more: bool) -> str:
    """Return an HTML table."""
    head = "".join(
        f"<th>{html.escape(name)}<br><small>{html.escape(kind)}</small></th>"
        for name, kind in zip(columns, types, strict=True)
    )
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell(v))}</td>" for v in row) + "</tr>" for row in rows)
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p>{html.escape(count(len(rows), more))}</p>"
    )


def count(rows: int, more: bool) -> str:
    """Say how many rows there are."""
    if more:
        return f"first {rows} rows; there are more"
    return "1 row" if rows == 1 else f"{rows} rows"

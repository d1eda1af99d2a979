"""The lines of a page, wrapped to the width of the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import TextWrapper
from typing import Any, Final

import click

WIDTH_MIN: Final = 40
WIDTH_MAX: Final = 120
"""Longer lines are hard to read, whatever the terminal's width."""
INDENT: Final = "    "


class Page:
    """The lines of one page, added from top to bottom."""

    def __init__(self, width: int, color: bool) -> None:
        self._width = width
        self._color = color
        self._lines: list[str] = []

    def text(self) -> str:
        """All lines, each with its end."""
        return "".join(f"{line}\n" for line in self._lines)

    def blank(self) -> None:
        """Add an empty line."""
        self._lines.append("")

    def add(self, text: str, *, first: str = "", rest: str = "", **style: Any) -> None:
        """Add a paragraph. ``first`` stands before its first line, ``rest`` before the others.

        ``style`` applies to the first word if it has a colour, else to the first line.
        """
        wrapper = TextWrapper(
            self._width,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines = wrapper.wrap(text)
        if self._color and style:
            lines[0] = self._styled(lines[0], first, style)
        self._lines += lines

    def _styled(self, line: str, first: str, style: dict[str, Any]) -> str:
        body = line[len(first) :]
        if "fg" not in style:
            return first + click.style(body, **style)
        word, space, rest = body.partition(" ")
        return first + click.style(word, **style) + space + rest

    def rows(self, rows: Sequence[Sequence[str]]) -> None:
        """Add columns side by side, and wrap the last one. If the others take more than half of the
        page, the last one stands below them."""
        widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)][:-1]
        is_wide = 2 * (len(INDENT) + sum(widths)) > self._width
        for *cells, last in rows:
            head = "".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
            if is_wide:
                self.add("  ".join(cells), first=INDENT, rest=INDENT)
                self.add(last, first=2 * INDENT, rest=2 * INDENT)
            else:
                self.add(last, first=INDENT + head, rest=INDENT + " " * len(head))

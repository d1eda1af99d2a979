"""Rows of any table as JSON, CSV, or a table for a terminal.

JSON and CSV have every value in full. They are written row by row, so a table may have any size.
In a table, long names continue on the next line; neither names nor numbers are cut. If the columns
do not fit beside each other, or a sentence would get a narrow column, each row is a paragraph.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headgate.base.texts import printable
from headgate.pipeline.options import Format

WIDTH_MIN: Final = 40
WIDTH_MAX: Final = 200

_FOLDED_MIN: Final = 16
"""Least width of a column of names; if it does not fit, rows become paragraphs."""
_SENTENCE_MIN: Final = 48
"""Least width of a column of sentences, in characters."""
_SENTENCE_WORDS_MIN: Final = 6
"""A text of so many words is a sentence, not a name."""
_PADDING: Final = 2
_BETWEEN: Final = _PADDING + 1
"""Characters between two columns."""
_ISO_DAY: Final = len("2026-11-21T10:00:00")

Row = Mapping[str, Any]


def plain_value(value: Any) -> Any:
    """A value as JSON and CSV have it: times in ISO 8601 with Z, bytes in hexadecimal.

    Infinity and NaN, which JSON does not have, become null, and decimals become floats. Types
    that neither format has, such as intervals of Spark, become text.
    """
    if isinstance(value, dict):
        return {str(key): plain_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(each) for each in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, Decimal):
        return plain_value(float(value))
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else str(value)


def write_rows(
    style: Format,
    columns: Sequence[str],
    rows: Iterable[Row],
    out: TextIO,
    *,
    width: int = 80,
    color: bool = False,
) -> int:
    """Write rows, and nothing else, to ``out``; returns how many there were.

    Without rows, CSV has its header, JSON an empty array and the table is empty.
    """
    plain = ({name: plain_value(row.get(name)) for name in columns} for row in rows)
    if style == "json":
        return _write_json(plain, out)
    if style == "csv":
        return _write_csv(columns, plain, out)
    return _write_table(columns, list(plain), out, min(max(width, WIDTH_MIN), WIDTH_MAX), color)


def _write_json(rows: Iterable[Row], out: TextIO) -> int:
    count = 0
    out.write("[")
    for row in rows:
        out.write(f"{',' * bool(count)}\n{json.dumps(row)}")
        count += 1
    out.write("\n]\n" if count else "]\n")
    return count


def _write_csv(columns: Sequence[str], rows: Iterable[Row], out: TextIO) -> int:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    count = 0
    for row in rows:
        writer.writerow([_csv_text(row[name]) for name in columns])
        count += 1
    return count


def _csv_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, dict | list) else value


def _write_table(
    columns: Sequence[str], rows: Sequence[Row], out: TextIO, width: int, color: bool
) -> int:
    if not rows:
        return 0
    # Columns without values would only take room from the others.
    shown = [name for name in columns if any(row[name] is not None for row in rows)]
    console = Console(
        file=out, width=width, highlight=False, markup=False, emoji=False,
        force_terminal=color, no_color=not color, legacy_windows=False,
    )  # fmt: skip
    texts = [{name: _cell(name, row[name]) for name in shown} for row in rows]
    numeric = {name for name in shown if all(_is_number(row[name]) for row in rows)}
    widths_min = {name: _width_min(name, texts, name in numeric) for name in shown}
    spare = width - sum(widths_min.values()) - _BETWEEN * len(shown)
    if spare < 0:
        _write_paragraphs(shown, texts, console)
        return len(rows)
    widths = _widths(widths_min, texts, spare)
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, _PADDING, 0, 0),
        expand=False,
    )
    for name in shown:
        table.add_column(
            Text(name), overflow="fold", width=widths[name],
            justify="right" if name in numeric else "left",
        )  # fmt: skip
    for row in texts:
        table.add_row(*(Text(row[name]) for name in shown))
    console.print(table)
    return len(rows)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _width_min(name: str, texts: Sequence[Mapping[str, str]], is_number: bool) -> int:
    """The least width of a column: numbers, times and headings whole, names folded, and sentences
    wide enough to be read."""
    longest = max(len(row[name]) for row in texts)
    folded = max(_FOLDED_MIN, _ISO_DAY + 1)
    if any(len(row[name].split()) >= _SENTENCE_WORDS_MIN for row in texts):
        folded = _SENTENCE_MIN
    limit = longest if is_number else min(longest, folded)
    return max(limit, len(name))


def _widths(
    widths_min: Mapping[str, int], texts: Sequence[Mapping[str, str]], spare: int
) -> dict[str, int]:
    """The width of each column. The shortest takes what it can use of the spare characters first.

    Rich itself would narrow a sentence where a name has width to spare, and then cut the line.
    """
    longest = {name: max(len(row[name]) for row in texts) for name in widths_min}
    widths = dict(widths_min)
    for name in sorted(widths_min, key=longest.__getitem__):
        more = min(spare, max(0, longest[name] - widths_min[name]))
        widths[name] += more
        spare -= more
    return widths


def _write_paragraphs(
    columns: Sequence[str], texts: Sequence[Mapping[str, str]], console: Console
) -> None:
    label = max(len(name) for name in columns)
    for place, row in enumerate(texts):
        if place:
            console.print()
        grid = Table.grid(padding=(0, _PADDING, 0, 0))
        grid.add_column(min_width=label, style="bold")
        grid.add_column(overflow="fold")
        for name in columns:
            if row[name]:
                grid.add_row(name, Text(row[name]))
        console.print(grid)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, int):
        # Users copy an instant: separators would break it.
        return str(value) if name.endswith("_ns") else f"{value:,}"
    return printable(json.dumps(value) if isinstance(value, dict | list) else str(value))


def _float_text(value: float) -> str:
    if value == 0 or abs(value) >= 1_000:
        return f"{value:,.0f}"
    text = f"{value:,.2f}" if abs(value) >= 0.9995 else f"{value:.3g}"
    return text if "e" in text or "." in text else f"{text}.0"

"""Causes that held producers over a range, as text, JSON or CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any, Final, TextIO

from headgate.base.units import NS_PER_S
from headgate.pipeline.options import Format
from headgate.pipeline.output.attribution import (
    WIDTH_MAX,
    bold,
    paragraph_wrapper,
    topic_text,
    topics_text,
)
from headgate.pipeline.output.rows import write_rows
from headgate.pipeline.time_span import instant
from headgate.record.fields import PARK_CAUSES

PRODUCER_COLUMNS: Final = (
    "cluster", "topic", "incarnation", "cause", "second_cause", "held_share", "completeness",
    "evidence", "seconds", "msgs_in", "bytes_in", "producers",
    *(f"held_{cause}_s" for cause in PARK_CAUSES), "sentence",
)  # fmt: skip
"""Columns of a topic in JSON and CSV."""

_DIGITS: Final = 6


def producers_document(row: Mapping[str, Any]) -> dict[str, Any]:
    """A topic of :func:`headgate.pipeline.steps.publishing.publish_judgements` as JSON shows it.

    ``held_CAUSE_s``: time in which that cause held at least one message; None if unknown.
    """
    held = {
        f"held_{cause}_s": None if ns is None else ns / NS_PER_S
        for cause in PARK_CAUSES
        for ns in (row[f"parked_{cause}_ns"],)
    }
    document = {name: row.get(name) for name in PRODUCER_COLUMNS} | held
    for name in ("held_share", "completeness"):
        document[name] = None if row[name] is None else round(row[name], _DIGITS)
    return document | {
        "topic": topic_text(row),
        "seconds": (row["to_ns"] - row["from_ns"]) / NS_PER_S,
    }


def held_longest_first(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Topics by the time for which their first cause held, then by name."""

    def held_ns(row: Mapping[str, Any]) -> int:
        return row[f"parked_{row['cause']}_ns"] if row["cause"] is not None else 0

    return sorted(rows, key=lambda row: (-held_ns(row), row["cluster"] or "", topic_text(row)))


def write_producers(
    rows: Sequence[Mapping[str, Any]],
    style: Format,
    out: TextIO,
    *,
    width: int = WIDTH_MAX,
    color: bool = False,
) -> None:
    """Write topics to ``out``, those held for longest first: JSON, CSV or, as a ``table``,
    paragraphs about those that were held at all. Names are never broken."""
    ordered = held_longest_first(rows)
    if style != "table":
        write_rows(style, PRODUCER_COLUMNS, map(producers_document, ordered), out)
        return
    if not rows:
        out.write("No topic has telemetry in this range.\n")
        return
    held = [row for row in ordered if row["cause"] is not None]
    wrapper = paragraph_wrapper(width)
    begin, end = min(row["from_ns"] for row in rows), max(row["to_ns"] for row in rows)
    title = f"{instant(begin)} to {instant(end)}: {_held_text(len(held), len(rows))}"
    for line in wrap(title, wrapper.width):
        out.write(f"{bold(line, color)}\n")
    clusters = {row["cluster"] for row in rows}
    for place, row in enumerate(held, start=1):
        where = f"{row['cluster']}: " * (len(clusters) > 1)
        name = topic_text(row).removeprefix("persistent://")
        paragraphs = (f"{_traffic(row)}", f"{row['sentence']}.")
        out.write(f"\n{place:>2}. {bold(where + name, color)}\n")
        out.write("\n".join(line for text in paragraphs for line in wrapper.wrap(text)) + "\n")


def _held_text(held: int, topics: int) -> str:
    of = topics_text(topics)
    if not held:
        return f"nothing held the producers of {of}"
    order = ", the one held for longest first" * (held > 1)
    return f"the producers of {held:,} of {of} were held{order}"


def _traffic(row: Mapping[str, Any]) -> str:
    """``12,000 messages in 120 s (100/s), 2 producers at the end``."""
    seconds = (row["to_ns"] - row["from_ns"]) / NS_PER_S
    messages = row["msgs_in"] or 0
    text = f"{messages:,} messages in {seconds:,.0f} s ({messages / seconds:,.0f}/s)"
    producers = row["producers"]
    if producers is None:
        return text
    return f"{text}, {producers:,} {'producer' if producers == 1 else 'producers'} at the end"

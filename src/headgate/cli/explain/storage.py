"""The page of ``headgate explain --storage``: what takes the disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headgate.base.texts import size_text
from headgate.cli.explain.figures import (
    Report,
    capitalized,
    count_text,
    instant_text,
    short_name,
)
from headgate.cli.explain.inferred import add_not_seen, is_inferred
from headgate.cli.explain.page import INDENT, Page

_PARTS: Final = (
    ("liveBytes", "retained", "records of retained messages"),
    ("pinnedBytes", "pinned", "records that nothing needs, in segments with retained messages"),
    ("deadBytes", "dead", "segments without retained messages, given back behind a checkpoint"),
    ("indexBytes", "index", "footers of segments"),
    ("openBytes", "open", "room of the segments that are being written"),
    ("checkpointBytes", "checkpoint", "the state from which a start goes on, and its copy"),
)
"""Field, word and meaning of each part of a log, in the order of the page."""

GROWTH_SHOWN_MIN: Final = 0.01
"""The page leaves out topics with a smaller part of the growth."""

_ALARMS: Final = ("filling", "full")
"""The states of the forecast in which the topics that fill the disk matter."""


def add_storage(page: Page, answer: Report) -> None:
    """Add the parts of each log, then the topics that keep most of it."""
    page.add(f"{answer['broker']}, {instant_text(answer['at'])}: what takes the disk", bold=True)
    for log in answer["logs"] or ():  # null in an agent's answer
        page.blank()
        name = "Telemetry log" if log["log"] == "telemetry" else "Log"
        segments = count_text(log["segments"], "segment")
        total = f"{name}: {size_text(log['fileBytes'])} in {segments}"
        page.add(f"{total}, for {size_text(log['liveBytes'])} of retained messages", bold=True)
        page.rows([(size_text(log[field]), word, text) for field, word, text in _PARTS])
        if log["writeAmplification"] is not None:
            written = size_text(log["messageBytesWritten"])
            page.add(
                f"{written} of messages came since the start; for each byte of them the log has "
                f"written {log['writeAmplification']:.2f} bytes.",
                first=INDENT,
                rest=INDENT,
            )
    _add_forecast(page, answer.get("forecast"))
    _add_tenants(page, answer.get("tenants") or ())
    topics = answer["topics"]
    page.blank()
    if not topics:
        page.add("No topic holds a message.")
        add_not_seen(page, answer)
        return
    most = "" if is_inferred(answer) else " beyond their own messages"
    page.add(f"Topics that keep most{most}:", bold=True)
    for place, holder in enumerate(topics, start=1):
        page.blank()
        page.add(short_name(holder["topic"]), first=f"{place:>2}. ", rest=INDENT, bold=True)
        lines = (
            _inferred_lines(holder) if is_inferred(answer) else _lines(holder, answer["started"])
        )
        for line in lines:
            page.add(line, first=INDENT, rest=INDENT)
    left_out = answer["topicsTotal"] - len(topics)
    if left_out > 0:
        page.blank()
        page.add(f"{left_out:,} more, which keep less; --count shows more.")
    add_not_seen(page, answer)


def _add_tenants(page: Page, tenants: Sequence[Report]) -> None:
    """Add what tenants store, if there are several, or one has a limit or is refused. Absent in
    answers of earlier releases, null in an agent's."""
    is_plain = all(each["bytesMax"] is None and not each["isFull"] for each in tenants)
    if len(tenants) < 2 and is_plain:
        return
    page.blank()
    page.add("Tenants that store most:", bold=True)
    for each in tenants:
        text = f"{each['tenant']}: {size_text(each['bytes'])}"
        if each["bytesMax"] is not None:
            text += f" of {size_text(each['bytesMax'])}"
        if each["isFull"]:
            bounds = () if each["bytesMax"] is None else ("headgateMaxStoragePerTenantMB",)
            reason = " or ".join((*bounds, "near the limit on the broker's memory"))
            text += f"; its producers are refused ({reason})"
        page.add(text, first=INDENT, rest=INDENT)


def _add_forecast(page: Page, forecast: Report | None) -> None:
    """Add whether the disk fills up, and what keeps the messages of the topics that fill it. It is
    absent in answers of earlier releases."""
    if forecast is None:
        return
    page.blank()
    page.add(f"{capitalized(forecast['sentence'])}.", bold=forecast["filling"] in _ALARMS)
    if forecast["filling"] not in _ALARMS:
        return
    shown_min = GROWTH_SHOWN_MIN * (forecast["growthBytesPerS"] or 0.0)
    for topic in forecast["topics"]:
        if topic["growthBytesPerS"] < shown_min:
            continue
        growth = f"{size_text(topic['growthBytesPerS'])}/s"
        held = size_text(topic["heldBytes"])
        page.add(
            f"{short_name(topic['topic'])} grows by {growth} and holds {held}: "
            f"{topic['sentence']}.",
            first=INDENT,
            rest=INDENT,
        )


def _inferred_lines(holder: Report) -> list[str]:
    return [f"Stores {size_text(holder['heldBytes'])}.", f"{capitalized(holder['sentence'])}."]


def _lines(holder: Report, started: str) -> list[str]:
    held, pinned = size_text(holder["heldBytes"]), size_text(holder["pinnedBytes"])
    segments = holder["segments"]
    where = f" in {count_text(segments, 'sealed segment')}" if segments else ""
    published = holder["lastPublish"]
    used = f"at {instant_text(published)}" if published else (
        f"before the broker's start at {instant_text(started)}"
    )  # fmt: skip
    freed = (
        f"deleting it frees {size_text(holder['freesBytes'])} at once"
        if holder["freesBytes"]
        else "deleting it frees nothing yet, as its messages are in the segment being written"
    )
    return [
        f"Pins {pinned} beyond its own {held}{where}; {freed}.",
        f"{capitalized(holder['sentence'])}.",
        f"The last message was published {used}.",
    ]

"""A screen of ``headgate top``, from an answer of explain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from headgate.base.texts import about_text, number, printable, size_text
from headgate.cli.explain.causes import CAUSES, cause_color, cause_name
from headgate.cli.explain.figures import (
    Report,
    capitalized,
    count_text,
    drains_in_s,
    instant_text,
    short_name,
)
from headgate.cli.explain.inferred import is_inferred
from headgate.cli.top.choices import ORDER_NAMES, Choices, growth_per_s, selected_row
from headgate.cli.top.hour import hour_text

_GAP: Final = 2
_CAUSE_WIDTH: Final = max(len(name) for name, _, _ in CAUSES.values()) + 1
_SUBJECT_MIN: Final = 26
"""Columns that leave less for the name are left out."""
_SUBJECT_MAX: Final = 64
_SUBJECT_HEAD: Final = "topic  subscription"
_HOUR_MIN: Final = 15
_HOUR_MAX: Final = 60
_MILLION: Final = 1_000_000
_DETAIL_LINES: Final = 5
_NOTICES_MAX: Final = 4
_UNKNOWN: Final = "-"
_INFERRED: Final = "~"
"""Before the cause if it was worked out from counters."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of figures."""

    head: str
    width: int
    cell: Callable[[Report], str]


def _growth(report: Report) -> str:
    per_s = growth_per_s(report)
    return "0/s" if abs(per_s) < 0.05 else f"{'+' if per_s > 0 else '-'}{number(abs(per_s))}/s"


def _drains(report: Report) -> str:
    left_s = drains_in_s(report)
    return _UNKNOWN if left_s is None or growth_per_s(report) >= -0.05 else about_text(left_s)


def _messages(report: Report) -> str:
    """Exact up to ten millions; more would not fit."""
    count: int = report["backlogMessages"]
    return f"{count:,}" if count < 10 * _MILLION else f"{count // _MILLION:,} M"


def _age(report: Report) -> str:
    return _UNKNOWN if report["oldestAgeS"] is None else about_text(report["oldestAgeS"])


def _size(report: Report) -> str:
    return _UNKNOWN if report["backlogBytes"] is None else size_text(report["backlogBytes"])


_MESSAGES: Final = Column("messages", 9, _messages)
_BY_VALUE: Final = (
    Column("oldest", 8, _age),
    Column("growth", 9, _growth),
    Column("empty in", 9, _drains),
    Column("size", 9, _size),
)
"""Those beside the number of messages; the first are the last to be left out."""


class Layout:
    """Which columns a width has room for."""

    def __init__(self, width: int, longest: int) -> None:
        """``longest`` is the length of the longest name in the table."""
        wanted = min(max(longest, len(_SUBJECT_HEAD)), _SUBJECT_MAX)
        least = min(wanted, _SUBJECT_MIN)
        left = width - _CAUSE_WIDTH - 2 * _GAP - least - _MESSAGES.width
        columns = [_MESSAGES]
        for column in _BY_VALUE:
            if left < column.width + _GAP:
                break
            columns.append(column)
            left -= column.width + _GAP
        self.columns = tuple(columns)
        # Of the rest, names get what they need, and the hour what they leave.
        has_hour = left >= _HOUR_MIN + _GAP
        longer = min(wanted - least, max(0, left - _HOUR_MIN - _GAP) if has_hour else left)
        self.subject = max(1, least + longer)
        self.hour = min(left - longer - _GAP, _HOUR_MAX) if has_hour else 0


def top_lines(
    answer: Report, rows: Sequence[Report], choices: Choices, width: int, height: int, *,
    is_drawn: bool, is_old: bool,
) -> list[Text]:  # fmt: skip
    """The screen without its last line: ``height`` lines of at most ``width`` characters.

    Args:
        answer: of ``explain`` without a topic.
        rows: its subscriptions that are shown, in their order.
        choices: the selected row among them, and what the head says about the others.
        width: in characters.
        height: in lines.
        is_drawn: whether bars and colours may be used.
        is_old: whether the figures are grey, because there are no newer ones.
    """
    layout = Layout(width, max(map(_subject_length, rows), default=0))
    head = list(_head(answer, choices, layout))
    place = selected_row(rows, choices)
    detail = _detail(rows[place], width, min(_DETAIL_LINES, max(1, height // 4))) if rows else []
    room = max(1, height - len(head) - len(detail))
    first = max(0, min(place - room // 2, len(rows) - room))
    body = [_row(report, layout, is_drawn=is_drawn) for report in rows[first : first + room]]
    if rows:
        chosen = body[place - first]
        # Without the hour, whose colours mean something.
        chosen.stylize("reverse", 0, len(chosen) - layout.hour)
    else:
        body.append(_nothing(answer))
    body += [Text()] * (room - len(body))
    lines = [*head, *body, *detail][:height]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
        if is_old:
            line.stylize("dim")
    return lines


def rows_that_fit(answer: Report, choices: Choices, width: int, height: int) -> int:
    """How many rows such a screen shows, about: a page of them."""
    return max(1, height - len(list(_head(answer, choices, Layout(width, 0)))) - _DETAIL_LINES - 1)


def _head(answer: Report, choices: Choices, layout: Layout) -> Iterator[Text]:
    title = Text.assemble(
        ("headgate top  ", "bold"),
        f"{printable(answer['broker'])}  {instant_text(answer['at'])}  ",
        f"{count_text(answer['subscriptionsTotal'], 'subscription')}, "
        f"{answer['withBacklog']:,} with a backlog",
    )  # fmt: skip
    yield title
    by: dict[str, int] = {}
    for report in answer["subscriptions"]:
        by[report["verdict"]] = by.get(report["verdict"], 0) + 1
    causes = Text()
    for verdict in sorted(by, key=lambda verdict: (-by[verdict], verdict)):
        causes.append(f"{cause_name(verdict)} ", cause_color(verdict))
        causes.append(f"{by[verdict]:,}   ", "bold")
    yield causes
    notices = list(_notices(answer))
    shown = notices if len(notices) <= _NOTICES_MAX else notices[: _NOTICES_MAX - 1]
    for notice in shown:
        yield Text(printable(notice), "bold red", no_wrap=True)
    if len(notices) > len(shown):
        yield Text(f"and {len(notices) - len(shown):,} more: headgate explain", "bold red")
    yield Text(_filters(answer, choices), "dim")
    yield _columns_head(layout, choices)


def _notices(answer: Report) -> Iterator[str]:
    """What concerns no single row: the disk, damage, producers that wait, quotas."""
    # An agent knows no storage, and says what it could not look at.
    if sentence := (answer.get("storage") or {}).get("sentence"):
        yield capitalized(sentence)
    yield from (f"Not seen: {text}" for text in answer.get("notSeen") or ())
    for each in answer["damaged"]:
        yield f"{short_name(each['topic'])} is damaged: {each['damage']}"
    for each in answer["publishing"]:
        yield f"{short_name(each['topic'])}: {each['sentence']}"
    held = {each["topic"] for each in answer["publishing"]}
    for each in answer["quotas"]:
        if each["topic"] not in held:
            yield f"{short_name(each['topic'])}: {each['quota']['sentence']}"


def _filters(answer: Report, choices: Choices) -> str:
    parts = [f"order: {ORDER_NAMES[choices.order]}"]
    if choices.cause:
        parts.append(f"cause: {cause_name(choices.cause)}")
    if choices.text or choices.is_typing:
        parts.append(f"text: {choices.text}{'_' if choices.is_typing else ''}")
    listed = len(answer["subscriptions"])
    if answer["withBacklog"] > listed:
        parts.append(f"the {listed:,} largest backlogs of {answer['withBacklog']:,}")
    return "   ".join(parts)


def _columns_head(layout: Layout, choices: Choices) -> Text:
    marks = {"messages": "backlog", "size": "size", "oldest": "age", "growth": "growth"}
    cells = [f"{'cause':<{_CAUSE_WIDTH}}", set_cell_size(_SUBJECT_HEAD, layout.subject)]
    for column in layout.columns:
        head = column.head + ("↓" if marks.get(column.head) == choices.order else "")
        cells.append(f"{head:>{column.width}}")
    if layout.hour:
        cells.append(set_cell_size("last hour", layout.hour))
    return Text((" " * _GAP).join(cells), "bold underline")


def _row(report: Report, layout: Layout, *, is_drawn: bool) -> Text:
    gap = " " * _GAP
    verdict = "DAMAGED" if report["damage"] else report["verdict"]
    cause = f"{_INFERRED if is_inferred(report) else ''}{cause_name(verdict)}"
    line = Text(set_cell_size(cause, _CAUSE_WIDTH), cause_color(verdict), no_wrap=True)
    line.append(gap + _subject(report, layout.subject), "default")
    for column in layout.columns:
        line.append(f"{gap}{column.cell(report):>{column.width}}", "default")
    if layout.hour:
        line.append(gap, "default")
        line.append_text(hour_text(report.get("timeline"), layout.hour, is_drawn=is_drawn))
    return line


def _subject(report: Report, width: int) -> str:
    """Topic and subscription; of a long topic the end stays, as names differ there."""
    topic = printable(short_name(report["topic"]))
    subscription = printable(report["subscription"])
    room = width - cell_len(topic) - _GAP
    if cell_len(subscription) > room:
        subscription = _beginning(subscription, max(room, width // 3))
        topic = _end(topic, width - _GAP - cell_len(subscription))
    return set_cell_size(f"{topic}{' ' * _GAP}{subscription}", width)


def _subject_length(report: Report) -> int:
    topic = printable(short_name(report["topic"]))
    return cell_len(topic) + _GAP + cell_len(printable(report["subscription"]))


def _beginning(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)) + "…"


def _end(text: str, width: int) -> str:
    while text and cell_len(text) > width:
        text = "…" + text[2:] if text.startswith("…") else "…" + text[1:]
        if width <= 0:
            return ""
    return text


def _detail(report: Report, width: int, lines_max: int) -> list[Text]:
    """The full name of the selected row, and its sentence."""
    partitions = report["partitions"]
    whole = f" ({count_text(partitions, 'partition')})" if partitions else ""
    name = f"{short_name(report['topic'])}{whole}  subscription {report['subscription']}"
    verdict, sentence = report["verdict"], str(report["sentence"])
    text = sentence.removeprefix(f"{verdict}: ")
    level = report["confidenceLevel"]
    if level not in ("settling", "high"):
        text += f" (confidence {level})"
    wrapped = wrap(printable(capitalized(text)), width)
    if len(wrapped) > lines_max:
        wrapped = [*wrapped[: lines_max - 1], wrapped[lines_max - 1] + " …"]
    return [Text(), Text(printable(name), "bold"), *map(Text, wrapped)]


def _nothing(answer: Report) -> Text:
    if answer["subscriptions"]:
        return Text("No subscription matches. Esc shows all again.")
    return Text("Nothing waits: no subscription has a backlog.")

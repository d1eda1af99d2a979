"""What the user of ``headgate top`` chose with keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from headgate.cli.explain.causes import CAUSES
from headgate.cli.explain.figures import Report

ORDERS: Final = ("backlog", "size", "age", "growth", "name")
ORDER_NAMES: Final = {
    "backlog": "most messages", "size": "most bytes", "age": "oldest message",
    "growth": "fastest growth", "name": "name",
}  # fmt: skip
_ORDER_KEYS: Final = {"m": "backlog", "b": "size", "a": "age", "g": "growth", "n": "name"}
_CAUSES: Final = ("", *CAUSES)

Subject = tuple[str, str]
"""Topic and subscription."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The rows to show, their order, and the row that is selected."""

    order: str = "backlog"
    cause: str = ""
    """Verdict of the rows to show; empty for all."""
    text: str = ""
    """Part of a topic's or subscription's name, in any case."""
    is_typing: bool = False
    """Whether keys are the text."""
    selected: Subject | None = None
    """None until a key moves the selection: then the first row is selected."""
    shows_help: bool = False
    is_paused: bool = False
    is_done: bool = False
    opened: Subject | None = None
    """The row whose topic the user opened."""


def subject_of(report: Report) -> Subject:
    """What a row is about, over its answers."""
    return report["topic"], report["subscription"]


def growth_per_s(report: Report) -> float:
    """Growth of the backlog in messages a second, over the time that the verdict covers."""
    window_s: float = report["windowS"]
    return report["growthMessages"] / window_s if window_s else 0.0


def chosen_rows(reports: Sequence[Report], choices: Choices) -> list[Report]:
    """The rows to show, in the order that was chosen."""
    text = choices.text.casefold()
    found = [
        report
        for report in reports
        if choices.cause in ("", report["verdict"])
        and text in f"{report['topic']} {report['subscription']}".casefold()
    ]
    if choices.order == "name":
        return sorted(found, key=subject_of)
    of = {
        "backlog": lambda report: report["backlogMessages"],
        # What an agent does not know comes last.
        "size": lambda report: report["backlogBytes"] or 0,
        "age": lambda report: report["oldestAgeS"] or 0,
        "growth": growth_per_s,
    }[choices.order]
    return sorted(found, key=lambda report: (-of(report), subject_of(report)))


def selected_row(rows: Sequence[Report], choices: Choices) -> int:
    """Place of the selected row; the first one if the selected one is gone."""
    for place, report in enumerate(rows):
        if subject_of(report) == choices.selected:
            return place
    return 0


def after_key(choices: Choices, key: str, rows: Sequence[Report], page: int) -> Choices:
    """The choices after a key; ``page`` rows fit on the screen."""
    if choices.is_typing:
        return _after_text_key(choices, key)
    if choices.shows_help:
        return replace(choices, shows_help=False, is_done=key == "q")
    moves = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -page, "page down": page,
             "home": -len(rows), "end": len(rows)}  # fmt: skip
    if key in moves and rows:
        place = selected_row(rows, choices) + moves[key]
        return replace(choices, selected=subject_of(rows[max(0, min(place, len(rows) - 1))]))
    if key in _ORDER_KEYS:
        return replace(choices, order=_ORDER_KEYS[key])
    if key == "enter" and rows:
        found = subject_of(rows[selected_row(rows, choices)])
        return replace(choices, selected=found, opened=found)
    match key:
        case "q":
            return replace(choices, is_done=True)
        case "p":
            return replace(choices, is_paused=not choices.is_paused)
        case "s":
            return replace(choices, order=_next(ORDERS, choices.order))
        case "c":
            return replace(choices, cause=_next(_CAUSES, choices.cause))
        case "/":
            return replace(choices, is_typing=True)
        case "escape":
            return replace(choices, cause="", text="")
        case "?" | "h":
            return replace(choices, shows_help=True)
    return choices


def _after_text_key(choices: Choices, key: str) -> Choices:
    match key:
        case "enter":
            return replace(choices, is_typing=False)
        case "escape":
            return replace(choices, is_typing=False, text="")
        case "backspace":
            return replace(choices, text=choices.text[:-1])
    return replace(choices, text=choices.text + key) if len(key) == 1 else choices


def _next(among: Sequence[str], now: str) -> str:
    return among[(among.index(now) + 1) % len(among)]

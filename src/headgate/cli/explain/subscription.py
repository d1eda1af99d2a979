"""The report on one subscription: its verdict, with the figures behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from headgate.base.texts import about_text, size_text, time_text
from headgate.base.units import S_PER_MINUTE
from headgate.cli.explain.causes import cause_color
from headgate.cli.explain.figures import (
    SHARE_SHOWN_MIN,
    Report,
    capitalized,
    count_text,
    drains_in_s,
    rate_text,
)
from headgate.cli.explain.inferred import evidence_text, is_inferred, is_noise
from headgate.cli.explain.page import INDENT, Page

WATCHED_LATE_S: Final = 3
"""A backlog may be older by this than the broker's history without being called older."""
WATCHED_S_MAX: Final = 55 * S_PER_MINUTE
"""A history of this length ends because a broker remembers one hour, not because it started."""

RATE_SHOWN_MIN: Final = 0.05
"""Messages a second; a backlog that changes by less is steady."""


def add_subscription(page: Page, report: Report) -> None:
    """Add a subscription of a topic's report: title, verdict and account."""
    title = f"subscription {report['subscription']}"
    kind = f"{report['type']}, " if report["type"] else ""
    page.add(f"{title} ({kind}{count_text(report['consumers'], 'consumer')})", bold=True)
    add_verdict(page, report)
    before = report.get("beforeGrowth")  # absent in answers of earlier releases
    if before:
        page.add(f"{before['sentence']}.", first=INDENT, rest=INDENT)
    page.blank()
    page.rows(list(_account_rows(report)))


WINDOW_S_MIN: Final = 1.0
"""The page leaves out figures over a shorter time: they are all zero."""


def _account_rows(report: Report) -> Iterator[tuple[str, str]]:
    """The figures behind the sentence: now, the last minute, the last hour."""
    now = _state(report["state"], report["stateDimension"], report["stateConsumer"])
    if report["backlogMessages"]:
        known = report["backlogBytes"] is not None
        size = f" ({size_text(report['backlogBytes'])})" if known else ""
        # Looks show an age from below.
        least = "at least " if is_inferred(report) else ""
        now += (
            f"; {report['unackedMessages']:,} of {report['backlogMessages']:,} messages"
            f"{size} are with consumers"
            f"; the oldest is {least}{time_text(report['oldestAgeS'])} old"
        )
    if report["delayedMessages"]:
        now += f"; {report['delayedMessages']:,} of them are not due yet"
    yield "now", now
    minute, hour = report["minute"], report["hour"]
    # A young subscription's hour is its minute.
    for window in (minute, hour) if hour["windowS"] > minute["windowS"] + 1 else (minute,):
        if window["windowS"] < WINDOW_S_MIN:
            continue
        change = window["backlogEnd"] - window["backlogStart"]
        rates = [
            f"{rate_text(window[field])}/s {what}, "
            for field, what in (("appendedPerS", "published"), ("ackedPerS", "acknowledged"))
            if window[field] is not None
        ]
        text = f"{''.join(rates)}backlog {change:+,}"
        for what in ("skipped", "expired", "evicted", "rewound", "redelivered"):
            if window[what] and not is_noise(report, window, window[what]):
                text += f", {window[what]:,} {what}"
        yield f"last {about_text(window['windowS'])}", f"{text}; {_states(window['states'])}"
    if report["heldBack"]:
        yield "held back", "; ".join(map(_held_back, report["heldBack"]))
    if report["spared"]:
        flag = "dispatchThrottlingOnNonBacklogConsumerEnabled=false"
        yield "spared", f"caught up, so no limit applies ({flag})"


def _held_back(held: Report) -> str:
    in_messages = held["dimension"] == "messages"
    what = count_text(held["amount"], "message") if in_messages else size_text(held["amount"])
    return f"{what} by the {held['level']} limit, in {count_text(held['events'], 'period')}"


def add_verdict(page: Page, report: Report) -> None:
    """Add the size of the backlog, the verdict and the verdict's sentence."""
    verdict, sentence = str(report["verdict"]), str(report["sentence"])
    level = report["confidenceLevel"]
    if report["damage"]:
        page.add(_backlog_line(report), first=INDENT, rest=INDENT)
        page.add(f"DAMAGED: {sentence}", first=INDENT, rest=INDENT, fg="red", bold=True)
        return
    if level == "settling":
        page.add(sentence, first=INDENT, rest=INDENT)
        _add_evidence(page, report)
        return
    page.add(_backlog_line(report), first=INDENT, rest=INDENT)
    unsure = "" if level == "high" else f", {level}"
    sentence = sentence.removeprefix(f"{verdict}: ")
    page.add(
        f"{verdict} (confidence {report['confidence']:.2f}{unsure}): {sentence}",
        first=INDENT,
        rest=INDENT,
        fg=cause_color(verdict),
        bold=True,
    )
    _add_evidence(page, report)


def _add_evidence(page: Page, report: Report) -> None:
    if is_inferred(report):
        page.add(capitalized(f"{evidence_text(report)}."), first=INDENT, rest=INDENT)


def _backlog_line(report: Report) -> str:
    """``backlog 1,996, growing 80/s; there for 24 s``."""
    text = f"backlog {report['backlogMessages']:,}"
    if keeps_up(report):
        return f"{text}, in flight" if report["backlogMessages"] else text
    per_s = report["growthMessages"] / report["windowS"]
    if per_s >= RATE_SHOWN_MIN:
        text += f", growing {rate_text(per_s)}/s"
    elif per_s <= -RATE_SHOWN_MIN:
        text += f", shrinking {rate_text(-per_s)}/s{_draining(report)}"
    else:
        text += ", steady"
    if report["backlogSinceS"] is not None:
        text += f"; there for {_age_text(report, report['backlogSinceS'], report['knownSinceS'])}"
    return text


_LOSSES: Final = ("evicted", "expired", "skipped")


def _draining(report: Report) -> str:
    """When a backlog that shrinks is gone, or that it only shrinks because messages are lost."""
    # Earlier releases do not say what was lost.
    lost = {each: report.get(f"{each}Messages") or 0 for each in _LOSSES}
    named = ", ".join(f"{amount:,} {each}" for each, amount in lost.items() if amount)
    left_s = drains_in_s(report)
    if left_s is None:
        return f" because messages were lost ({named})" if named else ""
    gone = f", gone in {time_text(left_s)} at this pace"
    return f"{gone} of consumption ({named})" if named else gone


def _age_text(report: Report, since_s: float, known_s: float) -> str:
    """How old a backlog is; at least so old if nobody saw it begin."""
    if known_s < WATCHED_S_MAX and since_s - known_s > WATCHED_LATE_S:
        # The age of its oldest message: earlier ones may have been acknowledged since.
        watched = "these looks cover" if is_inferred(report) else "this broker has watched"
        return f"at least {time_text(since_s)}, of which {watched} {time_text(known_s)}"
    if is_inferred(report) and known_s - since_s < WATCHED_LATE_S:
        return f"at least {time_text(since_s)}, since the first look"
    return time_text(since_s)


def keeps_up(report: Report) -> bool:
    """Whether the subscription has no backlog beyond messages in flight."""
    if report["damage"]:
        return False
    return bool(report["verdict"] == "NONE" and report["confidenceLevel"] != "settling")


def _states(states: Sequence[Report]) -> str:
    shown = [
        f"{state['share']:.0%} {_state(state['state'], state['dimension'], state['consumer'])}"
        for state in states
        if state["share"] >= SHARE_SHOWN_MIN
    ]
    return ", ".join(shown) or "no time yet"


def _state(state: str, dimension: str, consumer: str) -> str:
    split = ", ".join(part for part in (dimension, f"consumer {consumer}" * bool(consumer)) if part)
    return f"{state} ({split})" if split else state

"""The publishing side of a topic: what holds its producers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from headgate.base.texts import size_text, time_text
from headgate.base.units import S_PER_MINUTE
from headgate.cli.explain.figures import (
    SHARE_SHOWN_MIN,
    Report,
    capitalized,
    count_text,
    rate_text,
    short_name,
)
from headgate.cli.explain.page import Page

NOTHING_HOLDS: Final = "nothing holds publishing"
"""The broker's sentence about a topic whose producers were not held within the hour."""
DECISIONS_SHOWN: Final = 3
"""Decisions of the adaptive controller shown before the last one."""


def publishing_line(answer: Report) -> str:
    """Producers, rates and stored bytes of a topic in one line."""
    side = answer["publishing"]
    text = f"{count_text(side['producers'], 'producer')}; "
    if side["messagesPerS"]:
        text += (
            f"{rate_text(side['messagesPerS'])} msg/s ({size_text(side['bytesPerS'])}/s) published"
        )
    elif side["lastPublish"]:
        # Rates are means over some seconds, so this may be a topic on which publishing just began.
        at, last = datetime.fromisoformat(answer["at"]), datetime.fromisoformat(side["lastPublish"])
        text += f"last message {time_text((at - last).total_seconds())} ago"
    else:
        text += "nothing published since the broker loaded it"
    text += f"; {size_text(answer['storageBytes'])} stored"
    if side["sentence"] == NOTHING_HOLDS and side["producers"]:
        text += f"; {NOTHING_HOLDS}"
    return text


def add_parked(page: Page, side: Report, *, partitioned: bool) -> None:
    """Add what holds producers, with its figures; add nothing if nothing ever held them."""
    if side["sentence"] != NOTHING_HOLDS:
        page.add(f"{capitalized(side['sentence'])}.")
    rows = []
    waits = [state for state in side["parked"] if state["producers"]]
    if waits:
        rows.append(("wait now", "; ".join(map(_waits_for, waits))))
    if side["longestWaiting"]:
        held = (_held_producer(held, partitioned) for held in side["longestWaiting"])
        rows.append(("wait most", ", ".join(held)))
    minute = [
        f"{min(1.0, state['minuteS'] / S_PER_MINUTE):.0%} {state['cause']}"
        for state in side["parked"]
        if state["minuteS"] / S_PER_MINUTE >= SHARE_SHOWN_MIN
    ]
    if minute:
        rows.append(("last minute", ", ".join(minute)))
    if any(state["hourS"] > state["minuteS"] + 1 for state in side["parked"]):
        hour = (f"{time_text(s['hourS'])} {s['cause']}" for s in side["parked"] if s["hourS"] >= 1)
        rows.append(("last hour", ", ".join(hour)))
    if side["delaysIgnored"]:
        delayed = count_text(side["delaysIgnored"], "message")
        rows.append(("delays", f"{delayed} with a delay, delivered at once: delays are off"))
    if side["delaysRefused"]:
        refused = count_text(side["delaysRefused"], "message")
        rows.append(("too long", f"{refused} refused, with a longer delay than is allowed"))
    if side["duplicatesDropped"]:
        dropped = count_text(side["duplicatesDropped"], "message")
        rows.append(("duplicates", f"{dropped} dropped, which were stored before"))
    if rows:
        page.rows(rows)


def _waits_for(state: Report) -> str:
    """``1,000 messages (115 KiB) of 2 producers for topic_rate``."""
    who = count_text(state["producers"], "producer")
    if not state["messages"]:
        return f"{who} for {state['cause']}"
    what = f"{count_text(state['messages'], 'message')} ({size_text(state['bytes'])})"
    return f"{what} of {who} for {state['cause']}"


def _held_producer(held: Report, partitioned: bool) -> str:
    """``till-1 (898 messages, the oldest for 18 s)``."""
    where = f" to {short_name(held['topic'])}" if partitioned else ""
    messages = count_text(held["messages"], "message")
    return f"{held['producer']}{where} ({messages}, the oldest for {time_text(held['waitingS'])})"


def add_quotas(page: Page, quotas: Sequence[Report], *, partitioned: bool) -> None:
    """Add the sentence of each backlog quota, and what it did to producers and backlogs."""
    for quota in quotas:
        text = quota["sentence"]
        if partitioned:
            text = f"its fullest partition, {short_name(quota['topic'])}: {text}"
        page.add(f"{capitalized(text)}.")
        # An agent does not know what a quota did: null.
        if (quota["stoppedS"] or 0) >= 1:
            text = f"It stopped producers for {time_text(quota['stoppedS'])} so far"
            if quota["producersClosed"]:
                closed = count_text(quota["producersClosed"], "producer")
                refused = count_text(quota["producersRefused"], "attempt")
                text += f"; it disconnected {closed} and refused {refused} to reconnect"
            page.add(f"{text}.")
        if quota["evictions"]:
            page.add(
                f"It evicted {count_text(quota['evictedMessages'], 'message')}"
                f" ({size_text(quota['evictedBytes'])}) from subscriptions, in"
                f" {count_text(quota['evictions'], 'eviction')}."
            )


def add_adaptive(page: Page, adaptive: Report | None, at: str) -> None:
    """Add the last decision of the adaptive controller with its reason, then the ones before."""
    if adaptive is None:
        return
    mode = ", observe-only" if adaptive["observeOnly"] else ""
    decisions = adaptive["decisions"]
    when = ""
    if decisions:
        ago = datetime.fromisoformat(at) - datetime.fromisoformat(decisions[-1]["at"])
        when = f"{time_text(max(0.0, ago.total_seconds()))} ago "
    page.add(f"Adaptive throttling (law {adaptive['law']}{mode}): {when}{adaptive['sentence']}.")
    # The last one is above; steps between two limits follow each other every second.
    earlier = decisions[-1 - DECISIONS_SHOWN : -1]
    if earlier:
        page.rows([(d["at"][11:19], d["sentence"]) for d in reversed(earlier)])

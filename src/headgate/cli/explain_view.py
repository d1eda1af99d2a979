"""The answer of explain as text: each sentence first, its figures below.

The input is the JSON that ``headgate.observe.explain.reports`` documents, the output plain lines.
Colour only repeats the words, so a pipe and a terminal without colour lose nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from textwrap import TextWrapper
from typing import Any, Final

import click

from headgate.base.units import S_PER_DAY

WIDTH_MIN: Final = 40
WIDTH_MAX: Final = 120
"""Longer lines are hard to read, whatever the terminal's width."""
INDENT: Final = "    "

MINUTE_S: Final = 60
HOUR_S: Final = 3_600

SHARE_SHOWN_MIN: Final = 0.005
NOTHING_HOLDS: Final = "nothing holds publishing"
"""The broker's sentence about a topic whose producers were not held within the hour."""
DECISIONS_SHOWN: Final = 3
"""Decisions of the adaptive controller shown before the last one."""

WATCHED_LATE_S: Final = 3
WATCHED_S_MAX: Final = 55 * MINUTE_S
"""Longer times are limited by the hour that a broker remembers."""

RATE_SHOWN_MIN: Final = 0.05
"""Messages a second; a backlog that changes by less is steady."""

_COLORS: Final = {
    "NONE": "green",
    "CONSUMER": "yellow",
    "NO_CONSUMER": "yellow",
    "BROKER": "magenta",
}
_THROTTLED_COLOR: Final = "red"

Report = Mapping[str, Any]


def explain_text(answer: Report, width: int, *, color: bool) -> str:
    """The answer of ``explain`` (worst backlogs, or one topic) in lines of at most ``width``
    characters; names are never broken, so that they can be copied."""
    page = _Page(min(max(width, WIDTH_MIN), WIDTH_MAX), color)
    if "broker" in answer:
        _top(page, answer)
    else:
        _topic(page, answer)
    return page.text()


def span(seconds: float) -> str:
    """A length of time in at most two units: ``3 s``, ``12 min``, ``2 h 5 min``, ``3 d 4 h``."""
    whole = round(seconds)
    if whole < 2 * MINUTE_S:
        return f"{whole} s"
    minutes = round(seconds / MINUTE_S)
    if minutes < 2 * MINUTE_S:
        return f"{minutes} min"
    if whole < 2 * S_PER_DAY:
        hours, rest = divmod(minutes, 60)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, rest = divmod(round(seconds / HOUR_S), 24)
    return f"{days} d {rest} h" if rest else f"{days} d"


def amount(value: float) -> str:
    """A rate with thousands separated, and a fraction only below ten."""
    return f"{value:,.1f}" if abs(value) < 9.95 and value != int(value) else f"{value:,.0f}"


def size(bytes_: float) -> str:
    """An amount of data: ``312 B``, ``29.5 kB``, ``1.2 GB``."""
    value = float(bytes_)
    for unit in ("B", "kB", "MB"):
        if value < 999.5:
            return f"{value:.0f} B" if unit == "B" else f"{value:.3g} {unit}"
        value /= 1_000
    return f"{value:,.3g} GB" if value < 999.5 else f"{value:,.0f} GB"


def count(number: int, what: str) -> str:
    """``1 consumer``, ``2 consumers``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


class _Page:
    """Lines so far."""

    def __init__(self, width: int, color: bool) -> None:
        self._width = width
        self._color = color
        self._lines: list[str] = []

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)

    def blank(self) -> None:
        self._lines.append("")

    def add(self, text: str, *, first: str = "", rest: str = "", **style: Any) -> None:
        """Add a paragraph with the prefix ``first``, and ``rest`` on its further lines.

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
        """Columns side by side, the last of them wrapped; below the others where these take more
        than half of the page."""
        widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)][:-1]
        is_wide = 2 * (len(INDENT) + sum(widths)) > self._width
        for *cells, last in rows:
            head = "".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
            if is_wide:
                self.add("  ".join(cells), first=INDENT, rest=INDENT)
                self.add(last, first=2 * INDENT, rest=2 * INDENT)
            else:
                self.add(last, first=INDENT + head, rest=INDENT + " " * len(head))


def _top(page: _Page, answer: Report) -> None:
    reports = answer["subscriptions"]
    backlogs = [report for report in reports if not _keeps_up(report)]
    fine = [report for report in reports if _keeps_up(report)]
    total = count(answer["subscriptionsTotal"], "subscription")
    head = f"{answer['broker']}, {_instant(answer['at'])}: {total}"
    if not backlogs:
        page.add(f"{head}, no backlog.", bold=True)
    else:
        page.add(f"{head}; the largest backlogs:", bold=True)
    storage = answer.get("storage", {})  # absent in answers of earlier releases
    if storage.get("sentence"):
        page.blank()
        page.add(_whole(storage["sentence"]), bold=True)
    for place, report in enumerate(backlogs, start=1):
        page.blank()
        page.add(f"{_topic_name(report)}  subscription {report['subscription']}",
                 first=f"{place:>2}. ", rest=INDENT, bold=True)  # fmt: skip
        _say(page, report)
    if fine:
        page.blank()
        names = (f"{_topic_name(report)} {report['subscription']}" for report in fine)
        page.add(f"Keeping up, with messages in flight: {', '.join(names)}.")
    for near in answer["quotas"]:
        page.blank()
        page.add(f"{_short(near['topic'])}: {near['quota']['sentence']}.")
    _held_topics(page, answer)
    if answer["damaged"]:
        page.blank()
        page.add("Damaged on the disk, and stopped until the damage is accepted:", bold=True)
    for one in answer["damaged"]:
        whose = f", subscription {one['subscription']}" if one["subscription"] else ""
        page.add(f"{_short(one['topic'])}{whose}: {one['damage']}.", first=INDENT, rest=INDENT)
    left_out = answer["withBacklog"] - len(reports)
    if left_out > 0:
        page.blank()
        page.add(f"{left_out:,} more with fewer messages: --count shows more.")


def _whole(sentence: str) -> str:
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _held_topics(page: _Page, answer: Report) -> None:
    """Topics whose producers wait, without those that stand with their quota already."""
    shown = {near["topic"] for near in answer["quotas"] if near["quota"]["exceeded"]}
    held = [
        report
        for report in answer["publishing"]
        if report["causes"] != ["backlog_quota"] or report["topic"] not in shown
    ]
    if held:
        page.blank()
        page.add("Topics whose producers are held:", bold=True)
        for report in held:
            page.add(f"{_short(report['topic'])}: {report['sentence']}.", first=INDENT, rest=INDENT)


def _topic(page: _Page, answer: Report) -> None:
    partitions = answer["partitions"]
    title = _short(answer["topic"])
    if partitions:
        title += f" ({count(partitions, 'partition')})"
    page.add(f"{title}, {_instant(answer['at'])}", bold=True)
    page.add(_publishing(answer))
    storage = answer.get("storage", {})
    # The publishing sentence names a full disk.
    if storage.get("sentence") and not storage["diskFull"]:
        page.add(_whole(storage["sentence"]))
    _held(page, answer["publishing"], partitioned=bool(partitions))
    _quotas(page, answer["quotas"], partitioned=bool(partitions))
    _adaptive(page, answer["adaptive"], answer["at"])
    for report in answer["subscriptions"]:
        page.blank()
        _subscription(page, report)
    if not answer["subscriptions"]:
        sentence = answer["sentence"]
        page.add(f"DAMAGED: {sentence}" if answer["damage"] else sentence.capitalize())
    page.blank()
    own = (limit for report in answer["subscriptions"] for limit in report["limits"])
    _limits(page, [*own, *answer["limits"], *answer["publishing"]["limits"]])
    for part in answer["perPartition"] or ():
        page.blank()
        _topic(page, part)


def _subscription(page: _Page, report: Report) -> None:
    title = f"subscription {report['subscription']}"
    kind = f"{report['type']}, " if report["type"] else ""
    page.add(f"{title} ({kind}{count(report['consumers'], 'consumer')})", bold=True)
    _say(page, report)
    page.blank()
    page.rows(list(_account(report)))


def _account(report: Report) -> Iterator[tuple[str, str]]:
    """The figures behind the sentence: now, the last minute, the last hour."""
    now = _state(report["state"], report["stateDimension"], report["stateConsumer"])
    if report["backlogMessages"]:
        now += (
            f"; {report['unackedMessages']:,} of {report['backlogMessages']:,} messages"
            f" ({size(report['backlogBytes'])}) are with consumers"
            f"; the oldest is {span(report['oldestAgeS'])} old"
        )
    yield "now", now
    minute, hour = report["minute"], report["hour"]
    # A young subscription's hour is its minute.
    for window in (minute, hour) if hour["windowS"] > minute["windowS"] + 1 else (minute,):
        change = window["backlogEnd"] - window["backlogStart"]
        text = (
            f"{amount(window['appendedPerS'])}/s published,"
            f" {amount(window['ackedPerS'])}/s acknowledged, backlog {change:+,}"
        )
        for what in ("skipped", "expired", "evicted", "rewound", "redelivered"):
            if window[what]:
                text += f", {window[what]:,} {what}"
        yield f"last {span(window['windowS'])}", f"{text}; {_states(window['states'])}"
    if report["heldBack"]:
        yield "held back", "; ".join(map(_held_back, report["heldBack"]))
    if report["spared"]:
        flag = "dispatchThrottlingOnNonBacklogConsumerEnabled=false"
        yield "spared", f"caught up, so no limit applies ({flag})"


def _held_back(held: Report) -> str:
    amount_ = held["amount"]
    what = count(amount_, "message") if held["dimension"] == "messages" else size(amount_)
    return f"{what} by the {held['level']} limit, in {count(held['events'], 'period')}"


def _limits(page: _Page, limits: Sequence[Report]) -> None:
    if not limits:
        page.add("No dispatch limit and no publish limit is in force.")
        return
    page.add("Limits in force", bold=True)
    rows = []
    for same in _alike(limits):
        first, waiters = same[0], sum(limit["waiters"] for limit in same)
        if first["unlimited"]:
            rows.append((_limit_name(first), "unlimited", first["source"]))
        for place, budget in enumerate(first["budgets"]):
            used = sum(limit["budgets"][place]["inWindow"] for limit in same)
            text = f"{budget['source']}; {used:,} in the last {span(budget['periodS'])}"
            if debt := sum(limit["budgets"][place]["debt"] for limit in same):
                text += f", {debt:,} over it, paid by waiting"
            text += f"; {_waiting(waiters, same)}"
            rows.append((_limit_name(first), _budget_text(same, place), text))
    page.rows(rows)


def _alike(limits: Sequence[Report]) -> Iterable[list[Report]]:
    """Groups of limits that differ in the partition only."""
    found: dict[tuple[str, ...], list[Report]] = {}
    for limit in limits:
        budgets = (
            f"{b['text'] if b['abovePublishRate'] is None else b['abovePublishRate']} {b['source']}"
            for b in limit["budgets"]
        )
        found.setdefault((_limit_name(limit), *budgets), []).append(limit)
    return found.values()


def _budget_text(limits: Sequence[Report], place: int) -> str:
    """One dimension of limits that differ in the partition only."""
    budgets = [limit["budgets"][place] for limit in limits]
    first = budgets[0]
    if len(budgets) == 1:
        return str(first["text"])
    if first["abovePublishRate"] is None:
        return f"{first['text']} x {len(budgets)}"
    # A relative limit differs between partitions.
    least, most = (pick(b["limit"] for b in budgets) for pick in (min, max))
    rate = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    unit = "msg" if first["dimension"] == "messages" else "B"
    per = "/s" if first["periodS"] == 1 else f" per {span(first['periodS'])}"
    why = str(first["text"]).partition(" (")[2]
    times = [b["publishRateTimes"] for b in budgets]
    if min(times) != max(times):
        above = f"{first['abovePublishRate']:,} above"
        why = f"{above} {min(times)} to {max(times)} x the publish rate)"
    return f"{rate} {unit}{per} ({why} x {len(budgets)}"


def _limit_name(limit: Report) -> str:
    _, of, subscription = str(limit["subject"]).partition(" / ")
    level = str(limit["level"]).replace("_", " ")
    return f"{level} {subscription}" if of else level


def _waiting(waiters: int, limits: Sequence[Report]) -> str:
    if not waiters:
        return "none waiting"
    if limits[0]["level"] == "subscription":
        return "it waits"
    if limits[0]["level"].startswith("publish"):
        return f"{count(waiters, 'producer')} waiting"
    names = {
        f"{_short(held['topic'])} {held['subscription']}"
        for limit in limits
        for held in limit["longestWaiting"]
    }
    listed = ", ".join(sorted(names))
    more = ", ..." if waiters > len(names) else ""
    return f"{waiters:,} waiting" + (f" ({listed}{more})" if names else "")


def _say(page: _Page, report: Report) -> None:
    """The backlog, the verdict and its sentence."""
    verdict, sentence = str(report["verdict"]), str(report["sentence"])
    level = report["confidenceLevel"]
    if report["damage"]:
        page.add(_backlog(report), first=INDENT, rest=INDENT)
        page.add(f"DAMAGED: {sentence}", first=INDENT, rest=INDENT, fg="red", bold=True)
        return
    if level == "settling":
        page.add(sentence, first=INDENT, rest=INDENT)
        return
    page.add(_backlog(report), first=INDENT, rest=INDENT)
    unsure = "" if level == "high" else f", {level}"
    sentence = sentence.removeprefix(f"{verdict}: ")
    page.add(
        f"{verdict} (confidence {report['confidence']:.2f}{unsure}): {sentence}",
        first=INDENT,
        rest=INDENT,
        fg=_COLORS.get(verdict, _THROTTLED_COLOR),
        bold=True,
    )


def _backlog(report: Report) -> str:
    """``backlog 1,996, growing 80/s, for 24 s``."""
    text = f"backlog {report['backlogMessages']:,}"
    if _keeps_up(report):
        return f"{text}, in flight" if report["backlogMessages"] else text
    per_s = report["growthMessages"] / report["windowS"]
    if per_s >= RATE_SHOWN_MIN:
        text += f", growing {amount(per_s)}/s"
    elif per_s <= -RATE_SHOWN_MIN:
        left_s = report["backlogMessages"] / -per_s
        text += f", shrinking {amount(-per_s)}/s, gone in {span(left_s)} at this pace"
    else:
        text += ", steady"
    if report["backlogSinceS"] is not None:
        since_s, known_s = report["backlogSinceS"], report["knownSinceS"]
        if known_s < WATCHED_S_MAX and since_s - known_s > WATCHED_LATE_S:
            # The age of its oldest message: earlier ones may have been acknowledged since.
            text += f"; there for at least {span(since_s)}, of which this broker has watched "
            text += span(known_s)
        else:
            text += f"; there for {span(since_s)}"
    return text


def _keeps_up(report: Report) -> bool:
    if report["damage"]:
        return False
    return bool(report["verdict"] == "NONE" and report["confidenceLevel"] != "settling")


def _publishing(answer: Report) -> str:
    side = answer["publishing"]
    text = f"{count(side['producers'], 'producer')}; "
    if side["messagesPerS"]:
        text += f"{amount(side['messagesPerS'])} msg/s ({size(side['bytesPerS'])}/s) published"
    elif side["lastPublish"]:
        # Rates are means over some seconds, so this may be a topic on which publishing just began.
        at, last = datetime.fromisoformat(answer["at"]), datetime.fromisoformat(side["lastPublish"])
        text += f"last message {span((at - last).total_seconds())} ago"
    else:
        text += "nothing published since the broker loaded it"
    text += f"; {size(answer['storageBytes'])} stored"
    if side["sentence"] == NOTHING_HOLDS and side["producers"]:
        text += f"; {NOTHING_HOLDS}"
    return text


def _held(page: _Page, side: Report, *, partitioned: bool) -> None:
    """What holds publishing, with its figures; nothing if nothing ever did."""
    if side["sentence"] != NOTHING_HOLDS:
        page.add(f"{_capital(side['sentence'])}.")
    rows = []
    waits = [state for state in side["parked"] if state["producers"]]
    if waits:
        rows.append(("wait now", "; ".join(map(_waits_for, waits))))
    if side["longestWaiting"]:
        held = (_held_producer(held, partitioned) for held in side["longestWaiting"])
        rows.append(("wait most", ", ".join(held)))
    minute = [
        f"{min(1.0, state['minuteS'] / MINUTE_S):.0%} {state['cause']}"
        for state in side["parked"]
        if state["minuteS"] / MINUTE_S >= SHARE_SHOWN_MIN
    ]
    if minute:
        rows.append(("last minute", ", ".join(minute)))
    if any(state["hourS"] > state["minuteS"] + 1 for state in side["parked"]):
        hour = (f"{span(s['hourS'])} {s['cause']}" for s in side["parked"] if s["hourS"] >= 1)
        rows.append(("last hour", ", ".join(hour)))
    if side["delaysIgnored"]:
        delayed = count(side["delaysIgnored"], "message")
        rows.append(("delays", f"{delayed} with a delay delivered at once: not supported"))
    if rows:
        page.rows(rows)


def _waits_for(state: Report) -> str:
    """``1,000 messages (118 kB) of 2 producers for topic_rate``."""
    who = count(state["producers"], "producer")
    if not state["messages"]:
        return f"{who} for {state['cause']}"
    what = f"{count(state['messages'], 'message')} ({size(state['bytes'])})"
    return f"{what} of {who} for {state['cause']}"


def _held_producer(held: Report, partitioned: bool) -> str:
    """``till-1 (898 messages, the oldest for 18 s)``."""
    where = f" to {_short(held['topic'])}" if partitioned else ""
    messages = count(held["messages"], "message")
    return f"{held['producer']}{where} ({messages}, the oldest for {span(held['waitingS'])})"


def _capital(sentence: str) -> str:
    return f"{sentence[0].upper()}{sentence[1:]}"


def _quotas(page: _Page, quotas: Sequence[Report], *, partitioned: bool) -> None:
    for quota in quotas:
        text = quota["sentence"]
        if partitioned:
            text = f"its fullest partition, {_short(quota['topic'])}: {text}"
        page.add(f"{_capital(text)}.")
        if quota["stoppedS"] >= 1:
            text = f"It stopped producers for {span(quota['stoppedS'])} so far"
            if quota["producersClosed"]:
                text += (
                    f"; {count(quota['producersClosed'], 'producer')} disconnected,"
                    f" {count(quota['producersRefused'], 'attempt')} to come back refused"
                )
            page.add(f"{text}.")
        if quota["evictions"]:
            page.add(
                f"It took {count(quota['evictedMessages'], 'message')}"
                f" ({size(quota['evictedBytes'])}) from subscriptions, in"
                f" {count(quota['evictions'], 'act')}."
            )


def _adaptive(page: _Page, adaptive: Report | None, at: str) -> None:
    """The last decision of the adaptive controller, and its reason."""
    if adaptive is None:
        return
    mode = ", observe-only" if adaptive["observeOnly"] else ""
    decisions = adaptive["decisions"]
    when = ""
    if decisions:
        ago = datetime.fromisoformat(at) - datetime.fromisoformat(decisions[-1]["at"])
        when = f"{span(max(0.0, ago.total_seconds()))} ago "
    page.add(f"Adaptive throttling (law {adaptive['law']}{mode}): {when}{adaptive['sentence']}.")
    # The last one is above; steps between two limits follow each other every second.
    earlier = decisions[-1 - DECISIONS_SHOWN : -1]
    if earlier:
        page.rows([(d["at"][11:19], d["sentence"]) for d in reversed(earlier)])


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


def _topic_name(report: Report) -> str:
    partitions = report["partitions"]
    name = _short(report["topic"])
    return f"{name} ({count(partitions, 'partition')})" if partitions else name


def _short(topic: str) -> str:
    """As it is typed: the tenant, the namespace and the name."""
    return topic.removeprefix("persistent://")


def _instant(text: str) -> str:
    """``2026-11-21 18:18:35 UTC``."""
    return f"{text[:10]} {text[11:19]} UTC"

"""The fields of a subscription's report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headgate.base.sliced import at_once
from headgate.base.units import NS_PER_MINUTE, NS_PER_S
from headgate.explain.delivery import Instant, SubscriptionNow, subscription_fields, window_report
from headgate.explain.diagnosis import diagnose
from headgate.explain.reports import SubscriptionReport
from headgate.explain.window import window
from headgate.flow.account.account import Cell
from headgate.flow.limits.precedence import NO_LIMIT
from tests.unit.explain.made_past import past
from tests.unit.explain.made_points import START

NOW = SubscriptionNow(
    topic="persistent://a/b/t",
    subscription="s",
    partitions=0,
    type="Shared",
    consumers=1,
    cell=Cell.TOPIC_MESSAGES_HUNGRY,
    backlog_bytes=7,
    permits=3,
    permits_max=5,
)


def test_a_report_has_every_field() -> None:
    parts = [past([Cell.TOPIC_MESSAGES_HUNGRY] * 20)]
    found = at_once(diagnose(parts, [NO_LIMIT] * 3))
    instant = Instant(START + 20 * NS_PER_S, 1_000_000)
    report = SubscriptionReport(**subscription_fields(found, "Because.", NOW, instant))
    assert (report.state, report.state_consumer) == ("throttled_topic", "hungry")
    assert (report.backlog_messages, report.verdict) == (2_000, "THROTTLED_TOPIC")
    assert report.known_since_s == 20
    assert report.known_since == "1970-01-01T00:16:20.000Z"
    assert report.limit is None


def test_before_it_has_settled_a_report_says_so() -> None:
    found = at_once(diagnose([past([Cell.NO_PERMITS] * 2)], [NO_LIMIT] * 3))
    fields = subscription_fields(found, "", NOW, Instant(START, 0))
    assert (fields["verdict"], fields["confidence_level"]) == ("SETTLING", "settling")
    assert fields["verdict_since"] is fields["second"] is fields["would_have_grown"] is None


def drains(*, done: int, **lost: int) -> tuple[float | None, int]:
    """In how many seconds 2,000 messages are gone of which so many went in 20 s, and those lost."""
    parts = [past([Cell.NO_PERMITS] * 20)]
    found = at_once(diagnose(parts, [NO_LIMIT] * 3))
    start, end = found.window.start[0], found.window.end[0]
    found = replace(
        found,
        window=replace(
            found.window, start=[replace(start, **dict.fromkeys(lost, 0))],
            end=[replace(end, **lost)],
        ),
        judgement=replace(found.judgement, growth=-done),
    )  # fmt: skip
    fields = subscription_fields(found, "", NOW, Instant(START, 0))
    return fields["drains_in_s"], sum(fields[f"{each}_messages"] for each in lost)


def test_what_is_lost_does_not_count_as_consumed() -> None:
    assert drains(done=200) == (200, 0)
    assert drains(done=200, evicted=100) == (400, 100)
    assert drains(done=200, expired=200) == (None, 200)
    assert drains(done=200, evicted=100, skipped=150, expired=50) == (None, 300)
    assert drains(done=-10) == (None, 0)


def ahead(breaches_s: tuple[float | None, float | None]) -> tuple[Any, Any, Any]:
    """Of a backlog that is gone in 200 s at the pace of its window."""
    found = at_once(diagnose([past([Cell.NO_PERMITS] * 20)], [NO_LIMIT] * 3))
    found = replace(found, judgement=replace(found.judgement, growth=-200))
    now = replace(NOW, breaches_s=breaches_s)
    fields = subscription_fields(found, "", now, Instant(START, 0))
    return fields["drains_in_s"], fields["breaks_in_s"], fields["breaks_quota"]


def test_a_backlog_that_fills_a_quota_is_not_said_to_empty() -> None:
    assert ahead((None, None)) == (200, None, None)
    assert ahead((30.0, None)) == (None, 30, "size")
    assert ahead((0.0, 20.0)) == (None, 0, "size")
    # Its oldest message may be stuck while the others are consumed.
    assert ahead((None, 20.0)) == (200, 20, "time")


def test_what_waits_and_stays_does_not_empty() -> None:
    assert drains(done=99)[0] is None
    assert drains(done=100) == (400, 0)


def test_a_window_in_full() -> None:
    seen = window([past([Cell.NO_PERMITS] * 5 + [Cell.DISPATCHING] * 15)], NS_PER_MINUTE)
    report = window_report(seen)
    assert [(state.state, state.seconds) for state in report.states] == [
        ("dispatching", 15), ("no_permits", 5),
    ]  # fmt: skip
    assert report.appended == 2_000
    assert report.appended_per_s == 100

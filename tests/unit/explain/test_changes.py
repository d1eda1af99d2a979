"""Which change came before a backlog grew, and what took messages."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from headgate.explain.changes import (
    BROKER,
    CONSUMERS,
    LEVELS,
    MESSAGES,
    POLICY,
    PRODUCERS,
    SOUGHT_S,
    TOPIC,
    BeforeGrowth,
    PlainChange,
    before_growth,
    change_reports,
    message_changes,
)
from tests.unit.explain.made_points import point

BEGAN_MS = 1_795_868_665_000
"""12:24:25 UTC."""


def change(kind: str, before_s: float, text: str, subscription: str = "") -> PlainChange:
    at_ms = round(BEGAN_MS - 1000 * before_s)
    return PlainChange(at_ms, kind, "topic", text, subscription, "ops")


LIMIT = change(POLICY, 65, "the dispatch limit of the topic was set to 100 msg/s")
LEFT = change(CONSUMERS, 30, "the last consumer of billing left", "billing")
CAME = change(PRODUCERS, 10, "a producer connected")


def found(
    *changes: PlainChange,
    verdict: str = "THROTTLED_TOPIC",
    complete_since_ms: int = 0,
    roles_of: Collection[str] = LEVELS,
    started_ms: int | None = None,
) -> BeforeGrowth | None:
    return before_growth(
        changes,
        verdict=verdict,
        subscription="billing",
        began_ms=BEGAN_MS,
        complete_since_ms=complete_since_ms,
        roles_of=roles_of,
        started_ms=started_ms,
    )


def test_the_newest_change_that_fits_the_verdict_is_pointed_out() -> None:
    told = found(LIMIT, LEFT, CAME)
    assert told is not None
    assert told.kind == POLICY
    assert told.sentence == (
        "The backlog began at 12:24:25 UTC; at 12:23:20 the dispatch limit of the topic was set to"
        " 100 msg/s by ops"
    )
    assert (told.growing_since, told.changed_at) == (
        "2026-11-28T12:24:25.000Z", "2026-11-28T12:23:20.000Z",
    )  # fmt: skip
    later = replace(LIMIT, at_ms=LIMIT.at_ms + 5_000, text="it was changed")
    assert "it was changed by ops" in (found(later, LIMIT, LEFT) or told).sentence
    for verdict, expected in (("NO_CONSUMER", LEFT), ("CONSUMER", CAME)):
        told = found(LIMIT, LEFT, CAME, verdict=verdict)
        assert told is not None
        assert expected.text in told.sentence


def test_without_one_that_fits_it_is_the_newest() -> None:
    for verdict in ("NO_CONSUMER", "BROKER", "SETTLING"):
        told = found(LIMIT, CAME, replace(LIMIT, kind=TOPIC, at_ms=0), verdict=verdict)
        assert told is not None
        assert told.kind == PRODUCERS


def test_what_does_not_come_before_is_left_out() -> None:
    for other in (
        replace(LIMIT, at_ms=BEGAN_MS + 5_000),
        replace(LIMIT, at_ms=BEGAN_MS - 1000 * SOUGHT_S - 1),
        replace(LIMIT, subscription="audit"),
        replace(LIMIT, kind=MESSAGES),
    ):
        told = found(other)
        assert told is not None
        assert (told.kind, told.changed_at) == (None, None)
        assert told.sentence == (
            "The backlog began at 12:24:25 UTC; no change that explains it is known in the 10"
            " minutes before"
        )
    # A round of the history takes a second, and a growth is noted by the round after.
    assert (found(replace(LIMIT, at_ms=BEGAN_MS + 2_000)) or told).kind == POLICY


def test_a_growth_that_is_older_than_what_is_known_has_none() -> None:
    assert found(LIMIT, complete_since_ms=BEGAN_MS + 60_000) is None
    assert found(LIMIT, complete_since_ms=BEGAN_MS + 1_000) is not None


def test_a_backlog_that_is_older_than_the_start_of_the_broker_is_said_to_be() -> None:
    start = PlainChange(BEGAN_MS + 2_500, BROKER, "broker", "the broker was started")
    told = found(LIMIT, start, started_ms=start.at_ms, complete_since_ms=start.at_ms)
    assert told is not None
    assert (told.kind, told.changed_at) == (None, None)
    assert told.sentence == (
        "The backlog began at 12:24:25 UTC; it is older than this start of the broker (12:24:27), "
        "and earlier changes are not known"
    )
    # However old it is.
    much_later_ms = BEGAN_MS + 3_000_000
    older = found(start, started_ms=much_later_ms, complete_since_ms=much_later_ms)
    assert "older than this start of the broker (13:14:25)" in (older or told).sentence
    next_day_ms = BEGAN_MS + 86_400_000
    older = found(start, started_ms=next_day_ms, complete_since_ms=next_day_ms)
    assert "began at 2026-11-28 12:24:25 UTC; it is older" in (older or told).sentence
    before = replace(start, at_ms=BEGAN_MS - 1)
    told = found(before, started_ms=before.at_ms, complete_since_ms=before.at_ms)
    assert (told and told.kind) == BROKER


def test_a_start_after_the_begin_is_never_the_reason() -> None:
    start = PlainChange(BEGAN_MS + 1, BROKER, "broker", "the broker was started")
    told = found(start)
    assert told is not None
    assert told.kind is None


def test_what_can_only_make_a_backlog_smaller_is_no_reason() -> None:
    arrived = change(CONSUMERS, 0, "a consumer of billing connected (w1)", "billing")
    arrived = replace(arrived, relieves=True)
    for verdict in ("CONSUMER", "NO_CONSUMER", "THROTTLED_TOPIC", "BROKER"):
        told = found(LIMIT, CAME, arrived, verdict=verdict)
        assert told is not None
        assert told.kind in (POLICY, PRODUCERS)
    told = found(arrived)
    assert told is not None
    assert told.changed_at is None
    assert "no change that explains it is known" in told.sentence


def test_a_role_is_named_only_to_who_may_see_it() -> None:
    assert "ops" not in str(found(LIMIT, roles_of=("namespace", "broker")))
    shown, hidden = (change_reports([LIMIT], roles)[0] for roles in (("topic",), ("broker",)))
    assert (shown.role, hidden.role) == ("ops", None)
    assert shown.sentence == f"{hidden.sentence} by ops"


def test_values_are_for_those_who_may_see_them_at_that_level() -> None:
    kept = replace(LIMIT, text_without_values="the retention of the topic was set")
    for levels, text in (((), kept.text_without_values), (("broker",), kept.text_without_values)):
        assert change_reports([kept], levels)[0].sentence == text
        told = found(kept, roles_of=levels)
        assert told is not None
        assert told.sentence.endswith(text)
    assert change_reports([kept], ["topic"])[0].sentence == f"{kept.text} by ops"


def test_reports_are_in_order() -> None:
    reports = change_reports([CAME, LEFT, LIMIT], LEVELS)
    assert [each.kind for each in reports] == [POLICY, CONSUMERS, PRODUCERS]
    assert [each.subscription for each in reports] == [None, "billing", None]


def test_messages_that_were_taken_are_one_change_until_a_long_pause() -> None:
    counts = [(0, 0), (1, 0), (2, 30), (3, 50), (4, 50), (20, 50), (21, 57), (22, 57)]
    points = [point(60 * minute, evicted=evicted) for minute, evicted in counts]
    first, second = message_changes(points, "billing", points[-1].at_ns, BEGAN_MS)
    assert first.clause() == "a backlog quota evicted 50 messages of billing"
    assert second.clause() == "a backlog quota evicted 7 messages of billing"
    assert (first.at_ms, second.at_ms) == (BEGAN_MS - 20 * 60_000, BEGAN_MS - 60_000)
    assert (first.kind, first.subscription, first.role) == (MESSAGES, "billing", "")


def test_each_way_to_lose_messages_has_its_words() -> None:
    points = [point(0), point(1, expired=2, skipped=1, rewound=3)]
    assert [each.text for each in message_changes(points, "s", points[-1].at_ns, BEGAN_MS)] == [
        "2 messages of s expired", "1 message of s was skipped",
        "the cursor of s was set back by 3 messages",
    ]  # fmt: skip

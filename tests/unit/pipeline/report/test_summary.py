"""The summary of the page, the most urgent sentence first."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from headgate.pipeline.report import sections
from headgate.pipeline.report.backlogs import UnusedSubscriptions
from headgate.pipeline.report.quotas import Evictions, Quotas
from headgate.pipeline.report.sections import Charts
from headgate.pipeline.report.summary import summary_sentences
from headgate.pipeline.tables.attribution import BLAMES
from tests.unit.pipeline.report import facts
from tests.unit.pipeline.report.facts import GRID


def test_what_happened_most_urgent_first() -> None:
    found = facts.backlogs(facts.backlog())
    quotas = Quotas((facts.quota_topic(facts.near_breach()),), approached=1_200)
    lost = Evictions((facts.eviction(),), 5_000)
    said = summary_sentences(found, quotas, [facts.parked_topic()], lost, facts.quality())
    assert said[0] == (
        "The backlogs of 1 of 1,000 subscriptions grew, by 1,200 messages in total. Of their time "
        "with a cause (2 min, summed over these subscriptions), 75 % is due to "
        "the topic limit, 25 % to the consumer."
    )
    assert "THROTTLED_TOPIC (confidence 0.90). The topic limit" in said[1]
    assert said[2].endswith("likely at 2025-11-21 10:08:00 UTC; 1,199 more are approached.")
    assert "held longest: 30 s by the topic's publish limit (17 % of the range)." in said[3]
    assert said[4].startswith("Backlog quotas evicted 5,000 messages, most from ")
    assert said[5].startswith("Telemetry covers only 75.0 % of the time")


def test_the_summary_without_used_subscriptions_is_still_a_sentence() -> None:
    found = dataclasses.replace(
        facts.backlogs(facts.backlog()), blame_seconds={"NO_CONSUMER": 3.0, "BROKER": 1.0}
    )
    quotas = Quotas((facts.quota_topic(facts.near_breach()),), approached=2)
    said = summary_sentences(found, quotas, (), Evictions(), facts.quality())
    assert "75 % is due to the lack of a consumer, 25 % to the broker." in said[0]
    assert said[2].endswith("; 1 more is approached.")


def test_a_quiet_range_has_one_sentence() -> None:
    quiet = facts.quality(completeness=1.0)
    said = summary_sentences(facts.backlogs(), Quotas(), (), Evictions(), quiet)
    assert said == ["No backlog with a cause grew. There is telemetry of 1,000 subscriptions."]


def test_a_quota_that_acts_is_reached() -> None:
    """It was told to be full or approached, however long it had held producers."""
    quotas = Quotas((facts.reached_topic(), facts.quota_topic(facts.near_breach())), 3, 1, 0)
    known = facts.quality(completeness=None)
    said = summary_sentences(facts.backlogs(), quotas, (), Evictions(), known)
    assert said[1] == (
        "The size quota of public/default/full is reached: it held producers for 112 s (62 % of "
        "the range); 2 more are reached."
    )
    assert said[2].startswith("The next quota to be reached is the size quota of ")
    assert said[2].endswith("likely at 2025-11-21 10:08:00 UTC.")
    section = sections.quota_section(quotas.topics, GRID, Charts())
    assert [block.tag for block in section.blocks] == ["reached", "approached"]
    assert "held producers for 112 s (62 % of the range)" in section.blocks[0].facts
    assert section.note.startswith("Reached: ")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"held_s": 0.0}, "The size quota of public/default/full is reached."),
        (
            {"held_s": 0.0, "evicted_messages": 900, "reached_quota": "time"},
            "The time quota of public/default/full is reached: it evicted 900 messages.",
        ),
        (
            {"state": "was reached", "reached_quota": ""},
            "The backlog quota of public/default/full was reached earlier in the range: it held "
            "producers for 112 s (62 % of the range); 1 more was.",
        ),
    ],
)
def test_the_acts_of_a_reached_quota_are_listed(more: dict[str, Any], said: str) -> None:
    is_reached = "state" not in more
    topic = facts.reached_topic(breach=None, **more)
    quotas = Quotas((topic,), 1 * is_reached, 0, 2 * (not is_reached))
    found = summary_sentences(facts.backlogs(), quotas, (), Evictions(), facts.quality())
    assert found[1] == said


def test_unused_subscriptions_have_a_separate_sentence() -> None:
    name = ("persistent://public/default/a", "old")
    lost = facts.backlog(is_unused=True, growth_messages=9_000, verdict="NO_CONSUMER")
    found = dataclasses.replace(
        facts.backlogs(facts.backlog(), lost),
        growing=1,
        unused=UnusedSubscriptions(412, 3_000_000, name, 90_000),
    )
    said = summary_sentences(found, Quotas(), (), Evictions(), facts.quality(completeness=1.0))
    assert said[0].startswith("The backlogs of 1 of 588 subscriptions grew")
    assert "THROTTLED_TOPIC" in said[1]
    assert said[2:] == [
        "412 more subscriptions had no consumer at any time. Their backlogs grew by 3,000,000 "
        "messages in total, and the largest is that of public/default/a / old with 90,000 "
        "messages. Connect consumers, or delete the subscriptions that are not needed."
    ]
    assert sections.backlog_section(found, GRID, Charts()).lead.endswith(
        "without any consumer come last."
    )
    one = dataclasses.replace(facts.backlogs(), unused=UnusedSubscriptions(1, 10, name, 30))
    said = summary_sentences(one, Quotas(), (), Evictions(), facts.quality(completeness=1.0))
    assert said == [
        "No backlog with a cause grew. There is telemetry of 999 subscriptions that had a "
        "consumer.",
        "1 more subscription, public/default/a / old, had no consumer at any time. Its backlog is "
        "30 messages, 10 of them new. Connect a consumer, or delete the subscription if it is not "
        "needed.",
    ]


def test_small_causes_are_summed_as_others() -> None:
    seconds = dict.fromkeys(BLAMES, 10.0) | {"NONE": 900.0, "CONSUMER": 50.0}
    found = dataclasses.replace(facts.backlogs(facts.backlog()), blame_seconds=seconds)
    said = summary_sentences(found, Quotas(), (), Evictions(), facts.quality())
    assert "(100 s, summed over these subscriptions), 50 % is due to the consumer, 10 %" in said[0]
    assert said[0].endswith("10 % to the subscription limit, 30 % to others.")


def test_causes_without_time_are_left_out() -> None:
    """What the broker takes in between is there in every range."""
    seconds = {"CONSUMER": 300.0, "BROKER": 0.4, "NO_CONSUMER": 0.1}
    found = dataclasses.replace(facts.backlogs(facts.backlog()), blame_seconds=seconds)
    said = summary_sentences(found, Quotas(), (), Evictions(), facts.quality())
    assert said[0].endswith("these subscriptions), 100 % is due to the consumer.")

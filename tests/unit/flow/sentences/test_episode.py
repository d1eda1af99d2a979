"""What operators read about a backlog from its beginning on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.flow.account.verdict import Verdict
from headgate.flow.sentences.episode import Ending, EpisodeFacts, episode_sentence

SLOW = EpisodeFacts(
    since="2025-11-21 10:03 UTC",
    until="2025-11-21 10:31 UTC",
    seconds=1_680.0,
    ending=Ending.OVER,
    peak_messages=48_000,
    peak_at="2025-11-21 10:20 UTC",
    cause=Verdict.CONSUMER,
    share=0.92,
    second=Verdict.THROTTLED_TOPIC,
    second_share=0.06,
)
REST = (
    ", at most 48,000 messages (at 2025-11-21 10:20 UTC); the consumer is to blame for 92 % of the"
    " time, the topic limit for 6 %"
)


@pytest.mark.parametrize(
    ("ending", "head", "tail"),
    [
        (Ending.OVER, "from 2025-11-21 10:03 UTC to 2025-11-21 10:31 UTC (28 min)", ""),
        (
            Ending.SKIPPED,
            "from 2025-11-21 10:03 UTC to 2025-11-21 10:31 UTC (28 min)",
            "; it ended when the waiting messages were skipped",
        ),
        (
            Ending.UNSEEN,
            "from 2025-11-21 10:03 UTC to 2025-11-21 10:31 UTC (28 min)",
            "; its telemetry ends there, so the end of the backlog is not known",
        ),
        (Ending.CONTINUES, "since 2025-11-21 10:03 UTC, going on at 2025-11-21 10:31 UTC", ""),
        (Ending.OPEN, "since 2025-11-21 10:03 UTC, still going on at 2025-11-21 10:31 UTC", ""),
    ],
)
def test_every_ending_has_its_words(ending: Ending, head: str, tail: str) -> None:
    assert episode_sentence(replace(SLOW, ending=ending)) == f"a backlog {head}{REST}{tail}"


def test_a_stuck_dispatcher_is_said_with_what_ends_it() -> None:
    stuck = replace(SLOW, cause=Verdict.BROKER, is_stuck=True, ending=Ending.OPEN)
    text = episode_sentence(stuck)
    assert (
        "; the broker's dispatcher, which was stuck, is to blame for 92 % of the time, the topic"
        " limit for 6 %; unload the topic" in text
    )
    over = episode_sentence(replace(stuck, ending=Ending.OVER))
    assert "which was stuck" in over
    assert "unload" not in over
    assert "the broker itself is" in episode_sentence(replace(stuck, is_stuck=False))


def test_what_began_earlier_has_no_length() -> None:
    text = episode_sentence(replace(SLOW, begins_before=True))
    assert text.startswith(
        "a backlog from before 2025-11-21 10:03 UTC to 2025-11-21 10:31 UTC, at most"
    )


def test_every_class_of_blame_has_a_name() -> None:
    for cause in set(Verdict) - {Verdict.NONE}:
        text = episode_sentence(replace(SLOW, cause=cause, second=None, peak_messages=1))
        assert "at most 1 message (at" in text
        assert text.endswith(" is to blame for 92 % of the time")
    nobody = replace(SLOW, cause=None, second=None)
    assert "blame" not in episode_sentence(nobody)


def test_what_was_lost_stands_before_the_end() -> None:
    lost = replace(
        SLOW,
        ending=Ending.SKIPPED,
        evicted=1_200,
        evicted_by="the size quota of 1 MiB (topic policy)",
        expired=1,
        expired_by="the message TTL of 60 s (topic policy)",
    )
    assert episode_sentence(lost).endswith(
        "; the size quota of 1 MiB (topic policy) evicted 1,200 messages before they were"
        " acknowledged; the message TTL of 60 s (topic policy) expired 1 message before it was"
        " acknowledged; it ended when the waiting messages were skipped"
    )
    assert "evicted" not in episode_sentence(SLOW)

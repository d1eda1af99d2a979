"""What is said about a full disk, and a slow one."""

from __future__ import annotations

import pytest

from headgate.flow.sentences.disk import (
    ALL_WELL,
    COMMITS_MIN,
    SLOW_COMMIT_S,
    CommitLatencyFacts,
    DiskFacts,
    commit_latency_sentence,
    disk_sentence,
    low_disk_sentence,
    room_text,
)


def test_a_disk_with_room_is_not_worth_a_word() -> None:
    assert disk_sentence(DiskFacts(free_bytes=1, size_bytes=2)) == ALL_WELL


def test_a_full_disk_with_what_is_known_of_it() -> None:
    assert disk_sentence(DiskFacts(full_s=0.2)) == (
        "the disk is full: producers wait for room, consumers continue"
    )
    facts = DiskFacts(full_s=35.0, free_bytes=1_000, size_bytes=2_000_000, segment_bytes=65_536)
    assert disk_sentence(facts) == (
        "the disk is full: producers wait for room, for 35 s now, consumers continue; "
        "1,000 B of 1.9 MiB are free, the log needs 64 KiB at once"
    )


def test_room_is_reported_when_it_is_known() -> None:
    assert not room_text(DiskFacts(free_bytes=1))
    facts = DiskFacts(free_bytes=1, size_bytes=2, segment_bytes=3)
    assert room_text(facts) == "1 B of 2 B are free, the log needs 3 B at once"


def test_a_quick_disk_and_one_accident_are_not_worth_a_word() -> None:
    assert (
        commit_latency_sentence(CommitLatencyFacts(commits=1_000, mean_s=0.099, longest_s=0.8))
        == ALL_WELL
    )
    assert (
        commit_latency_sentence(CommitLatencyFacts(commits=1, mean_s=0.5, longest_s=0.5))
        == ALL_WELL
    )
    assert CommitLatencyFacts(commits=COMMITS_MIN, mean_s=SLOW_COMMIT_S).is_slow


def test_a_slow_disk() -> None:
    facts = CommitLatencyFacts(commits=47, mean_s=0.212, longest_s=0.39, window_s=10)
    assert commit_latency_sentence(facts) == (
        "the disk is slow: a commit takes 212 ms (the mean of 47 in the last 10 s; the longest took"
        " 390 ms), and no receipt is sent before it ends"
    )
    facts = CommitLatencyFacts(commits=1, mean_s=3.04, longest_s=3.04, running_s=12.0, window_s=10)
    assert commit_latency_sentence(facts) == (
        "the disk is slow: a commit takes 3.0 s and one has run for 12 s now, and no receipt is"
        " sent before it ends"
    )


@pytest.mark.parametrize(
    ("free_bytes", "size_bytes", "is_low"),
    [
        (1_599, 1 << 40, True),
        (1_600, 1 << 40, False),
        (999, 10_000, True),
        (1_000, 10_000, False),
        (99, 200, True),
        (100, 200, False),
    ],
)
def test_a_disk_is_nearly_full_by_segments_and_by_its_size(
    free_bytes: int, size_bytes: int, is_low: bool
) -> None:
    facts = DiskFacts(None, free_bytes, size_bytes, 100)
    assert facts.is_low is is_low
    assert bool(low_disk_sentence(facts)) is is_low
    assert low_disk_sentence(DiskFacts(1.0, free_bytes, size_bytes, 100)) == ""
    assert low_disk_sentence(DiskFacts()) == ""


def test_a_disk_that_is_nearly_full_says_since_when_and_once_what_happens_then() -> None:
    facts = DiskFacts(None, 89_000_000, 1_258_000_000, 67_108_864, low_s=200.0)
    text = (
        "the disk is nearly full, for 3 min now: 84.9 MiB of 1.2 GiB are free, the log needs "
        "64 MiB at once"
    )
    assert low_disk_sentence(facts) == f"{text}; without that room producers wait"
    assert low_disk_sentence(facts, has_forecast=True) == text

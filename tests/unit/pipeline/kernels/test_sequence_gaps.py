"""Missing messages are reported with their time range, present ones are not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headgate.base.units import NS_PER_S
from headgate.pipeline.kernels.sequence_gaps import (
    COLUMNS,
    RESTART_NS_MAX,
    SENTENCES_MAX,
    LastSeen,
    SequenceGap,
    find_gaps,
    newest,
    sentences,
)
from tests.unit.pipeline.play import T0

SILENCE_S = RESTART_NS_MAX // NS_PER_S


def at(seconds: int) -> int:
    return T0 + seconds * NS_PER_S


def windows(boot: str, *numbers: int, start_s: int = 0, source: str = "c/b") -> list[Any]:
    """Messages of ten seconds each; number 0 begins at ``start_s``."""
    return [
        (source, boot, seq, at(start_s + 10 * seq), at(start_s + 10 * seq + 10)) for seq in numbers
    ]


def table(*parts: list[Any]) -> pa.Table:
    rows = [row for part in parts for row in part]
    return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows])


BEFORE = {"c/b": LastSeen("one", 4, at(50))}
"""Messages 0 to 4 were read."""


def gaps(*parts: list[Any]) -> list[SequenceGap]:
    return find_gaps(BEFORE, table(*parts))[0]


def test_consecutive_messages_have_no_gap_in_any_order_or_repeated() -> None:
    rows = windows("one", 7, 5, 6, 6, 5)
    assert find_gaps(BEFORE, table(rows)) == ([], {"c/b": LastSeen("one", 7, at(80))})


def test_missing_numbers_are_lost_messages() -> None:
    assert gaps(windows("one", 9, 10, 12)) == [
        SequenceGap("c/b", at(50), at(90), 4, is_all=True),
        SequenceGap("c/b", at(110), at(120), 1, is_all=True),
    ]


def test_late_messages_are_ignored() -> None:
    late = windows("one", 0, 2, 4), windows("zero", 3, start_s=-100)
    assert find_gaps(BEFORE, table(*late)) == ([], {})


def test_a_complete_restart_is_reported_only_if_it_took_long() -> None:
    """A broker that was down is no lost telemetry; nobody knows which of both it was."""
    assert gaps(windows("two", 0, 1, start_s=50 + SILENCE_S)) == []
    (gap,) = gaps(windows("two", 0, 1, start_s=51 + SILENCE_S))
    assert gap == SequenceGap("c/b", at(50), at(51 + SILENCE_S), 0, is_all=False)


def test_the_first_messages_of_another_boot_are_lost() -> None:
    (gap,) = gaps(windows("two", 3, start_s=60))
    assert gap == SequenceGap("c/b", at(50), at(90), 3, is_all=False)


def test_between_boots_that_were_read_at_once_the_broker_was_down() -> None:
    """A topic loses its oldest messages, not some in its middle."""
    found, last_seen = find_gaps({}, table(windows("one", 0, 1), windows("two", 0, start_s=9_000)))
    assert (found, last_seen) == ([], {"c/b": LastSeen("two", 0, at(9_010))})


def test_a_first_read_reports_messages_before_the_first() -> None:
    assert find_gaps({}, table(windows("one", 0, 1)))[0] == []
    assert find_gaps({}, table(windows("one", 6, 7)))[0] == [
        SequenceGap("c/b", None, at(60), 6, is_all=True)
    ]


def test_a_gap_within_a_window_has_the_times_of_the_window() -> None:
    rows = [("c/b", "one", seq, at(50), at(60)) for seq in (5, 7)]
    assert gaps(rows) == [SequenceGap("c/b", at(50), at(60), 1, is_all=True)]


def test_sources_are_independent() -> None:
    other = windows("one", 2, source="c/other")
    found, last_seen = find_gaps(BEFORE, table(windows("one", 5), other))
    assert found == [SequenceGap("c/other", None, at(20), 2, is_all=True)]
    assert set(last_seen) == {"c/b", "c/other"}


def test_the_newest_message_is_of_the_boot_that_ended_last() -> None:
    rows = table(windows("b", 0, 1), windows("a", 1, 0, start_s=100), windows("c", 0, start_s=50))
    assert newest(rows) == {"c/b": LastSeen("a", 1, at(120))}


@pytest.mark.parametrize(
    ("gap", "said"),
    [
        (
            SequenceGap("c/b", at(50), at(90), 4, is_all=True),
            "Telemetry of c/b from 2025-11-21 10:00:50 UTC to 2025-11-21 10:01:30 UTC is missing: "
            "4 messages expired before the pipeline read them.",
        ),
        (
            SequenceGap("c/b", at(50), at(60), 1, is_all=False),
            "Telemetry of c/b from 2025-11-21 10:00:50 UTC to 2025-11-21 10:01:00 UTC is missing: "
            "at least 1 message expired before the pipeline read it.",
        ),
        (
            SequenceGap("c/b", None, at(90), 1_234, is_all=True),
            "Telemetry of c/b from the start of its broker to 2025-11-21 10:01:30 UTC is missing: "
            "1,234 messages expired before the pipeline read them.",
        ),
        (
            SequenceGap("c/b", at(50), at(90), 0, is_all=False),
            "There is no telemetry of c/b from 2025-11-21 10:00:50 UTC to 2025-11-21 10:01:30 UTC: "
            "its broker was down, or the messages expired before the pipeline read them.",
        ),
    ],
)
def test_a_gap_in_words(gap: SequenceGap, said: str) -> None:
    assert sentences([gap]) == [said]


def test_many_gaps_are_counted() -> None:
    many = [
        SequenceGap("c/a", at(10 * n), at(10 * n + 5), 1, is_all=True)
        for n in range(SENTENCES_MAX + 4)
    ]
    said = sentences([*many, *many[:SENTENCES_MAX]])
    assert len(said) == SENTENCES_MAX  # one source
    assert said[-1] == (
        f"c/a has {SENTENCES_MAX + 5} more such gaps, the last until 2025-11-21 10:00:25 UTC."
    )
    assert len(sentences(many[:SENTENCES_MAX])) == SENTENCES_MAX

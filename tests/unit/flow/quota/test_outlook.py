"""What is claimed of a backlog: it empties or fills a quota, and never both (rule 4.6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.flow.quota.backlog_quota import QuotaType
from headgate.flow.quota.outlook import Outlook, emptying_s, outlook

SECONDS = st.none() | st.floats(0, 86_400)


@pytest.mark.parametrize(
    ("backlog", "consumed", "published", "expected"),
    [
        (6_000, 600, 100, 600.0),
        (6_000, 600, 0, 600.0),
        (6_000, 1, 0, 360_000.0),  # nothing is published: it will be gone some day
        (6_000, 0, 100, None),
        (6_000, -600, 100, None),
        (0, 600, 100, None),
        # As much was consumed as published, so what waits stays.
        (4_000, 23, 6_000, None),
        (4_000, 200, 6_000, 1_200.0),
        # Little of a large backlog, and much more than is published.
        (10_000_000, 600, 6_000, 1_000_000.0),
    ],
)
def test_a_backlog_empties_only_if_it_shrinks(
    backlog: int, consumed: int, published: int, expected: float | None
) -> None:
    assert emptying_s(backlog, consumed, published, 60.0) == expected


@pytest.mark.parametrize(
    ("empty_s", "size_s", "time_s", "expected"),
    [
        (None, None, None, Outlook(None, None, None)),
        (90.0, None, None, Outlook(90.0, None, None)),
        (None, 40.0, None, Outlook(None, 40.0, QuotaType.SIZE)),
        # The pace of the last seconds fills it, that of the last minute empties it.
        (90.0, 40.0, None, Outlook(None, 40.0, QuotaType.SIZE)),
        (90.0, 0.0, None, Outlook(None, 0.0, QuotaType.SIZE)),
        # The oldest message may be stuck while the others are consumed.
        (90.0, None, 40.0, Outlook(90.0, 40.0, QuotaType.TIME)),
        (None, 40.0, 30.0, Outlook(None, 30.0, QuotaType.TIME)),
        (90.0, 40.0, 30.0, Outlook(None, 30.0, QuotaType.TIME)),
        (None, 30.0, 30.0, Outlook(None, 30.0, QuotaType.SIZE)),
    ],
)
def test_what_is_claimed(
    empty_s: float | None, size_s: float | None, time_s: float | None, expected: Outlook
) -> None:
    assert outlook(empty_s, [size_s, time_s]) == expected


@given(SECONDS, SECONDS, SECONDS)
def test_no_backlog_empties_and_fills_a_size_quota(
    empty_s: float | None, size_s: float | None, time_s: float | None
) -> None:
    found = outlook(empty_s, [size_s, time_s])
    assert found.empty_s is None or size_s is None
    assert found.empty_s in (None, empty_s)
    known = [each for each in (size_s, time_s) if each is not None]
    assert found.breach_s == min(known, default=None)
    assert (found.breached is None) == (not known)

"""Unused subscriptions had no consumer in the range and the day before."""

from __future__ import annotations

import pytest

from headgate.pipeline.output.unused_subscriptions import is_unused


@pytest.mark.parametrize(
    ("share", "acked", "demonstrated", "is_one"),
    [
        (1.0, 0, None, True),
        (0.995, None, None, True),
        (0.98, 0, None, False),
        (1.0, 3, None, False),
        (1.0, 0, 50.0, False),
        (0.0, 0, None, False),
    ],
)
def test_unused(share: float, acked: int | None, demonstrated: float | None, is_one: bool) -> None:
    row = {"share_no_consumer": share, "acked": acked, "proven_rate_per_s": demonstrated}
    assert is_unused(row) is is_one

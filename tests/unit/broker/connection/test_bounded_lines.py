"""Strangers cannot fill the log."""

from __future__ import annotations

import logging

import pytest

from headgate.base.units import NS_PER_MINUTE
from headgate.broker.connection.bounded_lines import LINES_PER_MINUTE, BoundedLines


def test_a_minute_has_so_many_lines_and_the_next_says_how_many_are_missing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    now = [0]
    lines = BoundedLines(logging.getLogger("headgate.connection"), lambda: now[0])
    for number in range(LINES_PER_MINUTE + 7):
        lines.info("%s is a stranger", number)
    assert len(caplog.records) == LINES_PER_MINUTE
    now[0] = NS_PER_MINUTE
    for number in range(2):
        lines.info("%s is a stranger", number)
    assert [record.getMessage() for record in caplog.records[-2:]] == [
        "0 is a stranger (7 lines like this were left out before)",
        "1 is a stranger",
    ]

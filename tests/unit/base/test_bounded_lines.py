"""Clients cannot fill the log, nor hide each other."""

from __future__ import annotations

import logging

import pytest

from headgate.base.bounded_lines import (
    ALL_ROLES_LINES_PER_MINUTE,
    LINES_PER_MINUTE,
    ROLE_LINES_PER_MINUTE,
    BoundedLines,
    RoleLines,
)
from headgate.base.units import NS_PER_MINUTE


def test_a_minute_has_so_many_lines_and_the_next_says_how_many_are_missing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    now = [0]
    lines = BoundedLines(logging.getLogger("headgate.connection"), lambda: now[0])
    for number in range(LINES_PER_MINUTE + 7):
        lines.info("%s is unknown", number)
    assert len(caplog.records) == LINES_PER_MINUTE
    lines.info("%s is of another kind", 1)
    assert caplog.messages[-1] == "1 is of another kind"
    now[0] = NS_PER_MINUTE
    for number in range(2):
        lines.info("%s is unknown", number)
    assert [record.getMessage() for record in caplog.records[-2:]] == [
        "0 is unknown (7 lines like this were left out before)",
        "1 is unknown",
    ]


def test_a_role_has_so_many_lines_a_minute_and_hides_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    now = [0]
    lines = RoleLines(lambda: now[0])
    logger = logging.getLogger("headgate.connection")
    for number in range(ROLE_LINES_PER_MINUTE + 3):
        lines.log(logger.info, "a", f"a{number}%s")
    assert caplog.messages == [f"a{number}%s" for number in range(ROLE_LINES_PER_MINUTE)]
    lines.log(logger.warning, "b", "b")
    assert caplog.messages[-1] == "b (3 lines about clients were left out before)"
    now[0] = NS_PER_MINUTE
    lines.log(logger.info, "a", "again")
    assert caplog.messages[-1] == "again"


def test_all_roles_have_so_many_lines_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    lines = RoleLines(lambda: 0)
    for number in range(2 * ALL_ROLES_LINES_PER_MINUTE):
        lines.log(logging.getLogger("headgate.connection").info, str(number), "no")
    assert len(caplog.records) == ALL_ROLES_LINES_PER_MINUTE

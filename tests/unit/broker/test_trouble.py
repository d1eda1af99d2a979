"""Failures that repeat are one line when they begin and one when they are over."""

from __future__ import annotations

import logging

import pytest

from headgate.broker.trouble import QUIET_NS, Trouble


def test_a_run_of_failures_is_two_lines(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Trouble(logging.getLogger("headgate.test"), "commit")
    trouble.succeeded(0)
    for tenth in range(600):
        trouble.failed(OSError("no room"), tenth * QUIET_NS // 100)
        trouble.succeeded(tenth * QUIET_NS // 100)
    assert caplog.messages == ["commit fails: no room"]
    last_ns = 599 * QUIET_NS // 100
    trouble.succeeded(last_ns + QUIET_NS - 1)
    assert len(caplog.messages) == 1
    trouble.succeeded(last_ns + QUIET_NS)
    trouble.succeeded(last_ns + 2 * QUIET_NS)
    assert caplog.messages[1:] == ["commit works again, after 600 failures"]
    trouble.failed(OSError("no room"), 0)
    assert caplog.messages[2:] == ["commit fails: no room"]


def test_another_reason_is_told(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Trouble(logging.getLogger("headgate.test"), "commit")
    for reason in ("no room", "no room", "broken", "no room"):
        trouble.failed(OSError(reason), 1)
    assert caplog.messages == [
        "commit fails: no room",
        "commit fails: broken",
        "commit fails: no room",
    ]

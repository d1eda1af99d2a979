"""Failures that repeat are one line when they begin and one when they are over."""

from __future__ import annotations

import logging

import pytest

from headgate.base.errors import StorageError
from headgate.storage.repeated_failures import QUIET_NS, RepeatedFailureLogger


def test_a_run_of_failures_is_two_lines(caplog: pytest.LogCaptureFixture) -> None:
    trouble = RepeatedFailureLogger(logging.getLogger("headgate.test"), "commit")
    trouble.succeeded(0)
    for tenth in range(600):
        trouble.failed(StorageError("no room", retryable=True), tenth * QUIET_NS // 100)
        trouble.succeeded(tenth * QUIET_NS // 100)
    assert caplog.messages == ["commit fails: no room"]
    last_ns = 599 * QUIET_NS // 100
    trouble.succeeded(last_ns + QUIET_NS - 1)
    assert len(caplog.messages) == 1
    trouble.succeeded(last_ns + QUIET_NS)
    trouble.succeeded(last_ns + 2 * QUIET_NS)
    assert caplog.messages[1:] == ["commit works again, after 600 failures"]
    trouble.failed(StorageError("no room", retryable=True), 0)
    assert caplog.messages[2:] == ["commit fails: no room"]
    trouble.succeeded(QUIET_NS)
    assert caplog.messages[3:] == ["commit works again, after 1 failure"]


def test_another_reason_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    trouble = RepeatedFailureLogger(logging.getLogger("headgate.test"), "commit")
    for reason in ("no room", "no room", "broken", "no room"):
        trouble.failed(StorageError(reason, retryable=True), 1)
    assert caplog.messages == [
        "commit fails: no room",
        "commit fails: broken",
        "commit fails: no room",
    ]


def test_an_error_of_ours_is_reported_with_its_traceback_until_the_first_success(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trouble = RepeatedFailureLogger(logging.getLogger("headgate.test"), "commit")
    for _ in range(3):
        trouble.failed(KeyError("x"), 1)
    assert trouble.internal_error == "commit fails: internal error, KeyError: 'x'"
    (record,) = caplog.records
    assert record.getMessage() == trouble.internal_error
    assert record.exc_info is not None
    trouble.failed(StorageError("no room", retryable=True), 2)
    assert trouble.internal_error == ""
    trouble.failed(KeyError("x"), 3)
    trouble.succeeded(4)
    assert trouble.internal_error == ""


def test_failures_of_a_job_that_is_not_due_any_more_are_over_after_a_while() -> None:
    failures = RepeatedFailureLogger(logging.getLogger("headgate.test"), "punching")
    failures.nothing_due(0)
    failures.failed(KeyError("unexpected"), 0)
    failures.nothing_due(QUIET_NS - 1)
    assert "KeyError" in failures.internal_error
    failures.nothing_due(QUIET_NS)
    assert failures.internal_error == ""

"""The sweep over sessions: those that are due, and what is logged of failed attempts."""

from __future__ import annotations

import asyncio
import logging

import pytest

from headgate.broker.authentication import Authentication, ClientCredentials
from headgate.broker.sweeps.session_sweep import SessionSweep
from headgate.broker.work.scheduler import WorkScheduler
from headgate.policy.settings import Settings
from headgate.security.errors import CredentialsError
from headgate.security.failed_attempts import PERIOD_S, FailedAttempts
from headgate.security.provider import Credentials
from tests.unit.broker.test_session_watch import FakeSession


def test_it_looks_at_what_is_due_and_logs_counts(caplog: pytest.LogCaptureFixture) -> None:
    now_s = [1_000.0]
    authentication = Authentication(Settings(), (), FailedAttempts(), lambda: now_s[0])
    due, later = FakeSession(1_060.0), FakeSession(2_000.0)
    authentication.sessions.add(due)
    authentication.sessions.add(later)
    for _ in range(3):
        with pytest.raises(CredentialsError):
            authentication.session(ClientCredentials(Credentials("none", address="10.0.0.1")))
    now_s[0] += PERIOD_S

    async def whole() -> None:
        work = WorkScheduler(asyncio.get_running_loop(), lambda: None)
        await SessionSweep(authentication, work).check()

    with caplog.at_level(logging.WARNING):
        asyncio.run(whole())
    assert (due.looks, later.looks) == ([1_060.0], [])
    assert "10.0.0.1: 2 further attempts to authenticate failed" in caplog.text

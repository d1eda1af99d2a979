"""The files are looked at on a lane, at each period, whatever a look finds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.app.tls.current import CurrentTls
from headgate.app.tls.refresh import PERIOD_S_MIN, TlsRefresh
from headgate.broker.tls_status import TlsStatus
from headgate.policy.settings import Settings
from headgate.testing.clock import ManualClock
from headgate.testing.loop import SimLoop
from tests.trial_certificates import Trial


class InlineLane:
    """Does its work at once."""

    abandoned = False

    def submit(self, work: Callable[[], Any], done: Callable[..., None]) -> None:
        try:
            result = work()
        except Exception as error:
            done(None, error)
        else:
            done(result, None)

    def abandon(self) -> None:
        self.abandoned = True


def test_each_period_looks_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trial, settings, status = Trial(tmp_path), Settings(), TlsStatus()
    for key, value in trial.settings.items():
        settings.set(key, value)
    current = CurrentTls.open(settings)
    assert current is not None
    lane: Any = InlineLane()
    loop = SimLoop(ManualClock())

    async def story() -> None:
        refresh = TlsRefresh(current, status, lane, 300, lambda: 0.0)
        refresh.start()
        assert status.expires_at_s is not None
        trial.renew_server()
        await asyncio.sleep(299)
        assert status.reloads == 0
        await asyncio.sleep(2)
        assert status.reloads == 1
        (tmp_path / "server.key.pem").write_bytes(b"half")
        await asyncio.sleep(300)
        assert (status.reloads, status.reload_failures) == (1, 1)
        current.read_changed = lambda: 1 // 0  # type: ignore[method-assign,assignment,return-value]
        await asyncio.sleep(600)
        del current.read_changed
        trial.renew_server()
        await asyncio.sleep(300)
        assert status.reloads == 2, "after a look that failed"
        refresh.stop()
        trial.renew_server()
        await asyncio.sleep(900)
        assert (status.reloads, lane.abandoned) == (2, True)

    with caplog.at_level(logging.ERROR):
        loop.run_until_complete(story())
    loop.close()
    assert caplog.text.count("looking for changed files of TLS failed") == 2


def test_zero_looks_each_second() -> None:
    lane: Any = InlineLane()
    current: Any = object()
    assert TlsRefresh(current, TlsStatus(), lane, 0, lambda: 0.0)._period_s == PERIOD_S_MIN

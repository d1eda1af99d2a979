"""Looks for changed files of TLS while the broker runs, outside the event loop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from headgate.app.repeated_look import RepeatedLook
from headgate.app.tls.current import CurrentTls
from headgate.app.tls.files import Loaded
from headgate.base.errors import InputError
from headgate.broker.tls_status import TlsStatus
from headgate.storage.lanes import Lane, run_on

logger = logging.getLogger("headgate.tls")

PERIOD_S_MIN: Final = 1


class TlsRefresh(RepeatedLook):
    """Repeats :meth:`CurrentTls.read_changed` on a lane of its own: a file system that hangs holds
    nothing else."""

    def __init__(
        self,
        current: CurrentTls,
        status: TlsStatus,
        lane: Lane,
        period_s: int,
        now_s: Callable[[], float],
    ) -> None:
        """``now_s`` is the wall clock."""
        super().__init__(lane, max(period_s, PERIOD_S_MIN), "changed files of TLS", logger)
        self._current = current
        self._status = status
        self._now_s = now_s

    def start(self) -> None:
        """Look from now on, at each period."""
        self._current.report(self._status, self._now_s())
        super().start()

    async def look(self) -> None:
        """Look once."""
        try:
            loaded: Loaded | None = await run_on(self._lane, self._current.read_changed)
        except InputError as error:
            self._current.keep(error, self._status, self._now_s())
        else:
            self._current.take(loaded, self._status, self._now_s())

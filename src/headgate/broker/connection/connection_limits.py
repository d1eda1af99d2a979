"""Refuses connections beyond the limits on their number."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from headgate.base.units import INT32_MAX, NS_PER_S
from headgate.policy.settings import Settings
from headgate.storage.repeated_failures import QUIET_NS

logger = logging.getLogger("headgate.connection")

_REFUSED: Final = "Reached the maximum number of connections"


class ConnectionLimits:
    """The number of open connections of one broker, also by host, and its limits."""

    def __init__(
        self, settings: Settings, now_ns: Callable[[], int], memory_max: int = INT32_MAX
    ) -> None:
        """``memory_max`` connections fit into the memory of clients."""
        self._memory_max = memory_max
        self._settings = settings
        self._now_ns = now_ns
        self._count = 0
        self._by_host: Counter[str] = Counter()
        self.refused_count = 0
        """Connections refused since the start."""
        self._refused_ns = 0
        self._logged_count: int | None = None
        """:attr:`refused_count` before the refusals that the broker has logged; None once it has
        logged that they are over."""

    def refusal(self, address: str) -> str:
        """The answer to a new connection from ``address``, which must end; empty if it may stay.
        The texts are Pulsar's."""
        settings = self._settings
        if 0 < settings.brokerMaxConnections <= self._count:
            limit = f"brokerMaxConnections={settings.brokerMaxConnections}"
            return self._refused(_REFUSED, limit, address)
        if self._memory_max <= self._count:
            limit = f"{self._memory_max} connections fit into the memory of clients"
            return self._refused(_REFUSED, f"{limit} (headgateClientMemoryMB)", address)
        if address and 0 < settings.brokerMaxConnectionsPerIp <= self._by_host[_host(address)]:
            text = f"{_REFUSED} on address{address}"
            limit = f"brokerMaxConnectionsPerIp={settings.brokerMaxConnectionsPerIp}"
            return self._refused(text, limit, address)
        return ""

    def added(self, address: str) -> None:
        """A connection from ``address`` was accepted."""
        self._count += 1
        self._by_host[_host(address)] += 1

    def removed(self, address: str) -> None:
        """A connection from ``address`` has ended."""
        self._count -= 1
        host = _host(address)
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]

    def log_if_due(self) -> None:
        """Log when refusals have ended. Call about once a second."""
        if self._logged_count is not None and self._now_ns() - self._refused_ns >= QUIET_NS:
            logger.warning(
                "no connection was refused for %d s; %d were refused before",
                QUIET_NS // NS_PER_S,
                self.refused_count - self._logged_count,
            )
            self._logged_count = None

    def _refused(self, text: str, limit: str, address: str) -> str:
        if self._logged_count is None:
            self._logged_count = self.refused_count
            logger.warning("a connection from %s is refused: %s", address, limit)
        self.refused_count += 1
        self._refused_ns = self._now_ns()
        return text


def _host(address: str) -> str:
    return address.rpartition(":")[0]

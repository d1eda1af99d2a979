"""Refuses connections beyond the limits on their number."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from headgate.base.bounded_lines import BoundedLines, RoleLines
from headgate.base.units import INT32_MAX, NS_PER_S
from headgate.broker.connection.address_counts import (
    AddressCounts,
    NetworkShares,
    peer_network_of,
    unauthenticated_bounds,
)
from headgate.broker.held_memory import TLS_UNITS
from headgate.policy.settings import Settings
from headgate.storage.repeated_failures import QUIET_NS

logger = logging.getLogger("headgate.connection")

LAST_PART: Final = 8
"""The last of so many parts of the memory for connections is for networks that leave as much to
others: idle connections of one network, whose clients have authenticated, do not fill it."""

_REFUSED: Final = "Reached the maximum number of connections"


def memory_units_of(transport: asyncio.BaseTransport) -> int:
    """How much an idle connection takes, in ``CONNECTION_BYTES``: over TLS more."""
    return 1 if transport.get_extra_info("ssl_object") is None else TLS_UNITS


class ConnectionLimits:
    """The number of open connections of one broker, also by host, and its limits.

    It counts a connection from the instant at which the broker accepts it: one of TLS before its
    handshake, which is the costly part. Until its CONNECT has succeeded a connection also counts
    as unauthenticated, and these have bounds of their own.
    """

    def __init__(
        self,
        settings: Settings,
        now_ns: Callable[[], int],
        memory_max: Callable[[], int] = lambda: INT32_MAX,
        memory_max_of_few: Callable[[], int] = lambda: INT32_MAX,
    ) -> None:
        """``memory_max`` tells how many plain connections fit into the memory of clients now. While
        these are fewer than ``memory_max_of_few``, addresses that are not among those with the most
        connections have that many: idle ones of a few addresses keep all others out of nothing."""
        self._memory_max = memory_max
        self._memory_max_of_few = memory_max_of_few
        self._settings = settings
        self._now_ns = now_ns
        self._all = AddressCounts()
        self._memory = NetworkShares()
        """The same in :data:`CONNECTION_BYTES`."""
        self._unauthenticated = AddressCounts(by_network=True, leaves_room=True)
        self._memory_of_strangers = NetworkShares()
        self._unauthenticated_max = unauthenticated_bounds(None)
        self.lines = BoundedLines(logger, now_ns)
        """Log lines about clients that have not authenticated."""
        self.role_lines = RoleLines(now_ns)
        """Log lines about all others."""
        self.refused_count = 0
        """Connections refused since the start."""
        self._refused_ns = 0
        self._logged_count: int | None = None
        """:attr:`refused_count` before the refusals that the broker has logged; None once it has
        logged that they are over."""

    def set_descriptors(self, descriptors: int | None) -> None:
        """Set how many file descriptors clients may have; None for no limit."""
        self._unauthenticated_max = unauthenticated_bounds(descriptors)

    def refusal(self, address: str) -> str:
        """The answer to a new connection from ``address``, which must end; empty if it may stay.
        The texts are Pulsar's."""
        settings = self._settings
        if 0 < settings.brokerMaxConnections <= self._all.total:
            limit = f"brokerMaxConnections={settings.brokerMaxConnections}"
            return self._refused(_REFUSED, limit, address)
        taken = self._memory.by_network
        if self._memory_max() <= taken.total and (
            self._memory_max_of_few() <= taken.total or taken.makes_room(peer_network_of(address))
        ):
            limit = f"{self._memory_max()} connections fit into the memory of clients"
            return self._refused(_REFUSED, f"{limit} (headgateClientMemoryMB)", address)
        if self._takes_what_is_left(peer_network_of(address)):
            limit = "those of its network take as much of the memory of clients as they leave"
            return self._refused(_REFUSED, f"{limit} (headgateClientMemoryMB)", address)
        if 0 < settings.brokerMaxConnectionsPerIp <= self._all.of(address):
            text = f"{_REFUSED} on address{address}"
            limit = f"brokerMaxConnectionsPerIp={settings.brokerMaxConnectionsPerIp}"
            return self._refused(text, limit, address)
        exceeded = self._unauthenticated.exceeded(address, self._unauthenticated_max)
        if exceeded:
            limit = f"{exceeded} may wait for their CONNECT"
            return self._refused(_REFUSED, limit, address)
        return ""

    def added(self, address: str, memory_units: int = 1) -> None:
        """A connection from ``address`` was accepted, which takes the memory of so many plain
        ones."""
        network = peer_network_of(address)
        self._memory.count(network, memory_units)
        self._memory_of_strangers.count(network, memory_units)
        self._all.add(address)
        self._unauthenticated.add(address)

    def authenticated(self, address: str, memory_units: int = 1) -> None:
        """The CONNECT of a connection from ``address`` has succeeded, with what :meth:`added` was
        told."""
        self._unauthenticated.remove(address)
        self._memory_of_strangers.count(peer_network_of(address), -memory_units)

    def removed(self, address: str, memory_units: int = 1, *, is_authenticated: bool) -> None:
        """A connection from ``address`` has ended, with what :meth:`added` was told."""
        network = peer_network_of(address)
        self._memory.count(network, -memory_units)
        self._all.remove(address)
        if not is_authenticated:
            self._unauthenticated.remove(address)
            self._memory_of_strangers.count(network, -memory_units)

    def _takes_what_is_left(self, network: str) -> bool:
        """Whether connections of a network that have not authenticated take as much memory as is
        free for others: one network gets half, a second one half of the rest, and so on. In the
        last part all connections count."""
        places = self._memory_max_of_few()
        left = places - self._memory.by_network.total
        takings = self._memory if left * LAST_PART <= places else self._memory_of_strangers
        return left > 0 and takings.leaves_too_little(network, left)

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

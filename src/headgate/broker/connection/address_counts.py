"""Counts connections, in all and by the address that they come from."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_network
from typing import Final, NamedTuple

from headgate.base.owner_shares import OwnerShares
from headgate.base.sparse_counter import SparseCounter
from headgate.security.failed_attempts import network_of

TOTAL_MAX: Final = 32_768
TOTAL_SHARE: Final = 3 / 4
"""Connections that have not authenticated may take this share of the descriptors for clients, at
most :data:`TOTAL_MAX`: a flood of them leaves room for clients that are connected."""

PER_ADDRESS_MAX: Final = 16_384
PER_ADDRESS_SHARE: Final = 1 / 2
"""And from one address this share, at most :data:`PER_ADDRESS_MAX`. A machine with thousands of
clients reconnects at once, so the share is large."""


WIDE_FREE: Final = 3
"""Where an address leaves as much to others as it has, those of one /48 have so many times what
they leave: one machine may have thousands of /64."""


class CountBounds(NamedTuple):
    """The most connections of a kind."""

    total: int
    per_address: int


def unauthenticated_bounds(descriptors: int | None) -> CountBounds:
    """The bounds of connections that have not authenticated, of ``descriptors`` for clients; None
    for no limit of these."""
    if descriptors is None:
        return CountBounds(TOTAL_MAX, PER_ADDRESS_MAX)
    return CountBounds(
        max(1, min(TOTAL_MAX, int(descriptors * TOTAL_SHARE))),
        max(1, min(PER_ADDRESS_MAX, int(descriptors * PER_ADDRESS_SHARE))),
    )


class AddressCounts:
    """Open connections of one kind."""

    __slots__ = ("_by_host", "_by_wide", "_leaves_room", "_name", "total")

    def __init__(self, *, by_network: bool = False, leaves_room: bool = False) -> None:
        """With ``by_network`` the first 64 bits of an IPv6 address count as one address, because
        one client has all that follow. With ``leaves_room`` an address gets no more than are free
        then: one alone gets half, a second one half of the rest, and so on; those of one
        /48 together three quarters. So it takes ten addresses of IPv4, or several /48, to keep all
        others from a thousand places."""
        self.total = 0
        self._leaves_room = leaves_room
        self._name = peer_network_of if by_network else host_of
        self._by_host: SparseCounter[str] = SparseCounter()
        self._by_wide: SparseCounter[str] = SparseCounter()
        """Only where room is left."""

    def of(self, address: str) -> int:
        """Those from the host of ``address``, which is ``/host:port``."""
        return self._by_host[self._name(address)]

    def add(self, address: str) -> None:
        """One more is open."""
        self.total += 1
        self._by_host[self._name(address)] += 1
        if self._leaves_room:
            self._by_wide[_owner_at(address)] += 1

    def remove(self, address: str) -> None:
        """One has ended, or is of this kind no more."""
        self.total -= 1
        self._by_host[self._name(address)] -= 1
        if self._leaves_room:
            self._by_wide[_owner_at(address)] -= 1

    def exceeded(self, address: str, bounds: CountBounds) -> str:
        """Which bound one more connection from ``address`` would exceed, in words; empty if
        none."""
        if bounds.total <= self.total:
            return f"{bounds.total:,} in all"
        if bounds.per_address <= self.of(address):
            return f"{bounds.per_address:,} from one address"
        free = bounds.total - self.total
        if self._leaves_room and free <= self.of(address):
            return f"{bounds.total:,} in all, and from one address as many as are free for others"
        if self._leaves_room and WIDE_FREE * free <= self._by_wide[_owner_at(address)]:
            return f"{bounds.total:,} in all, and from one network a part of them"
        return ""


class NetworkShares:
    """What each network of :func:`peer_network_of` takes of something that all share, and the wide
    ones of :func:`owner_network_of`; any unit."""

    __slots__ = ("by_network", "by_wide")

    def __init__(self) -> None:
        self.by_network = OwnerShares()
        self.by_wide = OwnerShares()

    def count(self, network: str, amount: int) -> None:
        """A network takes so much more, or less if it is negative."""
        self.by_network.count(network, amount)
        self.by_wide.count(owner_network_of(network), amount)

    def leaves_too_little(self, network: str, free: int) -> bool:
        """Whether a network takes as much as is ``free`` for others, or those of its /48
        :data:`WIDE_FREE` times as much."""
        if free <= self.by_network.of(network):
            return True
        return WIDE_FREE * free <= self.by_wide.of(owner_network_of(network))


def address_of(peername: object) -> str:
    """``/host:port`` of a socket's peer; empty if unknown."""
    if not isinstance(peername, tuple) or len(peername) < 2:
        return ""
    return f"/{peername[0]}:{peername[1]}"


def host_of(address: str) -> str:
    """The host of ``/host:port``, or of ``host:port``."""
    return address.rpartition(":")[0].removeprefix("/")


def peer_network_of(address: str) -> str:
    """What counts as one address of ``/host:port``: of IPv6 the first 64 bits."""
    return network_of(host_of(address))


def wide_network_of(network: str) -> str:
    """The first 48 bits of an IPv6 network of :func:`peer_network_of`, the first 24 of an IPv4
    address: one owner often has all that follow. What is no network stays as it is."""
    return _supernet(network, 24, 48)


def _owner_at(address: str) -> str:
    return owner_network_of(peer_network_of(address))


def region_of(network: str) -> str:
    """The first 32 bits of an IPv6 network, the first 16 of an IPv4 one: a provider has all that
    follow, and few owners have. What is no network stays as it is."""
    return _supernet(network, 16, 32)


def owner_network_of(network: str) -> str:
    """What one owner has beside a network of :func:`peer_network_of`: the wide one of IPv6.
    Neighbours in a wide one of IPv4 have other owners."""
    return wide_network_of(network) if "/" in network else network


@lru_cache(maxsize=4_096)
def _supernet(network: str, bits_of_ipv4: int, bits_of_ipv6: int) -> str:
    try:
        found = ip_network(network)
    except ValueError:
        return network
    return str(found.supernet(new_prefix=bits_of_ipv4 if found.version == 4 else bits_of_ipv6))

"""Connections under a bound on the memory of all, which note what is done to them."""

from __future__ import annotations

from collections.abc import Callable

from headgate.base.identity import Identity
from headgate.base.units import MIB, NS_PER_S
from headgate.broker.client_memory import ClientMemory
from headgate.broker.held_memory import CONNECTION_BYTES, HeldMemory

MAX = 100 * MIB


class Clock:
    """Stands where it is put."""

    now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


class Peer:
    """A connection that notes what is done to it."""

    objects_count = 0
    memory_units = 1

    def __init__(self, address: str, role: str = "") -> None:
        self.address = address
        self.identity = Identity(role)
        self.is_open = True
        self.held = HeldMemory()
        self.working_bytes = 0
        self.is_scarce = False
        self.done: list[str] = []

    def held_memory(self, *, is_scarce: bool) -> HeldMemory:
        self.is_scarce = is_scarce
        return self.held._replace(commands=self.held.commands + self.working_bytes)

    def unsent_bytes(self) -> int:
        return self.held.unsent

    def pause_for_memory(self) -> None:
        self.done.append("pause")

    def resume_for_memory(self) -> None:
        self.done.append("resume")

    def close_for_memory(self, reason: str) -> None:
        self.is_open = False
        self.done.append(reason)

    def abort(self) -> None:
        self.done.append("abort")


class Port:
    """The consumers of a connection."""

    def __init__(self, told: Callable[[], None], role: str, consumers_count: int = 1) -> None:
        self._told = told
        self._consumers_count = consumers_count
        self.identity = Identity(role)

    def deliver_again(self) -> int:
        self._told()
        return self._consumers_count


def set_bound(memory: ClientMemory, bytes_max: int) -> None:
    """Put another bound in force at once."""
    memory.bytes_max_set = memory.bytes_max = bytes_max


def held(unsent: int = 0, descriptions: int = 0, pending: int = 0) -> HeldMemory:
    return HeldMemory(CONNECTION_BYTES, 0, unsent, descriptions, 0, pending)


class Rig:
    """Three connections under a bound of :data:`MAX`."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.memory = ClientMemory(MAX, self.clock)
        self.peers = [Peer(f"/{name}:1") for name in "abc"]
        self.closing: list[Peer] = []

    def measure(self, *unsent_mb: float, at_s: float = 0.0) -> list[list[str]]:
        """What was done to each connection when they leave that much unread."""
        for mb, peer in zip(unsent_mb, self.peers, strict=True):
            peer.held = held(int(mb * MIB))
        return self.measure_again(at_s)

    def measure_again(self, at_s: float = 0.0) -> list[list[str]]:
        self.clock.now_ns = int(at_s * NS_PER_S)
        for peer in self.peers:
            peer.done.clear()
        measure(self.memory, self.peers, self.closing)
        return [list(peer.done) for peer in self.peers]


def measure(memory: ClientMemory, peers: list[Peer], closing: list[Peer] | None = None) -> None:
    for _ in memory.measure(peers, closing or []):
        pass

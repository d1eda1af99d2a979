"""Gates that outlive their subscription, so that closing and reopening it gains nothing (law 1.1).

A subscription that is deleted or unloaded, or a reader that disconnects, leaves its gate here
while its past deliveries still count. A later subscription of the same name gets the gate back.
Readers have a new name with every connection, so a new reader takes over the gate of the reader
that closed last: a topic never has more reader gates than it had readers at once.
"""

from __future__ import annotations

from typing import Generic, Protocol, Self, TypeVar


class Retirable(Protocol):
    """A waiter's gate, as far as this module needs it."""

    owner: object

    def leave(self, now_ns: int) -> None:
        """Stop wanting to send."""

    def is_clear(self, now_ns: int) -> bool:
        """Whether no past delivery counts any more."""

    def close(self, now_ns: int) -> None:
        """Remove the gate for good."""

    def renewed(self, now_ns: int) -> Self:
        """Hand the gate to another subscription."""


GateT = TypeVar("GateT", bound=Retirable)


class RetiredGates(Generic[GateT]):
    """The gates of one topic's closed subscriptions, each until its window is clear."""

    __slots__ = ("_durable", "_readers")

    def __init__(self) -> None:
        self._durable: dict[str, GateT] = {}
        self._readers: dict[str, GateT] = {}

    def __len__(self) -> int:
        return len(self._durable) + len(self._readers)

    def keep(self, name: str, gate: GateT, now_ns: int, *, is_reader: bool) -> None:
        """Keep the gate of the closed subscription ``name`` while its past deliveries count."""
        self._forget_clear(now_ns)
        gate.leave(now_ns)
        gate.owner = None  # so that reference counts free both
        if gate.is_clear(now_ns):
            gate.close(now_ns)
            return
        (self._readers if is_reader else self._durable)[name] = gate

    def take(self, name: str, now_ns: int, *, is_reader: bool) -> GateT | None:
        """Remove and return the gate for a new subscription: the gate of its name or, for a reader,
        of the reader that closed last. None if the new one begins with an empty window."""
        self._forget_clear(now_ns)
        for kept in (self._durable, self._readers):
            if name in kept:
                return kept.pop(name).renewed(now_ns)
        if is_reader and self._readers:
            return self._readers.popitem()[1].renewed(now_ns)
        return None

    def _forget_clear(self, now_ns: int) -> None:
        """Forget the gates whose windows are clear, oldest first."""
        for kept in (self._durable, self._readers):
            clear = []
            for name, gate in kept.items():
                if not gate.is_clear(now_ns):
                    break
                clear.append(name)
            for name in clear:
                kept.pop(name).close(now_ns)

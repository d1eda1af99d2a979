"""Gates that outlive their subscription, so that closing and reopening it gains nothing (law 1.1).

A subscription that is deleted or unloaded, or a reader that disconnects, leaves its gate here
while its past deliveries still count. A later subscription of the same name gets the gate back.
Readers have a new name with every connection, so a new reader takes over the gate of the reader
that closed last: a topic never has more reader gates than it had readers at once.

Deliveries count for a period of their limit, which may be decades. Nobody is charged with a gate
whose subscription is gone, and no limit on subscriptions counts it. So all topics together keep a
bounded number of those, beyond which the one that ended first is forgotten: a subscription of a
new name has an empty window, too.
"""

from __future__ import annotations

from typing import Final, Generic, Protocol, Self, TypeVar

ENDED_MAX: Final = 20_000
"""Gates of all topics whose subscription was deleted, or whose reader left: 1.3 KiB each, 3.5 with
the longest names."""


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


class EndedGates(Generic[GateT]):
    """The gates of all topics of a broker whose subscriptions are gone for good."""

    __slots__ = ("_count_max", "_owners")

    def __init__(self, count_max: int = ENDED_MAX) -> None:
        self._count_max = count_max
        self._owners: dict[GateT, tuple[RetiredGates[GateT], str]] = {}
        """The one that ended first is first."""

    def __len__(self) -> int:
        return len(self._owners)

    def add(self, gate: GateT, owner: RetiredGates[GateT], name: str, now_ns: int) -> None:
        """Keep one more of ``owner``; forget the first if they are too many."""
        self._owners[gate] = owner, name
        if len(self._owners) > self._count_max:
            owner, name = self._owners.pop(next(iter(self._owners)))
            owner.forget(name, now_ns)

    def discard(self, gate: GateT) -> None:
        """A gate is not kept any more, or its subscription has come back."""
        self._owners.pop(gate, None)


class RetiredGates(Generic[GateT]):
    """The gates of one topic's closed subscriptions, each until its window is clear."""

    __slots__ = ("_durable", "_ended", "_readers")

    def __init__(self, ended: EndedGates[GateT]) -> None:
        """``ended`` are those of all topics whose subscriptions are gone."""
        self._ended = ended
        self._durable: dict[str, GateT] = {}
        self._readers: dict[str, GateT] = {}

    def __len__(self) -> int:
        return len(self._durable) + len(self._readers)

    def keep(self, name: str, gate: GateT, now_ns: int, *, is_reader: bool, is_gone: bool) -> None:
        """Keep the gate of the closed subscription ``name`` while its past deliveries count.
        ``is_gone`` unless it is unloaded with its topic."""
        self._forget_clear(now_ns)
        gate.leave(now_ns)
        gate.owner = None  # so that reference counts free both
        if gate.is_clear(now_ns):
            gate.close(now_ns)
            return
        (self._readers if is_reader else self._durable)[name] = gate
        if is_gone:
            self._ended.add(gate, self, name, now_ns)

    def take(self, name: str, now_ns: int, *, is_reader: bool) -> GateT | None:
        """Remove and return the gate for a new subscription: the gate of its name or, for a reader,
        of the reader that closed last. None if the new one begins with an empty window."""
        self._forget_clear(now_ns)
        for kept in (self._durable, self._readers):
            if name in kept:
                return self._back(kept.pop(name), now_ns)
        if is_reader and self._readers:
            return self._back(self._readers.popitem()[1], now_ns)
        return None

    def _back(self, gate: GateT, now_ns: int) -> GateT:
        self._ended.discard(gate)
        return gate.renewed(now_ns)

    def forget(self, name: str, now_ns: int) -> None:
        """Forget the gate of ``name``, though its past deliveries may count."""
        for kept in (self._durable, self._readers):
            if name in kept:
                self._close(kept.pop(name), now_ns)

    def clear(self, now_ns: int) -> None:
        """Forget all, because the topic is deleted."""
        for kept in (self._durable, self._readers):
            for gate in kept.values():
                self._close(gate, now_ns)
            kept.clear()

    def _close(self, gate: GateT, now_ns: int) -> None:
        self._ended.discard(gate)
        gate.close(now_ns)

    def _forget_clear(self, now_ns: int) -> None:
        """Forget the gates whose windows are clear, oldest first."""
        for kept in (self._durable, self._readers):
            clear = []
            for name, gate in kept.items():
                if not gate.is_clear(now_ns):
                    break
                clear.append(name)
            for name in clear:
                self._close(kept.pop(name), now_ns)

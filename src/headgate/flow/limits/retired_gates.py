"""Windows that outlive their subscription, so that leaving and coming back gains nothing (law 1.1).

A subscription that is deleted, unloaded or, as a reader, ends with its connection leaves its gate
here for as long as anything that it delivered still counts. Who comes back by the same name gets it
back. Readers get new names with every connection, so a new reader takes over the window of the
reader that closed last: a topic never has more readers' windows than it had readers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.flow.limits.waiter_gate import WaiterGate


class RetiredGates:
    """The gates of one topic's closed subscriptions, each while its window is not clear."""

    __slots__ = ("_durable", "_readers")

    def __init__(self) -> None:
        self._durable: dict[str, WaiterGate] = {}
        self._readers: dict[str, WaiterGate] = {}

    def __len__(self) -> int:
        return len(self._durable) + len(self._readers)

    def keep(self, name: str, gate: WaiterGate, now_ns: int, *, is_reader: bool) -> None:
        """The subscription ``name`` is closed: keep its gate if it has delivered something that
        still counts."""
        self._give_up_clear(now_ns)
        gate.leave(now_ns)
        if gate.is_clear(now_ns):
            gate.close(now_ns)
            return
        gate.owner = None
        (self._readers if is_reader else self._durable)[name] = gate

    def take(self, name: str, now_ns: int, *, is_reader: bool) -> WaiterGate | None:
        """The gate for a new subscription: the one kept by its name, for a reader else that of
        the reader closed last. None: it begins with an empty window."""
        self._give_up_clear(now_ns)
        for kept in (self._durable, self._readers):
            if name in kept:
                return kept.pop(name).renewed(now_ns)
        if is_reader and self._readers:
            return self._readers.popitem()[1].renewed(now_ns)
        return None

    def _give_up_clear(self, now_ns: int) -> None:
        """Forget those in whose windows nothing counts any more, oldest first."""
        for kept in (self._durable, self._readers):
            clear = []
            for name, gate in kept.items():
                if not gate.is_clear(now_ns):
                    break
                clear.append(name)
            for name in clear:
                kept.pop(name).close(now_ns)

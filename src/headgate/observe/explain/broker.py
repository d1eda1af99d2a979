"""The report on the broker itself: memory of clients, threads, the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headgate.base.instants import iso_time
from headgate.base.units import NS_PER_S
from headgate.explain.reports import BrokerReport, LaneState, MemoryHolding
from headgate.explain.states import StorageState
from headgate.observe.explain.topic import plain

if TYPE_CHECKING:
    from headgate.broker.service import Broker


def broker_report(broker: Broker, storage: Callable[[], StorageState]) -> dict[str, Any]:
    """How the broker is now, as plain values."""
    memory = broker.client_memory
    bytes_max, slowed, closed = memory.figures()
    held = sorted(memory.by_kind().items(), key=lambda item: -item[1])
    turn_ns, turn = broker.turns.longest()
    state = storage()
    problems = (broker.lane_watch.stuck_sentence(), state.sentence)
    report = BrokerReport(
        at=iso_time(broker.engine.now_ms),
        broker=broker.info.broker_id,
        started=iso_time(broker.started_ms),
        sentence="; ".join(filter(None, problems)),
        storage=state,
        connections=len(broker.connections),
        memory_max_bytes=bytes_max,
        memory=[MemoryHolding(kind=kind, bytes=size) for kind, size in held],
        slowed=slowed,
        closed=closed,
        lanes=[
            LaneState(name=name, silent_s=silent_ns / NS_PER_S)
            for name, silent_ns in broker.lane_watch.silent_ns().items()
        ],
        longest_turn_s=turn_ns / NS_PER_S,
        longest_turn=turn,
    )
    return plain(report)

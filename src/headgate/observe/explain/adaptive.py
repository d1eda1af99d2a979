"""The report on the adaptive controller: what it decided last, and by which signals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.base.instants import iso_time
from headgate.explain.reports import AdaptiveReport
from headgate.observe.explain.topic import plain
from headgate.observe.states.adaptive import decision_state

if TYPE_CHECKING:
    from headgate.broker.service import Broker


def adaptive_report(broker: Broker, count: int) -> dict[str, Any]:
    """The controller and its latest ``count`` decisions, as plain values."""
    throttle, at = broker.adaptive, iso_time(broker.engine.now_ms)
    if throttle is None:
        report = AdaptiveReport(
            at=at,
            broker=broker.info.broker_id,
            enabled=False,
            law=None,
            observe_only=None,
            active=0,
            activations=0,
            memory_pressure=None,
            memory_used_bytes=None,
            memory_limit_bytes=None,
            last_evaluation=None,
            failures=0,
            decisions=[],
        )
        return plain(report)
    status = throttle.status
    report = AdaptiveReport(
        at=at,
        broker=broker.info.broker_id,
        enabled=True,
        law=throttle.settings.law.value,
        observe_only=throttle.settings.observe_only,
        active=throttle.active_count,
        activations=status.activations,
        memory_pressure=status.memory_pressure,
        memory_used_bytes=status.memory_used_bytes,
        memory_limit_bytes=throttle.memory_limit_bytes,
        last_evaluation=iso_time(status.last_evaluation_ms) if status.last_evaluation_ms else None,
        failures=status.failures,
        decisions=[
            decision_state(record.at_ms, topic, record.decision)
            for topic, record in throttle.latest_decisions(count)
        ],
    )
    return plain(report)

"""A rig with backlog quotas, and short words for its producers."""

from __future__ import annotations

from headgate.engine.producer import Producer
from headgate.flow.quota.backlog_quota import NO_QUOTAS, Quota, QuotaPolicy, Quotas, QuotaType
from tests.unit.engine.harness import FakePort, Rig

HOLD, REFUSE, EVICT = QuotaPolicy.HOLD, QuotaPolicy.EXCEPTION, QuotaPolicy.EVICTION
SOURCE = "topic policy"


def size_quota(limit_bytes: int, policy: QuotaPolicy = HOLD) -> Quotas:
    """Only a size quota."""
    return Quotas(Quota(QuotaType.SIZE, limit_bytes, policy, SOURCE), None)


def time_quota(limit_ms: int, policy: QuotaPolicy = HOLD) -> Quotas:
    """Only a time quota."""
    return Quotas(None, Quota(QuotaType.TIME, limit_ms, policy, SOURCE))


class Told:
    """An observer that remembers what quotas did."""

    def __init__(self, rig: QuotaRig) -> None:
        self.rig = rig
        self.turns: list[tuple[str, bool]] = []
        self.evictions: list[tuple[str, int, int, int]] = []

    def __getattr__(self, _: str) -> object:
        return lambda *__: None

    def quota_state_changed(self, _: object, quota: Quota, exceeded: bool) -> None:
        self.turns.append((quota.type.label, exceeded))

    def evicted(self, _: object, act: object) -> None:
        kind = act.quota.type.label  # type: ignore[attr-defined]
        self.evictions.append((kind, act.messages, act.bytes, act.backlog_bytes))  # type: ignore[attr-defined]


class QuotaRig(Rig):
    """One topic with quotas."""

    def __init__(self, quotas: Quotas = NO_QUOTAS) -> None:
        super().__init__(quotas=quotas)
        self.told = Told(self)
        self.engine.observer = self.told  # type: ignore[assignment]

    def second_producer(self, name: str = "q") -> tuple[Producer, FakePort]:
        """Another producer, on a connection of its own."""
        port = FakePort()
        producer = Producer(2, name, port)
        self.topic.add_producer(producer)
        return producer, port

    def set_quotas(self, quotas: Quotas) -> None:
        """Other quotas are in force."""
        self.quotas = quotas
        self.engine.reload_quotas(self.topic)
        self.flush()

    @property
    def stored(self) -> int:
        """Entries handed to the log."""
        return self.log.staged_end

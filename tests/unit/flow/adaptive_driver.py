"""A topic from cycle to cycle, for the tests of adaptive publish throttling."""

from __future__ import annotations

from typing import Any

from headgate.base.units import NS_PER_S
from headgate.flow.adaptive.cycle import (
    AdaptiveSettings,
    Cycle,
    Decision,
    MemoryRule,
    PublishLimit,
    TopicSignals,
)
from headgate.flow.adaptive.topic import TopicControl

MESSAGE_BYTES = 1_000


class Driven:
    """One topic whose load a test tells, a cycle at a time."""

    def __init__(self, *, now_ns: int = 0, **settings: Any) -> None:
        self.control = TopicControl()
        self.settings = AdaptiveSettings(**settings)
        self.now_ns = now_ns
        self.messages = 0
        self.done_bytes = 0
        self.decisions: list[Decision] = []
        self.cycle()

    @property
    def bytes(self) -> int:
        """Published so far."""
        return self.messages * MESSAGE_BYTES

    def set(self, **settings: Any) -> None:
        """Other settings from the next cycle on."""
        self.settings = AdaptiveSettings(**settings)

    def cycle(
        self,
        published: int = 0,
        *,
        memory: float = 0.0,
        rule: MemoryRule | None = None,
        waited: bool = False,
        slowed: bool = False,
        seconds: float = 1.0,
        drained: int = 0,
        **signals: Any,
    ) -> Decision | None:
        """``published`` messages and ``drained`` bytes later."""
        elapsed_ns = round(seconds * NS_PER_S)
        self.now_ns += elapsed_ns
        self.messages += published
        self.done_bytes += drained
        found = TopicSignals(
            messages=self.messages,
            bytes=self.bytes,
            was_parked=waited or slowed,
            was_slowed=slowed,
            done_bytes=self.done_bytes,
            **signals,
        )
        decision = self.control.evaluate(
            found, Cycle(self.settings, self.now_ns, elapsed_ns), memory, rule
        )
        if decision is not None:
            self.decisions.append(decision)
        return decision

    def learn(self, published: int = 1_000, cycles: int = 2) -> Driven:
        """Publish so much a second, unhindered."""
        for _ in range(cycles):
            self.cycle(published, drained=published * MESSAGE_BYTES)
        return self

    def limits(self, cycles: int, **how: Any) -> list[int | None]:
        """The limit in messages after each of so many equal cycles, None without one."""
        found = []
        for _ in range(cycles):
            self.cycle(**how)
            limit = self.present
            found.append(None if limit is None else limit.messages_per_s)
        return found

    @property
    def present(self) -> PublishLimit | None:
        """In force, or in observe-only what would be."""
        return self.control.limit or self.control.shadow_limit

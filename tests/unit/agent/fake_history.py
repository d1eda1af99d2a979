"""Stands for the history of a cluster: it keeps what it is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headgate.agent.looks import LimitsLook, ProofLook, SubscriptionLook, TopicLook
from headgate.base.names import parse_topic
from headgate.explain.delivery import Instant
from headgate.explain.points import Point
from headgate.flow.account.account import CELL_COUNT, Cell
from headgate.flow.limits.precedence import EffectiveLimit


@dataclass
class FakePhase:
    """The newest point."""

    last: Point


@dataclass
class FakeTrack:
    """The points of a subscription."""

    phase: FakePhase


@dataclass
class FakeSubscription:
    """What is known of a subscription."""

    name: str
    look: SubscriptionLook | None
    track: FakeTrack | None
    opened_ns: int = 0
    limits: tuple[EffectiveLimit, ...] | None = None
    events: tuple[int, ...] | None = None


@dataclass
class FakeTopic:
    """What is known of a topic."""

    name: str
    owner: str
    look: TopicLook | None
    at_ns: int
    limits: LimitsLook | None = None
    subscriptions: dict[str, FakeSubscription] = field(default_factory=dict)

    def is_gone(self, now_ns: int) -> bool:
        return False


class FakeHistory:
    """The last look at each topic, and a list of calls. A subscription is in one state."""

    def __init__(self, cell: Cell = Cell.NO_CONSUMER) -> None:
        self.topics: dict[str, FakeTopic] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.unreachable: dict[str, tuple[int, str]] = {}
        self._cell = cell

    def note_look(self, look: TopicLook) -> None:
        self.calls.append(("look", look.topic))
        known = self.topics.setdefault(look.topic, FakeTopic(look.topic, look.owner, look, 0))
        known.look, known.at_ns = look, look.at_ns
        for each in look.subscriptions:
            found = known.subscriptions.setdefault(
                each.name, FakeSubscription(each.name, None, None, look.at_ns)
            )
            found.look = each
            found.track = FakeTrack(FakePhase(self._point(found, look, each)))

    def _point(self, known: FakeSubscription, look: TopicLook, each: SubscriptionLook) -> Point:
        cells = [0] * CELL_COUNT
        cells[self._cell] = look.at_ns - known.opened_ns
        appended, backlog = look.published or 0, each.backlog or 0
        return Point(
            self._cell, tuple(cells), look.at_ns, appended, appended - backlog, each.sent or 0,
            0, 0, 0, 0, 0, 0, 0, each.unacked or 0, 0, look.at_ns - known.opened_ns, 0, 0,
        )  # fmt: skip

    def note_proof(self, proof: ProofLook) -> None:
        self.calls.append(("proof", proof.topic))

    def note_limits(self, limits: LimitsLook) -> None:
        self.calls.append(("limits", limits.topic))

    def note_gone(self, topic: str, at_ns: int) -> None:
        self.calls.append(("gone", topic))

    def note_unreachable(self, broker: str, at_ns: int, reason: str) -> None:
        self.calls.append(("unreachable", broker))
        self.unreachable[broker] = (at_ns, reason)

    def suspects(self, count: int, now_ns: int) -> list[str]:
        return ["suspect"][:count]

    def proofs_wanted(self, count: int, now_ns: int) -> list[str]:
        return ["proof"][:count]

    def limits_wanted(self, count: int, now_ns: int) -> list[str]:
        return ["limits"][:count]

    def forget(self, before_ns: int) -> None:
        self.calls.append(("forget", before_ns))

    def top(self, count: int, instant: Instant, *, with_timeline: bool = False) -> dict[str, Any]:
        told = {"at": instant.now_ms, "subscriptions": [], "quotas": [], "count": count}
        return told | {"timeline": with_timeline}

    def partitions(self, topic: str) -> list[str]:
        names = [parse_topic(each) for each in self.topics]
        parts = [each for each in names if each.partition >= 0 and each.base.full == topic]
        return [each.full for each in sorted(parts, key=lambda each: each.partition)]

    def topic(self, name: str, instant: Instant, *, with_timeline: bool = False) -> dict[str, Any]:
        if not [each for each in self.topics if each.startswith(name)]:
            raise LookupError(name)
        return {"topic": name, "subscriptions": [], "quotas": [], "timeline": with_timeline}

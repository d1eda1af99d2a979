"""Situations in which Headgate's own broker measures the cause of a backlog.

They are those of the pipeline's labelled runs, with varied rates, and two at the border between
causes. The truth is what the broker's account says, not a label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.engine.types import SubscriptionType
from headgate.flow.limits.precedence import RatePolicy
from headgate.flow.limits.rate_limit import Level

FAST = 1e6


@dataclass(frozen=True)
class Reader:
    """A consumer: messages a second, its queue, what it does and until which part of the run."""

    per_s: float = FAST
    queue: int = 100
    does: str = "acknowledge"
    """Or ``hoard``: it takes messages and never acknowledges. 0 a second takes none."""
    kind: SubscriptionType = SubscriptionType.SHARED
    leaves_at: float = 1.1


@dataclass(frozen=True)
class Limit:
    """A limit in messages, or in bytes of messages of 100 bytes, and the part of the run at which
    it is set."""

    level: Level
    messages: float = 0
    bytes: float = 0
    at: float = 0.0

    def policy(self, factor: float) -> RatePolicy:
        return RatePolicy(round(self.messages * factor), round(self.bytes * factor))


@dataclass(frozen=True)
class Situation:
    """One topic (``topics`` alike, for a limit of the broker) and what reads it."""

    name: str
    publish_per_s: float
    readers: Mapping[str, Sequence[Reader]]
    limits: Sequence[Limit] = ()
    burst_s: float = 0.0
    publishes_until: float = 1.1
    topics: int = 1
    is_borderline: bool = False


def _one(**how: object) -> dict[str, list[Reader]]:
    return {"s": [Reader(**how)]}  # type: ignore[arg-type]


_S, _T, _B = Level.SUBSCRIPTION, Level.TOPIC, Level.BROKER
_EXCLUSIVE, _FAILOVER = SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER

SITUATIONS = (
    Situation("slow", 100, _one(per_s=40)),
    Situation("slow-active", 100, _one(per_s=30, kind=_FAILOVER)),
    Situation("slow-long-queue", 100, _one(per_s=60, queue=1_000)),
    Situation("nobody", 50, {"s": []}),
    Situation("hoards", 60, _one(does="hoard")),
    Situation("stalls", 60, _one(per_s=0, queue=50)),
    Situation("healthy", 100, _one()),
    Situation("healthy-exclusive", 80, _one(kind=_EXCLUSIVE)),
    Situation("bursts", 80, _one(queue=1_000), burst_s=3.0),
    Situation("roomy", 100, _one(), [Limit(_S, 400)]),
    Situation("narrow", 100, _one(), [Limit(_S, 50)]),
    Situation("narrow-failover", 100, _one(kind=_FAILOVER, queue=500), [Limit(_S, 60)]),
    Situation("bytes", 100, _one(kind=_EXCLUSIVE), [Limit(_S, bytes=4_000)]),
    Situation("shared-limit", 100, {"a": [Reader()], "b": [Reader()]}, [Limit(_T, 80)]),
    Situation("busy", 300, _one(per_s=200, queue=500), [Limit(_S, 250)]),
    Situation("busy-exclusive", 300, _one(per_s=190, queue=500, kind=_EXCLUSIVE), [Limit(_S, 250)]),
    Situation(
        "neighbours", 100, {"quick": [Reader()], "slow": [Reader(10, 10)]}, [Limit(_T, 80)]
    ),
    Situation("two-limits", 100, _one(), [Limit(_T, 80), Limit(_S, 40)]),
    Situation("limited-then-gone", 100, _one(leaves_at=0.85), [Limit(_S, 40)]),
    Situation("slow-then-limited", 100, _one(per_s=40), [Limit(_S, 5, at=0.85)]),
    Situation("one-hoards", 60, {"s": [Reader(), Reader(does="hoard", queue=20)]}),
    Situation("catches-up", 150, _one(per_s=90), publishes_until=0.7),
    Situation("wide", 80, _one(), [Limit(_B, 120)], topics=3),
    Situation("wide-own", 80, _one(), [Limit(_B, 200), Limit(_S, 8)], topics=3),
    Situation(
        "border-busy", 300, _one(per_s=235, queue=500), [Limit(_S, 250)], is_borderline=True
    ),
    Situation("border-equal", 100, _one(per_s=97), [Limit(_S, 95)], is_borderline=True),
)  # fmt: skip

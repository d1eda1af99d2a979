"""The situations of the demo as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headgate.flow.account.verdict import Verdict
from headgate.flow.limits.rate_limit import Level

NAMESPACE: Final = "public/default"

MAIN: Final = "demo"
WIDE: Final = "demo-wide"
ADAPTIVE: Final = "demo-adaptive"
"""Names of the clusters. A broker limit and adaptive publish throttling apply to a whole broker, so
their scenes have separate brokers."""

SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    ADAPTIVE: {
        "adaptivePublisherThrottlingEnabled": "true",
        "adaptivePublisherThrottlingLaw": "drain",
    }
}
"""Settings of single clusters, beside those of all."""

ENTRY_BYTES: Final = 250
"""Approximate size of a message of the demo in a backlog quota."""
_QUOTA_S_MIN: Final = 20
_QUOTA_S_MAX: Final = 60
"""Bounds on the seconds of consumption in a full quota, so that it fills in every demo."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One situation. Rates are messages a second, for each topic and each subscription."""

    name: str
    cluster: str
    topics: tuple[str, ...]
    """Local names; each has all the subscriptions."""
    subscriptions: tuple[str, ...]
    publish_per_s: int
    consume_per_s: int | None
    """The rate of a consumer; None: as fast as messages come."""
    queue_size: int
    """The consumer's receiver queue."""
    has_consumer: bool
    level: Level | None
    """Where the limit is set; None without one."""
    limit_per_s: int
    """Messages a second at that level; 0 without a limit."""
    verdict: Verdict
    """The cause that it is built with."""
    built: str
    """The same in a few words."""
    relative: bool = False
    """Whether the limit is on top of what is published. Such a scene begins with an old backlog:
    without one the limit would hold nothing."""
    then_per_s: tuple[int, ...] = ()
    """Publish rates after ``publish_per_s``, all for equal parts of the demo's time; the last one
    stays."""
    pending_max: int | None = None
    """Bound on messages without a receipt, at which the producer pauses; None: it never pauses."""
    has_quota: bool = False
    """Whether a backlog quota by size holds its producers when it is reached."""

    def topic_names(self) -> list[str]:
        """Full names of the topics."""
        return [f"persistent://{NAMESPACE}/{topic}" for topic in self.topics]

    @property
    def rates_per_s(self) -> tuple[int, ...]:
        """All publish rates, one after the other."""
        return (self.publish_per_s, *self.then_per_s)

    def phase_s(self, seconds: float) -> float:
        """How long each of them holds in a demo of ``seconds``; the last one stays."""
        return seconds / len(self.rates_per_s)

    def old_backlog(self, seconds: float, kept_s: float = 0.0) -> int:
        """Messages that wait before a demo of ``seconds`` begins to publish, for each subscription.

        The backlog shrinks by the limit; it lasts half as long again as the demo and two minutes,
        for the steps after it and for a busy machine, and ``kept_s`` more.
        """
        return round(self.limit_per_s * (1.5 * seconds + 60 + kept_s)) if self.relative else 0

    def quota_bytes(self, seconds: float) -> int:
        """The backlog quota in a demo of ``seconds``."""
        quota_s = min(max(seconds, _QUOTA_S_MIN), _QUOTA_S_MAX)
        return round(quota_s * (self.consume_per_s or 0) * ENTRY_BYTES)


SCENES: Final = (
    Scene(
        "slow-consumer", MAIN, ("orders",), ("billing",), 100, 40, 100, True, None, 0,
        Verdict.CONSUMER, "a consumer of 40/s where 100/s are published",
    ),
    Scene(
        "subscription-limit", MAIN, ("payments",), ("audit",), 100, None, 100, True,
        Level.SUBSCRIPTION, 50, Verdict.THROTTLED_SUBSCRIPTION,
        "a subscription limit of 50/s where 100/s are published",
    ),
    Scene(
        "topic-limit", MAIN, ("clicks",), ("search", "reports"), 100, None, 100, True,
        Level.TOPIC, 80, Verdict.THROTTLED_TOPIC,
        "a topic limit of 80/s that two subscriptions share, 100/s published",
    ),
    Scene(
        "broker-limit", WIDE, ("sensors-a", "sensors-b", "sensors-c"), ("store",), 80, None, 100,
        True, Level.BROKER, 120, Verdict.THROTTLED_BROKER,
        "a broker-wide limit of 120/s for three topics of 80/s each",
    ),
    Scene(
        "busy-limit", MAIN, ("metering",), ("invoices",), 600, 400, 1_000, True,
        Level.SUBSCRIPTION, 500, Verdict.CONSUMER,
        "a consumer of 400/s under a limit of 500/s: the limiter is busy, the consumer too slow",
    ),
    Scene(
        "healthy", MAIN, ("logins",), ("alerts",), 100, None, 100, True, None, 0,
        Verdict.NONE, "no limit, and a consumer that keeps up",
    ),
    Scene(
        "no-consumer", MAIN, ("returns",), ("archive",), 50, None, 100, False, None, 0,
        Verdict.NO_CONSUMER, "a subscription without a consumer",
    ),
    # Its verdict does not depend on where a minute of the tables begins, though the rates change:
    # there is a backlog all the time and the consumer takes what comes, so the limit is all that
    # holds it back whatever the limit amounts to. With so long a queue at least half of it is free
    # ("hungry") at every rate, also when a client on a busy machine acknowledges late.
    Scene(
        "relative-limit", MAIN, ("parcels",), ("tracking",), 100, None, 1_000, True,
        Level.TOPIC, 50, Verdict.THROTTLED_TOPIC,
        "an old backlog, and a topic limit of 50/s above what is published: 100/s, then 300/s, then"
        " 100/s",
        relative=True, then_per_s=(300, 100),
    ),
    # All producers of a cluster share one connection. This one is slowed as the quota fills ...
    Scene(
        "adaptive-limit", ADAPTIVE, ("videos",), ("encoding",), 400, 100, 100, True, None, 0,
        Verdict.CONSUMER,
        "a consumer of 100/s where 400/s would be published, under a backlog quota: the producer is"
        " slowed before the quota is reached",
        pending_max=100, has_quota=True,
    ),
    # ... and this one is not.
    Scene(
        "adaptive-neighbour", ADAPTIVE, ("chats",), ("inbox",), 100, None, 100, True, None, 0,
        Verdict.NONE, "no quota and a consumer that keeps up, beside a producer that is slowed",
    ),
)  # fmt: skip
"""All situations, in the order in which they are shown."""


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """One subscription of one cluster, the subject of a line."""

    cluster: str
    topic: str
    """Full name."""
    subscription: str

    @property
    def text(self) -> str:
        """``orders / billing``."""
        return f"{self.topic.rpartition('/')[2]} / {self.subscription}"


def subjects(scenes: Sequence[Scene] = SCENES) -> Iterator[tuple[Subject, Scene]]:
    """Every subscription with its scene, in the order of the scenes."""
    for scene in scenes:
        for topic in scene.topic_names():
            for subscription in scene.subscriptions:
                yield Subject(scene.cluster, topic, subscription), scene


def clusters(scenes: Sequence[Scene] = SCENES) -> list[str]:
    """Names of the clusters that the scenes need, each once."""
    return list(dict.fromkeys(scene.cluster for scene in scenes))

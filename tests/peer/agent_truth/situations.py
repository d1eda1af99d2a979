"""The situations that are played on a real Apache Pulsar, each with varied rates.

They are those of the pipeline's labelled runs, and some that only an agent has to tell apart. A
round plays all of them once, with all rates times one factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.spark.labelled import (
    MAIN,
    OF_SUBSCRIPTION,
    OF_TOPIC,
    SITUATIONS,
    WIDE,
    Consumer,
    Situation,
)

ROUNDS = ((0.5, 1.0), (0.75, 1.5))
"""The factors of the rounds; those of a pair are played at once."""
FACTORS = tuple(factor for pair in ROUNDS for factor in pair)

MORE = (
    # Borderline: the limit is a tenth below what the consumer could take ...
    Situation(
        "just-limited", 150, {"s": [Consumer(per_s=100, queue=200)]},
        {"s": "THROTTLED_SUBSCRIPTION"}, [(0.0, OF_SUBSCRIPTION, 88, 0)],
    ),
    # ... or a tenth above it.
    Situation(
        "just-slow", 150, {"s": [Consumer(per_s=80, queue=200)]}, {"s": "CONSUMER"},
        [(0.0, OF_SUBSCRIPTION, 88, 0)],
    ),
    Situation(
        "topic-narrow", 100, {"s": [Consumer(kind="Failover")]}, {"s": "THROTTLED_TOPIC"},
        [(0.0, OF_TOPIC, 50, 0)],
    ),
)  # fmt: skip

CHANGING = ("limited-then-gone", "slow-then-limited", "catches-up")
"""Their label is that of a whole run, and changes on the way: a look at its end sees another."""


ON_PULSAR = {"neighbours": {"quick": "THROTTLED_TOPIC", "slow": "THROTTLED_TOPIC"}}
"""Verdicts that differ on a Pulsar broker. A Headgate broker shares a topic's limit fairly, so the
slow consumer gets all that it can take; a Pulsar broker leaves it a tenth of that, with its permits
free."""


def of_round(factor: float, cluster: str = MAIN) -> Sequence[Situation]:
    """What one round plays."""
    steady = [s for s in SITUATIONS if s.name not in CHANGING and s.cluster == cluster]
    all_of_them = (*steady, *(MORE if cluster == MAIN else ()))
    return [
        replace(each, verdicts=ON_PULSAR.get(each.name, each.verdicts)).scaled(factor)
        for each in all_of_them
    ]


def labels(factor: float) -> dict[tuple[str, str], str]:
    """The verdict of each (topic, subscription) of a round."""
    return {
        (situation.topic, name): verdict
        for cluster in (MAIN, WIDE)
        for situation in of_round(factor, cluster)
        for name, verdict in situation.verdicts.items()
    }

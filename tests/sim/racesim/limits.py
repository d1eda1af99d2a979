"""Limits and quotas of a namespace, so small that few clients are held by each kind of them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Final

from tests.sim.racesim.requests import Request

NAMESPACE: Final = "/admin/v2/namespaces/public/default"
TOPICS: Final = "/admin/v2/persistent/public/default"
POLICIES: Final = ("consumer_backlog_eviction", "producer_exception", "producer_request_hold")
SET_PART: Final = 0.3
"""How many of the limits are set in a phase."""


def small_limits(chance: random.Random, topics: Sequence[str]) -> Iterator[Request]:
    """Requests that set some of the limits, and some of them for one of the topics."""
    for method, name, body in _all(chance):
        for place in (NAMESPACE, f"{TOPICS}/{chance.choice(topics)}"):
            if chance.random() < SET_PART:
                path = f"{place}/{name}"
                yield Request(method, path, json.dumps(body).encode(), path)


def _all(chance: random.Random) -> Iterator[tuple[str, str, object]]:
    for name in ("dispatchRate", "subscriptionDispatchRate"):
        rate = {
            "dispatchThrottlingRateInMsg": chance.choice((1, 10, 100)),
            "ratePeriodInSecond": chance.choice((1, 5)),
            "relativeToPublishRate": chance.random() < 0.5,
        }
        yield "POST", name, rate
    yield "POST", "publishRate", {"publishThrottlingRateInMsg": chance.choice((5, 50))}
    for kind, limit in (
        ("destination_storage", {"limitSize": chance.choice((500, 5_000, 20_000))}),
        ("message_age", {"limitTime": chance.choice((1, 3, 20))}),
    ):
        quota = {"policy": chance.choice(POLICIES), **limit}
        yield "POST", f"backlogQuota?backlogQuotaType={kind}", quota
    yield "POST", "messageTTL", chance.choice((1, 10))
    yield "POST", "delayedDelivery", {"active": True, "tickTime": 1}

"""The limit behind a park cause."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.base.park_cause import ParkCause
from headgate.base.units import INT64_MAX, MIB, NS_PER_S
from headgate.flow.limits.precedence import ADAPTIVE_SOURCE
from headgate.flow.limits.rate_limit import RateLimit
from headgate.pipeline.kernels.publish_limits import PublishLimit, limit_of, quota_of

_NAMES = ("publish_limit_messages_per_s", "publish_limit_bytes_per_s", "publish_limit_source")


@pytest.mark.parametrize(
    ("rates", "source", "static", "adaptive"),
    [
        ((10.0, None), "topic policy", (RateLimit(10, None), "topic policy"), None),
        ((75.4, None), ADAPTIVE_SOURCE, None, (RateLimit(75, None), ADAPTIVE_SOURCE)),
        ((9.0, 5.0), ADAPTIVE_SOURCE, None, (RateLimit(9, 5), ADAPTIVE_SOURCE)),
        (
            (9.0, 5.0),
            f"{ADAPTIVE_SOURCE} and namespace policy a/b",
            (RateLimit(None, 5), "namespace policy a/b"),
            (RateLimit(9, None), ADAPTIVE_SOURCE),
        ),
        (
            (9.0, 5.0),
            "broker setting a and b",
            (RateLimit(9, 5), "broker setting a and broker setting b"),
            None,
        ),
        ((None, None), None, None, None),
        ((0.2, None), "topic policy", (RateLimit(1, None), "topic policy"), None),
        # The largest limit that a policy may set is one more as a double.
        ((5.0, 2.0**63), "topic policy", (RateLimit(5, INT64_MAX), "topic policy"), None),
        ((5.0, 1e308), "topic policy", (RateLimit(5, INT64_MAX), "topic policy"), None),
    ],
)
def test_static_and_adaptive_limits_are_distinguished(
    rates: tuple[float | None, float | None],
    source: str | None,
    static: tuple[RateLimit, str] | None,
    adaptive: tuple[RateLimit, str] | None,
) -> None:
    minute: dict[str, Any] = dict(zip(_NAMES, (*rates, source), strict=True))
    for cause, wanted in ((ParkCause.TOPIC_RATE, static), (ParkCause.ADAPTIVE, adaptive)):
        assert limit_of(cause, minute) == (None if wanted is None else PublishLimit(*wanted))


def test_the_fuller_quota_is_named() -> None:
    minute: dict[str, Any] = {
        "quota_size_limit_bytes": 10 * MIB,
        "quota_size_policy": "producer_request_hold",
        "quota_size_source": "topic policy",
        "quota_time_limit_ns": 3_600 * NS_PER_S,
        "quota_time_policy": "producer_exception",
        "quota_time_source": None,
        "backlog_bytes": 9 * MIB,
        "oldest_age_ns": None,
    }
    assert quota_of(minute) == ("10 MiB", "topic policy, producer_request_hold")
    old = minute | {"oldest_age_ns": 3_599 * NS_PER_S}
    assert quota_of(old) == ("1 h", "producer_exception")
    # Every backlog is over a limit of 0.
    assert quota_of(old | {"quota_size_limit_bytes": 0}) == (
        "0 B",
        "topic policy, producer_request_hold",
    )
    neither = {"quota_size_limit_bytes": None, "quota_time_limit_ns": None}
    assert quota_of(minute | neither) is None

"""Answers of explain for the tests of top."""

from __future__ import annotations

from typing import Any


def report(topic: str, subscription: str = "s", verdict: str = "CONSUMER", **fields: Any) -> Any:
    """A subscription as explain reports it, with what top reads."""
    return {
        "topic": f"persistent://{topic}",
        "subscription": subscription,
        "partitions": 0,
        "verdict": verdict,
        "confidenceLevel": "high",
        "damage": None,
        "sentence": f"{verdict}: the consumer acknowledges too little of {topic}.",
        "backlogMessages": 100,
        "backlogBytes": 2_048,
        "oldestAgeS": 61.0,
        "windowS": 10.0,
        "growthMessages": 50,
        "timeline": None,
    } | fields


def answer(*reports: Any, **fields: Any) -> Any:
    """What the broker answers without a topic."""
    return {
        "at": "2026-11-21T18:18:35.976Z",
        "broker": "localhost:8080",
        "subscriptionsTotal": len(reports),
        "withBacklog": len(reports),
        "storage": {"sentence": ""},
        "subscriptions": list(reports),
        "quotas": [],
        "publishing": [],
        "damaged": [],
    } | fields


def timeline(*minutes: tuple[str | None, int | None]) -> Any:
    """The last minutes of an hour, of which nothing was known before."""
    hour = [(None, None)] * (60 - len(minutes)) + list(minutes)
    verdicts, backlog = zip(*hour, strict=True)
    return {"stepS": 60.0, "verdicts": list(verdicts), "backlog": list(backlog)}

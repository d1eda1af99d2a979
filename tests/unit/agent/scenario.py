"""Scenario files about looks: what the agent infers from one subscription's statistics.

The form is that of :mod:`tests.unit.flow.scenario`. Commands:

    type NAME                  Shared from the start on
    limit LEVEL messages=N | bytes=N        in force from now on; other levels have none
    look AT [published=N] [backlog=N] [sent=N] ...
                               at AT seconds; figures that are left out stay as they were.
                               unacked delayed in_replay draining acked (ms) moved (ms) blocked=1
                               events=topic/messages:N   in all, of one limiter; or events=unknown
                               consumer=NAME:PERMITS:UNACKED:SENT, once for each, or consumers=0
                               owner=BROKER
    proof AT read=L:E last=L:E [pending=N] [replay]
    judge                      the verdict's sentence
    account                    seconds in each state so far

A look answers the state that it shows, and the seconds since the look before by state.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.looks import (
    ConsumerLook,
    CursorLook,
    LimitsLook,
    ProofLook,
    SubscriptionLook,
    TopicLook,
)
from headgate.base.texts import number
from headgate.base.units import NS_PER_S
from headgate.explain.delivery import Instant
from headgate.flow.account.account import Cell, difference
from headgate.flow.limits.precedence import NO_LIMIT, EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension, Level, RateLimit
from tests.unit.flow.scenario import Scenario

TOPIC = "persistent://acme/ns/t"
START_NS = 1_000 * NS_PER_S
START_MS = 1_700_000_000_000

EMPTY = SubscriptionLook(
    name="s", type="Shared", is_durable=True, backlog=0, delayed=0, in_replay=0, unacked=0,
    is_blocked=False, backlog_bytes=0, sent=0, sent_bytes=0, expired=0, events=(0,) * 6,
    draining_hashes=0, last_consumed_ms=0, last_acked_ms=0, mark_delete_moved_ms=0,
    oldest_age_s=None, consumers=(),
)  # fmt: skip


def topic_look(at_ns: int, *subscriptions: SubscriptionLook, **figures: Any) -> TopicLook:
    """A look at a topic of which only these figures matter."""
    look = TopicLook(
        topic=TOPIC, at_ns=at_ns, owner="b1", published=0, published_bytes=0, storage_bytes=0,
        backlog_bytes=0, publisher_addresses=(), publish_limited_count=0, quota_size_bytes=None,
        quota_age_s=None, oldest_age_s=None, oldest_subscription="", size_evictions=None,
        age_evictions=None, subscriptions=subscriptions,
    )  # fmt: skip
    return replace(look, **figures)


class AgentScenario(Scenario):
    """Runs one file's commands against the history of a cluster."""

    def __init__(self) -> None:
        self.history = ClusterHistory("c")
        self.look = EMPTY
        self.topic = topic_look(START_NS)
        self._cells = [0] * len(Cell)
        self._at_ns = START_NS

    def _type(self, name: str) -> str:
        self.look = replace(self.look, type=name)
        return ""

    def _limit(self, name: str, *words: str) -> str:
        amounts = {key: int(value) for key, _, value in (word.partition("=") for word in words)}
        limits = [NO_LIMIT] * len(Level)
        limit = RateLimit(amounts.get("messages"), amounts.get("bytes"))
        limits[Level[name.upper()]] = EffectiveLimit(limit, "topic policy")
        dispatch = (limits[0], limits[1], limits[2])
        self.history.note_limits(LimitsLook(TOPIC, self._at_ns, dispatch, {}, NO_LIMIT, ()))
        return ""

    def _look(self, at: str, *words: str) -> str:
        self._at_ns = START_NS + round(float(at) * NS_PER_S)
        figures = [word.partition("=")[::2] for word in words]
        consumers = [value for key, value in figures if key == "consumer"]
        if consumers or ("consumers", "0") in figures:
            each = tuple(self._consumer(text) for text in consumers)
            self.look = replace(self.look, consumers=each)
        for key, value in figures:
            self._set(key, value)
        self.history.note_look(replace(self.topic, at_ns=self._at_ns, subscriptions=(self.look,)))
        found = self.history.topics[TOPIC].subscriptions["s"]
        assert found.track is not None
        before, self._cells = self._cells, list(found.cells_ns)
        passed = self._times(difference(self._cells, before))
        return f"{at} s: {found.track.phase.last.cell.name.lower()}" + (passed and f" | {passed}")

    def _set(self, key: str, value: str) -> None:
        names = {
            "draining": "draining_hashes", "acked": "last_acked_ms", "moved": "mark_delete_moved_ms"
        }  # fmt: skip
        if key in ("consumer", "consumers"):
            return
        if key == "blocked":
            self.look = replace(self.look, is_blocked=value == "1")
        elif key == "events":
            self.look = replace(self.look, events=_events(value))
        elif key == "owner":
            self.topic = replace(self.topic, owner=value)
        elif key == "published":
            self.topic = replace(self.topic, published=int(value), published_bytes=100 * int(value))
        elif key == "sent":
            self.look = replace(self.look, sent=int(value), sent_bytes=100 * int(value))
        else:
            self.look = replace(self.look, **{names.get(key, key): int(value)})  # type: ignore[arg-type]

    def _consumer(self, text: str) -> ConsumerLook:
        name, *figures = text.split(":")
        permits, unacked, sent = map(int, figures)
        return ConsumerLook(name, "/10.0.0.1:1", "monday", permits, unacked, False, sent, 1.0)

    def _proof(self, at: str, *words: str) -> str:
        values = dict(word.partition("=")[::2] for word in words)
        cursor = CursorLook(
            "s", _position(values["read"]), None, int(values.get("pending", 0)), False, False,
            "replay" in values,
        )  # fmt: skip
        at_ns = START_NS + round(float(at) * NS_PER_S)
        self.history.note_proof(ProofLook(TOPIC, at_ns, _position(values["last"]), None, (cursor,)))
        return ""

    def _judge(self) -> str:
        instant = Instant(self._at_ns, START_MS)
        return str(self.history.topic(TOPIC, instant)["subscriptions"][0]["sentence"])

    def _account(self) -> str:
        return self._times(self._cells)

    def _times(self, cells_ns: Any) -> str:
        return ", ".join(
            f"{Cell(cell).name.lower()} {number(ns / NS_PER_S)} s"
            for cell, ns in enumerate(cells_ns)
            if ns
        )


def _position(text: str) -> tuple[int, int]:
    ledger, _, entry = text.partition(":")
    return int(ledger), int(entry)


def _events(text: str) -> tuple[int, ...] | None:
    if text == "unknown":
        return None
    limiter, _, count = text.partition(":")
    level, _, dimension = limiter.partition("/")
    events = [0] * (len(Level) * len(Dimension))
    events[Level[level.upper()] * len(Dimension) + Dimension[dimension.upper()]] = int(count)
    return tuple(events)

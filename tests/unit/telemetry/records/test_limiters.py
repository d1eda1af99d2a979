"""Rows of limiters: what passed, what wanted to, who waits."""

from __future__ import annotations

from typing import Any

from headgate.base.units import NS_PER_S
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.limits.rate_limit import Dimension
from headgate.record.fields import WAITERS_LARGEST, Kind, Nature, field_names
from headgate.telemetry.records.limiters import (
    LIMITER_COLUMNS,
    Gate,
    LimiterTrack,
    Waiter,
    subject_of,
)
from headgate.telemetry.records.subjects import Instant
from tests.unit.broker.virtual import START_NS, VirtualBroker

NAME = "persistent://public/default/orders"
WALL_NS = 1_700_000_000 * NS_PER_S
FAST = 1e6


class Play:
    def __init__(self) -> None:
        self.broker = VirtualBroker()
        self.topic = self.broker.topic(NAME)
        self.sent: dict[str, int] = {}

    @property
    def wall_ns(self) -> int:
        return WALL_NS + self.broker.engine.now_ns - START_NS

    def subscriptions(self, count: int, topic: Topic | None = None) -> list[Subscription]:
        made = []
        for i in range(count):
            subscription = self.broker.subscription(topic or self.topic, f"s{i}")
            self.broker.client(subscription, FAST)
            made.append(subscription)
        return made

    def follow(self, gate: Gate, level: str = "topic") -> LimiterTrack:
        (budget,) = gate.budgets
        now_ns = self.broker.engine.now_ns
        track = LimiterTrack(
            gate, budget, level, "subject", incarnation=3, since_ns=self.wall_ns, now_ns=now_ns
        )
        track.source = "topic policy"
        return track

    def row(self, track: LimiterTrack, **options: Any) -> dict[str, Any] | None:
        def sent_since(waiter: Waiter, dimension: Dimension) -> int:
            assert dimension is track.dimension
            return self.sent.get(waiter.name, 0)

        at = Instant(self.wall_ns, self.wall_ns, **options)
        row = track.row(at, self.broker.engine.now_ns, sent_since)
        return None if row is None else dict(zip(LIMITER_COLUMNS, row, strict=True))

    def told(self, track: LimiterTrack, **options: Any) -> dict[str, Any]:
        row = self.row(track, **options)
        assert row is not None
        return row


def test_columns_are_fields_of_the_record() -> None:
    assert set(LIMITER_COLUMNS) == set(field_names(Kind.LIMITER))
    assert len(set(LIMITER_COLUMNS)) == len(LIMITER_COLUMNS)
    assert set(field_names(Kind.LIMITER, Nature.SPAN)) < set(LIMITER_COLUMNS)


def test_a_limit_that_holds_two() -> None:
    play = Play()
    play.broker.limit_topic(play.topic, 20)
    play.subscriptions(2)
    track = play.follow(play.topic.gate)
    play.broker.publish(play.topic, 100)
    play.broker.run(2)
    track.waiting = 160
    play.sent = {"s0": 9, "s1": 11}
    row = play.told(track)
    assert (row["level"], row["subject"], row["incarnation"]) == ("topic", "subject", 3)
    assert (row["dimension"], row["limit"], row["limit_period_ns"]) == ("messages", 20, NS_PER_S)
    assert row["limit_source"] == "topic policy"
    assert row["covered_from_ns"] == row["counting_since_ns"] == WALL_NS
    assert row["covered_to_ns"] == WALL_NS + 2 * NS_PER_S
    assert 40 <= row["granted"] <= 60
    assert row["offered"] == row["granted"] + 160
    assert 1.8 * NS_PER_S < row["waiting_ns"] <= 2 * NS_PER_S
    assert row["waiters_max"] == 2
    waiters = {row["waiter_1"]: row["waiter_1_amount"], row["waiter_2"]: row["waiter_2_amount"]}
    assert waiters == {"s0": 9, "s1": 11}
    assert row["waiter_3"] is None
    assert row["waiter_3_amount"] is None


def test_offered_counts_each_once_and_never_falls() -> None:
    play = Play()
    play.broker.limit_topic(play.topic, 20)
    (own,) = play.subscriptions(1)
    track = play.follow(play.topic.gate)
    play.broker.publish(play.topic, 60)
    offered = []
    for _ in range(5):
        play.broker.run(1)
        backlog = sum(s.backlog_messages for s in play.topic.subscriptions.values())
        in_flight = sum(
            s.dispatcher.in_flight_messages() for s in play.topic.subscriptions.values()
        )
        track.waiting = backlog - in_flight
        offered.append(play.told(track, full=True)["offered"])
    assert offered == [60] * 5
    assert own.backlog_messages == 0


def test_most_waiters_since_the_last_row() -> None:
    play = Play()
    play.broker.limit_topic(play.topic, 20)
    subscriptions = play.subscriptions(3)
    play.broker.publish(play.topic, 30)
    play.broker.run(1)
    track = play.follow(play.topic.gate)
    play.broker.run(1)
    assert play.told(track)["waiters_max"] == 3
    for client in play.broker.clients[1:]:
        client.subscription.remove_consumer(client.consumer)
    del play.broker.clients[1:]
    play.broker.publish(play.topic, 100)
    play.broker.run(1)
    row = play.told(track)
    # The gate's own peak is still three, but that was before.
    assert play.topic.gate.statistics(play.broker.engine.now_ns).waiters_max == 3
    assert row["waiters_max"] == 1
    assert row["waiter_1"] == subscriptions[0].name


def test_at_most_five_waiters_are_named_and_broadly_with_their_topic() -> None:
    play = Play()
    play.broker.limit_broker(10)
    play.subscriptions(WAITERS_LARGEST + 2)
    track = play.follow(play.broker.engine.gate, "broker")
    play.broker.publish(play.topic, 50)
    play.broker.run(1)
    row = play.told(track)
    names = [row[f"waiter_{i + 1}"] for i in range(WAITERS_LARGEST)]
    assert len(set(names)) == WAITERS_LARGEST
    assert all(name.startswith(f"{NAME}|s") for name in names)
    assert subject_of(next(iter(play.topic.subscriptions.values()))) == f"{NAME}|s0"


def test_an_idle_limiter_has_no_row_until_all_are_reported() -> None:
    play = Play()
    play.broker.limit_topic(play.topic, 20)
    track = play.follow(play.topic.gate)
    assert play.row(track, full=True) is None  # it covers no time yet
    play.broker.run(1)
    first = play.told(track)
    assert (first["granted"], first["offered"], first["waiting_ns"]) == (0, 0, 0)
    play.broker.run(1)
    assert play.row(track) is None
    play.broker.run(1)
    row = play.told(track, full=True)
    assert row["covered_from_ns"] == first["covered_to_ns"]
    play.broker.run(1)
    assert play.told(track, gone=True)["gone"] is True


def test_a_limit_set_again_counts_from_its_setting() -> None:
    """The budget is kept while its limit is away, so that its window is kept."""
    play = Play()
    play.broker.limit_topic(play.topic, 20)
    play.subscriptions(1)
    play.broker.publish(play.topic, 100)
    play.broker.run(2)
    before = play.topic.gate.budgets[0].statistics(play.broker.engine.now_ns)
    assert before.granted >= 40
    play.broker.limit_topic(play.topic, 0)
    assert play.topic.gate.budgets == ()
    play.broker.run(1)
    play.broker.limit_topic(play.topic, 20)
    track = play.follow(play.topic.gate)
    play.broker.run(1)
    row = play.told(track)
    assert row["granted"] == 0
    assert row["waiting_ns"] == 0

"""Rows of topics and subscriptions: what they count from when, and when there is nothing to say."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.base.units import NS_PER_S
from headgate.engine.consumer import Consumer
from headgate.engine.subscription import Subscription
from headgate.engine.types import SubscriptionType
from headgate.flow.account.account import Cell
from headgate.flow.limits.rate_limit import Dimension, Level
from headgate.record.fields import (
    COUNT_MAX,
    STATE_FIELD_NAMES,
    Kind,
    Nature,
    field_names,
)
from headgate.telemetry.records.limit_track import NO_LIMIT, LimitValues
from headgate.telemetry.records.subjects import (
    SUBSCRIPTION_COLUMNS,
    TOPIC_COLUMNS,
    Instant,
    SubscriptionTrack,
    TopicTrack,
    cells_of,
)
from tests.unit.broker.virtual import START_NS, Client, VirtualBroker

NAME = "persistent://public/default/orders"
WALL_NS = 1_700_000_000 * NS_PER_S
FAST = 1e6


def stop(client: Client) -> None:
    """It works on nothing from now on."""
    client.rate = client.credit = 0


class Idle:
    """The connection of a consumer that does nothing."""

    writable = True

    async def is_alive(self) -> bool:
        return True

    def send_entry(self, *_: object) -> bool:
        return False

    def close_consumer(self, consumer_id: int) -> None: ...

    def end_reached(self, consumer_id: int) -> None: ...

    def active_consumer_changed(self, consumer_id: int, is_active: bool) -> None: ...


class Play:
    """One topic in virtual time, with its track."""

    def __init__(self, name: str = NAME, publish_per_s: float = 0) -> None:
        self.broker = VirtualBroker()
        self.topic = self.broker.topic(name, publish_per_s)
        self.track = TopicTrack(self.topic, WALL_NS)

    @property
    def wall_ns(self) -> int:
        return WALL_NS + self.broker.engine.now_ns - START_NS

    def at(self, **options: Any) -> Instant:
        return Instant(self.wall_ns, self.wall_ns, **options)

    def follow(self, subscription: Subscription) -> SubscriptionTrack:
        track = SubscriptionTrack(subscription, self.track, self.wall_ns)
        self.track.subscriptions[subscription.name] = track
        return track

    def topic_row(self, **options: Any) -> dict[str, Any] | None:
        row = self.track.row(self.at(**options))
        return None if row is None else dict(zip(TOPIC_COLUMNS, row, strict=True))

    def row(self, track: SubscriptionTrack, **options: Any) -> dict[str, Any] | None:
        row = track.row(self.at(**options), NO_LIMIT)
        return None if row is None else dict(zip(SUBSCRIPTION_COLUMNS, row, strict=True))

    def told(self, track: SubscriptionTrack, **options: Any) -> dict[str, Any]:
        row = self.row(track, **options)
        assert row is not None
        return row


def test_columns_are_fields_of_the_record() -> None:
    for kind, columns in ((Kind.TOPIC, TOPIC_COLUMNS), (Kind.SUBSCRIPTION, SUBSCRIPTION_COLUMNS)):
        assert len(set(columns)) == len(columns)
        assert set(columns) <= set(field_names(kind))
        assert set(field_names(kind, Nature.IDENTITY, Nature.SPAN)) <= set(columns)
    assert set(field_names(Kind.SUBSCRIPTION)) == set(SUBSCRIPTION_COLUMNS)
    assert set(STATE_FIELD_NAMES) <= set(SUBSCRIPTION_COLUMNS)


def test_a_topics_row() -> None:
    play = Play()
    broker, topic = play.broker, play.topic
    subscription = broker.subscription(topic, "s")
    client = broker.client(subscription, FAST)
    broker.publish(topic, 5)
    broker.run(1)
    broker.subscription(topic, "nobody")
    broker.publish(topic, 2)
    stop(client)
    broker.run(2)
    row = play.topic_row()
    assert row is not None
    assert row["topic"] == NAME
    assert row["partition"] is None
    assert row["incarnation"] == topic.incarnation
    assert (row["covered_from_ns"], row["counting_since_ns"]) == (WALL_NS, WALL_NS)
    assert row["covered_to_ns"] == WALL_NS + 3 * NS_PER_S
    assert row["gone"] is False
    assert (row["msgs_in"], row["bytes_in"]) == (7, 700)
    assert (row["msgs_out"], row["bytes_out"]) == (7, 700)
    assert row["storage_bytes"] == 700
    assert row["backlog_bytes"] == 200
    assert (row["oldest_age_ns"], row["oldest_subscription"]) == (2 * NS_PER_S, "s")
    assert row["producers"] == 0


def test_counts_beyond_what_readers_take_stay_at_it() -> None:
    """A client that seeks to and fro over tiny entries, each of which claims to be a compressed
    batch of 873,813 messages, drives these counts beyond 58 bits. Readers refuse each message with
    such a row, and with it the rows of others."""
    play = Play()
    broker, topic = play.broker, play.topic
    subscription = broker.subscription(topic, "s")
    track = play.follow(subscription)
    broker.run(1)
    subscription.skipped_messages = subscription.rewound_messages = 1 << 70
    subscription.acked_messages = subscription.redelivered_messages = COUNT_MAX + 1
    subscription.messages_sent = COUNT_MAX + 2
    row = play.told(track)
    for name in ("skipped", "rewound", "acked", "redelivered", "msgs_out"):
        assert row[name] == COUNT_MAX
    told = play.topic_row()
    assert told is not None
    assert told["msgs_out"] == COUNT_MAX


def test_a_partition_is_named_by_its_topic_and_number() -> None:
    play = Play(f"{NAME}-partition-7")
    row = play.topic_row(full=True)
    assert row is None  # no time has passed: it covers nothing
    play.broker.run(1)
    row = play.topic_row()
    assert row is not None
    assert (row["topic"], row["partition"]) == (NAME, 7)
    assert (row["oldest_age_ns"], row["oldest_subscription"]) == (None, None)


def test_a_topic_that_did_nothing_has_no_row_until_all_are_reported() -> None:
    play = Play()
    play.broker.run(1)
    assert play.topic_row() is not None
    play.broker.run(1)
    assert play.topic_row() is None
    play.broker.run(1)
    row = play.topic_row(full=True)
    assert row is not None
    # The span goes on from the row before, not from the window before.
    assert row["covered_from_ns"] == WALL_NS + NS_PER_S
    assert row["covered_to_ns"] == WALL_NS + 3 * NS_PER_S
    play.broker.publish(play.topic, 1)
    play.broker.run(1)
    assert play.topic_row() is not None
    play.broker.run(1)
    last = play.topic_row(gone=True)
    assert last is not None
    assert last["gone"] is True


def test_what_a_removed_subscription_sent_stays_with_the_topic() -> None:
    play = Play()
    subscription = play.broker.subscription(play.topic, "s")
    client = play.broker.client(subscription, FAST)
    play.broker.publish(play.topic, 4)
    play.broker.run(1)
    subscription.remove_consumer(client.consumer)
    play.topic.remove_subscription("s")
    play.broker.clients.clear()
    play.broker.run(1)
    row = play.topic_row()
    assert row is not None
    assert (row["msgs_out"], row["bytes_out"]) == (4, 400)


def test_a_subscriptions_row() -> None:
    play = Play()
    broker, topic = play.broker, play.topic
    broker.publish(topic, 3)
    broker.run(1)
    subscription = broker.subscription(topic, "s")
    track = play.follow(subscription)
    client = broker.client(subscription, FAST, queue=10)
    broker.publish(topic, 8)
    broker.run(1)
    stop(client)
    broker.publish(topic, 4)
    broker.run(2)
    row = play.told(track)
    assert (row["topic"], row["partition"], row["subscription"]) == (NAME, None, "s")
    assert row["counting_since_ns"] == row["covered_from_ns"] == WALL_NS + NS_PER_S
    assert row["covered_to_ns"] == WALL_NS + 4 * NS_PER_S
    assert (row["type"], row["consumers"]) == ("Shared", 1)
    assert (row["appended"], row["msgs_out"], row["bytes_out"]) == (12, 12, 1_200)
    assert (row["acked"], row["unacked"], row["backlog_messages"]) == (8, 4, 4)
    assert row["backlog_bytes"] == 400
    assert row["oldest_age_ns"] == 2 * NS_PER_S
    assert row["state"] == "awaiting_ack"
    assert row["permits"] == client.consumer.permits
    assert [row[name] for name in ("skipped", "rewound", "expired", "redelivered")] == [0] * 4
    spent_ns = {name: row[name] for name in STATE_FIELD_NAMES if row[name]}
    assert sum(spent_ns.values()) == row["covered_to_ns"] - row["counting_since_ns"]
    assert spent_ns["state_awaiting_ack_ns"] >= 2 * NS_PER_S


def test_without_backlog_there_is_no_age_and_before_a_consumer_no_type() -> None:
    play = Play()
    subscription = play.broker.subscription(play.topic, "s")
    subscription.type_known = False
    track = play.follow(subscription)
    play.broker.run(1)
    row = play.told(track)
    assert row["oldest_age_ns"] is None
    assert row["type"] is None
    assert row["state"] == "caught_up"


@pytest.mark.parametrize("is_new", [True, False])
def test_what_stood_before_a_new_subscription_was_given_by_its_creation(is_new: bool) -> None:
    """What a loaded one finds is its old backlog, and nothing was rewound."""
    play = Play()
    broker = play.broker
    subscription = broker.subscription(play.topic, "s")
    broker.publish(play.topic, 6)
    if is_new:
        broker.run(1)
    track = play.follow(subscription)
    broker.run(1)
    row = play.told(track)
    assert (row["appended"], row["backlog_messages"]) == (0, 6)
    assert row["rewound"] == (6 if is_new else 0)


def test_a_state_that_goes_on_is_no_change() -> None:
    play = Play()
    track = play.follow(play.broker.subscription(play.topic, "s"))
    play.broker.publish(play.topic, 1)
    play.broker.run(1)
    before = play.told(track)
    assert before["state"] == "no_consumer"
    for _ in range(3):
        play.broker.run(1)
        assert play.row(track) is None
    after = play.told(track, full=True)
    grown = {n for n in STATE_FIELD_NAMES if after[n] != before[n]}
    assert grown == {"state_no_consumer_ns"}
    assert after["covered_from_ns"] == before["covered_to_ns"]
    assert after["state_no_consumer_ns"] - before["state_no_consumer_ns"] == 3 * NS_PER_S
    assert after["oldest_age_ns"] - before["oldest_age_ns"] == 3 * NS_PER_S


def test_a_state_that_was_left_and_entered_again_is_a_change() -> None:
    play = Play()
    subscription = play.broker.subscription(play.topic, "s")
    track = play.follow(subscription)
    play.broker.publish(play.topic, 1)
    play.broker.run(1)
    before = play.told(track)
    # It asks for nothing, so that no other figure changes.
    consumer = Consumer(1, "c", Idle())
    subscription.add_consumer(consumer, SubscriptionType.SHARED)
    play.broker.run(1)
    subscription.remove_consumer(consumer)
    play.broker.run(1)
    after = play.told(track)
    assert after["state"] == before["state"] == "no_consumer"
    assert after["state_no_permits_ns"] == NS_PER_S
    changed = {n for n in after if after[n] != before[n] and not n.startswith("covered_")}
    assert changed == {
        "type", "oldest_age_ns", "state_no_consumer_ns", "state_no_permits_ns",
    }  # fmt: skip


def test_the_present_cells_are_booked_only_where_they_may_be_reported_again() -> None:
    play = Play()
    subscription = play.broker.subscription(play.topic, "s")
    play.broker.publish(play.topic, 1)
    play.broker.run(0.5)
    since_ns = subscription.account.since_ns
    cells = cells_of(subscription.account, play.broker.engine.now_ns)
    assert subscription.account.since_ns == since_ns
    assert cells[Cell.NO_CONSUMER] == play.broker.engine.now_ns - since_ns


def test_limits_as_a_row_has_them() -> None:
    play = Play()
    track = play.follow(play.broker.subscription(play.topic, "s"))
    track.limit.values = LimitValues(50, None, NS_PER_S, "topic policy")
    play.broker.run(1)
    row = track.row(play.at(), LimitValues(None, 9, 2 * NS_PER_S, "broker setting x"))
    assert row is not None
    told = dict(zip(SUBSCRIPTION_COLUMNS, row, strict=True))
    assert told["limit_subscription_messages"] == 50
    assert told["limit_subscription_source"] == "topic policy"
    assert told["limit_topic_messages"] is None
    assert told["limit_broker_bytes"] == 9
    assert told["limit_broker_period_ns"] == 2 * NS_PER_S
    assert track.limit_at(Level.SUBSCRIPTION, NO_LIMIT).messages == 50
    assert track.limit_at(Level.TOPIC, NO_LIMIT) == NO_LIMIT


def test_what_waits_before_a_limiter() -> None:
    play = Play()
    broker = play.broker
    subscription = broker.subscription(play.topic, "s", limit=10)
    track = play.follow(subscription)
    client = broker.client(subscription, FAST)
    assert track.waiting_amount(Dimension.MESSAGES) == 0
    broker.publish(play.topic, 50)
    stop(client)
    broker.run(0.5)
    assert subscription.throttled
    with_consumer = subscription.dispatcher.in_flight_messages()
    assert 0 < with_consumer <= 10
    assert track.waiting_amount(Dimension.MESSAGES) == 50 - with_consumer
    assert track.waiting_amount(Dimension.BYTES) == 100 * (50 - with_consumer)
    row = play.told(track)
    assert row["state"] == "throttled_subscription_messages_hungry"
    assert row["throttled_subscription_messages"] == 40
    assert row["throttled_subscription_bytes"] == row["throttled_topic_messages"] == 0
    assert track.sent_in_window == (with_consumer, 100 * with_consumer)
    broker.run(1)
    play.told(track)
    messages, size_bytes = track.sent_in_window
    assert 0 < messages <= 10
    assert size_bytes == 100 * messages


def test_events_of_an_earlier_loading_are_not_told_again() -> None:
    """The gate and its counters outlive an unload of the topic."""
    play = Play()
    broker = play.broker
    subscription = broker.subscription(play.topic, "s", limit=10)
    broker.client(subscription, FAST)
    broker.publish(play.topic, 50)
    broker.run(2)
    counted = subscription.gate.throttled_events[Level.SUBSCRIPTION][Dimension.MESSAGES]
    assert counted >= 2
    track = play.follow(subscription)
    broker.run(2)
    row = play.told(track)
    assert 1 <= row["throttled_subscription_messages_events"] <= 2
    assert row["throttled_topic_bytes_events"] == 0

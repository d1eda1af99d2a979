"""Relative limits, "unlimited", who is spared, and every kind of subscription, with real clients.

One play in one broker: steady publishing whose rate rises, beside backlogs that each kind of
subscription reads under a limit of its own. Noise can only make the broker slower: upper bounds
hold without allowance, lower ones less what the machine measurably took.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pulsar
import pytest

from tests.service.measuring import (
    QUIET,
    Arrivals,
    Noise,
    Poller,
    Polls,
    Rest,
    each_second,
    most_in,
    topic_path,
)
from tests.service.process import BrokerProcess

pytestmark = pytest.mark.alone

LIMIT = 100
"""Messages a second of each kind of subscription."""
BACKLOG = 700
ABOVE = 200
"""Messages a second that the relative limits add."""
SLOWLY, QUICKLY = 400, 1_600
"""Messages published a second, before and after the rise."""
OLD = 6_000
"""Backlog under the relative limits when the play begins."""
SLOW_S, PLAY_S = 4.0, 9.0
FOLLOWED_S = 2.0
"""A rise of the publish rate is followed within this time (law 1.7)."""
TICK_S = 0.02
USED = 0.97

SPARES = "dispatchThrottlingOnNonBacklogConsumerEnabled"
CONFIGURATION = "/admin/v2/brokers/configuration"
PARTITIONS = 2


def name(local: str) -> str:
    return f"persistent://public/default/{local}"


KINDS = {
    "exclusive": pulsar.ConsumerType.Exclusive,
    "shared": pulsar.ConsumerType.Shared,
    "failover": pulsar.ConsumerType.Failover,
}
SINGLE_TOPICS = [*KINDS, "reader", *(f"parted-partition-{i}" for i in range(PARTITIONS))]
RELATIVE = ("follows-topic", "follows-subscription")


@dataclass
class Played:
    begin: float = 0.0
    pid: int = 0
    noise: Noise = field(default_factory=lambda: Noise([]))
    arrivals: dict[str, Arrivals] = field(default_factory=dict)
    polls: dict[str, Polls] = field(default_factory=dict)
    in_force: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    """When asked, and the relative limits in force then, by topic."""
    stats: dict[str, Any] = field(default_factory=dict)
    metrics: str = ""
    spared_s: float = 0.0
    """How long a burst took that nobody limits."""
    lasting: list[Any] = field(default_factory=list)
    """Statistics of one subscription: before, after a reconnect, after an unload."""
    held_again: int = 0
    """What of the next one went at once when everybody was limited again."""


def rate(messages: int, **more: Any) -> dict[str, Any]:
    return {
        "dispatchThrottlingRateInMsg": messages,
        "dispatchThrottlingRateInByte": -1,
        "relativeToPublishRate": False,
        "ratePeriodInSecond": 1,
    } | more


class Stage:
    """The broker, its clients and what happens."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.played = Played(pid=broker.pid)
        self._broker = broker
        self._rest = Rest(broker.admin_url)
        self._client = pulsar.Client(broker.service_url, message_listener_threads=4, logger=QUIET)
        self._held: list[Any] = []

    def prepare(self) -> None:
        rest = self._rest
        rest.ask("PUT", f"{topic_path(name('parted'))}/partitions", PARTITIONS)
        for local in (*KINDS, "reader", *RELATIVE, "unlimited", "spared"):
            rest.ask("PUT", topic_path(name(local)))
        for local in (*KINDS, "reader", "parted"):
            path = topic_path(name(local))
            rest.ask("POST", f"{path}/subscriptionDispatchRate", rate(LIMIT))
        rest.ask("POST", f"{topic_path(name('exclusive'))}/dispatchRate", rate(LIMIT))
        relative = rate(ABOVE, relativeToPublishRate=True)
        rest.ask("POST", f"{topic_path(name(RELATIVE[0]))}/dispatchRate", relative)
        rest.ask("POST", f"{topic_path(name(RELATIVE[1]))}/s/dispatchRate", relative)
        for local in (*KINDS, "parted", *RELATIVE, "unlimited"):
            rest.ask("PUT", f"{topic_path(name(local))}/subscription/s")
        for local, count in {
            **dict.fromkeys((*KINDS, "reader", "unlimited"), BACKLOG),
            "parted": PARTITIONS * BACKLOG,
            **dict.fromkeys(RELATIVE, OLD),
        }.items():
            producer = self._producer(local)
            for _ in range(count):
                producer.send_async(b"old", None)
            producer.flush()

    def close(self) -> None:
        self._rest.close()
        self._client.shutdown()

    def _producer(self, local: str) -> pulsar.Producer:
        return self._client.create_producer(
            name(local),
            batching_enabled=False,
            block_if_queue_full=True,
            message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution,
        )

    def play(self) -> Played:
        played = self.played
        topics = [name(local) for local in (*SINGLE_TOPICS, *RELATIVE)]
        with (
            Noise([played.pid]) as played.noise,
            Poller(self._broker.admin_url, topics, 0.004) as poller,
        ):
            played.polls = {topic: poller.of[topic] for topic in topics}
            self._connect()
            played.begin = time.monotonic()
            publishing = [
                threading.Thread(target=self._publish, args=(local,)) for local in RELATIVE
            ]
            for thread in publishing:
                thread.start()
            self._watch()
            for thread in publishing:
                thread.join()
            for local in (*KINDS, "reader", *RELATIVE, "unlimited"):
                played.stats[local] = self._rest.topic(name(local))
            played.stats["parted"] = self._rest.topic(name("parted"), "partitioned-stats")
            played.metrics = self._broker.get("/metrics/")[1].decode()
        self._spare()
        self._come_back()
        return played

    def _arrivals(self, local: str) -> Arrivals:
        return self.played.arrivals.setdefault(local, Arrivals())

    def _connect(self) -> None:
        client = self._client
        # A policy of the namespace that one topic is exempt from.
        self._rest.ask("POST", f"{topic_path(name('unlimited'))}/dispatchRate",
                       rate(-1, unlimited=True))  # fmt: skip
        path = "/admin/v2/namespaces/public/default/dispatchRate"
        self._rest.ask("POST", path, rate(5_000))
        for local, kind in {
            **KINDS,
            **dict.fromkeys(("parted", *RELATIVE, "unlimited", "spared"), KINDS["exclusive"]),
        }.items():
            self._held.append(
                client.subscribe(
                    name(local), "s", kind, message_listener=self._arrivals(local),
                    receiver_queue_size=4_000,
                    max_total_receiver_queue_size_across_partitions=9_000,
                )
            )  # fmt: skip
        seen = self._arrivals("reader")
        self._held.append(
            client.create_reader(
                name("reader"), pulsar.MessageId.earliest,
                reader_listener=lambda _, message: seen.at.append(time.monotonic()),
            )
        )  # fmt: skip

    def _publish(self, local: str) -> None:
        producer, sent = self._producer(local), 0
        begin = self.played.begin
        while (now := time.monotonic()) < begin + PLAY_S:
            slow_s = min(now - begin, SLOW_S)
            due = int(slow_s * SLOWLY + (now - begin - slow_s) * QUICKLY)
            for _ in range(due - sent):
                producer.send_async(b"new", None)
            sent = max(sent, due)
            time.sleep(TICK_S)
        producer.flush()

    def _watch(self) -> None:
        """Note the limits in force while the play lasts."""
        played = self.played
        while (now := time.monotonic()) < played.begin + PLAY_S:
            found = {}
            for local, level in zip(RELATIVE, ("topic", "subscription"), strict=True):
                account = self._rest.topic(name(local))["subscriptions"]["s"]["headgate"]
                limit = account["limits"][level]
                assert limit["abovePublishRate"] == {"messages": ABOVE, "bytes": None}
                found[local] = limit["messages"]
            played.in_force.append((now, found))
            time.sleep(0.1)

    def _come_back(self) -> None:
        """A consumer's reconnect, then an unload."""
        topic, consumer = name("failover"), self._held[list(KINDS).index("failover")]
        lasting = self.played.lasting
        lasting.append(self._rest.topic(topic)["subscriptions"]["s"])
        consumer.close()
        self._client.subscribe(topic, "s", KINDS["failover"])
        lasting.append(self._rest.topic(topic)["subscriptions"]["s"])
        self._rest.ask("PUT", f"{topic_path(topic)}/unload")
        lasting.append(self._rest.topic(topic)["subscriptions"]["s"])

    def _spare(self) -> None:
        """Spare who is caught up, then no longer."""
        path = f"{topic_path(name('spared'))}/subscriptionDispatchRate"
        self._rest.ask("POST", path, rate(50))
        producer, arrivals = self._producer("spared"), self._arrivals("spared")

        def burst() -> None:
            for _ in range(500):
                producer.send_async(b"burst", None)
            producer.flush()

        self._rest.ask("POST", f"{CONFIGURATION}/{SPARES}/false")
        begin = time.monotonic()
        burst()
        while len(arrivals.at) < 500 and time.monotonic() < begin + 10:
            time.sleep(0.01)
        self.played.spared_s = time.monotonic() - begin
        self._rest.ask("DELETE", f"{CONFIGURATION}/{SPARES}")
        burst()
        time.sleep(0.5)
        self.played.held_again = len(arrivals.at) - 500


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    broker = BrokerProcess(tmp_path_factory.mktemp("everywhere"))
    broker.start()
    try:
        before = Stage(broker)
        before.prepare()
        before.close()
        # How fast the backlogs were published is forgotten with the process.
        broker.restart()
        stage = Stage(broker)
        yield stage.play()
        stage.close()
    finally:
        broker.close()


@pytest.mark.parametrize("local", SINGLE_TOPICS)
def test_every_kind_of_subscription_is_held_to_its_limit(played: Played, local: str) -> None:
    """Rules 1.1 and 1.2: exclusive, shared, failover, readers and each partition by itself."""
    polls = played.polls[name(local)]
    begin, end = played.begin, played.begin + 6
    delivered = polls.most_in(1.0, begin - 3, end, lambda poll: sum(poll.messages.values()))
    assert delivered <= LIMIT
    first, *_, last = polls.within(begin + 1, begin + 5)
    lost_s = played.noise.lost_s(played.pid, first.asked, last.answered)
    seconds = last.asked - first.answered - lost_s
    got = sum(last.messages.values()) - sum(first.messages.values())
    assert got >= USED * LIMIT * seconds - 5


def test_each_partition_has_the_whole_limit(played: Played) -> None:
    """What the clients of both get is twice the limit."""
    arrivals = played.arrivals["parted"]
    lost_s = played.noise.lost_s(played.pid, played.begin, played.begin + 5)
    assert (
        arrivals.count(played.begin + 1, played.begin + 5)
        >= PARTITIONS * LIMIT * (USED * 4 - lost_s) - 20
    )
    counted = played.stats["parted"]["subscriptions"]["s"]
    assert counted["dispatchThrottledMsgEventsBySubscriptionLimit"] >= 2 * PARTITIONS
    assert counted["dispatchThrottledMsgs"] >= PARTITIONS * (BACKLOG - 2 * LIMIT)


@pytest.mark.parametrize("local", RELATIVE)
def test_a_relative_limit_follows_the_publish_rate(played: Played, local: str) -> None:
    """Rule 1.7: 400 + 200 = 600; the rise to 1,600 + 200 is followed within two seconds."""
    late_s = played.noise.late_most_s + 0.1
    noted = [(at - played.begin, found[local]) for at, found in played.in_force]
    before = [limit for at, limit in noted if 2.0 <= at <= SLOW_S]
    after = [limit for at, limit in noted if at >= SLOW_S + FOLLOWED_S + late_s]
    assert before
    assert after
    # A client sends in steps, and a thread that comes late sends more in the next one.
    for limits, published in ((before, SLOWLY), (after, QUICKLY)):
        slack = published * (0.05 + 2 * late_s)
        assert min(limits) >= published + ABOVE - slack
        assert max(limits) <= published + ABOVE + slack


@pytest.mark.parametrize("local", RELATIVE)
def test_under_a_relative_limit_consumers_keep_up_and_the_backlog_shrinks(
    played: Played, local: str
) -> None:
    """Rule 1.7: what is published and 200 more, each second; never more than the limit."""
    at = played.arrivals[local].at
    slow = each_second(at, played.begin + 2, played.begin + SLOW_S)
    lost_s = played.noise.lost_s(played.pid, played.begin + 2, played.begin + SLOW_S)
    assert sum(slow) >= (SLOWLY + ABOVE) * (0.93 * len(slow) - 2 * lost_s)
    most = max(found[local] for _, found in played.in_force)
    late_s = 0.02 + 2 * played.noise.late_most_s
    since = [instant for instant in at if instant >= played.begin + 1.2]
    assert most_in(since, 1.0 - late_s) <= most
    backlog = played.stats[local]["subscriptions"]["s"]["headgate"]["backlogMessages"]
    # What a stall costs is not caught up, and little is left of the 200 a second while many go.
    lost_s = played.noise.lost_s(played.pid, played.begin, played.begin + PLAY_S)
    assert backlog <= OLD - ABOVE * (PLAY_S - FOLLOWED_S) * 0.3 + 2 * QUICKLY * lost_s


def test_unlimited_ends_a_limit_that_stands_behind_it(played: Played) -> None:
    """Rule 1.8."""
    assert len(played.arrivals["unlimited"].at) == BACKLOG
    account = played.stats["unlimited"]["headgate"]
    assert account["limits"]["topic"] == {"unlimited": True, "source": "topic policy"}
    assert f'topic="{name("unlimited")}",limiter="topic"' not in played.metrics
    assert f'topic="{name("shared")}",limiter="topic"' in played.metrics


def test_who_is_caught_up_may_be_spared(played: Played) -> None:
    """Rule 1.9: 500 messages at once under a limit of 50 a second; then limited again at once."""
    assert played.spared_s < 5
    assert played.held_again <= 2 * 50


def test_what_was_held_back_is_counted_in_both_forms(played: Played) -> None:
    """Rules 2.1 and 2.2: in the stats and in /metrics."""
    found = played.stats["shared"]["subscriptions"]["s"]
    assert found["dispatchThrottledMsgs"] == BACKLOG - LIMIT
    assert found["dispatchThrottledBytes"] == 0
    assert 6 <= found["dispatchThrottledMsgEventsBySubscriptionLimit"] <= BACKLOG // LIMIT + 1
    line = next(
        line
        for line in played.metrics.splitlines()
        if line.startswith("pulsar_subscription_dispatch_throttled_msgs{")
        and f'topic="{name("shared")}"' in line
    )
    assert 'tenant="public"' in line
    assert line.endswith(f" {BACKLOG - LIMIT}")


def test_each_of_two_limits_that_hold_alike_is_counted(played: Played) -> None:
    """Rule 2.3: the same limit on the topic and on its only subscription."""
    found = played.stats["exclusive"]["subscriptions"]["s"]
    assert found["dispatchThrottledMsgs"] == 2 * (BACKLOG - LIMIT)
    for level in ("Subscription", "Topic"):
        events = found[f"dispatchThrottledMsgEventsBy{level}Limit"]
        assert 6 <= events <= BACKLOG // LIMIT + 1
    assert found["dispatchThrottledMsgEventsByBrokerLimit"] == 0


def test_what_was_counted_survives_a_reconnect_and_no_unload(played: Played) -> None:
    """Rule 2.4."""

    def counted(stats: Any) -> dict[str, int]:
        return {key: n for key, n in stats.items() if key.startswith("dispatchThrottled") and n}

    before, reconnected, unloaded = played.lasting
    assert counted(before)["dispatchThrottledMsgs"] == BACKLOG - LIMIT
    assert counted(reconnected) == counted(before)
    assert counted(unloaded) == {}

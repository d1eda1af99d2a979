"""Scenes for the dispatch limits: who is limited by what, and everything that happens to them.

All scenes play at the same time, those of narrow limits in one broker and the broker-wide limit in
another. Backlogs are published first and the brokers started again, so every entry comes from disk.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pulsar

from tests.service.measuring import QUIET, Arrivals, Noise, Poller, Polls, Rest, topic_path
from tests.service.process import BrokerProcess

SETTLE_S = 1.2
"""The law speaks from one period after the last waiter joined."""

PLAY_S = 7.6
POLL_PAUSE_S = 0.012
NAMESPACE = "/admin/v2/namespaces/public/default"
ON_BATCH_MESSAGE = "dispatchThrottlingOnBatchMessageEnabled"
CONFIGURATION = "/admin/v2/brokers/configuration"


@dataclass(frozen=True, slots=True)
class Scene:
    """One topic with a backlog and what limits it."""

    name: str
    subscriptions: Sequence[str]
    backlog: int
    """Messages published before anybody listens."""
    kind: str = ""
    """The path of its policy: ``dispatchRate`` is the topic's limit."""
    messages_per_s: int = 0
    bytes_per_s: int = 0
    batch: int = 1
    payload_bytes: int = 100

    @property
    def topic(self) -> str:
        return f"persistent://public/default/{self.name}"


def rate(messages: int = 0, size_bytes: int = 0) -> dict[str, Any]:
    """A dispatch rate as admin REST takes it; 0 sets nothing."""
    return {
        "dispatchThrottlingRateInMsg": messages or -1,
        "dispatchThrottlingRateInByte": size_bytes or -1,
        "relativeToPublishRate": False,
        "ratePeriodInSecond": 1,
    }


TWENTY = [f"s{number:02}" for number in range(20)]
OF_SUBSCRIPTION = "subscriptionDispatchRate"
OF_TOPIC = "dispatchRate"

SINGLE = Scene("single", ["s"], 4_600, "s/dispatchRate", 500)
BATCHES = Scene("batches", ["s"], 6_500, OF_SUBSCRIPTION, 500, batch=50)
BYTES = Scene("bytes", ["s"], 1_000, OF_SUBSCRIPTION, 0, 100_000, payload_bytes=1_000)
LARGE = Scene("large", ["s"], 300, OF_SUBSCRIPTION, 20, batch=30)
SHARED = Scene("shared", TWENTY, 160, OF_TOPIC, 50)
SHARED_BYTES = Scene("shared-bytes", ["one", "two"], 800, OF_TOPIC, 0, 80_000, payload_bytes=1_000)
SLOW = Scene("slow", ["slow", "quick"], 1_900, OF_TOPIC, 200)
TAIL = Scene("tail", ["old", "new"], 1_400, OF_TOPIC, 200)
CHANGED = Scene("changed", ["s"], 2_700, OF_SUBSCRIPTION, 400)
DISTURBED = Scene("disturbed", ["s"], 2_000, OF_SUBSCRIPTION, 200)
BURST = Scene("burst", ["s"], 0, OF_SUBSCRIPTION, 300)
NARROW = [
    SINGLE, BATCHES, BYTES, LARGE, SHARED, SHARED_BYTES, SLOW, TAIL, CHANGED, DISTURBED, BURST,
]  # fmt: skip

WIDE_ONE = Scene("wide-one", ["s"], 1_400)
WIDE_THREE = Scene("wide-three", ["a", "b", "c"], 800)
WIDE = [WIDE_ONE, WIDE_THREE]
WIDE_MESSAGES_PER_S = 300
WIDE_BYTES_PER_S = 20_000

SLOW_WORK_S = 0.1
"""The slow consumer's time for a message: 10/s, far below its share."""
LATE_JOIN_S = 2.0
"""When the second subscription of SHARED_BYTES gets its consumer."""


@dataclass
class Played:
    """What was seen of all scenes."""

    begin: float = 0.0
    """When the last consumer was there."""
    end: float = 0.0
    noise: Noise = field(default_factory=lambda: Noise([]))
    pids: dict[str, int] = field(default_factory=dict)
    """The broker's process by the scene's name."""
    arrivals: dict[str, dict[str, Arrivals]] = field(default_factory=dict)
    """By the scene's name and the subscription."""
    polls: dict[str, Polls] = field(default_factory=dict)
    marks: dict[str, float] = field(default_factory=dict)
    """When something began to happen, by its name."""
    stats: dict[str, Any] = field(default_factory=dict)
    """Last statistics of each scene's topic."""
    earlier_stats: dict[str, Any] = field(default_factory=dict)
    """Those of some scenes in between."""

    @property
    def late_s(self) -> float:
        """What clients noted may have been late by so much."""
        return 0.02 + 2 * self.noise.late_most_s

    def only(self, scene: Scene) -> Arrivals:
        """Arrivals of a scene with one subscription."""
        (found,) = self.arrivals[scene.name].values()
        return found

    def entry_bytes(self, scene: Scene) -> float:
        """What the broker counts for one of the scene's messages, which are all alike."""
        for poll in reversed(self.polls[scene.name].all):
            if any(poll.messages.values()):
                return sum(poll.bytes.values()) / sum(poll.messages.values())
        raise AssertionError(f"nothing was delivered in scene {scene.name}")


def prepare(broker: BrokerProcess, scenes: list[Scene]) -> None:
    """Make topics, subscriptions, limits and backlogs."""
    rest = Rest(broker.admin_url)
    client = pulsar.Client(broker.service_url, logger=QUIET)
    producers = []
    for scene in scenes:
        path = topic_path(scene.topic)
        rest.ask("PUT", path)
        for subscription in scene.subscriptions:
            rest.ask("PUT", f"{path}/subscription/{subscription}")
        if scene.kind:
            limit = rate(scene.messages_per_s, scene.bytes_per_s)
            rest.ask("POST", f"{path}/{scene.kind}", limit)
        producer = client.create_producer(
            scene.topic,
            batching_enabled=scene.batch > 1,
            batching_max_messages=max(scene.batch, 2),
            batching_max_publish_delay_ms=10_000,
            max_pending_messages=10_000,
            block_if_queue_full=True,
        )
        for number in range(scene.backlog):
            producer.send_async(str(number).encode().ljust(scene.payload_bytes), _stored)
        producers.append(producer)
    for producer in producers:
        producer.flush()
    client.close()
    rest.close()


def _stored(result: pulsar.Result, _: pulsar.MessageId) -> None:
    assert result == pulsar.Result.Ok


class Stage:
    """The consumers of both brokers, and what is done to them while they consume."""

    def __init__(self, narrow: BrokerProcess, wide: BrokerProcess) -> None:
        self.played = Played()
        self._narrow, self._wide = narrow, wide
        self._clients: list[pulsar.Client] = []
        self._main = self._client(narrow)
        self._own = self._client(narrow)
        self._wide_client = self._client(wide)
        self._rest = Rest(narrow.admin_url)
        self._wide_rest = Rest(wide.admin_url)

    def play(self) -> Played:
        """All scenes, from the first consumer to the last statistics."""
        played = self.played
        with ExitStack() as stack:
            pids = [self._narrow.pid, self._wide.pid]
            played.noise = stack.enter_context(Noise(pids))
            for broker, scenes in ((self._narrow, NARROW), (self._wide, WIDE)):
                played.pids |= {scene.name: broker.pid for scene in scenes}
            for broker, scenes in ((self._narrow, NARROW), (self._wide, WIDE)):
                topics = [scene.topic for scene in scenes]
                poller = stack.enter_context(Poller(broker.admin_url, topics, POLL_PAUSE_S))
                played.polls |= {scene.name: poller.of[scene.topic] for scene in scenes}
            disturbed = self._subscribe_all()
            played.begin = time.monotonic()
            tail = threading.Thread(target=self._publish_at_the_tail, daemon=True)
            tail.start()
            self._follow(self._script(disturbed))
            played.end = time.monotonic()
            tail.join(30)
        for rest, scenes in ((self._rest, NARROW), (self._wide_rest, WIDE)):
            for scene in scenes:
                played.stats[scene.name] = rest.topic(scene.topic)
                played.marks[f"statistics of {scene.name}"] = time.monotonic()
            rest.close()
        for client in self._clients:
            client.shutdown()
        return played

    def _client(self, broker: BrokerProcess) -> pulsar.Client:
        client = pulsar.Client(broker.service_url, message_listener_threads=2, logger=QUIET)
        self._clients.append(client)
        return client

    def _subscribe(
        self,
        client: pulsar.Client,
        scene: Scene,
        subscription: str,
        arrivals: Arrivals,
        **more: Any,
    ) -> pulsar.Consumer:
        self.played.arrivals.setdefault(scene.name, {})[subscription] = arrivals
        return client.subscribe(
            scene.topic,
            subscription,
            pulsar.ConsumerType.Shared,
            message_listener=arrivals,
            **more,
        )

    def _subscribe_all(self) -> pulsar.Consumer:
        """Connect everybody but the late one; returns the consumer that will be disturbed."""
        disturbed = None
        slow = Arrivals(SLOW_WORK_S)
        self._subscribe(self._own, SLOW, "slow", slow, receiver_queue_size=1)
        for scene in NARROW:
            for subscription in scene.subscriptions:
                if subscription == "slow" or (scene is SHARED_BYTES and subscription == "two"):
                    continue
                consumer = self._subscribe(self._main, scene, subscription, Arrivals())
                disturbed = consumer if scene is DISTURBED else disturbed
        for scene in WIDE:
            for subscription in scene.subscriptions:
                self._subscribe(self._wide_client, scene, subscription, Arrivals())
        return disturbed

    def _publish_at_the_tail(self) -> None:
        """More than the new subscription's share of the topic's limit."""
        producer = self._own.create_producer(TAIL.topic, max_pending_messages=10_000)
        for step in range(int(PLAY_S * 50)):
            time.sleep(max(0.0, self.played.begin + step / 50 - time.monotonic()))
            for _ in range(3):
                producer.send_async(b"new".ljust(100), _stored)

    def _script(self, disturbed: pulsar.Consumer) -> list[tuple[float, str, Callable[[], object]]]:
        """What happens when: seconds from the begin, the mark's name, what is done."""
        rest, again = self._rest, self.played.arrivals[DISTURBED.name]["s"]
        changed, unlucky = topic_path(CHANGED.topic), topic_path(DISTURBED.topic)
        burst = self._own.create_producer(BURST.topic, max_pending_messages=1_000)

        def publish(count: int) -> None:
            for _ in range(count):
                burst.send_async(b"burst".ljust(100), _stored)

        def reconnect() -> None:
            disturbed.close()
            self._subscribe(self._own, DISTURBED, "s", again)

        def broker_limit_in_bytes() -> None:
            name = f"{CONFIGURATION}/dispatchThrottlingRateIn"
            self._wide_rest.ask("POST", f"{name}Byte/{WIDE_BYTES_PER_S}")
            self._wide_rest.ask("DELETE", f"{name}Msg")

        def set_limit(messages: int) -> None:
            rest.ask("POST", f"{changed}/{OF_SUBSCRIPTION}", rate(messages))

        def same_limit() -> None:
            rest.ask("POST", f"{unlucky}/{OF_SUBSCRIPTION}", rate(DISTURBED.messages_per_s))

        def other_policies() -> None:
            retention = {"retentionTimeInMinutes": 60, "retentionSizeInMB": 100}
            rest.ask("POST", f"{NAMESPACE}/retention", retention)
            rest.ask("POST", f"{unlucky}/{OF_TOPIC}", rate(5_000))

        return [
            (1.2, "first burst", lambda: publish(250)),
            (1.4, "reconnected", reconnect),
            (1.6, "between the bursts", lambda: self._note_statistics(BURST)),
            (1.7, "second burst", lambda: publish(150)),
            (LATE_JOIN_S, "joined",
             lambda: self._subscribe(self._main, SHARED_BYTES, "two", Arrivals())),
            (2.4, "cut", lambda: set_limit(100)),
            (2.7, "same limit", same_limit),
            (3.6, "broker limit in bytes", broker_limit_in_bytes),
            (4.0, "unloaded", lambda: rest.ask("PUT", f"{unlucky}/unload")),
            (4.2, "raised", lambda: set_limit(300)),
            (5.4, "other policies", other_policies),
            (6.0, "removed", lambda: rest.ask("DELETE", f"{changed}/{OF_SUBSCRIPTION}")),
            (6.8, "entries count",
             lambda: rest.ask("POST", f"{CONFIGURATION}/{ON_BATCH_MESSAGE}/true")),
            (PLAY_S, "end", lambda: None),
        ]  # fmt: skip

    def _note_statistics(self, scene: Scene) -> None:
        self.played.earlier_stats[scene.name] = self._rest.topic(scene.topic)

    def _follow(self, script: list[tuple[float, str, Callable[[], object]]]) -> None:
        for after_s, name, action in script:
            time.sleep(max(0.0, self.played.begin + after_s - time.monotonic()))
            self.played.marks[name] = time.monotonic()
            action()
            self.played.marks[f"{name}, done"] = time.monotonic()


def play(narrow: BrokerProcess, wide: BrokerProcess) -> Played:
    """Start both brokers, prepare them, start them again and play every scene."""

    def begin(broker: BrokerProcess, scenes: list[Scene]) -> None:
        broker.start()
        prepare(broker, scenes)
        broker.restart()

    with ThreadPoolExecutor(2) as pool:
        for ready in [pool.submit(begin, narrow, NARROW), pool.submit(begin, wide, WIDE)]:
            ready.result()
    rest = Rest(wide.admin_url)
    rest.ask("POST", f"{CONFIGURATION}/dispatchThrottlingRateInMsg/{WIDE_MESSAGES_PER_S}")
    rest.close()
    return Stage(narrow, wide).play()

"""Situations with a known cause, played by real clients at once.

A run is one process of clients (``python -m tests.spark.labelled SPEC``) against two brokers: a
limit on a whole broker touches all of its topics, so it has one of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pulsar

from headgate.demo.pace import Pace
from tests.service.process import BrokerProcess

ROOT = Path(__file__).resolve().parents[2]
MAIN, WIDE = "main", "wide"
CLUSTERS = (MAIN, WIDE)
ON_BROKER = "/admin/v2/brokers/configuration/dispatchThrottlingRateInMsg/120"
"""The limit of the second broker."""

_TICK_S = 0.02
_RECEIVE_MS = 300


@dataclass(frozen=True)
class Consumer:
    """What reads one subscription. ``per_s``: how fast it processes, 0 for whatever comes."""

    per_s: int = 0
    queue: int = 100
    does: str = "acknowledge"
    """Or ``hoard`` (receives and never acknowledges) or ``stall`` (never receives)."""
    kind: str = "Shared"
    leaves_at: float = 1.0
    """The part of the run after which it closes."""


@dataclass(frozen=True)
class Situation:
    """One topic. ``verdicts`` has the label of each subscription."""

    name: str
    publish_per_s: int
    consumers: Mapping[str, Sequence[Consumer]]
    verdicts: Mapping[str, str]
    limits: Sequence[tuple[float, str, int, int]] = ()
    """Part of the run at which it is set, ``dispatchRate`` or a path below
    ``subscriptionDispatchRate``, messages and bytes a second (0: not limited)."""
    burst_s: float = 0.0
    """Publish in one go what is due, so often; 0: steadily."""
    publishes_until: float = 1.0
    payload_bytes: int = 200
    cluster: str = MAIN

    @property
    def topic(self) -> str:
        """Its full name."""
        return f"persistent://public/default/{self.name}"

    def scaled(self, times: float) -> Situation:
        """The same with all rates ``times`` as high, under another name."""
        consumers = {
            name: [replace(each, per_s=round(each.per_s * times)) for each in several]
            for name, several in self.consumers.items()
        }
        limits = [
            (at, kind, round(messages * times), round(size * times))
            for at, kind, messages, size in self.limits
        ]
        return replace(
            self,
            name=f"{self.name}-{times:g}",
            publish_per_s=round(self.publish_per_s * times),
            consumers=consumers,
            limits=limits,
        )


def _one(verdict: str) -> dict[str, str]:
    return {"s": verdict}


def _reads(**how: Any) -> dict[str, list[Consumer]]:
    return {"s": [Consumer(**how)]}


OF_TOPIC, OF_SUBSCRIPTION = "dispatchRate", "subscriptionDispatchRate"

SITUATIONS = (
    Situation("slow", 100, _reads(per_s=40), _one("CONSUMER")),
    Situation("slow-active", 100, _reads(per_s=30, kind="Failover"), _one("CONSUMER")),
    Situation("nobody", 50, {"s": []}, _one("NO_CONSUMER")),
    Situation("hoards", 60, _reads(does="hoard"), _one("CONSUMER")),
    Situation("stalls", 60, _reads(does="stall", queue=50), _one("CONSUMER")),
    Situation("healthy", 100, _reads(), _one("NONE")),
    Situation("bursts", 80, _reads(queue=1_000), _one("NONE"), burst_s=3.0),
    Situation("roomy", 100, _reads(), _one("NONE"), [(0.0, OF_SUBSCRIPTION, 400, 0)]),
    Situation(
        "narrow", 100, _reads(), _one("THROTTLED_SUBSCRIPTION"), [(0.0, OF_SUBSCRIPTION, 50, 0)]
    ),
    Situation(
        "bytes", 100, _reads(kind="Exclusive"), _one("THROTTLED_SUBSCRIPTION"),
        [(0.0, OF_SUBSCRIPTION, 0, 40_000)], payload_bytes=1_000,
    ),
    Situation(
        "shared-limit", 100, {"a": [Consumer()], "b": [Consumer()]},
        {"a": "THROTTLED_TOPIC", "b": "THROTTLED_TOPIC"}, [(0.0, OF_TOPIC, 80, 0)],
    ),
    # The limiter holds for most of the time by the clock, and the consumer is the bottleneck.
    Situation(
        "busy", 300, _reads(per_s=200, queue=500), _one("CONSUMER"),
        [(0.0, OF_SUBSCRIPTION, 250, 0)],
    ),
    # Mixtures. The slow one is no fault of the limit that its neighbour is held by ...
    Situation(
        "neighbours", 100, {"quick": [Consumer()], "slow": [Consumer(per_s=10, queue=10)]},
        {"quick": "THROTTLED_TOPIC", "slow": "CONSUMER"}, [(0.0, OF_TOPIC, 80, 0)],
    ),
    # ... of two limits the tighter one holds ...
    Situation(
        "two-limits", 100, _reads(), _one("THROTTLED_SUBSCRIPTION"),
        [(0.0, OF_TOPIC, 80, 0), (0.0, OF_SUBSCRIPTION, 40, 0)],
    ),
    # ... the longer of two causes in turn is the first ...
    Situation(
        "limited-then-gone", 100, _reads(leaves_at=0.85), _one("THROTTLED_SUBSCRIPTION"),
        [(0.0, OF_SUBSCRIPTION, 40, 0)],
    ),
    Situation(
        "slow-then-limited", 100, _reads(per_s=40), _one("CONSUMER"),
        [(0.85, OF_SUBSCRIPTION, 5, 0)],
    ),
    # ... one idle consumer of two holds messages that the other one cannot get ...
    Situation(
        "one-hoards", 60, {"s": [Consumer(), Consumer(does="hoard", queue=20)]}, _one("CONSUMER")
    ),
    # ... a backlog that shrinks again was the consumer's all the same.
    Situation(
        "catches-up", 150, _reads(per_s=90), _one("CONSUMER"), publishes_until=0.6
    ),
    *(
        Situation(f"wide-{name}", 80, _reads(), _one("THROTTLED_BROKER"), cluster=WIDE)
        for name in "abc"
    ),
    # Under the broker's limit too, but its own is tighter.
    Situation(
        "wide-own", 80, _reads(), _one("THROTTLED_SUBSCRIPTION"), [(0.0, OF_SUBSCRIPTION, 8, 0)],
        cluster=WIDE,
    ),
)  # fmt: skip


def labels() -> dict[tuple[str, str], str]:
    """The verdict that each (topic, subscription) was built for."""
    return {(s.topic, name): verdict for s in SITUATIONS for name, verdict in s.verdicts.items()}


def rate_body(messages: int, size_bytes: int) -> bytes:
    """A dispatch rate as admin REST takes it; 0 is none."""
    return json.dumps(
        {
            "dispatchThrottlingRateInMsg": messages or -1,
            "dispatchThrottlingRateInByte": size_bytes or -1,
            "ratePeriodInSecond": 1,
        }
    ).encode()


def _set_limit(broker: BrokerProcess, topic: str, kind: str, messages: int, size: int) -> None:
    path = f"/admin/v2/{topic.replace('://', '/')}/{kind}"
    status, body = broker.request("POST", path, rate_body(messages, size))
    assert status < 300, body


@contextmanager
def played(folder: Path, seconds: float) -> Iterator[dict[str, BrokerProcess]]:
    """Both brokers after ``seconds`` of a run that goes on until the context ends.

    So that what is judged is not how clients end.
    """
    brokers = {}
    for name in CLUSTERS:
        settings = ("--set", f"clusterName={name}", "--set", "headgateTelemetryIntervalMs=1000")
        (folder / name).mkdir(parents=True)
        brokers[name] = BrokerProcess(folder / name, settings)
    try:
        for broker in brokers.values():
            broker.start()
        _prepare(brokers)
        with _clients(brokers, seconds, folder / "clients.log"):
            yield brokers
    finally:
        for broker in brokers.values():
            broker.close()


def _prepare(brokers: Mapping[str, BrokerProcess]) -> None:
    assert brokers[WIDE].request("POST", ON_BROKER)[0] < 300
    for situation in SITUATIONS:
        broker, path = brokers[situation.cluster], situation.topic.replace("://", "/")
        assert broker.request("PUT", f"/admin/v2/{path}")[0] < 300
        for name in situation.consumers:
            assert broker.request("PUT", f"/admin/v2/{path}/subscription/{name}")[0] < 300
        for at, kind, messages, size in situation.limits:
            if at == 0.0:
                _set_limit(broker, situation.topic, kind, messages, size)


@contextmanager
def _clients(brokers: Mapping[str, BrokerProcess], seconds: float, log: Path) -> Iterator[None]:
    urls = {name: broker.service_url for name, broker in brokers.items()}
    with clients_of(SITUATIONS, urls, seconds, log) as clients:
        _change_limits(brokers, time.monotonic(), seconds)
        assert clients.poll() is None, log.read_text()
        yield


@contextmanager
def clients_of(
    situations: Sequence[Situation], urls: Mapping[str, str], seconds: float, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """The clients of ``situations``, which begin at once; ``urls`` by cluster."""
    played_ones = [asdict(situation) for situation in situations]
    spec = {"seconds": seconds, "urls": dict(urls), "situations": played_ones}
    with log.open("wb") as errors:
        clients = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.labelled", json.dumps(spec)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        )  # fmt: skip
    try:
        assert clients.stdout is not None
        assert clients.stdout.readline() == b"ready\n", log.read_text()
        yield clients
    finally:
        clients.kill()
        clients.communicate()


def _change_limits(brokers: Mapping[str, BrokerProcess], begin_s: float, seconds: float) -> None:
    """Set what is to be set on the way; return at the end of the run."""
    later = sorted(
        (at, s.cluster, s.topic, kind, messages, size)
        for s in SITUATIONS
        for at, kind, messages, size in s.limits
        if at > 0.0
    )
    for at, cluster, topic, kind, messages, size in later:
        time.sleep(max(0.0, begin_s + at * seconds - time.monotonic()))
        _set_limit(brokers[cluster], topic, kind, messages, size)
    time.sleep(max(0.0, begin_s + seconds - time.monotonic()))


def _consume(consumer: Any, how: Consumer, end_s: float) -> None:
    pace = None
    while how.does != "stall" and time.monotonic() < end_s:
        try:
            message = consumer.receive(timeout_millis=_RECEIVE_MS)
        except pulsar.Timeout:
            pace = None
            continue
        if how.per_s:
            pace = pace or Pace(how.per_s, time.monotonic())
            time.sleep(pace.wait_s(time.monotonic()))
        if how.does == "acknowledge":
            consumer.acknowledge(message)
    time.sleep(max(0.0, end_s - time.monotonic()))
    consumer.close()


def _publish(producers: Sequence[tuple[Any, Situation]], seconds: float) -> None:
    begin_s = time.monotonic()
    paces = [Pace(situation.publish_per_s, begin_s) for _, situation in producers]
    burst_at = [begin_s] * len(producers)
    while True:
        time.sleep(_TICK_S)
        now_s = time.monotonic()
        for place, (producer, situation) in enumerate(producers):
            if now_s > begin_s + situation.publishes_until * seconds:
                continue
            due = paces[place].due(now_s)
            if situation.burst_s:
                if now_s < burst_at[place]:
                    continue
                burst_at[place] += situation.burst_s
                due = round(situation.burst_s * situation.publish_per_s)
            for _ in range(due):
                producer.send_async(b"x" * situation.payload_bytes, None)


def _made(consumers: Mapping[str, Sequence[Mapping[str, Any]]], **fields: Any) -> Situation:
    """A situation as it came over the command line."""
    several = {name: [Consumer(**each) for each in found] for name, found in consumers.items()}
    return Situation(consumers=several, **fields)


def main() -> None:
    """The process of the clients: it ends when it is killed."""
    spec = json.loads(sys.argv[1])
    seconds = spec["seconds"]
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    clients = {name: pulsar.Client(url, logger=logger) for name, url in spec["urls"].items()}
    waiting = []
    situations = [_made(**each) for each in spec["situations"]]
    for situation in situations:
        for subscription, several in situation.consumers.items():
            for how in several:
                consumer = clients[situation.cluster].subscribe(
                    situation.topic,
                    subscription,
                    consumer_type=getattr(pulsar.ConsumerType, how.kind),
                    receiver_queue_size=how.queue,
                )
                waiting.append((consumer, how))
    producers = [
        (
            clients[situation.cluster].create_producer(
                situation.topic, batching_enabled=False, max_pending_messages=100_000
            ),
            situation,
        )
        for situation in situations
    ]
    begin_s = time.monotonic()
    for consumer, how in waiting:
        end_s = begin_s + how.leaves_at * seconds if how.leaves_at < 1.0 else begin_s + 1e6
        threading.Thread(target=partial(_consume, consumer, how, end_s), daemon=True).start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    _publish(producers, seconds)


if __name__ == "__main__":
    main()

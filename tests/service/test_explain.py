"""``headgate explain`` in the middle of an incident: real broker, real clients, real command."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.service.process import BrokerProcess

pytestmark = pytest.mark.alone

NAMESPACE = "public/default"
RATE = 20
"""Messages a second, of the slow consumer and of the limit."""
BURST = 60 * RATE
"""Both take a minute for it."""
SETTLED_WITHIN_S = 20.0
QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)


class Incident:
    """Four subscriptions, each in its own trouble or in none."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self._client = pulsar.Client(broker.service_url, logger=QUIET)
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self) -> None:
        self._subscribe("limited", "eager")
        self._subscribe("slow", "worker", rate=RATE)
        self._subscribe("healthy", "keeping-up")
        self._client.subscribe(f"{NAMESPACE}/forgotten", "gone").close()
        status, body = self.broker.request(
            "POST",
            f"/admin/v2/persistent/{NAMESPACE}/limited/subscriptionDispatchRate",
            json.dumps(
                {
                    "dispatchThrottlingRateInMsg": RATE,
                    "dispatchThrottlingRateInByte": -1,
                    "ratePeriodInSecond": 1,
                }
            ).encode(),
        )
        assert status == 204, body
        for topic in ("limited", "slow", "healthy", "forgotten"):
            self._publish(topic)

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(10)
        self._client.close()

    def _publish(self, topic: str) -> None:
        producer = self._client.create_producer(f"{NAMESPACE}/{topic}", max_pending_messages=BURST)
        results: list[pulsar.Result] = []
        for _ in range(BURST):
            producer.send_async(b"x" * 100, lambda result, _: results.append(result))
        producer.flush()
        assert results == [pulsar.Result.Ok] * BURST

    def _subscribe(self, topic: str, name: str, rate: float | None = None) -> None:
        consumer = self._client.subscribe(f"{NAMESPACE}/{topic}", name)
        thread = threading.Thread(target=self._consume, args=(consumer, rate), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _consume(self, consumer: pulsar.Consumer, rate: float | None) -> None:
        while not self._stop.is_set():
            try:
                message = consumer.receive(200)
            except pulsar.Timeout:
                continue
            consumer.acknowledge(message)
            if rate is not None:
                self._stop.wait(1 / rate)


def explain(broker: BrokerProcess, *words: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "headgate.cli",
        "explain",
        "--admin-url",
        broker.admin_url,
        *words,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def answer(broker: BrokerProcess, *words: str) -> Any:
    done = explain(broker, "--json", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def incident(broker: BrokerProcess) -> Iterator[Incident]:
    incident = Incident(broker)
    try:
        incident.begin()
        give_up = time.monotonic() + SETTLED_WITHIN_S
        while True:
            reports = answer(broker)["subscriptions"]
            if len(reports) == 3 and all(r["confidenceLevel"] != "settling" for r in reports):
                break
            assert time.monotonic() < give_up, reports
            time.sleep(0.3)
        yield incident
    finally:
        incident.end()


def test_each_backlog_has_its_own_cause(incident: Incident) -> None:
    top = answer(incident.broker)
    found = {report["subscription"]: report for report in top["subscriptions"]}
    verdicts = {name: report["verdict"] for name, report in found.items()}
    assert verdicts == {
        "eager": "THROTTLED_SUBSCRIPTION",
        "worker": "CONSUMER",
        "gone": "NO_CONSUMER",
    }
    assert top["subscriptionsTotal"] == 4
    for report in found.values():
        assert report["shares"][report["verdict"]] > 0.9
        assert report["confidence"] > 0.7
    assert found["eager"]["limit"] == {
        "level": "subscription",
        "dimension": "messages",
        "text": f"{RATE} msg/s",
        "source": "topic policy",
    }
    assert found["worker"]["limit"] is None
    assert found["gone"]["backlogMessages"] == BURST
    assert found["gone"]["consumers"] == 0


def test_an_operator_reads_it_at_once(incident: Incident) -> None:
    done = explain(incident.broker)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].endswith(": 4 subscriptions; the largest backlogs:")
    assert lines[2] == f" 1. {NAMESPACE}/forgotten  subscription gone"
    text = " ".join(done.stdout.split())
    assert f"the subscription limit of {RATE} msg/s (topic policy) held this subscription" in text
    assert "the backlog drains at the consumer's own pace of" in text
    assert "no consumer has been connected for" in text
    assert f"{NAMESPACE}/healthy" not in text
    assert "\x1b" not in text
    assert max(map(len, lines)) <= 100


def test_one_topic_with_its_limit_and_its_account(incident: Incident) -> None:
    report = answer(incident.broker, "limited")
    (own,) = report["subscriptions"]
    minute = own["minute"]
    assert 0 < minute["delivered"] <= RATE * (minute["windowS"] + 1)
    assert own["minute"]["states"][0]["state"] == "throttled_subscription"
    (limit,) = own["limits"]
    assert limit["budgets"][0]["limit"] == RATE
    assert limit["budgets"][0]["inWindow"] <= RATE
    done = explain(incident.broker, "limited")
    assert "\nLimits in force\n    subscription eager  20 msg/s  topic policy; " in done.stdout


def test_questions_that_cannot_be_answered(incident: Incident) -> None:
    done = explain(incident.broker, "no-such-topic")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"Error: Topic persistent://{NAMESPACE}/no-such-topic not found (status 404)\n"
    )


def test_a_broker_that_is_not_there(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path).start()
    assert explain(broker).stdout.endswith(": 0 subscriptions, no backlog.\n")
    assert broker.terminate() == 0
    done = explain(broker)
    assert (done.returncode, done.stdout) == (1, "")
    assert "refuses the connection: is the broker running there?" in done.stderr

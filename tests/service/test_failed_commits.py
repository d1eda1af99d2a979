"""A disk that fails now and then under the official client: nothing is lost, nothing overtakes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pulsar
import pytest

from headgate.app.embedded import EmbeddedBroker
from headgate.base.errors import StorageError
from headgate.ledger import Batch

TOPIC = "persistent://public/default/failing"
MESSAGES = 5_000
COMMITS_BETWEEN_FAILURES = 25
RECEIVE_TIMEOUT_MS = 20_000


@pytest.fixture(autouse=True)
def _keep_the_switch_interval() -> Iterator[None]:
    interval_s = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval_s)


def test_messages_stay_in_order_over_failed_commits(tmp_path: Path) -> None:
    with EmbeddedBroker(str(tmp_path), {"headgateTelemetryEnabled": "false"}) as broker:
        client = pulsar.Client(
            broker.urls.broker, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        )
        consumer = client.subscribe(TOPIC, "s")
        producer = client.create_producer(TOPIC, batching_enabled=False, block_if_queue_full=True)
        producer.send(b"0")
        log = broker._node.result().broker.log
        write_batch = log.write_batch
        commits, failures = [0], [0]

        def fails_at_times(batch: Batch) -> None:
            commits[0] += 1
            if commits[0] % COMMITS_BETWEEN_FAILURES == 5:
                failures[0] += 1
                raise StorageError("a bad moment", retryable=True)
            write_batch(batch)

        log.write_batch = fails_at_times  # type: ignore[method-assign]
        results: list[pulsar.Result] = []
        for number in range(1, MESSAGES + 1):
            producer.send_async(b"%d" % number, lambda result, _: results.append(result))
        producer.flush()
        log.write_batch = write_batch  # type: ignore[method-assign]
        assert failures[0] > 0
        assert results == [pulsar.Result.Ok] * MESSAGES
        first_seen: dict[int, None] = {}
        while len(first_seen) <= MESSAGES:
            message = consumer.receive(RECEIVE_TIMEOUT_MS)
            first_seen[int(message.data())] = None
            consumer.acknowledge(message)
        overtaken = [(a, b) for a, b in pairwise(first_seen) if b < a]
        assert not overtaken
        client.close()

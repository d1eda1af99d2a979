"""``kill -9`` of a broker whose quota holds producers, or evicts, and what it knows afterwards.

The clients end before the broker is back: an unmodified client would send again what got no
receipt. Acknowledgements are on disk a second after they were sent; what is older counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pulsar
import pytest

from tests.service.clients import EARLIEST, QUIET, SHARED, client_of, full, receive, wait_until
from tests.service.measuring import Rest
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import (
    EVICT,
    EVICTION_PERCENT,
    HOLD,
    OVERHEAD_BYTES,
    RETAINED,
    Sending,
    fill,
    stored,
    words,
)

LIMIT_BYTES = 1_000_000
PAYLOAD_BYTES = 9_000
ENTRY_BYTES = PAYLOAD_BYTES + OVERHEAD_BYTES
FILLING = 130
ACKS_SAFE_S = 2.0
"""An acknowledgement older than a second is on disk, and a slow machine takes a while longer."""

Make = Callable[..., BrokerProcess]


def broker_with(make_broker: Make, policy: str) -> BrokerProcess:
    settings = words(
        **RETAINED,
        backlogQuotaDefaultLimitBytes=LIMIT_BYTES,
        backlogQuotaDefaultRetentionPolicy=policy,
    )
    return make_broker(words=settings).start()


def state(broker: BrokerProcess, topic: str) -> dict[str, Any]:
    """What is owed, in all and by each subscription, and since when."""
    rest = Rest(broker.admin_url)
    stats = rest.topic(topic, "stats?getEarliestTimeInBacklog=true")
    rest.close()
    return {
        "topic": (stats["backlogSize"], stats["earliestMsgPublishTimeInBacklogs"]),
        "oldest": stats.get("oldestBacklogMessageSubscriptionName"),
    } | {
        name: (
            each["backlogSize"],
            each["msgBacklog"],
            each["headgate"]["backlogMessages"],
            each["nonContiguousDeletedMessagesRanges"],
            each["earliestMsgPublishTimeInBacklog"],
        )
        for name, each in stats["subscriptions"].items()
    }


def test_a_hold_goes_on_after_kill_nine(make_broker: Make) -> None:
    """Rules 4.1, 4.2 and 4.3: exactly what is owed, holes counted; nothing with a receipt is
    missing, and what was held is not there."""
    broker, topic = broker_with(make_broker, HOLD), full("held")
    client = pulsar.Client(broker.service_url, operation_timeout_seconds=5, logger=QUIET)
    holes = client.subscribe(topic, "holes", SHARED)
    client.subscribe(topic, "idle", SHARED, initial_position=EARLIEST).close()
    sending = Sending(client, topic, "p", PAYLOAD_BYTES)
    count = fill(sending, FILLING)
    messages = receive(holes, count)
    for message in messages[1::3]:
        holes.acknowledge(message)
    acked = len(messages[1::3])
    wait_until(lambda: state(broker, topic)["holes"][2] == count - acked)
    time.sleep(ACKS_SAFE_S)
    before = state(broker, topic)
    assert before["idle"][0] >= LIMIT_BYTES
    assert before["holes"][3] == acked
    assert before["topic"][1] > 0
    assert before["oldest"] in ("holes", "idle")
    broker.kill()
    client.shutdown()

    broker.start()
    assert state(broker, topic) == before
    assert stored(broker.service_url, topic) == sending.with_result() == sending.sent[:count]
    with client_of(broker.service_url) as client:
        with pytest.raises(pulsar.ProducerBlockedQuotaExceededError):
            client.create_producer(topic)
        consumer = client.subscribe(topic, "idle", SHARED)
        for message in receive(consumer, count):
            consumer.acknowledge(message)
        wait_until(lambda: state(broker, topic)["topic"][0] == before["holes"][0])
        # There is room for what the acknowledged ones leave, and not for more.
        again = Sending(client, topic, "q", PAYLOAD_BYTES)
        fill(again, FILLING)
        assert LIMIT_BYTES <= state(broker, topic)["topic"][0] < LIMIT_BYTES + ENTRY_BYTES
    assert stored(broker.service_url, topic)[:count] == sending.sent[:count]


def test_eviction_is_not_undone_by_kill_nine(make_broker: Make) -> None:
    """Rules 4.1, 4.2 and 4.3: the same is owed afterwards, and the quota goes on."""
    broker, topic = broker_with(make_broker, EVICT), full("evicted")
    client = pulsar.Client(broker.service_url, operation_timeout_seconds=5, logger=QUIET)
    slow = client.subscribe(topic, "slow", SHARED)
    client.subscribe(topic, "idle", SHARED, initial_position=EARLIEST).close()
    sending = Sending(client, topic, "p", PAYLOAD_BYTES)
    sending.send(90)
    sending.finish()
    for message in receive(slow, 90)[40::5]:
        slow.acknowledge(message)
    wait_until(lambda: state(broker, topic)["slow"][2] == 80)
    sending.send(160)
    sending.finish()
    time.sleep(ACKS_SAFE_S)
    before = state(broker, topic)
    assert 0 < before["topic"][0] < LIMIT_BYTES
    broker.kill()
    client.shutdown()

    broker.start()
    assert state(broker, topic) == before
    assert stored(broker.service_url, topic) == sending.sent == sending.with_result()
    with client_of(broker.service_url) as client:
        again = Sending(client, topic, "q", PAYLOAD_BYTES)
        # One act of eviction and a little more: what is left was sent last.
        again.send(40)
        again.finish()
        owed = state(broker, topic)["idle"]
        assert LIMIT_BYTES * EVICTION_PERCENT // 100 - ENTRY_BYTES < owed[0] < LIMIT_BYTES
        consumer = client.subscribe(topic, "idle", SHARED)
        found = [m.data().decode().rstrip() for m in receive(consumer, owed[1])]
        assert found == [*sending.sent, *again.sent][-owed[1] :]


@pytest.mark.parametrize("policy", [HOLD, EVICT])
def test_kill_nine_amid_the_load_loses_no_receipt(make_broker: Make, policy: str) -> None:
    """Rules 4.2 and 4.3: killed while producers publish against the limit, it stands."""
    broker, topic = broker_with(make_broker, policy), full("amid")
    client = pulsar.Client(broker.service_url, operation_timeout_seconds=5, logger=QUIET)
    consumer = client.subscribe(topic, "s", SHARED)
    sendings = [Sending(client, topic, name, PAYLOAD_BYTES) for name in ("p", "q")]
    for _ in range(60):
        for sending in sendings:
            sending.send(5)
        for message in receive(consumer, 5):
            consumer.acknowledge(message)
    broker.kill()
    receipts = [sending.with_result() for sending in sendings]
    client.shutdown()

    broker.start()
    found = stored(broker.service_url, topic)
    for sending, told in zip(sendings, receipts, strict=True):
        mine = [text for text in found if text.startswith(f"{sending.name} ")]
        assert len(mine) >= len(told) > 0
        assert mine == sending.sent[: len(mine)]
    with client_of(broker.service_url) as client:
        limit_bytes = LIMIT_BYTES if policy == EVICT else LIMIT_BYTES + ENTRY_BYTES
        wait_until(lambda: state(broker, topic)["topic"][0] < limit_bytes)
        consumer = client.subscribe(topic, "s", SHARED)
        again = receive(consumer, state(broker, topic)["s"][1])
        for message in again:
            consumer.acknowledge(message)
        wait_until(lambda: state(broker, topic)["topic"][0] == 0)
        client.create_producer(topic).send(b"room")

"""F8 on a real process: the wall clock jumps by an hour and by a day in both directions, under load
and over a restart.

Nothing is trimmed, evicted or cut off, and rates go on.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pulsar

from tests.preload.lying import LyingSystem
from tests.preload.traffic import Traffic, health, read_log, sessions
from tests.service.clients import QUIET
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import EVICT, words

HOUR_S, DAY_S = 3_600, 86_400
SHIFTS_S = (HOUR_S, -HOUR_S, DAY_S, -DAY_S, 0)
RATE_PER_S = 50
OWED = 200
SETTINGS = words(
    defaultRetentionTimeInMinutes=30,
    defaultRetentionSizeInMB=-1,
    backlogQuotaDefaultLimitSecond=1_800,
    backlogQuotaDefaultRetentionPolicy=EVICT,
    managedLedgerMaxLedgerRolloverTimeMinutes=1,
    managedLedgerInactiveLedgerRolloverTimeSeconds=10,
)
KEPT = "persistent://public/default/kept"


def stats_of(broker: BrokerProcess, topic: str) -> Any:
    path = topic.replace("://", "/")
    return json.loads(broker.get(f"/admin/v2/{path}/stats")[1])


def check_kept(broker: BrokerProcess, promised: list[tuple[int, int]]) -> None:
    """A subscription still owes all, and a reader finds all."""
    assert stats_of(broker, KEPT)["subscriptions"]["owes"]["msgBacklog"] == OWED
    client = pulsar.Client(broker.service_url, logger=QUIET)
    assert [position for _, position in read_log(client, KEPT)] == promised
    client.close()


def test_jumps_of_the_wall_clock(
    make_deceived: Callable[..., BrokerProcess], system: LyingSystem, seconds: int
) -> None:
    broker = make_deceived(words=SETTINGS).start()
    client = pulsar.Client(broker.service_url, logger=QUIET)
    client.subscribe(KEPT, "owes").close()
    producer = client.create_producer(KEPT, batching_enabled=False)
    ids = [producer.send(b"%08d" % number) for number in range(OWED)]
    promised = [(found.ledger_id(), found.entry_id()) for found in ids]
    client.close()
    traffic = Traffic(broker, topics=2, rate_per_s=RATE_PER_S, body_bytes=500)
    each_s = max(seconds // len(SHIFTS_S), 5)
    with traffic.running():
        time.sleep(5)
        before = sessions(broker, traffic)
        counts = [len(traffic.receipts())]
        for shift_s in SHIFTS_S:
            system.order(clock_shift_s=shift_s)
            time.sleep(each_s)
            counts.append(len(traffic.receipts()))
            assert health(broker) == (200, "ok")
            for sending in traffic.all:
                rate = stats_of(broker, sending.topic)["msgRateIn"]
                assert abs(rate - RATE_PER_S) < 0.2 * RATE_PER_S, (shift_s, rate)
            check_kept(broker, promised)
        assert [at.split(" ")[0] for at in sessions(broker, traffic)] == [
            at.split(" ")[0] for at in before
        ]
        traffic.stop_sending()
    traffic.check_all_stored_in_order()
    expected = 2 * RATE_PER_S * each_s
    assert all(abs(b - a - expected) < 0.3 * expected for a, b in pairwise(counts)), counts
    for shift_s in SHIFTS_S:
        assert broker.terminate() == 0
        system.order(clock_shift_s=shift_s)
        broker.start()
        time.sleep(2)
        check_kept(broker, promised)
    client = pulsar.Client(broker.service_url, logger=QUIET)
    for sending in traffic.all:  # acknowledged, and younger than the retention
        assert len(read_log(client, sending.topic)) == sending.sent_count
    client.close()
    sys.stdout.write(
        f"{len(SHIFTS_S)} jumps of an hour and a day, {each_s} s each, and over as many restarts: "
        f"{len(traffic.receipts()):,} messages kept, nothing evicted\n"
    )

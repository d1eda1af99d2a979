"""F6 on a real process: one ``fdatasync`` of the log fails with EIO under load.

No receipt comes after it, health and ready name the cause, and the next start has every message
with a receipt under its id.
"""

from __future__ import annotations

import errno
import json
import sys
import time
from collections.abc import Callable

import pulsar

from tests.preload.lying import LyingSystem
from tests.preload.traffic import Traffic, health, read_log
from tests.service.clients import QUIET, wait_until
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import RETAINED, words

WATCHED_S = 10.0
"""How long no receipt may come."""
ON_THE_WAY_S = 0.5
"""Receipts of the commit before may be on their way for so long."""


def test_no_receipt_after_a_failed_sync_and_all_before_are_kept(
    make_deceived: Callable[..., BrokerProcess], system: LyingSystem
) -> None:
    broker = make_deceived(words=words(**RETAINED)).start()
    traffic = Traffic(broker, topics=3, rate_per_s=100, body_bytes=1_000)
    with traffic.running():
        time.sleep(5)
        assert health(broker) == (200, "ok")
        system.order(sync_error=errno.EIO, sync_errors=1)
        wait_until(lambda: system.count("syncs_failed") == 1, 10)
        failed_s = time.monotonic()
        time.sleep(WATCHED_S)
        for path, expected in (("health", 500), ("ready", 503)):
            status, text = broker.get(f"/admin/v2/brokers/{path}")
            assert status == expected, (path, status, text)
            assert "Input/output error" in json.loads(text)["reason"]
        broker.kill()
    late = [r for r in traffic.receipts() if r.position is not None]
    assert max(r.answered_s for r in late) < failed_s + ON_THE_WAY_S
    assert system.count("syncs_failed") == 1

    broker.start()
    client = pulsar.Client(broker.service_url, logger=QUIET)
    promised_count = 0
    for sending in traffic.all:
        log = read_log(client, sending.topic)
        assert [number for number, _ in log] == list(range(len(log)))
        by_number = dict(log)
        promised = sending.stored()
        promised_count += len(promised)
        assert {number: by_number.get(number) for number in promised} == promised
    client.close()
    assert promised_count > 500
    assert health(broker) == (200, "ok")
    sys.stdout.write(f"EIO of one sync: {promised_count:,} receipts before it, all kept\n")

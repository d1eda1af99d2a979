"""F18 on a real process, longer than clients wait: it is stopped under load and goes on.

The clients lose their connections meanwhile and send again what got no receipt. So a message may be
there twice, but only if it had none; nothing with a receipt is lost.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

import pulsar

from tests.preload.traffic import Traffic, health, read_log
from tests.service.clients import QUIET, wait_until
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import RETAINED, words

END_S_MAX = 10.0


def test_a_long_stop_under_load_and_a_clean_end_under_load(
    make_broker: Callable[..., BrokerProcess], seconds: int
) -> None:
    broker = make_broker(words=words(**RETAINED)).start()
    traffic = Traffic(broker, topics=3, rate_per_s=100, body_bytes=1_000)
    with traffic.running():
        time.sleep(5)
        os.kill(broker.pid, signal.SIGSTOP)
        stopped_s = time.monotonic()
        try:
            time.sleep(seconds)
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        before = len(traffic.receipts())
        begun_s = time.monotonic()
        wait_until(lambda: len(traffic.receipts()) > before + 100, 60)
        back_s = time.monotonic() - begun_s
        wait_until(lambda: health(broker) == (200, "ok"), 60)
        time.sleep(5)
        begun_s = time.monotonic()
        assert broker.terminate() == 0
        ended_s = time.monotonic() - begun_s
        assert ended_s < END_S_MAX
    assert "closed; everything is on disk" in broker.log()

    broker.start()
    client = pulsar.Client(broker.service_url, logger=QUIET)
    twice_count = receipts_count = 0
    for sending in traffic.all:
        log = read_log(client, sending.topic)
        promised = sending.stored()
        receipts_count += len(promised)
        assert set(promised.items()) <= set(log)
        had_receipt = {r.number for r in sending.receipts if r.answered_s <= stopped_s}
        seen = set[int]()
        for number, _ in log:
            assert number not in seen or number not in had_receipt
            twice_count += number in seen
            seen.add(number)
        firsts = list(dict.fromkeys(number for number, _ in log))
        assert firsts == list(range(len(firsts)))
    client.close()
    sys.stdout.write(
        f"stopped for {seconds} s: first receipts {back_s:.1f} s after, {receipts_count:,} in all, "
        f"{twice_count} messages were sent twice; a clean end under load took {ended_s:.1f} s\n"
    )

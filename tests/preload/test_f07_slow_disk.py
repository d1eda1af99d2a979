"""F7 on a real process: each sync of the log takes 200 ms longer, or one hangs.

Receipts come late and in order, no client is cut off, the health check says what is slow, and the
broker's memory stays within what its settings allow.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

from tests.preload.lying import LyingSystem, resident_mib
from tests.preload.traffic import Traffic, health, sessions
from tests.service.clients import wait_until
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import words

DELAY_MS = 200
BUFFER_MB = 4
CACHE_MB = 8
LATE_S_MAX = 5.0
"""Two commits take less than half a second; the machine may be busy with other things."""
GROWTH_MIB_MAX = BUFFER_MB + CACHE_MB + 30
"""What the process may grow by: messages without a receipt, index, allocator."""
SETTINGS = words(
    keepAliveIntervalSeconds=5,
    maxMessagePublishBufferSizeInMB=BUFFER_MB,
    managedLedgerCacheSizeMB=CACHE_MB,
)


def traffic_of(broker: BrokerProcess) -> Traffic:
    """About a megabyte a second."""
    return Traffic(broker, topics=3, rate_per_s=150, body_bytes=2_000)


def test_each_sync_takes_200_ms_longer(
    make_deceived: Callable[..., BrokerProcess], system: LyingSystem, seconds: int
) -> None:
    broker = make_deceived(words=SETTINGS).start()
    traffic = traffic_of(broker)
    with traffic.running():
        time.sleep(5)
        before, before_mib = sessions(broker, traffic), resident_mib(broker.pid)
        system.order(sync_delay_ms=DELAY_MS)
        begun_s, highest_mib = time.monotonic(), 0.0
        while time.monotonic() < begun_s + seconds:
            time.sleep(0.5)
            highest_mib = max(highest_mib, resident_mib(broker.pid))
        status, text = health(broker)
        assert status == 200
        assert text.startswith("ok, but the disk is slow: a commit takes "), text
        assert broker.get("/admin/v2/brokers/ready")[0] == 200
        assert sessions(broker, traffic) == before
        system.order(sync_delay_ms=0)
        wait_until(lambda: health(broker) == (200, "ok"), 120)
        assert sessions(broker, traffic) == before
        traffic.stop_sending()
        took = [r.answered_s - r.sent_s for r in traffic.receipts() if r.sent_s > begun_s]
    traffic.check_all_stored_in_order()
    slow = [r for r in traffic.receipts() if begun_s + 1 < r.sent_s < begun_s + seconds - 2]
    median_ms = statistics.median(r.answered_s - r.sent_s for r in slow) * 1_000
    growth_mib = highest_mib - before_mib
    sys.stdout.write(
        f"{DELAY_MS} ms a sync for {seconds} s: {len(slow):,} receipts after {median_ms:.0f} ms "
        f"(median), {max(took) * 1_000:.0f} ms at most; grew by {growth_mib:.0f} MiB\n"
    )
    assert median_ms > DELAY_MS
    assert max(took) < LATE_S_MAX
    assert growth_mib < GROWTH_MIB_MAX


def test_a_sync_hangs_and_goes_on(
    make_deceived: Callable[..., BrokerProcess], system: LyingSystem, seconds: int
) -> None:
    broker = make_deceived(words=SETTINGS).start()
    traffic = traffic_of(broker)
    with traffic.running():
        time.sleep(5)
        before, before_mib = sessions(broker, traffic), resident_mib(broker.pid)
        system.order(sync_delay_ms=1_000 * 86_400)
        begun_s, highest_mib = time.monotonic(), 0.0
        while time.monotonic() < begun_s + seconds:
            time.sleep(0.5)
            highest_mib = max(highest_mib, resident_mib(broker.pid))
        stored_before = max(r.answered_s for r in traffic.receipts())
        assert stored_before < begun_s + 1
        for path in ("health", "ready"):
            status, answer = broker.get(f"/admin/v2/brokers/{path}")
            assert status in (500, 503), (path, status, answer)
            assert b"the commit lane has not answered for" in answer
        # The commits wait, all else is served.
        assert sessions(broker, traffic) == before
        system.order(sync_delay_ms=0)
        ended_s = time.monotonic()
        wait_until(lambda: health(broker) == (200, "ok"), 120)
        healthy_s = time.monotonic() - ended_s
        assert broker.get("/admin/v2/brokers/ready")[0] == 200
        traffic.stop_sending()
        assert sessions(broker, traffic) == before
    traffic.check_all_stored_in_order()
    growth_mib = highest_mib - before_mib
    waited_s = max(r.answered_s - r.sent_s for r in traffic.receipts())
    sys.stdout.write(
        f"a sync hangs for {seconds} s: {len(traffic.receipts()):,} receipts, the longest after "
        f"{waited_s:.0f} s, healthy {healthy_s:.1f} s after the end; grew by {growth_mib:.0f} MiB\n"
    )
    assert waited_s > seconds - 1
    assert growth_mib < GROWTH_MIB_MAX

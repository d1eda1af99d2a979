"""F7 on a real process: each sync of the log takes 200 ms longer, or one hangs.

Receipts come late and in order, no client is cut off, the health check says what is slow, and the
broker's memory stays within what its settings allow.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.preload.lying import LyingSystem, resident_mib
from tests.preload.traffic import Traffic, health, sessions
from tests.service.clients import wait_until
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import words

DELAY_MS = 200
DAY_S = 86_400
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


@dataclass
class SlowDisk:
    """A broker under traffic whose syncs take longer, and how much memory it took meanwhile."""

    broker: BrokerProcess
    traffic: Traffic
    sessions_before: object = None
    before_mib: float = 0.0
    highest_mib: float = 0.0
    begun_s: float = field(default_factory=time.monotonic)

    @property
    def growth_mib(self) -> float:
        """What the process grew by at most."""
        return self.highest_mib - self.before_mib

    def begin(self, system: LyingSystem, delay_ms: int, seconds: int) -> None:
        """Have each sync take longer, and watch the broker for ``seconds``."""
        self.sessions_before = sessions(self.broker, self.traffic)
        self.before_mib = resident_mib(self.broker.pid)
        system.order(sync_delay_ms=delay_ms)
        self.begun_s = time.monotonic()
        while time.monotonic() < self.begun_s + seconds:
            time.sleep(0.5)
            self.highest_mib = max(self.highest_mib, resident_mib(self.broker.pid))

    def check_no_client_was_cut_off(self) -> None:
        """The sessions are those of the beginning."""
        assert sessions(self.broker, self.traffic) == self.sessions_before


@contextmanager
def slow_disk(broker: BrokerProcess, system: LyingSystem, ms: int, s: int) -> Iterator[SlowDisk]:
    """The block runs once syncs have taken ``ms`` longer for ``s`` seconds. Clients publish about a
    megabyte a second."""
    traffic = Traffic(broker, topics=3, rate_per_s=150, body_bytes=2_000)
    with traffic.running():
        time.sleep(5)
        found = SlowDisk(broker, traffic)
        found.begin(system, ms, s)
        yield found
    traffic.check_all_stored_in_order()


def test_each_sync_takes_200_ms_longer(
    make_deceived: Callable[..., BrokerProcess], system: LyingSystem, seconds: int
) -> None:
    broker = make_deceived(words=SETTINGS).start()
    with slow_disk(broker, system, DELAY_MS, seconds) as slow:
        traffic, begun_s = slow.traffic, slow.begun_s
        status, text = health(broker)
        assert status == 200
        assert text.startswith("ok, but the disk is slow: a commit takes "), text
        assert broker.get("/admin/v2/brokers/ready")[0] == 200
        slow.check_no_client_was_cut_off()
        system.order(sync_delay_ms=0)
        wait_until(lambda: health(broker) == (200, "ok"), 120)
        slow.check_no_client_was_cut_off()
        traffic.stop_sending()
        took = [r.answered_s - r.sent_s for r in traffic.receipts() if r.sent_s > begun_s]
    late = [r for r in traffic.receipts() if begun_s + 1 < r.sent_s < begun_s + seconds - 2]
    median_ms = statistics.median(r.answered_s - r.sent_s for r in late) * 1_000
    sys.stdout.write(
        f"{DELAY_MS} ms a sync for {seconds} s: {len(late):,} receipts after {median_ms:.0f} ms "
        f"(median), {max(took) * 1_000:.0f} ms at most; grew by {slow.growth_mib:.0f} MiB\n"
    )
    assert median_ms > DELAY_MS
    assert max(took) < LATE_S_MAX
    assert slow.growth_mib < GROWTH_MIB_MAX


def test_a_sync_hangs_and_goes_on(
    make_deceived: Callable[..., BrokerProcess], system: LyingSystem, seconds: int
) -> None:
    broker = make_deceived(words=SETTINGS).start()
    with slow_disk(broker, system, 1_000 * DAY_S, seconds) as slow:
        traffic, begun_s = slow.traffic, slow.begun_s
        stored_before = max(r.answered_s for r in traffic.receipts())
        assert stored_before < begun_s + 1
        for path in ("health", "ready"):
            status, answer = broker.get(f"/admin/v2/brokers/{path}")
            assert status in (500, 503), (path, status, answer)
            assert b"the commit lane has not answered for" in answer
        # The commits wait, all else is served.
        slow.check_no_client_was_cut_off()
        system.order(sync_delay_ms=0)
        ended_s = time.monotonic()
        wait_until(lambda: health(broker) == (200, "ok"), 120)
        healthy_s = time.monotonic() - ended_s
        assert broker.get("/admin/v2/brokers/ready")[0] == 200
        traffic.stop_sending()
        slow.check_no_client_was_cut_off()
    waited_s = max(r.answered_s - r.sent_s for r in traffic.receipts())
    sys.stdout.write(
        f"a sync hangs for {seconds} s: {len(traffic.receipts()):,} receipts, the longest after "
        f"{waited_s:.0f} s, healthy {healthy_s:.1f} s after the end; "
        f"grew by {slow.growth_mib:.0f} MiB\n"
    )
    assert waited_s > seconds - 1
    assert slow.growth_mib < GROWTH_MIB_MAX

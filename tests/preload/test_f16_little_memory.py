"""F16 on a real process in a control group of little memory: crowds make the broker hold memory.

The kernel does not end the broker, which derives its bounds from the group's limit, and its
neighbours go on.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headgate.base.units import MIB
from tests.preload.traffic import Traffic, health
from tests.service.client_loads import Load, crowd
from tests.service.process import BrokerProcess

LIMIT_BYTES = 384 * MIB
CROWD = 2_000
"""Clients; with half a frame of 256 KiB each they want 500 MiB."""
V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[Path]:
    """A control group, of whichever version the machine has, without swap."""
    parent = V1 if V1.is_dir() else V2
    group = parent / "headgate-soak"
    group.mkdir()
    try:
        name = "memory.limit_in_bytes" if parent == V1 else "memory.max"
        (group / name).write_text(str(limit_bytes))
        yield group
    finally:
        group.rmdir()


def kills(group: Path) -> int:
    """How many processes of the group the kernel ended for want of memory."""
    file = group / ("memory.oom_control" if group.parent == V1 else "memory.events")
    words = dict(line.split() for line in file.read_text().splitlines())
    return int(words["oom_kill"])


@pytest.mark.parametrize("load", [Load.HALF, Load.DESCRIBE, Load.PING])
def test_a_crowd_in_a_small_group_does_not_end_the_broker(
    make_broker: Callable[..., BrokerProcess], load: Load, seconds: int
) -> None:
    with memory_group(LIMIT_BYTES) as group:
        broker = make_broker()
        join = f'echo $$ > {group}/cgroup.procs && exec "$@"'
        broker.wrapper = ["/bin/sh", "-c", join, "sh"]
        broker.start()
        try:
            traffic = Traffic(broker, topics=2, rate_per_s=50, body_bytes=1_000)
            with traffic.running():
                time.sleep(2)
                with crowd(broker.service_url, load, CROWD):
                    time.sleep(seconds)
                    assert kills(group) == 0, "the kernel ended the broker"
                    assert health(broker)[0] == 200
                traffic.stop_sending()
            traffic.check_all_stored_in_order()
            peak = "max_usage_in_bytes" if group.parent == V1 else "peak"
            used_mib = int((group / f"memory.{peak}").read_text()) / MIB
            took = sorted(r.answered_s - r.sent_s for r in traffic.receipts())
            sys.stdout.write(
                f"{load.value}, {CROWD:,} clients in {LIMIT_BYTES // MIB} MiB for {seconds} s: "
                f"{used_mib:.0f} MiB at most with the page cache, receipts p99 "
                f"{1_000 * took[len(took) * 99 // 100]:.0f} ms, {kills(group)} kills\n"
            )
            assert broker.terminate() == 0
        finally:
            broker.close()

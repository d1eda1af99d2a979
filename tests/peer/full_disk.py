"""A broker on a disk that becomes full, for programs of ``./dev test-peer``."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.service.clients import wait_until
from tests.service.process import BrokerProcess
from tests.service.small_disk import SmallDisk, small_disk

FULL_LIMIT_S = 60.0
DRAINED_LIMIT_S = 60.0
STATS = "/admin/v2/persistent/public/default/full-disk/stats"
WORDS = ("--set", "headgateTelemetryEnabled=false")


def play_on_full_disk(command_of: Callable[[BrokerProcess], Sequence[str]], limit_s: float) -> int:
    """Have a program fill the disk of a broker and read it empty; then there is room. Return its
    status, or 1 if its client connected anew meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        broker = BrokerProcess(Path(folder), WORDS)
        with small_disk(broker) as disk:
            broker.start()
            room = threading.Thread(target=_make_room, args=(broker, disk), daemon=True)
            room.start()
            command = command_of(broker)
            try:
                status = subprocess.run(command, timeout=limit_s, check=False).returncode
            except subprocess.TimeoutExpired:
                sys.stderr.write(f"{command[0]} timed out after {limit_s} s\n")
                return 1
            connections = _metric(broker, "pulsar_connection_created_total_count")
            if connections != 1:
                sys.stderr.write(f"Its client connected {connections:g} times\n")
                return 1
            return status


def _make_room(broker: BrokerProcess, disk: SmallDisk) -> None:
    """When what fills the disk is consumed."""
    disk.shrink()
    wait_until(lambda: _metric(broker, "headgate_disk_full") == 1, FULL_LIMIT_S)
    wait_until(lambda: _backlog(broker) == 0, DRAINED_LIMIT_S)
    disk.grow()


def _metric(broker: BrokerProcess, name: str) -> float:
    lines = broker.get("/metrics")[1].decode().splitlines()
    return float(next(line.rpartition(" ")[2] for line in lines if line.startswith(f"{name}{{")))


def _backlog(broker: BrokerProcess) -> int:
    stats = json.loads(broker.get(STATS)[1])
    return int(stats["subscriptions"]["s"]["msgBacklog"])

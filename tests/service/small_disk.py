"""A disk that is full when a test says so: a small file system, or a limit on the size of files.

Mounting needs the rights of root. Without them no file of the running broker may grow to the size
of a segment of its log, which it takes for a full disk as well.
"""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.service.clients import wait_until
from tests.service.process import BrokerProcess

SEGMENT_BYTES = 64 * 1024 * 1024
SMALL_BYTES = 3 * SEGMENT_BYTES + 16 * 1024 * 1024
"""Of a file system with a segment that is filled, the one that is used next, and the spare."""
LARGE_BYTES = 4 * SMALL_BYTES


class SmallDisk:
    """The disk of one broker, to be made small and large."""

    def __init__(self, broker: BrokerProcess, *, is_mounted: bool) -> None:
        self._broker = broker
        self._is_mounted = is_mounted

    def shrink(self) -> None:
        """What is stored from now on fills it."""
        if not self._is_mounted:
            # The next file is made while the first one is filled.
            wait_until(lambda: len(list(self._broker.data_path.glob("log/*.log"))) > 1)
            self._limit(SEGMENT_BYTES - 1)

    def grow(self) -> None:
        """There is room."""
        if self._is_mounted:
            options = f"remount,size={LARGE_BYTES}"
            subprocess.run(["mount", "-o", options, str(self._broker.data_path)], check=True)
        else:
            self._limit(None)

    def _limit(self, size_bytes: int | None) -> None:
        _, most = resource.prlimit(self._broker.pid, resource.RLIMIT_FSIZE)
        limit = most if size_bytes is None else size_bytes
        resource.prlimit(self._broker.pid, resource.RLIMIT_FSIZE, (limit, most))


@contextmanager
def small_file_system(path: Path, size_bytes: int) -> Iterator[bool]:
    """Whether a file system of that size could be put there; it is taken away at the end."""
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "none", str(path)]
    is_mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", str(path)], check=True)


@contextmanager
def small_disk(broker: BrokerProcess) -> Iterator[SmallDisk]:
    """The disk of a broker that was not started yet; it is ended at the end."""
    with small_file_system(broker.data_path, SMALL_BYTES) as is_mounted:
        try:
            yield SmallDisk(broker, is_mounted=is_mounted)
        finally:
            broker.close()

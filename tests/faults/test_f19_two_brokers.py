"""F19: a second broker on a data directory in use refuses, and the first one goes on.

Also while the first one is stopped and answers nobody; after a kill the directory is free.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.service.process import BrokerProcess, StartFailedError

REFUSAL = (
    "data is in use by another broker: stop that one, or choose another directory with --data-dir"
)


def contents(folder: Path) -> dict[str, bytes]:
    """All files that lie in a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def stop(pid: int) -> None:
    """Stop a process; returns when all its threads stand still: a system call ends first."""
    os.kill(pid, signal.SIGSTOP)
    stats = Path(f"/proc/{pid}/task").glob("*/stat")
    for stat in [*stats]:
        while stat.read_text().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.01)


def test_a_directory_in_use(make_broker: Callable[..., BrokerProcess]) -> None:
    first, second = make_broker().start(), make_broker()
    with pytest.raises(StartFailedError) as caught:
        second.start()
    assert caught.value.status == 1
    assert caught.value.stderr.strip().endswith(REFUSAL)
    assert first.get("/admin/v2/brokers/health") == (200, b"ok")

    stop(first.pid)
    try:
        before = contents(first.data_path / "log")
        with pytest.raises(StartFailedError):
            second.start()
        assert contents(first.data_path / "log") == before
    finally:
        first.kill()
    second.start()
    assert second.get("/admin/v2/brokers/health") == (200, b"ok")

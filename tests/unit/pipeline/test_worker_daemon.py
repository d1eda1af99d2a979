"""The daemon of Spark's Python workers. Starts no Spark and no daemon.

What a test freezes stays so: to thaw it would thaw all modules, which ``tests/conftest.py``
freezes, and each later collection would search them. What the tests before left is frozen, too,
because to search it takes seconds.
"""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest
from pyspark import daemon

from headgate.pipeline import worker_daemon
from headgate.pipeline.session import WORKER_DAEMON, is_on_this_machine
from headgate.pipeline.worker_daemon import Collector

LIMIT_S = 60.0


@pytest.fixture(autouse=True)
def few_objects() -> None:
    """Only what a test itself makes is searched for garbage."""
    gc.freeze()


def test_spark_starts_it_by_its_name_on_this_machine_only() -> None:
    assert {"spark.python.daemon.module": worker_daemon.__name__} == WORKER_DAEMON
    for master in ("local", "local[*]", "local[4]"):
        assert is_on_this_machine({"MASTER": master})
    assert is_on_this_machine({})
    assert not is_on_this_machine({"MASTER": "spark://a:7077"})


def test_modules_that_a_task_imported_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_daemon, "MODULES_MIN", 1)
    before, kept = gc.get_freeze_count(), [[] for _ in range(1_000)]
    Collector.collect()
    assert gc.get_freeze_count() >= before + len(kept)
    assert len(gc.get_objects()) < len(kept)


def test_the_garbage_of_a_task_is_searched_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_daemon, "MODULES_MIN", sys.maxsize)
    frozen = gc.get_freeze_count()
    rings: list[object] = []
    rings.append(rings)
    del rings
    Collector.collect()
    assert gc.get_freeze_count() == frozen
    assert gc.collect() == 0


def test_the_daemon_runs_with_the_modules_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[bool, object]] = []
    before, kept = gc.get_freeze_count(), [[] for _ in range(1_000)]
    monkeypatch.setattr(daemon, "gc", gc)
    monkeypatch.setattr(
        daemon,
        "manager",
        lambda: found.append((gc.get_freeze_count() >= before + len(kept), daemon.gc)),
    )
    worker_daemon.run()
    assert found == [(True, Collector)]


def test_its_import_starts_no_thread() -> None:
    """A thread, and the locks that it holds, would be missing in each worker after the fork."""
    script = "import threading, headgate.pipeline.worker_daemon; print(threading.active_count())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    assert done.stdout.split() == ["1"]

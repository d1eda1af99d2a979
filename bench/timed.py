"""A broker that takes the time of its own commits: ``headgate standalone`` with another lane.

How long a commit takes cannot be seen from outside while the loop is busy: a receipt waits for
more than that. So the lane of the commits notes when each was handed over, when its thread was
done with it and when the loop heard of that, and the process prints all of it when it ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from headgate.app import node
from headgate.app.log_lines import start_logging
from headgate.app.options import StandaloneOptions
from headgate.app.run import run_standalone
from headgate.storage.lanes import Done, ThreadLane

times_s: list[tuple[float, float, float]] = []
"""Of each commit: handed over, written and synced, known to the loop."""


class TimedLane(ThreadLane):
    """A lane that notes the times of its jobs, if it is the one that commits."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        super().__init__(loop, name)
        self._is_noted = name == "headgate-commit"

    def submit(self, work: Callable[[], Any], done: Done) -> None:
        if not self._is_noted:
            super().submit(work, done)
            return
        began_s = time.monotonic()
        written_s = 0.0

        def timed_work() -> Any:
            nonlocal written_s
            try:
                return work()
            finally:
                written_s = time.monotonic()

        def timed_done(result: Any, error: BaseException | None) -> None:
            times_s.append((began_s, written_s, time.monotonic()))
            done(result, error)

        super().submit(timed_work, timed_done)


def main(data_path: str) -> None:
    """Run until SIGTERM, then print the times as one line of JSON."""
    start_logging("warning")
    setattr(node, "ThreadLane", TimedLane)  # noqa: B010 - the node makes its lanes by that name
    ports = ("brokerServicePort=0", "webServicePort=0")
    options = StandaloneOptions(data_path=data_path, assignments=ports)
    run_standalone(options, lambda line: print(line, flush=True))
    json.dump(times_s, sys.stdout)
    print(flush=True)

"""Runs ``headgate standalone``, from its settings to its last signal."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import uvloop

from headgate import __version__
from headgate.app.config_file import load_settings, parse_overrides, read_config, with_suggestion
from headgate.app.descriptors import raise_descriptors_max
from headgate.app.garbage_collection import AUTOMATIC, Activity, Collector, GarbageCollection
from headgate.app.node import Node, bounded_bytes
from headgate.app.options import StandaloneOptions
from headgate.app.system_memory import MemoryOfObjects, ProcSelfMemory
from headgate.app.tls.handshake_steps import end_amid_steps
from headgate.broker.service import Broker
from headgate.policy.settings import Settings

logger = logging.getLogger("headgate.app")

SWITCH_INTERVAL_S = 0.00002
"""How long the loop may hold the interpreter while the commit thread waits for it.

A waiting thread gets the interpreter only after it was held for a whole interval without a break. A
busy loop releases it at every poll and takes it back before the thread is awake; so the interval
must be shorter than a turn. Under a flood of small commands a commit took 10 ms at the median
with 0.5 ms, and 1.5 ms with this; throughput is the same.
"""

EXIT_BUG = 70
"""Exit status after a broken invariant."""

ANSWER_S = 0.1
"""Time to send the answer to a request that closes the broker."""

REPEAT_S = 1.0
"""Signals closer together than this count as one."""


def settings_of(options: StandaloneOptions) -> Settings:
    """The settings in force; one warning names the keys that Headgate does not have.

    Raises:
        InputError: the file cannot be read, or values are not allowed.
    """
    file = [] if options.config_path is None else read_config(options.config_path)
    loaded = load_settings(file, parse_overrides(options.assignments))
    if loaded.unsupported:
        logger.warning(
            "%s: %s not supported and %s no effect: %s",
            options.config_path,
            "one key is" if len(loaded.unsupported) == 1 else f"{len(loaded.unsupported)} keys are",
            "has" if len(loaded.unsupported) == 1 else "have",
            ", ".join(map(with_suggestion, loaded.unsupported)),
        )
    return loaded.settings


def run_standalone(options: StandaloneOptions, announce: Callable[[str], None]) -> None:
    """Run a broker until SIGINT or SIGTERM; a second one ends the process at once.

    ``announce`` receives one line when the broker serves clients.

    Raises:
        HeadgateError: it cannot start; the text is one sentence.
    """
    settings = settings_of(options)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    raise_descriptors_max()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, options, announce))
    end_amid_steps(threading.enumerate(), end_process)


async def _serve(
    settings: Settings, options: StandaloneOptions, announce: Callable[[str], None]
) -> None:
    stop = StopSignals(time.monotonic, os._exit)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.receive, number)

    def shut_down() -> None:
        loop.call_later(ANSWER_S, stop.request)

    node = await Node.start(
        settings,
        options.data_path,
        on_bug=_end_at_once,
        is_insecure_allowed=options.is_insecure_allowed,
        shut_down=shut_down,
    )
    gc.set_threshold(*AUTOMATIC)
    broker = node.broker
    system = ProcSelfMemory()
    collection = GarbageCollection(
        loop,
        broker.turns,
        lambda: activity_of(broker),
        MemoryOfObjects(system, lambda: bounded_bytes(broker)),
        Collector(),
    )
    collection.start()
    gc.enable()
    announce(ready_line(node, process_age_s()))
    await stop.received.wait()
    collection.stop()
    system.close()
    await node.close()
    logger.info("closed; everything is on disk")


def activity_of(broker: Broker) -> Activity:
    """What was published, consumed and removed since the start."""
    return Activity(broker.committer.latency.count, broker.engine.ended_count)


class StopSignals:
    """The first signal closes the broker; one at least a second later ends it at once.

    Earlier repeats mean the same as the first: ``timeout`` signals its child, then its group.
    """

    def __init__(self, now_s: Callable[[], float], end: Callable[[int], None]) -> None:
        """``end`` ends the process with an exit status."""
        self.received = asyncio.Event()
        self._now_s = now_s
        self._end = end
        self._first_s = 0.0

    def request(self) -> None:
        """Close the broker for an administrator, as the first signal does."""
        if not self.received.is_set():
            logger.info("an administrator asked for it: closing")
            self._first_s = self._now_s()
            self.received.set()

    def receive(self, number: int) -> None:
        """Take the signal ``number``."""
        if not self.received.is_set():
            logger.info("%s: closing", signal.Signals(number).name)
            self._first_s = self._now_s()
            self.received.set()
        elif self._now_s() - self._first_s >= REPEAT_S:
            logger.warning("second signal: ending at once; everything acknowledged is on disk")
            self._end(128 + number)


def ready_line(node: Node, age_s: float | None) -> str:
    """The line that says that the broker serves clients."""
    age = "" if age_s is None else f" in {age_s:.2f} s"
    return (
        f"Headgate {__version__} ready{age}: {'  '.join(node.urls.all())}  data in {node.data_path}"
    )


def process_age_s() -> float | None:
    """Seconds since this process began, in steps of 10 ms; None where that is unknown."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        begun_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - begun_s
    except (OSError, ValueError, IndexError, AttributeError):
        return None
    return age_s if age_s >= 0 else None


def end_process(status: int) -> None:
    """End at once, with what was logged and printed."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(status)


def _end_at_once(_: BaseException) -> None:
    """Memory cannot be trusted: end before any of it is stored or sent."""
    logging.shutdown()
    os._exit(EXIT_BUG)

"""Measures how long the event loop is held without a pause."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Final, TypeVar

from headgate.base.clock import Clock
from headgate.base.units import NS_PER_MS, NS_PER_S

logger = logging.getLogger("headgate.turns")

T = TypeVar("T")

NOTED_NS_MIN: Final = NS_PER_MS
"""Shorter turns are not noted."""

LONG_NS_MIN: Final = 25 * NS_PER_MS
"""Longer turns are counted and logged at debug level: no turn should take so long."""

PARTS_MAX: Final = 50_000
PARTS_SHOWN: Final = 6
"""Callbacks that are remembered, and kinds of them that are named with a long turn."""

OPEN_TURNS_MAX: Final = 1_000
"""Beginnings of turns whose CPU time is remembered."""

WINDOW_S: Final = 60
"""Length of the window that :meth:`TurnMeter.longest` covers."""


class TurnMeter:
    """Notes the long turns of one broker's loop, each with the name of its work.

    The time of a turn is wall-clock time: garbage collection and a machine that runs other
    processes meanwhile are parts of it.
    """

    def __init__(self, clock: Clock) -> None:
        self._monotonic_ns = self.instant_ns = clock.monotonic_ns
        self._cpu_ns: Callable[[], int] | None = None
        self.now_ns: Callable[[], int] = clock.monotonic_ns
        """The instant at which a turn begins, for :meth:`ended`."""
        self.long_count = 0
        """Turns above :data:`LONG_NS_MIN` since the start."""
        self._began_cpu_ns: dict[int, int] = {}
        """With :meth:`measure_cpu`, the CPU time at the beginning of turns that have not ended."""
        self._parts: deque[tuple[int, str, int]] = deque(maxlen=PARTS_MAX)
        """When the last callbacks began, their names and CPU time."""
        self._seconds: deque[tuple[int, int, str]] = deque()
        """The longest noted turn of each second that has one, with its name."""

    def measure_cpu(self, cpu_ns: Callable[[], int]) -> None:
        """Measure CPU time, too, with ``cpu_ns``, a clock of the loop's thread. What a turn took
        beyond that, it waited for other threads or processes. It costs a system call for each turn
        (about 0.3 us), so the broker does it only if long turns are logged."""
        monotonic_ns, began = self._monotonic_ns, self._began_cpu_ns

        def now_ns() -> int:
            if len(began) > OPEN_TURNS_MAX:
                began.clear()
            at_ns = monotonic_ns()
            began[at_ns] = cpu_ns()
            return at_ns

        self.now_ns = now_ns
        self._cpu_ns = cpu_ns

    def ended(self, name: str, began_ns: int) -> None:
        """A turn that began at ``began_ns`` ends now."""
        now_ns = self._monotonic_ns()
        if now_ns - began_ns >= NOTED_NS_MIN:
            self._note(name, now_ns - began_ns, now_ns // NS_PER_S, began_ns)

    def _note(self, name: str, took_ns: int, second: int, began_ns: int) -> None:
        if took_ns > LONG_NS_MIN:
            self.long_count += 1
            took_ms, cpu = took_ns / NS_PER_MS, self._cpu_text(began_ns)
            parts = self._parts_text(began_ns)
            logger.debug("the loop was held for %.1f ms%s by %s%s", took_ms, cpu, name, parts)
        seconds = self._seconds
        if not seconds or seconds[-1][0] != second:
            seconds.append((second, took_ns, name))
            while seconds[0][0] <= second - WINDOW_S:
                seconds.popleft()
        elif seconds[-1][1] < took_ns:
            seconds[-1] = second, took_ns, name

    def _cpu_text(self, began_ns: int) -> str:
        began_cpu_ns = self._began_cpu_ns.get(began_ns)
        if self._cpu_ns is None or began_cpu_ns is None:
            return ""
        return f" ({(self._cpu_ns() - began_cpu_ns) / NS_PER_MS:.1f} ms of CPU)"

    def part_begins(self) -> tuple[int, int]:
        """A callback begins, with :meth:`measure_cpu`; returns what :meth:`part_ended` needs."""
        return self._monotonic_ns(), self._cpu_ns() if self._cpu_ns is not None else 0

    def part_ended(self, name: str, began: tuple[int, int]) -> None:
        """That callback, of a kind called ``name``, has ended. A long turn names those in it."""
        cpu_ns = self._cpu_ns() if self._cpu_ns is not None else 0
        self._parts.append((began[0], name, cpu_ns - began[1]))

    def _parts_text(self, began_ns: int) -> str:
        """The kinds of callbacks since then that took most."""
        found: dict[str, list[int]] = {}
        for at_ns, name, took_ns in reversed(self._parts):
            if at_ns < began_ns:
                break
            found.setdefault(name, []).append(took_ns)
        most = sorted(found.items(), key=lambda item: -sum(item[1]))[:PARTS_SHOWN]
        texts = [_part_text(name, times) for name, times in most]
        return f"; {', '.join(texts)}" if texts else ""

    def longest(self) -> tuple[int, str]:
        """The longest turn of the last :data:`WINDOW_S` seconds in nanoseconds, and its name; 0 if
        none was noted."""
        first = self.now_ns() // NS_PER_S - WINDOW_S
        recent = [(took_ns, name) for second, took_ns, name in self._seconds if second > first]
        return max(recent, default=(0, ""))

    def measured(self, name: str, coroutine: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """``coroutine``, with each of its turns measured."""
        return _Measured(self, name, coroutine)


def _part_text(name: str, times_ns: list[int]) -> str:
    text = f"{sum(times_ns) / NS_PER_MS:.1f} ms in {len(times_ns)} {name}"
    longest_ns = max(times_ns)
    if len(times_ns) == 1 or longest_ns < NS_PER_MS:
        return text
    return f"{text} (one of them {longest_ns / NS_PER_MS:.1f} ms)"


class _Measured(Awaitable[T]):
    """A coroutine whose turns are measured."""

    __slots__ = ("_coroutine", "_meter", "_name")

    def __init__(self, meter: TurnMeter, name: str, coroutine: Coroutine[Any, Any, T]) -> None:
        self._meter = meter
        self._name = name
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, T]:
        meter, name, coroutine = self._meter, self._name, self._coroutine
        error: BaseException | None = None
        result: Any = None
        try:
            while True:
                began_ns = meter.now_ns()
                try:
                    step = coroutine.send if error is None else coroutine.throw
                    awaited = step(result if error is None else error)
                except StopIteration as end:
                    value: T = end.value
                    return value
                finally:
                    meter.ended(name, began_ns)
                result = error = None
                try:
                    result = yield awaited
                except GeneratorExit:
                    raise
                except BaseException as thrown:  # the coroutine gets it
                    error = thrown
        finally:
            coroutine.close()

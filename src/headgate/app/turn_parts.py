"""Measures each callback of the event loop, so that a long turn can be told what it consisted of.

That costs two system calls for each callback. So the broker does it only if it logs long turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from headgate.broker.connection.connection import Connection
from headgate.broker.work.turn_meter import TurnMeter

SCHEDULING: Final = ("call_soon", "call_soon_threadsafe", "call_later", "call_at")
"""Methods of a loop that take a callback. The later ones take a time before it."""

CALLBACKS: Final = (
    "connection_made",
    "get_buffer",
    "buffer_updated",
    "pause_writing",
    "resume_writing",
    "connection_lost",
)
"""Methods of a connection that the loop calls itself."""


def measure_callbacks(loop: asyncio.AbstractEventLoop, meter: TurnMeter) -> None:
    """Measure what ``loop`` is asked to call from now on, for ``meter``."""
    for name in SCHEDULING:
        at = 1 if name in ("call_later", "call_at") else 0
        setattr(loop, name, partial(_schedule, meter, getattr(loop, name), at))


def measured_connection(meter: TurnMeter) -> type[Connection]:
    """A class of connections whose callbacks are measured."""
    methods = {name: _timed_method(meter, name) for name in CALLBACKS}
    return type("MeasuredConnection", (Connection,), methods)


def _schedule(
    meter: TurnMeter, schedule: Callable[..., Any], at: int, *arguments: Any, context: Any = None
) -> Any:
    callback = arguments[at]
    timed = partial(_call, meter, name_of(callback), callback)
    rest = arguments[at + 1 :]
    return schedule(*arguments[:at], timed, *rest, context=context)


def _call(meter: TurnMeter, name: str, callback: Callable[..., Any], *arguments: Any) -> None:
    began_ns = meter.part_begins()
    try:
        callback(*arguments)
    finally:
        meter.part_ended(name, began_ns)


def _timed_method(meter: TurnMeter, name: str) -> Callable[..., Any]:
    method = getattr(Connection, name)

    def timed(self: Connection, *arguments: Any) -> Any:
        began_ns = meter.part_begins()
        try:
            return method(self, *arguments)
        finally:
            meter.part_ended(f"Connection.{name}", began_ns)

    return timed


def name_of(callback: Any) -> str:
    """What a callback is, for a reader of the code."""
    while isinstance(callback, partial):
        callback = callback.func
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        what = f"task {getattr(task.get_coro(), '__qualname__', 'of another kind')}"
        named = task.get_name()
        return what if named.startswith("Task-") else f"{what} of {named}"
    return str(getattr(callback, "__qualname__", type(callback).__name__))

"""The requests of one connection that the application is at work on, also once their client has
left.

A request is carried out to its end whether its client waits or not: what it changes may be half
done. So it counts until then. Else a client that sends requests and leaves would have as many
carried out at the same time as it likes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from headgate.broker.http_memory import HttpMemory

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

TURN_EXTENSION: Final = "headgate.turn"
"""The extension of a request's scope that a request awaits before it goes on with its head, when it
has waited for something for which hundreds may wait."""

_NO_MEMORY: Final = "asked for by a bound on memory"


class ServedRequests:
    """What the application works on for one connection. Stands for the connection in
    :class:`HttpMemory` when that has ended."""

    __slots__ = ("_address", "_memory", "_tasks")

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._memory: HttpMemory | None = None
        """Where it counts when the client has left."""
        self._address = ""

    def watched(
        self,
        app: ASGI3Application,
        further: Callable[[int], Awaitable[None]] | None = None,
        starts: int = 1,
    ) -> ASGI3Application:
        """The same application, which is known to be at work while it is. It gets the end of a body
        when ``further`` has returned; an extension gives it such a turn for the whole head, which
        took so many ``starts``."""

        async def served(scope: Any, receive: Any, send: Any) -> None:
            async def receive_in_turn() -> Any:
                message = await receive()
                is_end = message["type"] == "http.request" and not message.get("more_body", False)
                if is_end and further is not None:
                    await further(1)
                return message

            if further is not None:
                again = partial(further, starts)
                scope.setdefault("extensions", {})[TURN_EXTENSION] = {"call": again}
            task = asyncio.current_task()
            if task is not None:
                self._tasks.add(task)
            try:
                await app(scope, receive_in_turn, send)
            except asyncio.CancelledError as cancelled:
                if cancelled.args != (_NO_MEMORY,):
                    raise  # nobody reads an answer, so nothing is to be said about the other one
            finally:
                self._tasks.discard(cast(Any, task))
                self._settle()

        return served

    def leave(self, memory: HttpMemory, address: str, held_bytes: int) -> bool:
        """The connection has ended. Returns whether the application is still at work: then its
        request goes on to count, with what it holds, and ends by itself."""
        if not self._tasks:
            return False
        self._memory, self._address = memory, address
        memory.hold(self, held_bytes, address)
        return True

    def end_for_memory(self, _: str) -> None:
        """Give up what nobody waits for, because all connections hold too much."""
        for task in list(self._tasks):
            task.cancel(_NO_MEMORY)

    def _settle(self) -> None:
        memory = self._memory
        if memory is not None and not self._tasks:
            self._memory = None
            memory.hold(self, 0, self._address)
            memory.end(self._address)

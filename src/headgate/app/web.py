"""The web port: uvicorn in the broker's event loop, before the admin API and ``/metrics``."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import msgspec
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.app.entry_turns import ACCEPTED_PER_TURN, Entrance
from headgate.app.http_bounds import BoundedHttpProtocol
from headgate.app.http_connections import HttpConnections
from headgate.app.http_turns import HttpTurns
from headgate.app.listeners import BACKLOG_CONNECTIONS_MAX
from headgate.base.errors import InvariantError, invariant
from headgate.base.texts import printable
from headgate.base.web_server import WEB_SERVER
from headgate.broker.connection.listener_handles import handles_of
from headgate.broker.http_memory import HttpMemory
from headgate.broker.work.turn_meter import TurnMeter

KEEP_ALIVE_S = 30
"""How long an idle HTTP connection is kept open."""

_PATH_SHOWN_MAX = 200
"""Characters of a path in the name of a long turn."""

GRACEFUL_CLOSE_S = 2
"""How long requests in progress may take to finish when the broker closes."""

IDLE_CLOSE_S = 1.5
"""How long clients that asked nothing may take to end TLS then. Those that keep a connection for
later do not look whether the broker ends it."""


class WebApp:
    """Routes a request by its path: to that path's application, or else to the main one."""

    def __init__(
        self,
        main: ASGIApp,
        by_path: Mapping[str, ASGIApp],
        on_bug: Callable[[BaseException], None],
        meter: TurnMeter | None = None,
    ) -> None:
        """``by_path`` has exact paths, which a slash at their end does not change.

        ``on_bug`` receives a broken invariant, which must end the process. ``meter`` measures how
        long requests hold the loop.
        """
        self._main = main
        self._by_path = by_path
        self._on_bug = on_bug
        self._meter = meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = scope.get("path", "").rstrip("/")
        app = self._by_path.get(path)
        if app is None:
            app = self._main
        elif path != scope["path"]:
            scope = {**scope, "path": path}
        has_begun = False

        async def send_noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            if self._meter is None:
                await app(scope, receive, send_noted)
            else:
                served = _served(app, scope, receive, send_noted)
                await self._meter.measured(
                    f"a request for {printable(path[:_PATH_SHOWN_MAX])}", served
                )
        except Exception as error:
            if isinstance(error, InvariantError):
                self._on_bug(error)
            if not has_begun:
                await _fail(send, error)
            raise


async def _fail(send: Send, error: Exception) -> None:
    """Answer a request whose application failed before it answered."""
    reason = f"Unexpected {type(error).__name__}; the broker's log has more"
    body = msgspec.json.encode({"reason": reason})
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 500, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _served(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    await app(scope, receive, send)


class _Server(uvicorn.Server):
    """Uvicorn without signal handlers, which are the process's, and with an awaitable start."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


class WebServer:
    """An open web port."""

    def __init__(
        self, server: _Server, task: asyncio.Task[None], entrance: Entrance | None
    ) -> None:
        """For :meth:`start` only."""
        self._server = server
        self._task = task
        self._entrance = entrance

    @classmethod
    async def start(
        cls,
        app: ASGIApp,
        listener: socket.socket,
        admit: Callable[[asyncio.BaseTransport], bool] = lambda _: True,
        memory: HttpMemory | None = None,
        connections: HttpConnections | None = None,
        entrance: Entrance | None = None,
        turns: HttpTurns | None = None,
        accepted_per_turn: int = ACCEPTED_PER_TURN,
    ) -> WebServer:
        """Serve ``app`` on a listening socket, and close the socket with the server. A connection
        that ``admit`` rejects is ended at once. ``memory`` bounds what all requests hold,
        ``connections`` their number, ``turns`` what they have of each turn of the loop; the ports
        of one loop share these. With ``entrance`` each connection begins with an entry of its.
        So many are accepted in an iteration of the loop."""
        if turns is None:
            turns = HttpTurns(asyncio.get_running_loop(), time.perf_counter)
        protocol = type(
            "Http",
            (BoundedHttpProtocol,),
            {
                "admit": staticmethod(admit),
                "memory": memory,
                "others": connections,
                "turns": turns,
            },
        )

        def after_entry(**arguments: Any) -> asyncio.BaseProtocol:
            invariant(entrance is not None, "an entry needs an entrance")
            return cast(Entrance, entrance).entry(partial(protocol, **arguments))

        config = uvicorn.Config(
            app,
            http=protocol if entrance is None else cast(Any, after_entry),
            log_config=None,
            **WEB_SERVER,
            backlog=BACKLOG_CONNECTIONS_MAX,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=GRACEFUL_CLOSE_S,
        )
        server = _Server(config)
        handles = handles_of(listener, accepted_per_turn)
        task = asyncio.get_running_loop().create_task(server.serve(handles))
        ready = asyncio.get_running_loop().create_task(server.ready.wait())
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            ready.cancel()
            await task
        return cls(server, task, entrance)

    async def close(self) -> None:
        """Accept no more connections, finish requests in progress, end idle connections."""
        self._server.should_exit = True
        if self._entrance is not None:
            self._entrance.close()
        await asyncio.wait({self._task}, timeout=IDLE_CLOSE_S)
        for connection in list(self._server.server_state.connections):
            cast(BoundedHttpProtocol, connection).end_if_idle()
        await self._task

"""Answers the requests of the page from the tables. It only reads.

``Host`` must be a name of this machine or an IP address, against DNS rebinding. There is no CORS
header, so that no foreign page reads an answer.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.base.errors import InputError
from headgate.base.web_hosts import OWN_HEADERS, HostNames, host_without_port
from headgate.page.app import PageApp
from headgate.page.files import PageFile
from headgate.pipeline.output.rows import plain_value
from headgate.pipeline.serve.history import History
from headgate.pipeline.store.table_store import os_error_text

logger = logging.getLogger("headgate.pipeline.serve")

PREFIX: Final = "/admin/v2/headgate/history"

READS_MAX: Final = 2
"""Answers that are read at once: each may take the memory of one report."""
WAIT_S: Final = 10.0
"""How long a request waits for its turn; then it is refused, and the page asks again."""

Answer = Callable[[Mapping[str, str]], dict[str, Any]]


def history_app(
    history: History, files: Mapping[str, PageFile], names: HostNames, wait_s: float = WAIT_S
) -> ASGIApp:
    """The page and its answers."""
    turns = threading.BoundedSemaphore(READS_MAX)
    routes = [
        Route(f"{PREFIX}{path}", _endpoint(answer, turns, wait_s))
        for path, answer in (
            ("", history.about),
            ("/episodes", history.episodes),
            ("/episode", history.episode),
            ("/timelines", history.timelines),
            ("/timeline", history.timeline),
            ("/forecasts", history.forecasts),
            ("/forecast", history.forecast),
            ("/backtests", history.backtests),
        )
    ]
    rest = Starlette(
        routes=routes,
        exception_handlers={
            InputError: _refused,
            HTTPException: _refused,
            OSError: _unread,
            Exception: _failed,
        },
    )
    return HostGuard(PageApp(files, rest), names)


def _endpoint(
    answer: Answer, turns: threading.BoundedSemaphore, wait_s: float
) -> Callable[[Request], Response]:
    # Starlette runs it in a thread, because it is no coroutine.
    def endpoint(request: Request) -> Response:
        if not turns.acquire(timeout=wait_s):
            return _json({"reason": "Other requests are being answered; ask again"}, 503)
        try:
            return _json(answer(request.query_params))
        finally:
            turns.release()

    return endpoint


def _json(value: Any, status: int = 200) -> Response:
    # Infinite values, such as the use of a limit of 0, become null.
    body = json.dumps(plain_value(value), allow_nan=False, separators=(",", ":"))
    return Response(body, status, media_type="application/json")


async def _refused(_: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return _json({"reason": error.detail}, error.status_code)
    return _json({"reason": str(error)}, 400)


async def _unread(_: Request, error: Exception) -> Response:
    """A file is gone that a compaction replaced and vacuumed meanwhile, or S3 does not answer."""
    text = os_error_text(error) if isinstance(error, OSError) else str(error)
    return _json({"reason": f"The tables cannot be read now ({text}); ask again"}, 503)


async def _failed(_: Request, error: Exception) -> Response:
    return _json(
        {"reason": f"Unexpected {type(error).__name__}; the command's output has more"}, 500
    )


class HostGuard:
    """An ASGI application that refuses requests for foreign hosts, and adds headers that keep
    foreign pages out."""

    def __init__(self, app: ASGIApp, names: HostNames) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""

        async def send_own(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = [*message.get("headers", ())]
                have = {name for name, _ in given}
                missing = [header for header in OWN_HEADERS if header[0] not in have]
                message = {**message, "headers": [*given, *missing]}
            await send(message)

        refusal = host_refusal(scope, self._names)
        if refusal is None:
            await self._app(scope, receive, send_own)
        else:
            await refusal(scope, receive, send_own)


def host_refusal(scope: Scope, names: HostNames) -> Response | None:
    """The response to a request that names another host, or None; also with two hosts or none."""
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    if len(hosts) != 1:
        return _json({"reason": f"A request has one Host header: this one has {len(hosts)}"}, 400)
    if not names.has(host_without_port(hosts[0])):
        return _json(
            {
                "reason": f"Host {hosts[0][:80]!r} is not a name of this machine, so a foreign "
                "page may have sent this. If it is one, use its IP address"
            },
            421,
        )
    return None

"""A server with the options of every web port, over a real socket."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn

from headgate.base.web_server import WEB_SERVER

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 9.9.9.9\r\nConnection: close\r\n\r\n"


async def _told(scopes: list[dict[str, Any]]) -> bytes:
    async def app(scope: Any, _receive: Any, send: Any) -> None:
        scopes.append(scope)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, **WEB_SERVER))
        serving = asyncio.create_task(server.serve([listening]))
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        writer.write(REQUEST)
        answer = await reader.read()
        writer.close()
        server.should_exit = True
        await serving
    return answer


def test_the_application_gets_the_peer_and_the_client_no_name_of_the_server() -> None:
    scopes: list[dict[str, Any]] = []
    answer = asyncio.run(asyncio.wait_for(_told(scopes), 20))
    assert answer.startswith(b"HTTP/1.1 204")
    assert b"server:" not in answer.lower()
    # No scope of a start of the application, which it need not know.
    assert [scope["type"] for scope in scopes] == ["http"]
    assert scopes[0]["client"][0] == "127.0.0.1"

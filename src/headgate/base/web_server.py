"""What every web port of Headgate asks of uvicorn, its HTTP server."""

from __future__ import annotations

from typing import Final, Literal, TypedDict


class WebServerOptions(TypedDict):
    """Options of ``uvicorn.Config``, by their names there."""

    ws: Literal["none"]
    lifespan: Literal["off"]
    interface: Literal["asgi3"]
    access_log: bool
    proxy_headers: bool
    server_header: bool


WEB_SERVER: Final = WebServerOptions(
    ws="none",
    lifespan="off",
    interface="asgi3",
    access_log=False,
    # Such headers would let anybody claim another address.
    proxy_headers=False,
    server_header=False,
)
"""No WebSocket, no start and end of the application, no trust in headers of proxies."""

"""A simulated Headgate broker that is asked as if it were Apache Pulsar.

Its measured account is then the answer against which an inferred one is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from headgate.admin.app import AdminApp
from headgate.agent.transport import RawReply
from headgate.facade.admin_facade import AdminFacade
from headgate.testing.world import World

VERSION: Final = "4.0.8"
"""What it says that it is."""
OWN: Final = "/admin/v2/headgate/"
"""Routes that Pulsar does not have."""

_VERSION_PATH: Final = "/admin/v2/brokers/version"


class BrokerTransport:
    """A :class:`headgate.agent.transport.Transport` to the running broker of a world.

    A request runs the world until it is answered, so it belongs outside of the world's loop.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    def get(
        self,
        url: str,
        headers: Mapping[str, str],  # noqa: ARG002
        timeout_s: float,  # noqa: ARG002
        bytes_max: int = 0,  # noqa: ARG002
    ) -> RawReply:
        where = urlsplit(url)
        if where.path == _VERSION_PATH:
            return RawReply(200, {"content-type": "text/plain"}, VERSION.encode())
        if where.path.startswith(OWN):
            return RawReply(404, {"content-type": "text/html"}, b"<html>Not Found</html>")
        world = self._world
        app = AdminApp(AdminFacade(world.broker, world.observer), world.clock)
        return world.run(world.ask(_get(app, where.path, where.query)))

    def close(self) -> None:
        """Nothing is open."""


async def _get(app: AdminApp, path: str, query: str) -> RawReply:
    """One request to an ASGI application."""
    sent: list[MutableMapping[str, Any]] = []
    scope: MutableMapping[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [],
        "server": ("127.0.0.1", 8080),
        "client": ("127.0.0.1", 1),
        "scheme": "http",
    }

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0]
    names = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return RawReply(start["status"], names, b"".join(m.get("body", b"") for m in sent[1:]))

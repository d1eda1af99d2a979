"""``GET /metrics`` over ASGI, without a socket."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.applications import Starlette

from headgate.telemetry.route import CONTENT_TYPE, WRITE_BYTES, MetricsEndpoint, metrics_route
from headgate.testing import World
from tests.unit.denying import Deny
from tests.unit.telemetry.support import publish, read_page


async def call(app: Any, method: str = "GET", path: str = "/metrics") -> tuple[Any, ...]:
    """Status, headers and body."""
    sent: list[dict[str, Any]] = []
    asked = False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if asked:
            await asyncio.Event().wait()
        asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "method": method,
        "path": path, "raw_path": path.encode(), "query_string": b"", "headers": [],
        "http_version": "1.1", "scheme": "http", "root_path": "", "server": ("h", 1),
    }  # fmt: skip
    await app(scope, receive, send)
    body = b"".join(m.get("body", b"") for m in sent if m["type"] == "http.response.body")
    headers = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
    return sent[0]["status"], headers, body


def test_a_scrape() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        await publish(world, 2)
        app = Starlette(routes=[metrics_route(broker)])
        status, headers, body = await call(app)
        assert status == 200
        assert headers["content-type"] == CONTENT_TYPE
        assert int(headers["content-length"]) == len(body) < WRITE_BYTES
        types, _ = read_page(body.decode())
        assert types["pulsar_topics_count"] == "gauge"
        assert (await call(app, "POST"))[0] == 405
        assert (await call(app, "HEAD"))[2] == b""

    with World() as world:
        world.run(scenario(world))


def test_a_scrape_is_asked_about_as_every_other_request() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        broker.authorizer = deny = Deny()
        app = Starlette(routes=[metrics_route(broker)])
        status, _, body = await call(app)
        assert (status, body) == (403, b"Client is not authorized to perform metrics.read")
        assert deny.asked == [("", "metrics.read", "")]

    with World() as world:
        world.run(scenario(world))


def test_scrapes_at_once_share_a_page_and_later_ones_get_a_new_one() -> None:
    async def scenario(world: World) -> None:
        endpoint = MetricsEndpoint(await world.start())
        first, second = await asyncio.gather(endpoint.page(), endpoint.page())
        assert first is second
        await asyncio.sleep(0)
        assert await endpoint.page() is not first

    with World() as world:
        world.run(scenario(world))


def test_a_scrape_that_gives_up_leaves_the_others_their_page() -> None:
    async def scenario(world: World) -> None:
        endpoint = MetricsEndpoint(await world.start())
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(endpoint.page()) for _ in range(2)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        assert b"pulsar_broker_topics_count" in b"".join(await tasks[1])

    with World() as world:
        world.run(scenario(world))

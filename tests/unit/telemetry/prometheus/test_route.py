"""``GET /metrics`` over ASGI, without a socket."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import logging
import random
import weakref
from typing import Any

import pytest
from starlette.applications import Starlette

from headgate.base.units import MIB
from headgate.broker.service import Broker
from headgate.policy.access_rules import METRICS_REFUSED
from headgate.telemetry.prometheus import route
from headgate.telemetry.prometheus.compressed import Compressed
from headgate.telemetry.prometheus.route import (
    CODINGS_MAX,
    CONTENT_TYPE,
    LATE_S,
    REST_PARTS,
    REST_S_MAX,
    WRITE_BYTES,
    MetricsEndpoint,
    metrics_route,
    takes_gzip,
)
from headgate.telemetry.prometheus.shown_topics import TopicChoice
from headgate.testing import World
from tests.unit.denying import Deny
from tests.unit.telemetry.support import publish, read_page


async def call(
    app: Any, method: str = "GET", path: str = "/metrics", encoding: str = ""
) -> tuple[Any, ...]:
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
        "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": [(b"accept-encoding", encoding.encode())] if encoding else [],
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
        status, headers, body = await call(app, "POST")
        assert (status, headers["allow"]) == (405, "GET, HEAD")
        assert json.loads(body) == {"reason": "Method POST is not allowed here. Allowed: GET, HEAD"}
        assert (await call(app, "HEAD"))[2] == b""

    with World() as world:
        world.run(scenario(world))


def test_a_scrape_is_asked_about_as_every_other_request(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        broker.authorizer = deny = Deny()
        app = Starlette(routes=[metrics_route(broker)])
        status, headers, body = await call(app)
        assert (status, headers["content-type"]) == (401, "application/json")
        assert json.loads(body) == {"reason": METRICS_REFUSED}
        assert deny.asked == [("", "metrics.read", "", "")]
        assert broker.counts.unauthorized == 1

    with World() as world, caplog.at_level(logging.INFO, "headgate.audit"):
        world.run(scenario(world))
    assert '"operation":"metrics.read"' in caplog.text
    assert '"result":"refused","status":401' in caplog.text


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
        assert b"pulsar_broker_topics_count" in b"".join((await tasks[1]).as_text())

    with World() as world:
        world.run(scenario(world))


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ("", False),
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("*", True),
        ("x-gzip", True),
        ("identity", False),
        ("gzip; q=0", False),
        ("gzip;q=0.000, deflate", False),
        ("gzipped", False),
        ("," * (CODINGS_MAX - 1) + "gzip", True),
        ("," * CODINGS_MAX + "gzip", False),  # thousands of them would take milliseconds
    ],
)
def test_who_takes_gzip(accepted: str, expected: bool) -> None:
    assert takes_gzip(accepted) is expected


def test_a_scrape_is_compressed_for_who_takes_it() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        await publish(world, 2)
        app = Starlette(routes=[metrics_route(broker)])
        _, plain_headers, plain = await call(app)
        _, headers, packed = await call(app, encoding="gzip")
        assert headers["content-encoding"] == "gzip"
        assert headers["vary"] == plain_headers["vary"] == "Accept-Encoding"
        assert "content-encoding" not in plain_headers
        assert int(headers["content-length"]) == len(packed) < len(plain) / 3
        assert read_page(gzip.decompress(packed).decode())[0] == read_page(plain.decode())[0]
        _, headers, body = await call(app, "HEAD", encoding="gzip")
        assert body == b""
        assert int(headers["content-length"]) > 0

    with World() as world:
        world.run(scenario(world))


def slow_making(seconds: float) -> None:
    """Have a page take so long to be made."""
    make = route.render

    async def slowly(broker: Broker, choice: TopicChoice) -> Compressed:
        await asyncio.sleep(seconds)
        return await make(broker, choice)

    route.render = slowly  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def _render(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route, "render", route.render)


def test_a_scrape_does_not_wait_longer_than_it_may() -> None:
    """``metricsServletTimeoutMs``: the scrape ends, the page does not; the next scrape gets it."""

    async def scenario(world: World) -> None:
        broker = await world.start()
        app = Starlette(routes=[metrics_route(broker)])
        slow_making(3.0)
        status, headers, body = await call(app)
        assert (status, headers["content-type"]) == (503, "application/json")
        assert "metricsServletTimeoutMs=2000" in json.loads(body)["reason"]
        await asyncio.sleep(1.5)
        assert (await call(app))[0] == 200
        broker.settings.set("metricsServletTimeoutMs", "0")
        await asyncio.sleep(REST_S_MAX + 5)
        assert (await call(app))[0] == 200

    with World(settings={"metricsServletTimeoutMs": "2000"}) as world:
        world.run(scenario(world))


@pytest.mark.parametrize("ends", ["at the broker", "at its client"])
def test_a_page_that_no_scrape_waited_for_is_kept_for_the_next_one(ends: str) -> None:
    """Else scrapes once a minute would never get a page that takes longer than they wait."""
    connected = True

    async def scenario(world: World) -> None:
        broker = await world.start()
        endpoint = MetricsEndpoint(broker)
        slow_making(12.0)
        if ends == "at the broker":
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(endpoint.page(), 10)
        else:
            nonlocal connected
            first = asyncio.ensure_future(endpoint.page(lambda: connected))
            await asyncio.sleep(10)
            connected = False
            await first
        await asyncio.sleep(50)
        late = await asyncio.wait_for(endpoint.page(), 0.1)
        assert late is not await endpoint.page()  # only once, as it is old
        await asyncio.sleep(REST_S_MAX)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(endpoint.page(), 1)
        await asyncio.sleep(12)
        assert endpoint._late is not None
        await asyncio.sleep(LATE_S)
        assert endpoint._late is None

    with World() as world:
        world.run(scenario(world))


def test_a_page_that_took_long_is_given_again_for_a_while() -> None:
    async def scenario(world: World) -> None:
        endpoint = MetricsEndpoint(await world.start())
        slow_making(1.0)
        first = await endpoint.page()
        await asyncio.sleep(REST_PARTS - 0.5)
        assert await endpoint.page() is first
        await asyncio.sleep(1)
        second = await endpoint.page()
        assert second is not first
        await asyncio.sleep(REST_PARTS - 0.5)
        assert await endpoint.page() is second

    with World() as world:
        world.run(scenario(world))


def test_pages_are_held_by_who_reads_them_and_the_last_two_at_most() -> None:
    async def scenario(world: World) -> None:
        endpoint = MetricsEndpoint(await world.start())
        slow_making(1.0)
        pages = []
        for _ in range(4):
            pages.append(await endpoint.page())
            await asyncio.sleep(REST_S_MAX)
        assert [page.is_closed for page in pages] == [True, True, False, False]
        assert endpoint._latest is None
        held = weakref.ref(pages.pop())
        gc.collect()
        assert held() is None

    with World() as world:
        world.run(scenario(world))


def test_who_reads_too_slowly_is_cut_off() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        await publish(world, 2)
        endpoint = MetricsEndpoint(broker)
        page = await endpoint.page()
        cut = asyncio.Event()
        streaming = route._stream(page, page.as_text(), cut.set)
        page.close()
        reading = asyncio.ensure_future(anext(streaming))
        await asyncio.wait_for(cut.wait(), 1)
        await asyncio.sleep(1)
        assert not reading.done()
        reading.cancel()

    with World() as world:
        world.run(scenario(world))


def test_the_pages_of_20_000_topics_fit_into_32_mib() -> None:
    """Two of them, which is what slow readers can hold; worked out from some topics' size."""
    topics, promised = 100, 20_000

    async def scenario(world: World) -> None:
        broker = await world.start()
        client, chance = await world.connect(), random.Random(7)
        for number in range(topics):
            name = f"persistent://public/default/orders-{number}"
            producer = await client.producer(name)
            await client.subscribe(name, "billing")
            for _ in range(chance.randrange(4)):
                await producer.send(chance.randbytes(chance.randrange(1, 3_000)))
        page = await MetricsEndpoint(broker).page()
        text = b"".join(page.as_text()).decode()
        assert all(f'/orders-{number}"' in text for number in range(topics))
        assert 2 * page.gzip_bytes * promised <= 32 * MIB * topics

    with World() as world:
        world.run(scenario(world))

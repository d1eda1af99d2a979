"""Backlogs with known causes on a broker in virtual time, behind a real HTTP server.

The broker, its disk, its clients and its clock are of the testing kit, so that every answer is the
same in each run and an hour costs seconds. A browser needs a socket: a small server hands each
request to the one thread that plays the world.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import quote

from starlette.types import ASGIApp

from headgate.admin.app import AdminApp
from headgate.facade.admin_facade import AdminFacade
from headgate.page.app import PREFIX, PageApp
from headgate.page.files import page_files
from headgate.testing import SimClient, SimConsumer, World
from headgate.wire.codes import SubscriptionType
from tests.unit.admin.client import Answer, ask_async, encode

T = TypeVar("T")

BASE: Final = "/admin/v2/persistent/public/default"
HOSTILE: Final = "<img src=x onerror=alert(1)>"
"""A name that does harm where it is not text."""
TICK_S: Final = 0.1
PLAYED_S: Final = 120
TTL_S: Final = 7_200
"""Of all topics, set by their namespace; nothing becomes so old."""
ANSWER_LIMIT_S: Final = 60.0
FILES_S: Final = 3_600
"""For how long a browser keeps the files of the page."""


@dataclass(frozen=True)
class Backlog:
    """One topic with one subscription, what feeds it and what reads it."""

    topic: str
    publish_per_s: int
    reads_per_s: int | None
    """How fast its consumer acknowledges; None: there is no consumer."""
    queue: int = 100
    verdict: str = "NONE"
    policies: Sequence[tuple[str, Any]] = ()
    """Routes below the topic, and what is sent there."""
    subscriptions: Sequence[str] = ("orders",)
    size_bytes: int = 200


def _rate(messages: int) -> dict[str, int]:
    return {"dispatchThrottlingRateInMsg": messages, "ratePeriodInSecond": 1}


BACKLOGS: Final = (
    Backlog("slow-consumer", 20, 8, 10, "CONSUMER"),
    Backlog("never-acknowledged", 10, 0, 50, "CONSUMER"),
    Backlog("nobody-reads", 20, None, verdict="NO_CONSUMER"),
    Backlog("subscription-limit", 20, 100, 100, "THROTTLED_SUBSCRIPTION",
            [("subscriptionDispatchRate", _rate(10))]),
    Backlog("topic-limit", 20, 100, 100, "THROTTLED_TOPIC", [("dispatchRate", _rate(15))],
            ("billing", "shipping")),
    Backlog("healthy", 20, 100),
    Backlog("quota-exceeded", 20, None, verdict="NO_CONSUMER", policies=[
        ("backlogQuota?backlogQuotaType=destination_storage",
         {"limitSize": 300_000, "policy": "consumer_backlog_eviction"})]),
    Backlog("publish-limit", 20, 100, policies=[
        ("publishRate", {"publishThrottlingRateInMsg": 5, "publishThrottlingRateInByte": -1})]),
    Backlog(HOSTILE, 5, None, verdict="NO_CONSUMER", subscriptions=(HOSTILE,)),
)  # fmt: skip


LIMITED: Final = next(each for each in BACKLOGS if each.topic == "subscription-limit")


class Scene:
    """A world that one thread plays, and the URL of its admin port."""

    def __init__(
        self,
        build: Callable[[World], Coroutine[Any, Any, None]],
        guard: Callable[[ASGIApp], ASGIApp] = lambda app: app,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """``build`` fills the started world; time passes in it as in any coroutine of a world.
        ``guard`` gives what stands before the admin API, but not before the page. ``settings`` are
        the broker's."""
        self._guard = guard
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="world")
        self.requests: list[tuple[str, str]] = []
        """Method and path with query of each request, in order."""
        self.is_reachable = True
        """If False, the server ends each connection without an answer, as a broker that is gone."""
        self.world = self._do(lambda: World(settings=settings))
        self._app = self._do(self._start)
        self.play(build)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def _do(self, work: Callable[..., T], *arguments: Any) -> T:
        return self._thread.submit(work, *arguments).result(10 * ANSWER_LIMIT_S)

    def _start(self) -> PageApp:
        broker = self.world.run(self.world.start())
        facade = AdminFacade(broker, self.world.observer)
        self._admin = AdminApp(facade, self.world.clock, broker.audit)
        return PageApp(page_files(), self._guard(self._admin))

    def play(self, build: Callable[[World], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine of the world to its end."""
        return self._do(lambda: self.world.run(build(self.world)))

    def ask(self, method: str, path: str, body: bytes = b"", headers: Sequence[Any] = ()) -> Answer:
        """One request to the admin port."""
        self.requests.append((method, path))
        more = {"headers": list(headers)}
        return self.play(lambda world: world.ask(ask_async(self._app, method, path, body, more)))

    async def must(self, method: str, path: str, body: Any = None) -> None:
        """A request of the world's own that has to be carried out."""
        answer = await self.world.ask(ask_async(self._admin, method, path, encode(body)))
        assert answer.status < 300, (path, answer.body)

    def close(self) -> None:
        """End the server, the world and its thread."""
        self._server.shutdown()
        self._server.server_close()
        self._do(self.world.close)
        self._thread.shutdown()


class Answering(Protocol):
    """What answers the requests of a browser."""

    is_reachable: bool

    def ask(self, method: str, path: str, body: bytes, headers: Sequence[Any]) -> Answer:
        """One request."""
        ...


def _cached(path: str, name: str, value: str) -> str:
    """The value of a header. No test changes the page's files, so a browser need not ask for each
    of them at each page whether it has changed."""
    is_file = path.startswith(PREFIX) and path != PREFIX
    return f"max-age={FILES_S}" if is_file and name == "cache-control" else value


def handler(scene: Answering) -> type[BaseHTTPRequestHandler]:
    """Hands the requests of a small HTTP server to a scene."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if not scene.is_reachable:
                self.close_connection = True
                return
            headers = [(n.lower().encode(), v.encode()) for n, v in self.headers.items()]
            answer = scene.ask(self.command, self.path, body, headers)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                if name != "content-length":
                    self.send_header(name, _cached(self.path, name, value))
            if answer.status not in (204, 304):
                self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: Any) -> None:
            """Nothing: ``requests`` of the scene has them."""

    # The names that the standard library asks for.
    for method in ("GET", "PUT", "POST", "DELETE"):
        setattr(Handler, f"do_{method}", Handler._serve)
    return Handler


def ten_situations() -> Scene:
    """The backlogs above, after some minutes."""
    scene = Scene(nothing)
    scene.play(lambda world: _build(scene, world))
    return scene


def limited_backlog(guard: Callable[[ASGIApp], ASGIApp]) -> Scene:
    """One backlog that a limit of its subscription holds, behind ``guard``."""
    scene = Scene(nothing, guard)
    scene.play(lambda world: _build(scene, world, [LIMITED]))
    return scene


def many_subscriptions(topics: int, each: int) -> Scene:
    """So many topics with so many subscriptions each, all of which have a backlog."""
    scene = Scene(nothing)

    async def build(world: World) -> None:
        client = await world.connect()
        for number in range(topics):
            topic = f"busy-{number:03}"
            producer = await client.producer(f"persistent://public/default/{topic}")
            for name in range(each):
                await scene.must("PUT", f"{BASE}/{topic}/subscription/s{name:03}", "earliest")
            await asyncio.gather(*(producer.send_nowait(b"x" * 100) for _ in range(1 + number)))
        await asyncio.sleep(3)

    scene.play(build)
    return scene


async def nothing(_: World) -> None:
    """An empty broker."""


async def _build(scene: Scene, world: World, backlogs: Sequence[Backlog] = BACKLOGS) -> None:
    client = await world.connect()
    await scene.must("POST", "/admin/v2/namespaces/public/default/messageTTL", TTL_S)
    for backlog in backlogs:
        path = f"{BASE}/{quote(backlog.topic, safe='')}"
        await scene.must("PUT", path)
        for route, body in backlog.policies:
            await scene.must("POST", f"{path}/{route}", body)
        await _begin(world, client, backlog)
    await asyncio.sleep(PLAYED_S)


async def _begin(world: World, client: SimClient, backlog: Backlog) -> None:
    name = f"persistent://public/default/{backlog.topic}"
    for subscription in backlog.subscriptions:
        consumer = await client.subscribe(
            name, subscription, kind=SubscriptionType.SHARED, queue_size=backlog.queue,
            name=f"{backlog.topic}-reader",
        )  # fmt: skip
        if backlog.reads_per_s is None:
            await consumer.close()
        elif backlog.reads_per_s:
            world.loop.create_task(_read(consumer, backlog.reads_per_s))
    world.loop.create_task(_publish(client, name, backlog))


async def _publish(client: SimClient, name: str, backlog: Backlog) -> None:
    producer = await client.producer(name)
    due = 0.0
    number = 0
    while True:
        due += backlog.publish_per_s * TICK_S
        while due >= 1:
            due -= 1
            text = json.dumps({"number": number, "topic": backlog.topic})
            number += 1
            await producer.send_nowait(text.encode().ljust(backlog.size_bytes))
        await asyncio.sleep(TICK_S)


async def _read(consumer: SimConsumer, per_s: int) -> None:
    while True:
        message = await consumer.receive()
        await asyncio.sleep(1 / per_s)
        consumer.ack_nowait(message.position)

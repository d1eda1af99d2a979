"""Any request to any route of the admin API gets an answer, and harms no client.

The whole broker is there, with its log and its metadata, on virtual time. schemathesis makes the
requests from the API's own description, valid ones and others, and checks nothing itself: what
every answer has to be is said here.
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from headgate.admin.app import AdminApp
from headgate.admin.openapi import describe
from headgate.admin.table import ROUTES
from headgate.facade.admin_facade import AdminFacade
from headgate.testing import SimConsumer, SimProducer, World
from tests.sim.admin_requests import Wild, requests, tricks
from tests.unit.admin.client import Answer, ask_async

DOCUMENT: dict[str, Any] = json.loads(msgspec.json.encode(describe(ROUTES, "1")))
ERROR_BYTES_MAX = 8_192
"""An answer that refuses does not repeat what it was sent without end."""
EACH = 6
TOPIC = "persistent://own/quiet/neighbour"
TENANT = b'{"allowedClusters": ["standalone"]}'
NO_BACKUPS = "/admin/v2/headgate/backup"
"""The simulated broker has no files that a backup could hold."""


class Played:
    """A broker that is asked everything, beside a client that must not notice."""

    def __init__(self, world: World) -> None:
        self.world = world
        broker = world.run(world.start())
        facade = AdminFacade(broker, world.observer)
        self.app = AdminApp(facade, world.clock, broker.audit)
        self.producer: SimProducer
        self.consumer: SimConsumer
        self.statuses: dict[int, int] = {}
        world.run(self._begin())

    async def _begin(self) -> None:
        for path, body in (
            ("tenants/own", TENANT), ("namespaces/own/quiet", b""), ("tenants/wild", TENANT),
        ):  # fmt: skip
            answer = await ask_async(self.app, "PUT", f"/admin/v2/{path}", body)
            assert answer.status == 204, answer.body
        client = await self.world.connect()
        self.producer = await client.producer(TOPIC)
        self.consumer = await client.subscribe(TOPIC, "s")
        await self.prepare()

    async def prepare(self) -> None:
        """Make what requests may have deleted."""
        base = "/admin/v2/persistent/public/default"
        for path, body in (
            ("/admin/v2/tenants/public", TENANT),
            ("/admin/v2/namespaces/public/default", b""),
            ("/admin/v2/namespaces/public/empty", b""),
            (f"{base}/orders", b""),
            (f"{base}/split/partitions", b"3"),
            (f"{base}/orders/subscription/s", b'"earliest"'),
        ):
            await ask_async(self.app, "PUT", path, body)

    async def neighbour_is_well(self) -> None:
        """A message still makes its way."""
        position = await self.producer.send(b"fine")
        assert (await self.consumer.receive()).position == position
        await self.consumer.ack(position)

    async def ask(self, wild: Wild) -> None:
        """Send one request and check what came back."""
        answer = await ask_async(self.app, wild.method, wild.path, wild.body)
        self.statuses[answer.status] = self.statuses.get(answer.status, 0) + 1
        check(wild, answer)


def check(wild: Wild, answer: Answer) -> None:
    """What every answer has to be."""
    shown = (wild.method, wild.path[:300], wild.body[:300], answer.status, answer.body[:600])
    assert answer.status < 500 or wild.template.startswith(NO_BACKUPS), shown
    for name, value in answer.headers.items():
        assert value.isprintable(), (shown, name, value)
    assert b"Traceback" not in answer.body, shown
    if answer.status >= 400:
        assert answer.content_type == "application/json", shown
        assert set(answer.json()) == {"reason"}, shown
        assert answer.reason, shown
        assert len(answer.body) < ERROR_BYTES_MAX, shown
    elif answer.body and answer.content_type == "application/json" and not wild.is_trick:
        _check_reply(wild, answer, shown)


def _check_reply(wild: Wild, answer: Answer, shown: Any) -> None:
    content = DOCUMENT["paths"][wild.template][wild.method.lower()]["responses"]["2XX"].get(
        "content"
    )
    assert content is not None, shown
    described_reply = content["application/json"]["schema"]
    if described_reply == {"type": "string"}:
        return  # bare text, which Pulsar calls JSON
    schema = {**described_reply, "components": DOCUMENT["components"]}
    problem = next(jsonschema_rs.validator_for(schema).iter_errors(answer.json()), None)
    assert problem is None, (problem, shown)


@pytest.mark.parametrize("seed", range(1))
def test_any_request_gets_an_answer_as_described(seed: int) -> None:
    with World(seed) as world:
        played = Played(world)

        async def story() -> None:
            for number, wild in enumerate(requests(DOCUMENT, seed, EACH)):
                if number % 50 == 0:
                    await played.prepare()
                    await played.neighbour_is_well()
                await played.ask(wild)

        world.run(story())
        _ends_well(world, played)
    # Requests reach what is behind the checks of names and bodies.
    assert played.statuses[200] > 40
    assert played.statuses[204] > 40


def test_tricks_in_paths() -> None:
    with World(3) as world:
        played = Played(world)

        async def story() -> None:
            for number, wild in enumerate(tricks(DOCUMENT, 5)):
                if number % 200 == 0:
                    await played.prepare()
                    await played.neighbour_is_well()
                await played.ask(wild)

        world.run(story())
        _ends_well(world, played)


def _ends_well(world: World, played: Played) -> None:
    """Nothing is left half done, and what was made is there after a power cut."""
    world.run(played.neighbour_is_well())
    assert world.broker.catalog.in_flight_count == 0
    names = [*world.broker.engine.topics]
    there = [name for name in names if world.broker.catalog.topic(name) is not None]
    assert TOPIC in there
    world.crash()
    world.run(world.start())
    assert [name for name in names if world.broker.catalog.topic(name) is not None] == there

"""A request that waits for others asks for its right again: right before it changes something."""

from __future__ import annotations

import asyncio
import json

import pytest

from headgate.admin.app import AdminApp
from headgate.admin.operations import Operation
from headgate.base.identity import SCOPE_KEY, Identity
from headgate.base.names import NamespaceName, parse_topic
from headgate.base.positions import EARLIEST
from headgate.base.schema_types import CompatibilityStrategy
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.protocol import AtPosition
from headgate.metadata.errors import UnauthorizedError
from headgate.metadata.rows import TenantRow
from headgate.testing import World
from tests.unit.admin.client import Answer, ask_async

NS = NamespaceName("acme", "ns")
TOPIC = parse_topic("persistent://acme/ns/t")
SETTINGS = {"authorizationEnabled": "true", "superUserRoles": "super"}
SUBSCRIPTION = "/admin/v2/persistent/acme/ns/t/subscription/s"
SCHEMA = "/admin/v2/schemas/acme/ns/t/schema"
IN_LINE = 20


class Story(World):
    """A broker with a topic of ten messages, and a subscription with all of them."""

    async def furnish(self) -> None:
        broker = await self.start()
        catalog = broker.catalog
        row = TenantRow(admin_roles=("admin",), allowed_clusters=("standalone",))
        await broker.commit(catalog.plan_create_tenant("acme", row))
        await broker.commit(catalog.plan_create_namespace(NS))
        free = CompatibilityStrategy.ALWAYS_COMPATIBLE
        change = catalog.plan_namespace_policies(NS, schema_compatibility_strategy=free)
        await broker.commit(change)
        await broker.commit(catalog.plan_namespace_grant(NS, "a", frozenset({"consume"})))
        self.facade = AdminFacade(broker, self.observer)
        self.app = AdminApp(self.facade, self.clock)
        topic = await broker.registry.create(TOPIC)
        await self.facade.create_subscription(TOPIC, "s", AtPosition(EARLIEST), {"old": "x"})
        assert topic is not None

    async def ask(self, role: str, method: str, path: str, body: object = None) -> Answer:
        data = b"" if body is None else json.dumps(body).encode()
        return await ask_async(self.app, method, path, data, {SCOPE_KEY: Identity(role)})


def posted(number: int) -> dict[str, object]:
    """A schema of one field."""
    fields = [{"name": f"f{number}", "type": "int"}]
    schema = {"type": "record", "name": "R", "fields": fields}
    return {"type": "AVRO", "schema": json.dumps(schema), "properties": {}}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", SUBSCRIPTION, None),
        ("PUT", f"{SUBSCRIPTION}/properties", {"new": "y"}),
        ("POST", f"{SUBSCRIPTION}/resetcursor/0", None),
        ("POST", f"{SUBSCRIPTION}/resetcursor", "latest"),
        ("POST", f"{SUBSCRIPTION}/skip/1", None),
        ("POST", f"{SUBSCRIPTION}/skip_all", None),
        ("POST", f"{SUBSCRIPTION}/expireMessages/0", None),
        ("POST", f"{SUBSCRIPTION}/expireMessages", "latest"),
    ],
)
def test_a_change_of_a_subscription_behind_others_is_not_made(
    method: str, path: str, body: object
) -> None:
    """Five hundred requests of a role stood in line, and all were carried out after its grant was
    gone."""

    async def story(world: Story) -> None:
        await world.furnish()
        before = [
            asyncio.ensure_future(world.ask("admin", "PUT", f"{SUBSCRIPTION}/properties", {}))
            for _ in range(IN_LINE)
        ]
        await asyncio.sleep(0)
        asked = asyncio.ensure_future(world.ask("a", method, path, body))
        await asyncio.sleep(0)
        broker = world.broker
        await broker.commit(broker.catalog.plan_namespace_grant(NS, "a", frozenset()))
        assert not asked.done()
        subscription = broker.engine.topics[TOPIC.full].subscriptions["s"]
        resets_count, first = subscription.resets_count, subscription.acks.mark_delete
        answer = await asked
        assert (answer.status, not subscription.removed) == (401, True)
        assert [each.status for each in await asyncio.gather(*before)] == [204] * IN_LINE
        assert (subscription.resets_count, subscription.acks.mark_delete) == (resets_count, first)
        assert not subscription.properties

    with Story(7, settings=SETTINGS) as world:
        world.run(story(world))


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_schemas_behind_others_are_not_changed(method: str) -> None:
    """Those of an administrator who was dismissed went on for as long as their comparisons took."""

    async def story(world: Story) -> None:
        await world.furnish()
        asked = [
            asyncio.ensure_future(world.ask("admin", "POST", SCHEMA, posted(number)))
            for number in range(IN_LINE)
        ]
        asked.append(asyncio.ensure_future(world.ask("admin", method, SCHEMA, posted(99))))
        catalog = world.broker.catalog
        await asyncio.sleep(0.005)
        dismissed = TenantRow(allowed_clusters=("standalone",))
        await world.broker.commit(catalog.plan_update_tenant("acme", dismissed))
        before = len(catalog.schemas(TOPIC))
        answers = [answer.status for answer in await asyncio.gather(*asked)]
        assert 0 < before < IN_LINE // 2
        # One may have begun.
        assert before <= len(catalog.schemas(TOPIC)) <= before + 1
        assert answers[before + 1 :] == [401] * (IN_LINE - before)

    with Story(7, settings=SETTINGS) as world:
        world.run(story(world))


def test_a_subscription_is_not_created_once_the_right_is_gone() -> None:
    async def story(world: Story) -> None:
        await world.furnish()

        def check() -> None:
            world.facade.check_allowed(
                Identity("b"), Operation.SUBSCRIPTION_CREATE, TOPIC.full, "n"
            )

        with pytest.raises(UnauthorizedError):
            await world.facade.create_subscription(TOPIC, "n", AtPosition(EARLIEST), {}, check)
        assert world.facade.subscriptions(TOPIC) == ["s"]

    with Story(7, settings=SETTINGS) as world:
        world.run(story(world))

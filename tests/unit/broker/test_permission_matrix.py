"""Every command and every request by every role, raw: no client looks anything up before."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.applications import Starlette

from headgate.admin.app import AdminApp
from headgate.admin.table import ROUTES
from headgate.app.sign_in.issuer_client import UnavailableIssuerError
from headgate.app.sign_in.routes import METHODS, SignInApp
from headgate.base.identity import SCOPE_KEY, Identity
from headgate.base.names import NamespaceName, parse_topic
from headgate.base.positions import EARLIEST
from headgate.broker.connection.connection import Connection
from headgate.facade.admin_facade import AdminFacade
from headgate.metadata.bundles import bundle_of, split_bundles
from headgate.metadata.grants import Action
from headgate.metadata.rows import TenantRow
from headgate.security.code_flow import Client
from headgate.security.sign_ins import SignIns
from headgate.telemetry.prometheus.route import metrics_route
from headgate.testing import RefusedError, SimClient, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, SchemaType, ServerError
from headgate.wire.commands import COMMANDS
from headgate.wire.frame import encode_frame
from headgate.wire.messages import BaseCommand, Schema
from tests.unit.admin.client import Answer, ask_async

MATRIX = Path(__file__).parents[2] / "scenarios" / "authorization" / "matrix.txt"
ROLES = ("nobody", "none", "produce", "consume", "prefix", "other", "admin", "super")
FREE = "free"
METRICS = "GET /metrics"
SIGN_IN = {f"{method} {path}" for path, method in METHODS.items()}
INITIAL = "PRODUCER with an initial subscription"
SETTINGS = {"authorizationEnabled": "true", "superUserRoles": "super"}


def matrix() -> Iterator[tuple[str, tuple[bool, ...] | None]]:
    """Each line with a request, and whether each role may send it; None: it needs no permission."""
    marks: tuple[bool, ...] | None = ()
    for line in MATRIX.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line == FREE:
            marks = None
        elif line[0] in "+-":
            marks = tuple(mark == "+" for mark in line.split())
            assert len(marks) == len(ROLES)
        else:
            yield line, marks


LINES = dict(matrix())


class OpenWorld(World):
    """A world whose connections have the identity that :attr:`next` is when they are made."""

    next = Identity("super")
    accepted: Connection

    def accept(self) -> Connection:
        self.accepted = super().accept()
        self.accepted.identity = self.next
        return self.accepted


def identity(role: str) -> Identity:
    return Identity("" if role == "nobody" else role)


def namespace_of(role: str) -> str:
    return "strict" if role == "prefix" else "ns"


async def furnish(world: World) -> None:
    """The tenants, namespaces, topics, subscriptions and grants that the matrix speaks of."""
    broker = await world.start()
    catalog, clusters = broker.catalog, ("standalone",)
    for tenant, role in (("acme", "admin"), ("rest", "other")):
        row = TenantRow(admin_roles=(role,), allowed_clusters=clusters)
        await broker.commit(catalog.plan_create_tenant(tenant, row))
    grants: dict[str, dict[str, tuple[Action, ...]]] = {
        "ns": {"produce": ("produce",), "consume": ("consume",)},
        "strict": {"prefix": ("consume",)},
    }
    for name, granted in grants.items():
        namespace = NamespaceName("acme", name)
        await broker.commit(catalog.plan_create_namespace(namespace))
        for role, actions in granted.items():
            grant = catalog.plan_namespace_grant(namespace, role, frozenset(actions))
            await broker.commit(grant)
        topic = await broker.registry.create(parse_topic(f"acme/{name}/t"))
        await broker.subscriptions.create(topic, "s", at_ordinal=0, properties={})
    strict = NamespaceName("acme", "strict")
    await broker.commit(catalog.plan_subscription_auth_mode(strict, "Prefix"))


def play(story: Callable[[OpenWorld], Awaitable[None]]) -> None:
    async def whole(world: OpenWorld) -> None:
        await furnish(world)
        await asyncio.wait_for(story(world), 600)

    with OpenWorld(7, settings=SETTINGS) as world:
        world.run(whole(world))


def test_the_matrix_has_every_command_and_every_route_once() -> None:
    commands = {facts.name for facts in COMMANDS.values() if facts.built}
    routes = {f"{route.method} {route.path}" for route in ROUTES}
    assert commands | routes | SIGN_IN | {METRICS, INITIAL} == set(LINES)
    assert len(list(matrix())) == len(LINES)


def path_of(path: str, role: str, *, topic: str = "t", tenant: str = "acme") -> str:
    """A path with its parameters filled in for a role."""
    values = {
        "tenant": tenant, "namespace": namespace_of(role), "topic": topic, "subscription": "s",
        "domain": "persistent", "cluster": "standalone", "name": "allowAutoTopicCreation",
        "value": "true", "role": "someone", "bundle": bundle_of(
            split_bundles(4), f"persistent://acme/{namespace_of(role)}/t"
        ),
    }  # fmt: skip
    filled = re.sub(r"{(\w+)}", lambda match: values.get(match[1], "0"), path)
    if path == "/admin/v2/headgate/permissions":
        filled += f"?operation=topic.stats&role=x&resource=persistent://{tenant}/ns/{topic}"
    return filled


class DeadIssuer:
    """Stands for what asks an issuer."""

    client = Client("https://issuer.example", "page", "https://b/headgate/sign-in/callback")

    async def endpoints(self) -> Any:
        raise UnavailableIssuerError("it is down")


def web(world: World) -> Callable[..., Awaitable[Answer]]:
    """Sends a request to the web port as a role."""
    facade = AdminFacade(world.broker, world.observer)
    admin: Any = AdminApp(facade, world.clock)
    metrics = Starlette(routes=[metrics_route(world.broker)])
    admin = SignInApp(
        cast(Any, DeadIssuer()), SignIns(os.urandom), world.clock, world.broker.audit.note, admin
    )

    async def send(method: str, path: str, role: str) -> Answer:
        app: Any = metrics if path == "/metrics" else admin
        # With this version Starlette does not wait for the client to leave.
        scope = {SCOPE_KEY: identity(role), "asgi": {"spec_version": "2.4"}}
        return await ask_async(app, method, path, b"", scope)

    return send


@pytest.mark.parametrize("line", [line for line in LINES if " /" in line])
def test_every_request_is_answered_to_the_roles_of_the_matrix(line: str) -> None:
    method, path = line.split(" ")
    answers = {}

    async def story(world: OpenWorld) -> None:
        send = web(world)
        for role in ROLES:
            answers[role] = await send(method, path_of(path, role), role)

    play(story)
    allowed = tuple(answers[role].status not in (401, 403) for role in ROLES)
    assert allowed == LINES[line], {
        role: (each.status, each.body) for role, each in answers.items()
    }


def test_refusals_do_not_tell_whether_something_exists() -> None:
    async def story(world: OpenWorld) -> None:
        send = web(world)
        for route in ROUTES:
            for role in ("none", "other"):
                found = await send(route.method, path_of(route.path, role), role)
                if found.status not in (401, 403):
                    continue
                paths = {
                    path_of(route.path, role, topic="absent"),
                    path_of(route.path, role, tenant="absent"),
                }
                for path in paths:
                    missing = await send(route.method, path, role)
                    assert missing.status == found.status
                    shown = missing.reason.replace("absent/", "acme/").replace("[absent]", "[acme]")
                    assert shown.replace("ns/absent", "ns/t") == found.reason

    play(story)


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/admin/v2/namespaces/acme/strict/clearBacklog", "/prefix-own"),
        ("/admin/v2/namespaces/acme/strict/unsubscribe/s", None),
        ("/admin/v2/persistent/acme/strict/t/all_subscription/expireMessages/1", None),
    ],
)
def test_a_request_about_many_subscriptions_needs_the_right_on_each(
    path: str, own: str | None
) -> None:
    """CVE-2026-105938: otherwise it would be a way around the permissions of single ones."""

    async def story(world: OpenWorld) -> None:
        topic = world.broker.engine.topics["persistent://acme/strict/t"]
        await world.broker.subscriptions.create(topic, "prefix-own", at_ordinal=0, properties={})
        send = web(world)
        refused = await send("POST", path, "prefix")
        assert refused.status == 401, refused.body
        assert set(topic.subscriptions) == {"s", "prefix-own"}
        if own is not None:
            assert (await send("POST", path + own, "prefix")).status == 204
        assert (await send("POST", path, "admin")).status == 204

    play(story)


def command_frame(name: str, topic: str, consumer_id: int) -> Callable[[int], bytes]:
    """The request of that name about a topic, or about a consumer of the connection."""
    namespace = topic.rpartition("/")[0]
    made: dict[str, Callable[[int], bytes]] = {
        "PARTITIONED_METADATA": lambda i: frames.partitioned_metadata(i, topic),
        "LOOKUP": lambda i: frames.lookup(i, topic),
        "GET_TOPICS_OF_NAMESPACE": lambda i: frames.get_topics_of_namespace(i, namespace),
        "WATCH_TOPIC_LIST": lambda i: frames.watch_topic_list(i, 93, namespace, "x"),
        "GET_SCHEMA": lambda i: frames.get_schema(i, topic),
        "GET_OR_CREATE_SCHEMA": lambda i: frames.get_or_create_schema(
            i, topic, Schema(name="", type=SchemaType.STRING, schema_data=b"")
        ),
        "PRODUCER": lambda i: frames.producer(i, 90, topic),
        INITIAL: lambda i: initial_producer(i, topic),
        "SUBSCRIBE": lambda i: frames.subscribe(i, 91, topic, "s2"),
        "GET_LAST_MESSAGE_ID": lambda i: frames.get_last_message_id(i, consumer_id),
        "CONSUMER_STATS": lambda i: frames.consumer_stats(i, consumer_id),
        "UNSUBSCRIBE": lambda i: frames.unsubscribe(i, consumer_id),
        "SEEK": lambda i: frames.seek(i, consumer_id, position=EARLIEST),
    }
    return made[name]


def initial_producer(request_id: int, topic: str) -> bytes:
    command = BaseCommand(type=CommandType.PRODUCER)
    command.producer.request_id = request_id
    command.producer.producer_id = 92
    command.producer.topic = topic
    command.producer.initial_subscription_name = "s"
    return encode_frame(command)


async def is_allowed(client: SimClient, make: Callable[[int], bytes]) -> bool:
    """Whether the broker carries a request out, or refuses it for another reason."""
    try:
        await client.request(make)
    except RefusedError as refusal:
        return refusal.code != ServerError.AUTHORIZATION_ERROR
    return True


async def connected(world: OpenWorld, role: str, topic: str) -> tuple[SimClient, int]:
    """A client with a consumer, which has the role from now on; and the id of its consumer."""
    world.next = Identity("super")
    client = await world.connect()
    consumer = await client.subscribe(topic, "s")
    world.accepted.identity = identity(role)
    return client, consumer.consumer_id


@pytest.mark.parametrize(
    "line",
    [
        line
        for line, marks in LINES.items()
        if " /" not in line and marks is not None and line not in ("CONNECT", "PING", "PONG")
    ],
)
def test_every_command_is_carried_out_for_the_roles_of_the_matrix(line: str) -> None:
    allowed = []

    async def story(world: OpenWorld) -> None:
        for role in ROLES:
            topic = f"acme/{namespace_of(role)}/t"
            client, consumer_id = await connected(world, role, topic)
            allowed.append(await is_allowed(client, command_frame(line, topic, consumer_id)))
            assert client.is_open
            client.close()
            await client.lost
            await asyncio.sleep(1)

    play(story)
    assert tuple(allowed) == LINES[line]


def test_every_role_may_connect_and_a_client_without_one_may_not() -> None:
    allowed = []

    async def story(world: OpenWorld) -> None:
        for role in ROLES:
            world.next = identity(role)
            try:
                await world.connect()
            except RefusedError:
                allowed.append(False)
            else:
                allowed.append(True)

    play(story)
    assert tuple(allowed) == LINES["CONNECT"]


def test_commands_about_a_topic_that_does_not_exist_are_refused_alike() -> None:
    async def story(world: OpenWorld) -> None:
        client, _ = await connected(world, "none", "acme/ns/t")
        for name in ("PARTITIONED_METADATA", "LOOKUP", "GET_SCHEMA", "PRODUCER", "SUBSCRIBE"):
            texts = set()
            for topic in ("acme/ns/t", "acme/ns/absent", "acme/absent/t", "absent/ns/t"):
                with pytest.raises(RefusedError) as refusal:
                    await client.request(command_frame(name, topic, 0))
                texts.add(str(refusal.value))
            assert len(texts) == 1
        assert world.broker.catalog.topic("persistent://acme/ns/absent") is None

    play(story)


def test_the_text_about_partitions_is_pulsars() -> None:
    async def story(world: OpenWorld) -> None:
        client, _ = await connected(world, "none", "acme/ns/t")
        with pytest.raises(RefusedError) as refusal:
            await client.partitions("acme/ns/t")
        assert "Client is not authorized to Get Partition Metadata" in str(refusal.value)

    play(story)


def test_explain_names_other_topics_that_wait_only_to_super_users() -> None:
    async def story(world: OpenWorld) -> None:
        catalog = world.broker.catalog
        await world.broker.commit(catalog.plan_create_namespace(NamespaceName("rest", "ns")))
        names = [f"persistent://{rest}/t" for rest in ("acme/ns", "acme/strict", "rest/ns")]
        await world.broker.commit(catalog.plan_setting("dispatchThrottlingRateInMsg", "1"))
        for name in names:
            client = await world.connect()
            await client.subscribe(name, "waits")
            producer = await client.producer(name)
            for _ in range(5):
                await producer.send(b"x")
        path = "/admin/v2/headgate/explain/persistent/acme/ns/t"
        seen = {}
        for role in ("super", "admin", "consume"):
            report = (await web(world)("GET", path, role)).json()
            (limit,) = [one for one in report["limits"] if one["level"] == "broker"]
            waiting = limit["longestWaiting"]
            seen[role] = {(waiter["topic"], waiter["subscription"]) for waiter in waiting}
        own, near, far = ((name, "waits") for name in names)
        hidden = ("another topic", "")
        assert seen["super"] == {own, near, far}
        assert seen["admin"] == {own, near, ("another topic of another tenant", "")}
        assert seen["consume"] == {own, hidden, ("another topic of another tenant", "")}
        # The list of all limits has all names, so it is for super users alone.
        limits = {role: await web(world)("GET", "/admin/v2/headgate/limits", role) for role in seen}
        (limit,) = limits["super"].json()["limits"]
        assert {(each["topic"], each["subscription"]) for each in limit["longestWaiting"]} == {
            own, near, far,
        }  # fmt: skip
        for role in ("admin", "consume"):
            assert limits[role].status in (401, 403)
            assert "longestWaiting" not in str(limits[role].json())

    play(story)

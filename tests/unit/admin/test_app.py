"""Every failure has one shape; nothing unexpected escapes."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from unittest.mock import patch

import pytest
from starlette.requests import Request
from starlette.types import Message

from headgate.admin.app import (
    BODY_BYTES_AT_ONCE,
    CREDENTIALS_REFUSED,
    NAMES_AT_ONCE,
    QUERY_BYTES_MAX,
    QUERY_PARAMETERS_MAX,
    AdminApp,
    raw_path,
)
from headgate.admin.body import BODY_BYTES_MAX
from headgate.admin.routing import Reply, Route
from headgate.admin.table import ROUTES
from headgate.base.bounded_lines import LINES_PER_MINUTE
from headgate.base.errors import InvariantError, StorageError
from headgate.base.identity import LAPSE_KEY, SCOPE_KEY, Identity
from headgate.base.names import parse_topic
from headgate.base.units import NS_PER_MINUTE, NS_PER_MS
from headgate.base.work_owner import WORK_OWNER
from headgate.broker.authorization import ALLOW_ALL
from headgate.facade.admin_facade import CHANGES_MAX, REQUESTS_MAX
from headgate.metadata.catalog import Change
from headgate.metadata.errors import RefusalError
from headgate.metadata.rows import TopicRow
from headgate.policy.access_rules import refusal_of
from tests.unit.admin.client import Answer, ask, ask_async
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import FakeFacade
from tests.unit.denying import Deny

STATS = "/admin/v2/persistent/public/default/t/stats"


def test_unknown_resources_and_methods_have_reasons(api: Ask) -> None:
    assert (api("GET", "/nonsense").status, api("GET", "/nonsense").content_type) == (
        404, "application/json",
    )  # fmt: skip
    answer = api("PATCH", "/admin/v2/tenants/public")
    assert answer.status == 405
    assert answer.reason == "Method PATCH is not allowed here. Allowed: DELETE, GET, POST, PUT"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/admin/v2/tenants/public", "DELETE, GET, POST, PUT"),
        ("DELETE", "/admin/v2/tenants/public?force=true", "GET, POST, PUT"),
        ("GET", "/admin/v2/persistent/public/default/parts/lastMessageId", ""),
    ],
)
def test_a_method_that_is_not_allowed_is_answered_with_those_that_are(
    api: Ask, method: str, path: str, allowed: str
) -> None:
    assert api("PUT", "/admin/v2/persistent/public/default/parts/partitions", 2).status == 204
    answer = api(method, path)
    assert (answer.status, answer.headers["allow"]) == (405, allowed)
    assert answer.reason


def test_other_refusals_have_no_allow(api: Ask) -> None:
    assert "allow" not in api("GET", "/nonsense").headers


def test_no_content_has_neither_body_nor_type(api: Ask) -> None:
    answer = api("PUT", "/admin/v2/persistent/public/default/t")
    assert (answer.status, answer.content_type, answer.body) == (204, "", b"")


def test_a_body_too_long_is_refused(api: Ask) -> None:
    answer = api("PUT", "/admin/v2/tenants/x", b" " * (BODY_BYTES_MAX + 1))
    assert (answer.status, answer.reason) == (
        413, f"The body is too long: {BODY_BYTES_MAX} bytes are allowed",
    )  # fmt: skip


def test_too_many_query_parameters_are_refused(api: Ask) -> None:
    query = "&".join(f"a{number}=1" for number in range(QUERY_PARAMETERS_MAX + 1))
    assert api("GET", f"/admin/v2/tenants?{query}").status == 400


def test_a_query_too_long_is_refused(api: Ask) -> None:
    """One of 64 KiB took 28 ms to read, also for clients without credentials."""
    answer = api("GET", "/admin/v2/brokers/ready?a=" + "%" * QUERY_BYTES_MAX)
    assert (answer.status, answer.reason) == (
        414, f"The query is too long: {QUERY_BYTES_MAX} bytes are allowed",
    )  # fmt: skip


def test_long_bodies_wait_for_their_turn_to_be_decoded(api: Ask, broker: FakeFacade) -> None:
    """Each of a megabyte takes 27 ms, and very many may be whole at one instant."""
    path = "/admin/v2/persistent/public/default"
    assert api("PUT", f"{path}/small", {"a": "x" * 8_000}).status == 204
    before = broker.gave_way
    long = b'{"a":"' + b"x" * BODY_BYTES_MAX
    long = long[: BODY_BYTES_MAX - 2] + b'"}'
    assert api("PUT", f"{path}/large", long).status == 412
    assert (before, broker.gave_way) == (0, BODY_BYTES_MAX // BODY_BYTES_AT_ONCE)


@pytest.mark.parametrize(("retryable", "status"), [(True, 503), (False, 500)])
def test_a_disk_that_fails_is_said_so(
    api: Ask, broker: FakeFacade, retryable: bool, status: int
) -> None:
    broker.store.fail_next(StorageError("no space left", retryable=retryable))
    answer = api("PUT", "/admin/v2/persistent/public/default/t")
    assert (answer.status, answer.reason) == (status, "no space left")
    assert api("GET", "/admin/v2/persistent/public/default").json() == []
    assert api("PUT", "/admin/v2/persistent/public/default/t").status == 204


def test_a_role_does_not_fill_the_log_while_the_disk_is_full(
    api: Ask, broker: FakeFacade, caplog: pytest.LogCaptureFixture
) -> None:
    """Each change of a subscription's properties that found no room had a line, 270 a second."""
    for number in range(LINES_PER_MINUTE + 4):
        if number == LINES_PER_MINUTE + 3:
            broker.clock.now_ms += NS_PER_MINUTE // NS_PER_MS
        broker.store.fail_next(StorageError("the disk is full", retryable=True))
        assert api("PUT", "/admin/v2/persistent/public/default/t").status == 503
    lines = [record.getMessage() for record in caplog.records if record.name == "headgate.admin"]
    assert len(lines) == LINES_PER_MINUTE + 1
    line = "storage failed during PUT /admin/v2/persistent/public/default/t: the disk is full"
    assert set(lines[:-1]) == {line}
    assert lines[-1] == f"{line} (3 lines like this were left out before)"


def test_a_bug_answers_shortly_and_is_logged_with_its_trace(
    api: Ask, broker: FakeFacade, caplog: pytest.LogCaptureFixture
) -> None:
    api("PUT", "/admin/v2/persistent/public/default/t")
    broker.failures.append(KeyError("secret"))
    with caplog.at_level(logging.ERROR):
        answer = api("GET", STATS)
    assert (answer.status, answer.reason) == (
        500, "Unexpected KeyError; the broker's log has more",
    )  # fmt: skip
    assert "Traceback" in caplog.text
    assert STATS in caplog.text


def test_a_broken_invariant_is_not_caught(api: Ask, broker: FakeFacade) -> None:
    api("PUT", "/admin/v2/persistent/public/default/t")
    broker.failures.append(InvariantError("we are wrong"))
    with pytest.raises(InvariantError):
        api("GET", STATS)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_is_refused_by_its_operation(broker: FakeFacade, route: Route) -> None:
    broker.authorizer = deny = Deny()
    before = broker.store.load()
    path = route.path.replace("{domain}", "persistent").replace("{topic}", "a%2Fb")
    path = re.sub(r"{(\w+)}", r"my-\1", path)
    if route.resource_in:
        path += f"?{route.resource_in}=my-resource"
    answer = ask(AdminApp(broker, broker.clock), route.method, path, b"{")
    resource = "my-resource" if route.resource_in else ""
    for part, name in (("{tenant}", "my-tenant"), ("{namespace}", "my-tenant/my-namespace")):
        resource = name if part in route.path else resource
    if "{topic}" in route.path:
        resource = "persistent://my-tenant/my-namespace/a/b"
    subscription = "my-subscription" if "{subscription}" in route.path else ""
    assert (answer.status, answer.reason) == refusal_of(route.operation, resource)
    assert deny.asked == [("", route.operation, resource, subscription)]
    assert broker.store.load() == before


def test_a_topic_is_asked_about_by_the_name_that_the_protocol_asks_about(
    broker: FakeFacade,
) -> None:
    broker.authorizer = deny = Deny()
    ask(AdminApp(broker, broker.clock), "GET", STATS)
    assert deny.asked[0][2] == parse_topic("t").full


def test_the_work_of_a_request_is_that_of_its_tenant(
    api: Ask, broker: FakeFacade, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners: list[str] = []

    async def give_way() -> None:
        owners.append(WORK_OWNER.get())

    monkeypatch.setattr(broker, "give_way", give_way)
    path = "/admin/v2/persistent/public/default/many"
    assert api("PUT", f"{path}/partitions", 64).status == 204
    assert api("GET", f"{path}/partitioned-stats").status == 200
    assert set(owners) == {"public"}
    assert WORK_OWNER.get() == ""


@pytest.mark.parametrize(("method", "work"), [("GET", "compaction"), ("PUT", "unload")])
def test_requests_about_many_partitions_do_not_all_begin_at_once(
    api: Ask, broker: FakeFacade, method: str, work: str
) -> None:
    """Sixteen begin in one turn of the loop. Each made the names of all partitions at its start:
    for 4,096 of them that was 0.2 s."""
    path = "/admin/v2/persistent/public/default/many"
    assert api("PUT", f"{path}/partitions", 4_096).status == 204
    begun: list[int] = []
    found = broker.catalog.topic

    def topic(name: str) -> TopicRow | None:
        if name.endswith("/many-partition-0"):
            begun.append(broker.gave_way)
        return found(name)

    broker.gave_way = 0
    with patch.object(broker.catalog, "topic", topic):
        assert api(method, f"{path}/{work}").status < 400
    assert begun[0] == 4_096 // NAMES_AT_ONCE


def test_many_changes_about_one_tenant_hold_up_none_about_another(
    api: Ask, broker: FakeFacade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """500 short changes of rows of a megabyte had one of another tenant wait for nine seconds."""
    api("PUT", "/admin/v2/tenants/acme", {"allowedClusters": ["standalone"]})
    api("PUT", "/admin/v2/namespaces/acme/ns")
    api("PUT", "/admin/v2/persistent/public/default/t")
    app = AdminApp(broker, broker.clock)
    stored = broker.commit
    begun: list[Change] = []

    async def story() -> None:
        goes = asyncio.Event()

        async def commit(change: Change) -> None:
            begun.append(change)
            await goes.wait()
            await stored(change)

        async def rest() -> None:
            for _ in range(10):
                await asyncio.sleep(0)

        monkeypatch.setattr(broker, "commit", commit)
        many = "/admin/v2/namespaces/public/default/messageTTL"
        crowd = [asyncio.create_task(ask_async(app, "POST", many, b"60")) for _ in range(30)]
        await rest()
        assert len(begun) == CHANGES_MAX
        # Reads, changes about others, and those that roles make of subscriptions, go on.
        assert (await ask_async(app, "GET", many)).status == 200
        subscription = "/admin/v2/persistent/public/default/t/subscription/s"
        assert (await ask_async(app, "PUT", subscription)).status == 204
        other = "/admin/v2/namespaces/acme/ns/messageTTL"
        one = asyncio.create_task(ask_async(app, "POST", other, b"60"))
        await rest()
        assert len(begun) == CHANGES_MAX + 1
        # A right that ends while a request waits for its turn counts no more.
        broker.authorizer = Deny()
        goes.set()
        assert (await one).status == 204
        statuses = [(await each).status for each in crowd]
        assert statuses == [204] * CHANGES_MAX + [403] * (30 - CHANGES_MAX)

    asyncio.run(story())


def test_many_changes_of_a_role_do_not_keep_anybody_from_taking_its_rights_away(
    broker: FakeFacade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 times the backlogs of a namespace with 20,000 subscriptions, asked for by a role that may
    consume: no administrator could change anything about the tenant for four minutes."""
    app = AdminApp(broker, broker.clock)
    goes = asyncio.Event()

    def of(role: str) -> dict[str, object]:
        return {SCOPE_KEY: Identity(role)}

    async def clear_backlog(*asked: object) -> None:
        await goes.wait()

    async def story() -> None:
        topic = "/admin/v2/persistent/public/default/t"
        assert (await ask_async(app, "PUT", topic)).status == 204
        assert (await ask_async(app, "PUT", f"{topic}/subscription/s")).status == 204
        monkeypatch.setattr(broker, "clear_backlog", clear_backlog)
        namespace = "/admin/v2/namespaces/public/default"
        crowd = [
            asyncio.create_task(
                ask_async(app, "POST", f"{namespace}/clearBacklog", more=of("consumer"))
            )
            for _ in range(3 * CHANGES_MAX)
        ]
        for _ in range(10):
            await asyncio.sleep(0)
        path = f"{namespace}/permissions/consumer"
        for role in ("administrator", "super user"):
            revoked = await asyncio.wait_for(ask_async(app, "DELETE", path, more=of(role)), 10)
            assert revoked.status == 204
        goes.set()
        assert {(await each).status for each in crowd} == {204}

    asyncio.run(story())


@pytest.mark.parametrize(
    ("method", "what", "work"),
    [
        ("POST", "many/subscription/s/skip_all", "clear_backlog"),
        ("POST", "many/subscription/s/resetcursor/0", "reset_cursor"),
        ("DELETE", "many/subscription/s", "delete_subscription"),
        ("POST", "single/all_subscription/expireMessages/0", "expire_messages"),
        ("PUT", "missing-{}/subscription/s", "commit"),
    ],
)
def test_of_a_role_few_requests_about_many_partitions_are_carried_out_at_once(
    broker: FakeFacade, monkeypatch: pytest.MonkeyPatch, method: str, what: str, work: str
) -> None:
    """512 of them were the work of half a million partitions, which took memory for each."""
    app = AdminApp(broker, broker.clock)
    topics = "/admin/v2/persistent/public/default"
    consumer = {SCOPE_KEY: Identity("consumer")}
    goes = asyncio.Event()
    begun = 0

    async def wait(*_: object, **__: object) -> bool:
        nonlocal begun
        begun += 1
        await goes.wait()
        raise RefusalError(409, "it is over")

    async def story() -> None:
        assert (await ask_async(app, "PUT", f"{topics}/single")).status == 204
        assert (await ask_async(app, "PUT", f"{topics}/many/partitions", b"2")).status == 204
        for name in ("single", "many"):
            assert (await ask_async(app, "PUT", f"{topics}/{name}/subscription/s")).status == 204
        monkeypatch.setattr(broker, work, wait)
        crowd = [
            asyncio.create_task(
                ask_async(app, method, f"{topics}/{what.format(number)}", more=consumer)
            )
            for number in range(3 * CHANGES_MAX)
        ]
        for _ in range(10):
            await asyncio.sleep(0)
        assert begun == CHANGES_MAX * (2 if what.startswith("many") else 1)
        goes.set()
        assert {(await each).status for each in crowd} == {409}

    asyncio.run(story())


def test_of_a_role_few_requests_are_carried_out_at_once(
    broker: FakeFacade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """512 requests at once held 512 times what each gathers before it is charged: a gigabyte."""
    app = AdminApp(broker, broker.clock)
    topic = "/admin/v2/persistent/public/default/t"
    goes = asyncio.Event()
    begun = 0

    def of(role: str, host: str = "") -> dict[str, object]:
        return {SCOPE_KEY: Identity(role), "client": (host, 1)}

    async def wait(*_: object) -> None:
        nonlocal begun
        begun += 1
        await goes.wait()

    async def story() -> None:
        assert (await ask_async(app, "PUT", topic)).status == 204
        assert (await ask_async(app, "PUT", f"{topic}/subscription/s")).status == 204
        monkeypatch.setattr(broker, "reserve_answer", wait)
        crowd = [
            asyncio.create_task(ask_async(app, "GET", f"{topic}/subscriptions", more=of("one")))
            for _ in range(100)
        ]
        for _ in range(10):
            await asyncio.sleep(0)
        assert begun == REQUESTS_MAX
        # Other roles, changes of the same one, and addresses without a role do not wait for them.
        ttl = "/admin/v2/namespaces/public/default/messageTTL"
        for more in (of("other"), of("", "192.0.2.1"), of("", "192.0.2.2")):
            assert (await ask_async(app, "GET", ttl, more=more)).status == 200
        assert (await ask_async(app, "POST", ttl, b"60", more=of("one"))).status == 204
        # A client that leaves the line makes way, and a right that ends counts for those in line.
        crowd[50].cancel()
        broker.authorizer = Deny()
        goes.set()
        answers = await asyncio.gather(*crowd, return_exceptions=True)
        assert isinstance(answers.pop(50), asyncio.CancelledError)
        assert {each.status for each in answers if isinstance(each, Answer)} == {401}
        assert begun == REQUESTS_MAX

    asyncio.run(story())


def test_a_server_that_keeps_no_raw_path_is_served_too() -> None:
    assert raw_path({"path": "/a b/c"}) == "/a%20b/c"
    assert raw_path({"path": "", "raw_path": b"/a%2Fb?x=1"}) == "/a%2Fb"


def test_a_client_that_leaves_is_no_error(
    broker: FakeFacade, caplog: pytest.LogCaptureFixture
) -> None:
    app = AdminApp(broker, broker.clock)
    path = "/admin/v2/tenants/x"
    scope = {
        "type": "http", "method": "PUT", "path": path, "raw_path": path.encode(),
        "query_string": b"", "headers": [], "scheme": "http", "server": ("test", 80),
    }  # fmt: skip
    messages = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return messages.pop(0)

    with caplog.at_level(logging.INFO, "headgate.admin"):
        reply = asyncio.run(app.respond(Request(scope, receive)))
    assert reply.status == 400
    assert caplog.records == []
    assert "x" not in broker.catalog.tenants()


def test_only_http_is_served(broker: FakeFacade) -> None:
    app = AdminApp(broker, broker.clock)

    async def nothing(*_: object) -> None:
        return

    with pytest.raises(RuntimeError, match="websocket"):
        asyncio.run(app({"type": "websocket"}, nothing, nothing))  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_read_does_not_wait_for_a_body(broker: FakeFacade, method: str) -> None:
    """Else a client without credentials could hold requests for half a minute each."""
    app = AdminApp(broker, broker.clock)
    scope = {"type": "http", "method": method, "path": "/admin/v2/brokers/ready", "headers": []}

    async def receive() -> Message:
        raise AssertionError("nobody reads the body")

    reply = asyncio.run(app.respond(Request(scope, receive)))
    assert reply.status == (200 if method == "GET" else 405)


def slowly(broker: FakeFacade, meanwhile: Callable[[], None], **more: object) -> Reply:
    """The reply to a request whose body comes slowly: ``meanwhile`` happens after its head."""
    path = "/admin/v2/tenants/x"
    scope: dict[str, object] = {
        "type": "http", "method": "PUT", "path": path, "raw_path": path.encode(),
        "query_string": b"", "headers": [], "scheme": "http", "server": ("test", 80), **more,
    }  # fmt: skip

    async def receive() -> Message:
        meanwhile()
        return {"type": "http.request", "body": b'{"allowedClusters": ["standalone"]}'}

    return asyncio.run(AdminApp(broker, broker.clock).respond(Request(scope, receive)))


def test_a_right_that_ends_before_the_body_has_come_counts_no_more(broker: FakeFacade) -> None:
    def lose() -> None:
        broker.authorizer = Deny()

    assert slowly(broker, lose).status == 401
    assert "x" not in broker.catalog.tenants()
    broker.authorizer = ALLOW_ALL
    assert slowly(broker, lambda: None).status == 204


def test_nor_do_credentials_that_lapse_meanwhile(broker: FakeFacade) -> None:
    whys: list[str] = []
    more = {LAPSE_KEY: lambda: "".join(whys)}
    reply = slowly(broker, lambda: whys.append("the role is revoked"), **more)
    assert (reply.status, reply.reason) == (401, CREDENTIALS_REFUSED)
    assert "x" not in broker.catalog.tenants()


def test_nor_does_a_right_that_ends_while_an_answer_waits_for_memory(
    broker: FakeFacade, api: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role read messages for as long as its requests waited."""
    path = "/admin/v2/persistent/public/default/t"
    assert api("PUT", path).status == 204
    assert api("GET", f"{path}/stats").status == 200
    reserve = broker.reserve_answer

    async def waited(size_bytes: int, owner: str = "") -> None:
        await reserve(size_bytes, owner)
        broker.authorizer = Deny()

    monkeypatch.setattr(broker, "reserve_answer", waited)
    assert api("GET", f"{path}/stats").status == 401
    assert broker.reserved_bytes == 0

"""Long answers: the same JSON, in parts that the client waits for one by one."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from headgate.admin.app import AdminApp
from headgate.admin.routing import Call, Reply
from headgate.admin.streaming import (
    PAGE_NAMES,
    PART_BYTES,
    PARTS_HELD,
    STEP_BYTES,
    STEP_FREED,
    STEP_PAGES,
    answer,
    discard,
    pages,
    send_parts,
)
from headgate.base.identity import LAPSE_KEY
from headgate.base.names import parse_topic
from headgate.metadata.errors import RefusalError
from tests.unit.admin.client import ask_async
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import FakeFacade, FakeSubscription
from tests.unit.denying import Deny

NS = "/admin/v2/persistent/public/default"
SCOPE: dict[str, Any] = {"type": "http"}


def names_in(after: str, count: int) -> list[str]:
    names = [f"n{number:05}" for number in range(1_000)]
    return [name for name in names if name > after][:count]


def test_pages_have_each_name_once() -> None:
    found = list(pages(names_in))
    assert [name for page in found for name in page] == names_in("", 1_000)
    assert max(map(len, found)) == PAGE_NAMES
    assert list(pages(lambda _after, _count: [])) == [[]]


def test_a_name_that_stays_is_listed_once_while_others_come_and_go() -> None:
    present = {f"n{number:05}" for number in range(0, 1_000, 2)}
    stays = set(present) - {"n00500"}

    def after(last: str, count: int) -> list[str]:
        present.discard("n00500")
        present.add(f"{last}x")
        return sorted(name for name in present if name > last)[:count]

    found = [name for page in pages(after) for name in page]
    assert len(found) == len(set(found))
    assert stays <= set(found)


@pytest.fixture
def many(broker: FakeFacade) -> FakeFacade:
    """A namespace with 5,000 topics and 1,000 subscriptions of one."""
    catalog = broker.catalog
    for number in range(5_000):
        name = parse_topic(f"persistent://public/default/a-topic-with-a-longer-name-{number:05}")
        change = catalog.plan_create_topic(name, now_ms=0)
        broker.store.commit(change.writes)
        catalog.apply(change)
    topic = broker.topic(
        parse_topic("persistent://public/default/a-topic-with-a-longer-name-00000")
    )
    topic.subscriptions = {f"s{n}": FakeSubscription(consumers=["c"]) for n in range(1_000)}
    return broker


@pytest.mark.parametrize("path", [NS, "/admin/v2/namespaces/public/default/topics"])
def test_a_long_list_comes_in_parts(many: FakeFacade, path: str) -> None:
    app, sent = AdminApp(many, many.clock), []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(),
        "query_string": b"", "headers": [], "http_version": "1.1",
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 200
    assert dict(sent[0]["headers"]) == {b"content-type": b"application/json"}
    bodies = [message["body"] for message in sent[1:]]
    assert max(map(len, bodies)) < PART_BYTES + 2 * STEP_BYTES
    assert [message.get("more_body", False) for message in sent[1:]][-2:] == [True, False]
    listed = json.loads(b"".join(bodies))
    assert listed == many.catalog.topics(parse_topic("persistent://public/default/x").namespace)
    assert len(listed) == 5_000
    assert many.gave_way >= 5_000 // PAGE_NAMES // STEP_PAGES
    assert many.reserved_bytes == 0


def lose_right(broker: FakeFacade, _: list[str]) -> None:
    broker.authorizer = Deny()


def lose_credentials(_: FakeFacade, whys: list[str]) -> None:
    whys.append("the role is revoked")


@pytest.mark.parametrize("lose", [lose_right, lose_credentials])
def test_a_client_that_may_not_have_it_any_more_gets_no_further_part(
    many: FakeFacade, lose: Callable[[FakeFacade, list[str]], None]
) -> None:
    """Who reads slowly was shown what came for a quarter of an hour."""
    app, whys, sent, aborted = AdminApp(many, many.clock), list[str](), list[Any](), list[int]()

    async def send(message: Any) -> None:
        sent.append(message)
        if len(sent) == 3:
            lose(many, whys)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http", "method": "GET", "path": NS, "raw_path": NS.encode(),
        "query_string": b"", "headers": [], "http_version": "1.1",
        LAPSE_KEY: lambda: "".join(whys),
        "extensions": {"headgate.abort": {"call": lambda: aborted.append(len(sent))}},
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    assert aborted == [3]
    assert len(sent) == 3
    assert sent[-1]["more_body"]
    assert many.reserved_bytes == 0


def test_a_short_list_has_its_length(api: Ask) -> None:
    answer = api("GET", NS)
    assert answer.headers["content-length"] == "2"
    assert answer.body == b"[]"


def test_subscriptions_and_statistics_in_parts_are_the_same_json(many: FakeFacade) -> None:
    app = AdminApp(many, many.clock)
    path = f"{NS}/a-topic-with-a-longer-name-00000"

    async def story() -> None:
        names = (await ask_async(app, "GET", f"{path}/subscriptions")).json()
        assert names == sorted(f"s{number}" for number in range(1_000))
        stats = await ask_async(app, "GET", f"{path}/stats")
        assert "content-length" not in stats.headers
        assert set(stats.json()["subscriptions"]) == set(names)
        assert many.reserved_most > 0
        internal = await ask_async(app, "GET", f"{path}/internalStats")
        assert set(internal.json()["cursors"]) == set(names)
        assert many.reserved_bytes == 0

    asyncio.run(story())


def test_without_memory_an_answer_is_refused(many: FakeFacade) -> None:
    many.memory_failure = RefusalError(503, "others take it")
    answer = asyncio.run(
        ask_async(AdminApp(many, many.clock), "GET", f"{NS}/a-topic-with-a-longer-name-00001/stats")
    )
    assert (answer.status, answer.reason) == (503, "others take it")


def reply(parts: Iterator[bytes]) -> Reply:
    async def each() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    return Reply(200, b"", "application/json", parts=each())


def test_nothing_is_made_for_a_client_that_is_gone() -> None:
    sent: list[Any] = []
    made: list[int] = []

    def parts() -> Iterator[bytes]:
        for number in range(100):
            made.append(number)
            yield b"x"

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {**SCOPE, "extensions": {"headgate.is_open": {"call": lambda: len(sent) < 4}}}
    asyncio.run(send_parts(reply(parts()), scope, send))
    assert len(made) == 4
    assert len(sent) == 4


def test_a_reply_without_parts_is_no_stream() -> None:
    async def send(_: Any) -> None:
        raise AssertionError("nothing is sent")

    with pytest.raises(RuntimeError):
        asyncio.run(send_parts(Reply(200, b"x"), SCOPE, send))


def test_what_a_client_that_is_gone_did_not_read_is_freed_in_slices() -> None:
    sent: list[Any] = []
    value = {"subscriptions": {f"s{number}": {"x": number} for number in range(1_000)}}
    gave_way: list[int] = []

    class Facade:
        async def give_way(self) -> None:
            gave_way.append(len(value["subscriptions"]))

    async def parts() -> AsyncIterator[bytes]:
        yield b"{"

    async def send(message: Any) -> None:
        sent.append(message)

    facade: Any = Facade()
    names = frozenset({"subscriptions"})
    gone = Reply(200, parts=parts(), discard=lambda: discard(facade, value, names))
    scope = {**SCOPE, "extensions": {"headgate.is_open": {"call": lambda: False}}}
    asyncio.run(send_parts(gone, scope, send))
    assert value["subscriptions"] == {}
    assert len(gave_way) == 1_000 // STEP_FREED


def test_an_answer_of_accepted_age_is_sent_to_all_and_to_nobody_twice(
    broker: FakeFacade, api: Ask
) -> None:
    path = "/admin/v2/headgate/explain?count=5"
    aged = (b"cache-control", b"max-age=2")
    first = api("GET", path, None, {"headers": [aged]})
    tag = first.headers["etag"]
    assert first.headers["age"] == "0"
    broker.clock.now_ms += 1_900
    known = api("GET", path, None, {"headers": [aged, (b"if-none-match", tag.encode())]})
    assert (known.status, known.body, known.headers["etag"]) == (304, b"", tag)
    assert known.headers["age"] == "1"
    assert "content-length" not in known.headers
    short = api("GET", path, None, {"headers": [aged, (b"accept-encoding", b"gzip, br")]})
    assert short.headers["content-encoding"] == "gzip"
    assert gzip.decompress(short.body) == first.body == api("GET", path).body
    assert "etag" not in api("GET", path).headers


def test_a_long_list_is_charged_with_the_parts_that_are_there(many: FakeFacade) -> None:
    """Hundreds of requests for long lists were charged with nothing."""
    app = AdminApp(many, many.clock)
    assert asyncio.run(ask_async(app, "GET", NS)).status == 200
    assert PARTS_HELD * PART_BYTES <= many.reserved_most < 2 * PARTS_HELD * PART_BYTES
    assert many.reserved_bytes == 0


def test_a_short_list_is_charged_with_nothing(api: Ask, broker: FakeFacade) -> None:
    api("PUT", f"{NS}/t")
    assert len(api("GET", NS).json()) == 1
    assert broker.reserved_most == 0


@pytest.mark.parametrize(
    ("charged", "more"),
    [(0, [PARTS_HELD * PART_BYTES]), (1_000, [PARTS_HELD * PART_BYTES - 1_000]), (1 << 20, [])],
)
def test_what_is_charged_for_an_answer_counts(
    broker: FakeFacade, charged: int, more: list[int]
) -> None:
    reserved: list[tuple[int, str]] = [(charged, "public")] if charged else []
    call = Call(broker, broker.clock, {"tenant": "public"}, {}, b"", reserved)
    asyncio.run(answer(call, iter([b"x" * PART_BYTES] * 3)))
    assert [size_bytes for size_bytes, _ in reserved[bool(charged) :]] == more

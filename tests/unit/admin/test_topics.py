"""Topics and partitioned topics."""

from __future__ import annotations

from itertools import pairwise

from headgate.admin.topics import (
    PROPERTY_HEADERS_BYTES_MAX,
    TEXT_HEADER_CHARACTERS_MAX,
    entry_reply,
)
from headgate.base.names import parse_topic
from headgate.base.positions import Position
from headgate.broker.entries import StoredEntry
from headgate.facade.message_protocol import PlacedEntry
from headgate.wire.codes import CompressionType
from headgate.wire.entry import KeyFacts
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import FakeFacade

P = "/admin/v2/persistent/public/default"
FULL = "persistent://public/default"


def test_a_topics_life(api: Ask, broker: FakeFacade) -> None:
    assert api("PUT", f"{P}/t", {"a": "b"}).status == 204
    row = broker.catalog.topic(f"{FULL}/t")
    assert row is not None
    assert (row.properties, row.created_ms) == ({"a": "b"}, broker.clock.now_ms)
    assert api("GET", P).json() == [f"{FULL}/t"]
    assert api("PUT", f"{P}/t/unload").status == 204
    assert broker.topic(parse_topic("t")).unloaded == 1
    assert api("PUT", f"{P}/t/acceptDamage").status == 204
    assert broker.topic(parse_topic("t")).accepted == 1
    assert api("DELETE", f"{P}/t").status == 204
    assert api("DELETE", f"{P}/t").reason == f"Topic {FULL}/t not found"
    assert api("PUT", f"{P}/t/unload").status == 404


def test_a_busy_topic_needs_force(api: Ask, broker: FakeFacade) -> None:
    api("PUT", f"{P}/t")
    broker.topic(parse_topic("t")).producers.append("p")
    assert api("DELETE", f"{P}/t").status == 412
    assert api("DELETE", f"{P}/t?force=true&deleteSchema=true").status == 204


def test_a_partitioned_topics_life(api: Ask, broker: FakeFacade) -> None:
    body = {"partitions": 2, "properties": {"a": "b"}}
    assert api("PUT", f"{P}/pt/partitions", body).status == 204
    assert api("GET", f"{P}/pt/partitions").json() == {
        "partitions": 2, "deleted": False, "properties": {"a": "b"},
    }  # fmt: skip
    assert api("GET", f"{P}/partitioned").json() == [f"{FULL}/pt"]
    assert api("POST", f"{P}/pt/partitions", 1).status == 422
    assert api("POST", f"{P}/pt/partitions", b'"3"').status == 204
    assert api("PUT", f"{P}/pt/unload").status == 204
    assert broker.topic(parse_topic("pt-partition-2")).unloaded == 1
    answer = api("DELETE", f"{P}/pt")
    assert answer.status == 409
    assert "please call delete-partitioned-topic" in answer.reason
    assert api("DELETE", f"{P}/pt/partitions").status == 204
    assert api("GET", P).json() == []
    assert api("DELETE", f"{P}/pt/partitions").reason == f"Partitioned Topic {FULL}/pt not found"


def test_missed_partitions_are_made(api: Ask, broker: FakeFacade) -> None:
    api("PUT", f"{P}/pt/partitions", 3)
    api("DELETE", f"{P}/pt-partition-1")
    assert len(api("GET", P).json()) == 2
    assert api("POST", f"{P}/pt/createMissedPartitions").status == 204
    assert api("POST", f"{P}/pt/createMissedPartitions").status == 204
    assert len(api("GET", P).json()) == 3
    assert api("POST", f"{P}/other/createMissedPartitions").status == 404


def test_partition_counts_that_are_not_allowed(api: Ask) -> None:
    assert api("PUT", f"{P}/pt/partitions").status == 406
    assert api("PUT", f"{P}/pt/partitions", True).status == 400
    assert api("PUT", f"{P}/pt/partitions", 10**6).status == 406
    assert api("PUT", f"{P}/pt-partition-0/partitions", 2).status == 412
    api("PUT", f"{P}/t")
    assert api("POST", f"{P}/t/partitions", 2).reason == (
        f"Topic {FULL}/t is not the partitioned topic."
    )
    answer = api("DELETE", f"{P}/t/partitions")
    assert (answer.status, "non-partitioned" in answer.reason) == (409, True)


def test_asking_for_partitions_creates_only_what_may_be(api: Ask, broker: FakeFacade) -> None:
    path = f"{P}/new/partitions?checkAllowAutoCreation=true"
    assert api("GET", f"{P}/new/partitions").status == 404
    assert api("GET", path).json()["partitions"] == 0
    assert api("GET", P).json() == []
    broker.auto_partitions = None
    assert api("GET", path).status == 404
    broker.auto_partitions = 2
    assert api("GET", path).json() == {"partitions": 2, "deleted": False}
    assert len(api("GET", P).json()) == 2
    none = "/admin/v2/persistent/public/none/x/partitions?checkAllowAutoCreation=true"
    assert api("GET", none).status == 404


def test_lists(api: Ask) -> None:
    for name in ("a", "b", "c", "d"):
        api("PUT", f"{P}/{name}")
    bounds = ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"]
    by_bundle = [
        topic
        for low, high in pairwise(bounds)
        for topic in api("GET", f"{P}?bundle={low}_{high}").json()
    ]
    assert sorted(by_bundle) == api("GET", P).json()
    for suffix in ("", "/partitioned"):
        assert api("GET", f"/admin/v2/non-persistent/public/default{suffix}").json() == []
    for method, suffix in (("PUT", "/t"), ("PUT", "/t/partitions"), ("GET", "/t/stats")):
        answer = api(method, f"/admin/v2/non-persistent/public/default{suffix}")
        assert answer.status == 404
        assert answer.reason.startswith("Non-persistent topics are not supported")
    assert api("GET", "/admin/v2/persistent/public/none").reason == "Namespace does not exist"


def test_message_ids(api: Ask, broker: FakeFacade) -> None:
    api("PUT", f"{P}/t")
    empty = api("GET", f"{P}/t/lastMessageId").json()
    assert empty == {"ledgerId": 8, "entryId": -1, "partitionIndex": -1}
    broker.topic(parse_topic("t")).entries_ms.extend([10, 20])
    assert api("GET", f"{P}/t/lastMessageId").json()["batchIndex"] == 49
    assert api("GET", f"{P}/t/messageid/15").json()["entryId"] == 1
    assert api("GET", f"{P}/t/messageid/x").status == 404
    api("PUT", f"{P}/pt/partitions", 2)
    assert api("GET", f"{P}/pt/lastMessageId").status == 405
    assert api("GET", f"{P}/pt/messageid/15").status == 405
    assert api("GET", f"{P}/pt-partition-1/lastMessageId").json()["partitionIndex"] == 1


def test_an_entry_says_in_headers_what_it_is(api: Ask, broker: FakeFacade) -> None:
    api("PUT", f"{P}/t")
    broker.topic(parse_topic("t")).entries_ms.extend([10, 20])
    batch = api("GET", f"{P}/t/ledger/8/entry/0")
    assert (batch.status, batch.body) == (200, b"payload")
    assert batch.headers["X-Pulsar-num-batch-message"] == "49"
    assert batch.headers["X-Pulsar-publish-time"] == "1970-01-01T00:00:00Z"
    assert "X-Pulsar-chunk-id" not in batch.headers
    assert "X-Pulsar-partition-key" not in batch.headers
    assert batch.headers["X-Pulsar-compression"] == "LZ4"
    assert batch.headers["X-Pulsar-uncompressed-size"] == "99"
    chunk = api("GET", f"{P}/t/ledger/8/entry/1").headers
    assert chunk["X-Pulsar-Message-ID"] == "8:1"
    assert chunk["X-Pulsar-producer-name"] == "p%20%C3%A9"
    assert chunk["X-Pulsar-uuid"] == "p%20%C3%A9-1"
    assert chunk["X-Pulsar-chunk-id"] == "1"
    assert chunk["X-Pulsar-num-chunks-from-msg"] == "3"
    assert chunk["X-Pulsar-total-chunk-msg-size"] == "99"
    assert "X-Pulsar-compression" not in chunk
    assert chunk["X-Pulsar-Base64-encryption-keys"] == "YQ==,Yg=="
    assert chunk["X-Pulsar-Base64-encryption-param"] == "AQ=="
    assert not any("encryption" in name for name in batch.headers)
    assert chunk["X-Pulsar-partition-key"] == "aWQ%3D"
    assert chunk["X-Pulsar-partition-key-b64-encoded"] == "true"
    assert chunk["X-Pulsar-null-partition-key"] == "false"
    assert api("GET", f"{P}/t/ledger/8/entry/2").status == 404
    assert api("GET", f"{P}/t/ledger/8/entry/x").status == 404


def headers_of(properties: tuple[tuple[str, str], ...], event_time: str = "") -> dict[str, str]:
    entry = StoredEntry(
        b"x", "p", 1, "1970-01-01T00:00:00Z", None, None, None, CompressionType.NONE, 1, None,
        event_time, properties,
    )  # fmt: skip
    headers = entry_reply(PlacedEntry(Position(8, 1), entry)).headers
    prefix = "X-Pulsar-PROPERTY-"
    return {
        name.removeprefix(prefix): text
        for name, text in headers.items()
        if name.startswith((prefix, "X-Pulsar-event"))
    }


def test_properties_and_the_event_time_are_headers() -> None:
    assert headers_of(()) == {}
    found = headers_of((("a", "x y"), ("b.c", "")), "2026-01-01T00:00:00Z")
    assert found == {"X-Pulsar-event-time": "2026-01-01T00:00:00Z", "a": "x y", "b.c": ""}


def test_no_property_makes_a_header_of_its_own() -> None:
    """Neither key nor value of a message may end a line of the answer."""
    hostile = (("a\r\nSet-Cookie: x", "1"), ("a b", "1"), ("", "1"), ("a:b", "1"))
    assert headers_of(hostile) == {}
    assert headers_of((("a", "1\r\nX: y"), ("b", " é"))) == {
        "a": "1%0D%0AX%3A y", "b": " %C3%A9",
    }  # fmt: skip


def test_headers_of_properties_are_bounded() -> None:
    many = tuple((f"k{number}", "x" * 100) for number in range(1_000))
    found = headers_of(many)
    assert 20 < len(found) < PROPERTY_HEADERS_BYTES_MAX // 100
    assert headers_of((("a", "x" * PROPERTY_HEADERS_BYTES_MAX),)) == {}
    short = tuple((f"k{number}", "") for number in range(200))
    assert len(headers_of(short)) == 60, "clients in Python read 100 headers"


def test_what_is_beyond_the_headers_is_not_looked_at() -> None:
    """An entry may have hundreds of thousands of properties, or a key of a megabyte."""
    seen = []

    class Watched(str):
        def __len__(self) -> int:
            seen.append(1)
            return super().__len__()

    headers_of(tuple((f"k{number}", Watched("x" * 100)) for number in range(1_000)))
    assert len(seen) < 2 * PROPERTY_HEADERS_BYTES_MAX // 100
    key = KeyFacts("k" * 100_000, is_base64=False, is_null=False)
    entry = StoredEntry(
        b"x", "p" * 100_000, 1, "1970-01-01T00:00:00Z", None, None, key, CompressionType.NONE, 1,
        None,
    )  # fmt: skip
    headers = entry_reply(PlacedEntry(Position(8, 1), entry)).headers
    assert max(map(len, headers.values())) == TEXT_HEADER_CHARACTERS_MAX

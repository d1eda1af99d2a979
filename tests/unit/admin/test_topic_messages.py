"""Single messages of topics and subscriptions, and counts of backlogs."""

from __future__ import annotations

from headgate.base.names import parse_topic
from headgate.base.positions import EARLIEST, Position
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import ENTRY_BYTES, LEDGER, FakeFacade, FakeSubscription

P = "/admin/v2/persistent/public/default"
T = f"{P}/t"
S = f"{T}/subscription/s"


def furnish(api: Ask, broker: FakeFacade) -> None:
    api("PUT", T)
    api("PUT", f"{P}/pt/partitions", 2)
    topic = broker.topic(parse_topic("t"))
    topic.entries_ms += [1, 2, 3]
    topic.subscriptions["s"] = FakeSubscription(next=1)


def message_id(answer: object) -> str:
    return answer.headers["X-Pulsar-Message-ID"]  # type: ignore[attr-defined,no-any-return]


def test_an_entry_is_examined_from_either_end(api: Ask, broker: FakeFacade) -> None:
    furnish(api, broker)
    answer = api("GET", f"{T}/examinemessage")
    assert (answer.status, answer.body, message_id(answer)) == (200, b"payload", f"{LEDGER}:2")
    assert (broker.reserved_most, broker.reserved_bytes) == (ENTRY_BYTES, 0)
    path = f"{T}/examinemessage?initialPosition=earliest&messagePosition=2"
    assert message_id(api("GET", path)) == f"{LEDGER}:1"
    path = f"{T}/examinemessage?initialPosition=latest&messagePosition=-9"
    assert message_id(api("GET", path)) == f"{LEDGER}:2"
    answer = api("GET", f"{T}/examinemessage?initialPosition=middle")
    assert answer.status == 412
    assert answer.reason == "initialPosition is 'middle': latest and earliest are allowed"
    assert api("GET", f"{T}/examinemessage?messagePosition=x").status == 404
    assert api("GET", f"{P}/pt/examinemessage").status == 405
    answer = api("GET", f"{P}/pt-partition-0/examinemessage")
    assert (answer.status, answer.reason) == (
        412, "Could not examine messages due to the total message is zero"
    )  # fmt: skip


def test_a_backlog_is_peeked_into(api: Ask, broker: FakeFacade) -> None:
    furnish(api, broker)
    assert message_id(api("GET", f"{S}/position/1")) == f"{LEDGER}:1"
    assert message_id(api("GET", f"{S}/position/2")) == f"{LEDGER}:2"
    assert message_id(api("GET", f"{S}/position/0")) == f"{LEDGER}:1"
    assert api("GET", f"{S}/position/3").status == 404
    assert api("GET", f"{P}/pt/subscription/s/position/1").status == 405


def test_no_message_has_an_index(api: Ask, broker: FakeFacade) -> None:
    furnish(api, broker)
    answer = api("GET", f"{T}/getMessageIdByIndex?index=0")
    assert answer.status == 412
    assert answer.reason.startswith(
        "GetMessageIdByIndex is not allowed when broker entry metadata is disabled"
    )
    answer = api("GET", f"{T}/getMessageIdByIndex?index=-1")
    assert (answer.status, answer.reason) == (404, "Invalid message index: '-1'")
    assert api("GET", f"{P}/pt/getMessageIdByIndex?index=0").status == 405


def test_a_backlog_is_analyzed_from_any_place(api: Ask, broker: FakeFacade) -> None:
    furnish(api, broker)
    answer = api("POST", f"{S}/analyzeBacklog")
    assert answer.json() == {
        "entries": 2, "messages": 98, "markerMessages": 0,
        "filterRejectedEntries": 0, "filterAcceptedEntries": 0, "filterRescheduledEntries": 0,
        "filterRejectedMessages": 0, "filterAcceptedMessages": 0, "filterRescheduledMessages": 0,
        "aborted": False,
    }  # fmt: skip
    body = {"ledgerId": LEDGER, "entryId": 1, "partitionIndex": -1, "excluded": True}
    api("POST", f"{S}/analyzeBacklog", body)
    api("POST", f"{S}/analyzeBacklog", b'"earliest"')
    assert broker.messages.asked == [
        (None, False), (Position(LEDGER, 1), True), (EARLIEST, False)
    ]  # fmt: skip
    assert api("POST", f"{T}/subscription/none/analyzeBacklog").status == 404
    answer = api("POST", f"{P}/pt/subscription/s/analyzeBacklog")
    assert answer.reason == "Analyze backlog on a partitioned topic is not allowed"


def test_bytes_from_a_message_on(api: Ask, broker: FakeFacade) -> None:
    furnish(api, broker)
    body = {"ledgerId": LEDGER, "entryId": 2}
    assert api("PUT", f"{T}/backlogSize", body).json() == 100
    assert api("PUT", f"{T}/backlogSize", {"ledgerId": -1, "entryId": -1}).json() == 300
    assert api("PUT", f"{T}/backlogSize").json() == 300
    answer = api("PUT", f"{P}/pt/backlogSize", body)
    assert answer.reason == "calculate backlog size is not allowed for partitioned-topic"

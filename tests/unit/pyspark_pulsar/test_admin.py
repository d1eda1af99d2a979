from __future__ import annotations

import gzip
import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import urllib3

from pyspark_pulsar import admin, body_bounds
from pyspark_pulsar.access import Access
from pyspark_pulsar.admin import AdminClient, Response, cause_of, http_transport
from pyspark_pulsar.errors import (
    AccessError,
    AdminError,
    TokenUnavailableError,
    TopicNotFoundError,
    UnreachableError,
)
from pyspark_pulsar.missing import Fate
from pyspark_pulsar.offsets import Position
from pyspark_pulsar.options import Connection
from pyspark_pulsar.ranges import LedgerSpan, TopicSnapshot

T = "persistent://public/default/t"
BASE = "http://h:8080/admin/v2/persistent/public/default/"
TRANSACTIONS = "http://h:8080/admin/v3/transactions/transactionBufferStats/public/default/t"
STATS = "stats?subscriptionBacklogSize=false&excludePublishers=true&excludeConsumers=true"
MISSING = Response(404, b'{"reason":"Topic not found"}')
NO_TRANSACTIONS = Response(
    503, b'{"reason":"This Broker is not configured with transactionCoordinatorEnabled=true."}'
)


class FakeCluster:
    """Answers by URL, in order and the last one for ever; time passes only by sleeping."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = {
            path if path == TRANSACTIONS else BASE + path: (
                each if isinstance(each, list) else [each]
            )
            for path, each in ({TRANSACTIONS: NO_TRANSACTIONS} | answers).items()
        }
        self.now_s = 0.0
        self.asked: list[str] = []

    def get(self, url: str, timeout_s: float) -> Response:
        assert 0 < timeout_s <= 10
        self.asked.append(url.removeprefix(BASE))
        given = self.answers.get(url, [MISSING])
        answer = given.pop(0) if len(given) > 1 else given[0]
        if isinstance(answer, Exception):
            raise answer
        return (
            answer if isinstance(answer, Response) else Response(200, json.dumps(answer).encode())
        )

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def client(self) -> AdminClient:
        connection = Connection("pulsar://h:6650", "http://h:8080", 1_000, 5_000)
        return AdminClient(connection, self.get, monotonic=lambda: self.now_s, sleep=self.sleep)


def last(ledger_id: int, entry_id: int, batch_index: int = -1) -> dict[str, int]:
    return {"ledgerId": ledger_id, "entryId": entry_id, "batchIndex": batch_index}


def stats(
    *ledgers: tuple[int, int, int], current: tuple[int, int], added: int = 0
) -> dict[str, Any]:
    return {
        "entriesAddedCounter": added,
        "currentLedgerEntries": current[0],
        "currentLedgerSize": current[1],
        "ledgers": [
            {"ledgerId": ledger, "entries": entries, "size": size}
            for ledger, entries, size in ledgers
        ],
    }


def test_a_document_is_none_where_there_is_none() -> None:
    cluster = FakeCluster({})
    cluster.answers = {"http://h:8080/admin/v2/clusters": [["west"]]}
    assert cluster.client().document("clusters") == ["west"]
    assert cluster.client().document("headgate/identity") is None


@pytest.mark.parametrize("count", [admin.TOPIC_PARTITIONS_MAX + 1, 2_000_000_000, 10**400])
def test_a_number_of_partitions_without_end_is_refused(count: int) -> None:
    cluster = FakeCluster({"t/partitions": {"partitions": count}})
    with pytest.raises(AdminError, match="has more than 100,000 partitions"):
        cluster.client().partitions_of([T])


@pytest.mark.parametrize("answer", [{"partitions": "2"}, {"partitions": None}, [2]])
def test_partitions_that_are_no_number_are_refused(answer: Any) -> None:
    cluster = FakeCluster({"t/partitions": answer})
    with pytest.raises(AdminError, match="t/partitions answered without a number"):
        cluster.client().partitions_of([T])


def test_topics_give_their_partitions() -> None:
    cluster = FakeCluster({"t/partitions": {"partitions": 0}, "p/partitions": {"partitions": 2}})
    p = "persistent://public/default/p"
    assert cluster.client().partitions_of([T, p]) == {
        T: (T,),
        p: (f"{p}-partition-0", f"{p}-partition-1"),
    }
    with pytest.raises(TopicNotFoundError, match="default/x does not exist"):
        cluster.client().partitions_of(["persistent://public/default/x"])
    x = "persistent://public/default/x"
    assert cluster.client().partitions_if_any([T, x]) == {T: (T,), x: ()}


def test_the_end_is_requested_before_the_open_ledgers_entries() -> None:
    cluster = FakeCluster(
        {
            "t/lastMessageId": last(9, 1, 49),
            "t/internalStats": stats((8, 20, 2_000), (9, 0, 0), current=(2, 150)),
        }
    )
    assert cluster.client().snapshots([T]) == {
        T: TopicSnapshot((LedgerSpan(8, 20, 2_000), LedgerSpan(9, 2, 150)), (9, 1), 50.0)
    }
    assert cluster.asked == ["t/lastMessageId", "t/internalStats", TRANSACTIONS]


def test_messages_per_entry_come_from_the_counters() -> None:
    internal = stats((9, 0, 0), current=(4, 150), added=4)
    answers = {"t/lastMessageId": last(9, 3), "t/internalStats": internal}
    counted = FakeCluster(answers | {f"t/{STATS}": {"msgInCounter": 10}})
    (snapshot,) = counted.client().snapshots([T], with_counts=True).values()
    assert snapshot is not None
    assert snapshot.messages_per_entry == 2.5
    reloaded = FakeCluster(answers | {f"t/{STATS}": {"msgInCounter": 0}})
    (snapshot,) = reloaded.client().snapshots([T], with_counts=True).values()
    assert snapshot is not None
    assert snapshot.messages_per_entry == 1.0


def test_an_empty_topic_and_a_missing_topic_differ() -> None:
    empty = {"t/lastMessageId": last(3, -1), "t/internalStats": stats((3, 0, 0), current=(0, 0))}
    assert FakeCluster(empty).client().snapshots([T]) == {
        T: TopicSnapshot((LedgerSpan(3, 0, 0),), None)
    }
    assert FakeCluster({}).client().snapshots([T]) == {T: None}
    assert FakeCluster({}).client().ledgers(T) == ()
    assert FakeCluster(empty).client().ledgers(T) == (LedgerSpan(3, 0, 0),)


def buffer(place: str, state: str = "Ready") -> dict[str, str]:
    return {"state": state, "maxReadPosition": place}


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (buffer("9:0"), (9, 0)),
        (buffer("9:-1"), (9, -1)),
        (buffer("8:19"), (8, 19)),
        (buffer("9:1"), (9, 1)),
        (buffer("9:70", "NoSnapshot"), (9, 1)),
        (NO_TRANSACTIONS, (9, 1)),
        (Response(404, b"<html>no such page"), (9, 1)),
        (Response(204, b""), (9, 1)),
        (Response(200, b""), (9, 1)),
    ],
)
def test_the_end_is_before_a_transaction_that_has_not_ended(
    answer: Any, end: tuple[int, int]
) -> None:
    cluster = FakeCluster(
        {
            "t/lastMessageId": last(9, 1),
            "t/internalStats": stats((8, 20, 2_000), (9, 0, 0), current=(2, 150)),
            TRANSACTIONS: answer,
        }
    )
    found = cluster.client().snapshots([T])[T]
    assert found is not None
    assert found.last_published == end
    assert found.last_stored == (None if end == (9, 1) else (9, 1))
    assert cluster.now_s == 0


@pytest.mark.parametrize(
    "unknown",
    [
        buffer("9:-1", "Initializing"),
        buffer("-1:-1"),
        MISSING,
        Response(503, b"busy"),
        Response(409, b"fenced"),
        Response(412, b'{"reason":"Failed to find ownership for topic:persistent://a/b/c"}'),
    ],
)
def test_a_topic_whose_transactions_are_not_known_yet_is_asked_about_again(unknown: Any) -> None:
    answers = {
        "t/lastMessageId": last(9, 1),
        "t/internalStats": stats((9, 0, 0), current=(2, 150)),
    }
    cluster = FakeCluster(answers | {TRANSACTIONS: [unknown, unknown, buffer("9:0")]})
    found = cluster.client().snapshots([T])[T]
    assert found is not None
    assert found.last_published == (9, 0)
    assert cluster.now_s == pytest.approx(0.1 + 0.2)
    cluster = FakeCluster(answers | {TRANSACTIONS: unknown})
    with pytest.raises(UnreachableError, match=r"tried for 5 s"):
        cluster.client().snapshots([T])
    assert cluster.now_s <= 5


@pytest.mark.parametrize("answer", [[[]], {}, {"state": "Ready", "maxReadPosition": 1}])
def test_transactions_of_another_form_have_a_sentence(answer: Any) -> None:
    cluster = FakeCluster(
        {
            "t/lastMessageId": last(9, 1),
            "t/internalStats": stats((9, 0, 0), current=(2, 150)),
            TRANSACTIONS: answer,
        }
    )
    with pytest.raises(AdminError, match="Stats/public/default/t does not answer as Pulsar does"):
        cluster.client().snapshots([T])


def test_entries_that_are_gone_are_known() -> None:
    cluster = FakeCluster(
        {
            "t/ledger/3/entry/1": Response(200, b"whole"),
            "t/ledger/3/entry/2": Response(500, b"cannot be decompressed"),
            "t/ledger/3/entry/3": [Response(503, b""), Response(200, b"whole")],
        }
    )
    found = cluster.client().fates(T, [(3, entry) for entry in range(1, 5)])
    assert list(found) == [(3, 1), (3, 2), (3, 3), (3, 4)]
    assert list(found.values()) == [Fate.PASSED_OVER, Fate.UNSENT, Fate.PASSED_OVER, Fate.GONE]
    assert cluster.asked.count("t/ledger/3/entry/2") == 1


class _SlowCluster(FakeCluster):
    """Answers about no entry but the first of a ledger; it takes as long as the request waits."""

    def get(self, url: str, timeout_s: float) -> Response:
        answer = super().get(url, timeout_s)
        if "/entry/" in url and not url.endswith("/entry/0"):
            self.now_s += timeout_s
            raise urllib3.exceptions.ReadTimeoutError(None, url, "timed out")  # type: ignore[arg-type]
        return answer


def test_entries_without_an_answer_are_there_if_their_ledger_is() -> None:
    cluster = _SlowCluster(
        {
            "t/internalStats": stats((3, 0, 0), current=(90, 150)),
            "t/ledger/3/entry/0": Response(200, b"whole"),
            TRANSACTIONS: buffer("3:90"),
        }
    )
    client = cluster.client()
    assert client.fates(T, [(3, 7)]) == {(3, 7): Fate.UNSENT}
    assert client.fates(T, [(3, 0), (3, 8), (3, 9)]) == dict.fromkeys(
        [(3, 0), (3, 8), (3, 9)], Fate.UNSENT
    )
    assert cluster.now_s == admin.ENTRY_TIMEOUT_S
    with pytest.raises(UnreachableError, match="t/ledger/4/entry/1 cannot be reached"):
        client.fates(T, [(4, 1)])


def test_an_entry_without_an_answer_is_not_taken_for_held_without_transactions() -> None:
    cluster = _SlowCluster({"t/internalStats": stats((3, 0, 0), current=(90, 150))})
    with pytest.raises(UnreachableError, match="t/ledger/3/entry/7 cannot be reached"):
        cluster.client().fates(T, [(3, 7)])


OF_ONE = {"x-pulsar-txnid-most-bits": "0", "x-pulsar-txnid-least-bits": "1"}
OF_ANOTHER = OF_ONE | {"x-pulsar-txnid-least-bits": "2"}
IN_BUFFER = TRANSACTIONS.replace("/transactionBufferStats/", "/transactionInBufferStats/")


def test_the_broker_says_which_entries_readers_never_get() -> None:
    """It calls a message aborted by itself from 4.0 on, and its transaction before."""
    cluster = _SlowCluster({})
    cluster.answers = {
        f"{BASE}t/ledger/{ledger}/entry/0": [Response(status, b"whole", headers)]
        for ledger, (status, headers) in enumerate(
            [
                (200, {"x-pulsar-marker-type": "21"}),
                (200, OF_ONE | {"x-pulsar-txn-aborted": "true"}),
                (200, OF_ONE),
                (200, OF_ONE),
                (200, {}),
                (200, OF_ANOTHER),
                (404, {"x-pulsar-marker-type": "21"}),
                (401, {"x-pulsar-marker-type": "21"}),
            ]
        )
    }
    cluster.answers[f"{IN_BUFFER}/0/1"] = [{"aborted": True}]
    cluster.answers[f"{IN_BUFFER}/0/2"] = [{"aborted": False}]
    client = cluster.client()
    found = [client.is_unsent(T, (ledger, 0)) for ledger in range(8)]
    assert found == [True] * 4 + [False] * 4
    assert cluster.asked.count(f"{IN_BUFFER}/0/1") == 1
    held = [client.fates(T, [(ledger, 0)])[ledger, 0] for ledger in range(6)]
    assert held == [Fate.UNSENT] * 4 + [Fate.PASSED_OVER] * 2
    assert not client.is_unsent(T, (3, 1)), "it does not answer"
    assert cluster.now_s == admin.ENTRY_TIMEOUT_S


def test_a_transaction_of_which_nothing_is_told_may_be_sent() -> None:
    for answer in (MISSING, {}, Response(200, b"<html>"), urllib3.exceptions.HTTPError("down")):
        cluster = FakeCluster({"t/ledger/3/entry/0": Response(200, b"whole", OF_ONE)})
        cluster.answers[f"{IN_BUFFER}/0/1"] = [answer]
        assert not cluster.client().is_unsent(T, (3, 0))
        assert cluster.client().fates(T, [(3, 0)]) == {(3, 0): Fate.UNSENT}


def test_a_task_that_reads_waits_for_no_admin_api_that_is_down() -> None:
    """The broker of the topic may be another one, and may send again."""
    moving = Response(412, b'{"reason":"Can\'t find owner for topic persistent://a/b/c"}')
    for answer in (urllib3.exceptions.ProtocolError("refused"), moving, Response(503, b"busy")):
        cluster = FakeCluster({"t/ledger/3/entry/0": answer})
        assert not cluster.client().is_unsent(T, (3, 0))
        assert len(cluster.asked) == 1
        assert cluster.now_s == 0


def test_an_answer_that_tells_nothing_of_an_entry_is_an_error() -> None:
    cluster = FakeCluster({"t/ledger/3/entry/1": Response(409, b'{"reason":"fenced"}')})
    with pytest.raises(AdminError, match="t/ledger/3/entry/1 answered 409: fenced"):
        cluster.client().fates(T, [(3, 1)])


@pytest.mark.parametrize(
    ("last", "stats"),
    [
        ([], {}),
        ({"ledgerId": 3}, {"ledgers": []}),
        ({"ledgerId": None, "entryId": 1}, {"ledgers": []}),
        ({"ledgerId": 1e400, "entryId": 1}, {"ledgers": []}),
        ({"ledgerId": 1, "entryId": 1}, {"ledgers": {"x": 1}}),
        ({"ledgerId": 1, "entryId": 1}, {"ledgers": [{"ledgerId": "x"}]}),
    ],
)
def test_answers_of_another_form_have_a_sentence(last: Any, stats: Any) -> None:
    cluster = FakeCluster({"t/lastMessageId": last, "t/internalStats": stats})
    with pytest.raises(AdminError, match="t/internalStats does not answer as Pulsar does"):
        cluster.client().snapshots([T])


def test_a_place_of_another_form_has_a_sentence() -> None:
    cluster = FakeCluster({"t/messageid/5": [{}, {"ledgerId": "s3cret"}]})
    connection = Connection("pulsar://h:1", "http://h:8080", 1_000, 1, Access(token="s3cret"))
    for why in (r"\(KeyError: 'ledgerId'\)", r"\(ValueError: .* '\*\*\*'\)"):
        with pytest.raises(AdminError, match=f"t/messageid/5 does not answer as Pulsar does {why}"):
            AdminClient(connection, cluster.get).positions_at([T], 5)


def test_a_time_gives_the_position_before_its_first_entry() -> None:
    cluster = FakeCluster({"t/messageid/70": last(8, 3), "t/messageid/10": last(8, 0)})
    assert cluster.client().positions_at([T], 70) == {T: Position(8, 2)}
    assert cluster.client().positions_at([T], 10) == {T: Position(8, -1)}
    assert cluster.client().positions_at([T], 5) == {T: Position(-1, -1)}


def test_temporary_failures_are_retried() -> None:
    refused = urllib3.exceptions.ProtocolError("refused")
    busy = Response(503, b"starting")
    cluster = FakeCluster({"t/partitions": [refused, busy, refused, {"partitions": 0}]})
    assert cluster.client().partitions_of([T]) == {T: (T,)}
    assert cluster.now_s == pytest.approx(0.1 + 0.2 + 0.4)


@pytest.mark.parametrize(
    "reason",
    [
        "Can't find owner for topic persistent://a/b/c",
        "Failed to find ownership for topic:persistent://a/b/c",
    ],
)
def test_a_topic_that_moves_to_another_broker_is_asked_about_again(reason: str) -> None:
    moving = Response(412, json.dumps({"reason": reason}).encode())
    cluster = FakeCluster({"t/partitions": [moving, moving, {"partitions": 0}]})
    assert cluster.client().partitions_of([T]) == {T: (T,)}
    assert cluster.now_s == pytest.approx(0.1 + 0.2)


def test_the_deadline_holds_and_the_error_names_the_cause() -> None:
    cluster = FakeCluster({"t/partitions": urllib3.exceptions.ProtocolError("refused")})
    with pytest.raises(AdminError, match=r"cannot be reached: refused \(tried for 5 s\)"):
        cluster.client().partitions_of([T])
    assert cluster.now_s <= 5


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (Response(409, b"plain"), "answered 409: plain"),
        (Response(412, b'{"reason":"Invalid topic name"}'), "answered 412: Invalid topic name"),
        (Response(200, b"<html>"), "did not answer with JSON"),
    ],
)
def test_final_responses_are_not_retried(answer: Response, complaint: str) -> None:
    cluster = FakeCluster({"t/partitions": answer})
    with pytest.raises(AdminError, match=complaint):
        cluster.client().partitions_of([T])
    assert len(cluster.asked) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_are_not_retried_and_not_shown(status: int) -> None:
    cluster = FakeCluster({"t/partitions": Response(status, b'{"reason":"who is s3cret?"}')})
    access = Access(token="s3cret")
    connection = Connection("pulsar://h:6650", "http://h:8080", 1_000, 5_000, access)
    with pytest.raises(AccessError) as caught:
        AdminClient(connection, cluster.get).partitions_of([T])
    assert str(caught.value) == (
        f"{BASE}t/partitions answered {status}: who is ***?; "
        "check the token in authParams and what it permits"
    )
    assert len(cluster.asked) == 1


@pytest.mark.parametrize("status", [200, 400, 403])
@pytest.mark.parametrize("before", [70, 190])
def test_a_secret_at_the_end_of_what_is_shown_is_not_shown(status: int, before: int) -> None:
    body = b"x" * before + b"s3cret-of-36-characters-and-some-more"
    cluster = FakeCluster({"t/partitions": Response(status, body)})
    connection = Connection(
        "pulsar://h:6650",
        "http://h:8080",
        1_000,
        5_000,
        Access(token="s3cret-of-36-characters-and-some-more"),
    )
    with pytest.raises((AdminError, AccessError)) as caught:
        AdminClient(connection, cluster.get).partitions_of([T])
    assert "s3" not in str(caught.value)


def test_an_issuer_that_does_not_answer_is_asked_again() -> None:
    down = TokenUnavailableError("the issuer at https://i does not answer")
    cluster = FakeCluster({"t/partitions": [down, down, {"partitions": 0}]})
    assert cluster.client().partitions_of([T]) == {T: (T,)}
    cluster = FakeCluster({"t/partitions": down})
    with pytest.raises(UnreachableError, match=r"was not asked: the issuer at https://i does not"):
        cluster.client().partitions_of([T])
    assert cluster.now_s > 3


def test_odd_topic_names_are_quoted() -> None:
    cluster = FakeCluster({"a%20b%25/partitions": {"partitions": 0}})
    topic = "persistent://public/default/a b%"
    assert cluster.client().partitions_of([topic]) == {topic: (topic,)}


def test_the_cause_is_found_below_nested_errors() -> None:
    pool = urllib3.HTTPConnectionPool("h")
    hung_up = http.client.RemoteDisconnected("Remote end closed connection")
    no_http = http.client.BadStatusLine("SSH-2.0")
    for error, cause in (
        (urllib3.exceptions.ReadTimeoutError(pool, "/", "Read timed out."), "it took too long"),
        (urllib3.exceptions.ProtocolError("Connection aborted.", hung_up), "Remote end closed"),
        (urllib3.exceptions.ProtocolError("Connection aborted.", no_http), "the answer is not"),
        (urllib3.exceptions.HTTPError("HTTPConnection(host='h', port=1): odd"), "odd"),
        (urllib3.exceptions.HTTPError(), "HTTPError"),
        (urllib3.exceptions.SSLError(ssl.SSLEOFError(8, "EOF")), "it closed the TLS connection"),
    ):
        nested = urllib3.exceptions.MaxRetryError(pool, "/", error)
        assert cause_of(nested).startswith(cause)


def test_the_systems_message_is_the_cause() -> None:
    error = urllib3.exceptions.NewConnectionError(urllib3.connection.HTTPConnection("h"), "no")
    error.__context__ = ConnectionRefusedError(111, "Connection refused")
    assert cause_of(error) == "Connection refused"


class Site(BaseHTTPRequestHandler):
    """``/here`` tells the token, ``/away`` and ``/round`` redirect, ``/endless`` goes on, and
    ``/packed`` is gzip in gzip."""

    def do_GET(self) -> None:
        if self.path == "/endless":
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                while True:
                    self.wfile.write(b" ")
            return
        if self.path.startswith("/packed"):
            body = gzip.compress(gzip.compress(bytes(1_000_000)))
            self.send_response(200)
            self.send_header("Content-Encoding", "gzip, gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        target = {"/away": "/here", "/round": "/round"}.get(self.path)
        body = self.headers.get("Authorization", "none").encode()
        self.send_response(200 if target is None else 307)
        if target is not None:
            self.send_header("Location", target)
        for number in range(150 if self.path == "/properties" else 0):
            self.send_header(f"X-Pulsar-PROPERTY-{number}", "v")
        self.send_header("X-Pulsar-Chunk-Id", "3")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def site() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(10)


def test_the_transport_sends_the_token(site: str) -> None:
    get = http_transport(Access(token="a.b"))
    for path in ("/here", "/away"):
        answer = get(site + path, 10)
        assert (answer.status, answer.body) == (200, b"Bearer a.b")
        assert answer.headers["x-pulsar-chunk-id"] == "3"
    assert http_transport()(f"{site}/away", 10).body == b"none"


def test_endless_redirects_are_an_error(site: str) -> None:
    with pytest.raises(urllib3.exceptions.ProtocolError, match="more than 5 redirects"):
        http_transport()(f"{site}/round", 10)


def test_an_endless_response_ends_at_the_deadline(site: str) -> None:
    with pytest.raises(urllib3.exceptions.TimeoutError, match="did not end in time"):
        http_transport()(f"{site}/endless", 0.2)


def test_an_endless_response_does_not_fill_the_memory(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "BODY_BYTES_MAX", 1_000)
    with pytest.raises(AdminError, match="/endless answers with more than 1,000 bytes"):
        http_transport()(f"{site}/endless", 30)


def test_a_message_with_very_many_properties_is_known(site: str) -> None:
    answer = http_transport()(f"{site}/properties", 30)
    assert (answer.status, answer.headers["x-pulsar-chunk-id"]) == (200, "3")


def test_a_compressed_response_is_not_unpacked(site: str) -> None:
    with pytest.raises(AdminError, match="/packed answers with compressed bytes"):
        http_transport()(f"{site}/packed", 30)


def test_a_response_with_very_many_values_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_bounds, "SEPARATORS_MAX", 10)
    cluster = FakeCluster({"t/partitions": {"partitions": 0, "more": [[]] * 10}})
    with pytest.raises(AdminError, match="did not answer with JSON"):
        cluster.client().partitions_of([T])


@pytest.mark.parametrize("place", ["http://s3cret:99999/", "http://[s3cret"])
def test_a_redirect_shows_no_secret(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    once, first = admin._get_once, Response(307, b"", {"location": place})
    monkeypatch.setattr(admin, "_get_once", lambda *how: first if "//h:2" in how[1] else once(*how))
    connection = Connection("pulsar://h:1", "http://h:2", 1_000, 1, Access(token="s3cret"))
    with pytest.raises(UnreachableError, match=r"Failed to parse: http://\*\*\*|no URL"):
        AdminClient(connection).partitions_of([T])


@pytest.mark.parametrize("path", ["/packed", "/long"])
def test_a_place_of_a_redirect_shows_no_secret_either(
    path: str, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "BODY_BYTES_MAX", 1)
    once, first = admin._get_once, Response(307, b"", {"location": f"{site}{path}?s3cret"})
    monkeypatch.setattr(admin, "_get_once", lambda *how: first if "//h:2" in how[1] else once(*how))
    with pytest.raises(AdminError, match=rf"{path}\?\*\*\* answers with"):
        http_transport(Access(token="s3cret"))("http://h:2/x", 30)
    second = Response(307, b"", {"location": "http://h/"})
    answers = iter([Response(307, b"", {"location": "https://h:2/s3cret"}), second])
    monkeypatch.setattr(admin, "_get_once", lambda *_: next(answers))
    with pytest.raises(AccessError, match=r"^https://h:2/\*\*\* redirects to http://h/, which"):
        http_transport(Access(token="s3cret"))("https://h:1/x", 30)


@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
def test_a_token_is_never_redirected_to_plain_http(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = Response(307, b"", {"location": "http://other:8080/x"})
    monkeypatch.setattr(admin, "_get_once", lambda *_: answer)
    with pytest.raises(AccessError, match=r"://h:1/x redirects to http://other:8080/x, which"):
        http_transport()(f"{scheme}://h:1/x", 10)

"""A client of the cluster's admin API.

Every request has a deadline, ``adminTimeoutMs``, which includes retries. Connection failures and
5xx answers are retried, so that the restart of a broker does not end a query. A 4xx answer and an
untrusted certificate are final. The client follows redirects to the broker that owns the topic, and
sends the token there, but never from https to http.

The client requests ``lastMessageId`` before ``internalStats``, so that the list of ledgers is never
older than the end; and up to where transactions have ended after both.
"""

from __future__ import annotations

import http.client
import math
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urljoin

import urllib3

from pyspark_pulsar.access import NO_ACCESS, Access, tls_refusal
from pyspark_pulsar.body_bounds import (
    BODY_BYTES_MAX,
    begin_of,
    decoded,
    is_plain,
    read_body,
    reason_in,
)
from pyspark_pulsar.entries import EntryId
from pyspark_pulsar.errors import (
    AccessError,
    AdminError,
    TokenUnavailableError,
    UnreachableError,
)
from pyspark_pulsar.missing import Fate
from pyspark_pulsar.offsets import Position, earliest
from pyspark_pulsar.options import Connection
from pyspark_pulsar.property_headers import PoolManager
from pyspark_pulsar.ranges import LedgerSpan, TopicSnapshot
from pyspark_pulsar.resolve import require_topics
from pyspark_pulsar.transactions import (
    NotReadyError,
    is_never_sent,
    is_without_transactions,
    readable_end,
    undecided_transaction,
)

ATTEMPT_TIMEOUT_S = 10.0
"""Longest wait for one answer; the deadline may allow several attempts."""

ENTRY_TIMEOUT_S = 3.0
"""Longest wait for the first answer about one entry."""

PARALLEL_REQUESTS_MAX = 16
"""Most concurrent requests, so that hundreds of partitions take few round trips."""

TOPIC_PARTITIONS_MAX = 100_000
"""Most partitions of one topic. Pulsar has no limit of its own, so its number is what the owner of
the topic wrote, whether the partitions exist or not; the driver holds a name and more for each."""

BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 2.0

_RETRY_STATUS = frozenset({429, 500, 502, 503, 504})
_NO_OWNER = (b"Can't find owner for topic", b"Failed to find ownership for topic")
"""Pulsar's brokers answer 412 with one of these while a topic moves from one to another."""
REDIRECTS_MAX = 5
_URL_CHARACTERS_MAX = 1_000
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_STATS_QUERY = "?subscriptionBacklogSize=false&excludePublishers=true&excludeConsumers=true"
_S = TypeVar("_S")
_T = TypeVar("_T")


class _SilentError(Exception):
    """A request was sent, and got no answer in time."""


class Response(NamedTuple):
    """An HTTP status and body."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}
    """Names in lower case."""


Transport = Callable[[str, float], Response]
"""GET of a URL with a time-out in seconds. Raises :class:`urllib3.exceptions.HTTPError`."""


def http_transport(access: Access = NO_ACCESS) -> Transport:
    """A transport with persistent connections that follows redirects and does not retry.

    This function and the transport raise :class:`AccessError` if a file of ``access`` cannot be
    used.
    """
    pool = PoolManager(
        maxsize=PARALLEL_REQUESTS_MAX,
        block=True,
        retries=False,
        ssl_context=access.ssl_context(),
        assert_hostname=None if access.verify_hostname else False,
    )

    def get(url: str, timeout_s: float) -> Response:
        deadline = time.monotonic() + timeout_s
        for _ in range(REDIRECTS_MAX + 1):
            response = _get_once(pool, url, access, deadline)
            location = response.headers.get("location")
            if response.status not in _REDIRECTS or location is None:
                return response
            try:
                target = urljoin(url, location)
            except ValueError as error:
                raise urllib3.exceptions.ProtocolError("a redirect to no URL") from error
            if url.lower().startswith("https:") and not target.lower().startswith("https:"):
                raise AccessError(
                    f"{_shown(url, access)} redirects to {_shown(target, access)}, which is not "
                    "encrypted"
                )
            url = target
        raise urllib3.exceptions.ProtocolError(f"more than {REDIRECTS_MAX} redirects")

    return get


def _get_once(pool: urllib3.PoolManager, url: str, access: Access, deadline: float) -> Response:
    """One request. The deadline also ends a response that arrives slowly.

    Raises :class:`AdminError` if the response is too long, or compressed.
    """
    left_s = max(0.05, deadline - time.monotonic())
    raw = pool.request(
        "GET",
        url,
        headers=access.headers(),
        redirect=False,
        preload_content=False,
        timeout=urllib3.Timeout(total=left_s),
    )
    lower_case = {name.lower(): value for name, value in raw.headers.items()}
    try:
        if not is_plain(lower_case):
            raise AdminError(
                f"{_shown(url, access)} answers with compressed bytes, for which it was not asked"
            )
        body = read_body(raw, BODY_BYTES_MAX, deadline)
        if body is None:
            shown = _shown(url, access)
            raise AdminError(f"{shown} answers with more than {BODY_BYTES_MAX:,} bytes")
    except BaseException:
        raw.close()
        raise
    raw.release_conn()
    return Response(raw.status, body, lower_case)


def _shown(url: str, access: Access) -> str:
    """A URL as an error may repeat it. A redirect may have led there, which is a server's text."""
    return access.scrubbed(url)[:_URL_CHARACTERS_MAX]


class AdminClient:
    """A client of one cluster's admin API, for the driver and for workers that miss messages."""

    def __init__(
        self,
        connection: Connection,
        transport: Transport | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._root = f"{connection.admin_url}/admin/v2/"
        self._transactions = f"{connection.admin_url}/admin/v3/transactions/"
        self._base = f"{self._root}persistent/"
        self._timeout_s = connection.admin_timeout_ms / 1_000
        self._access = connection.access
        self._transport = transport if transport is not None else http_transport(self._access)
        self._monotonic = monotonic
        self._sleep = sleep
        self._silent: set[tuple[str, int]] = set()
        """Ledgers of topics that are there, with entries about which the broker never answers."""
        self._aborted: set[tuple[str, str]] = set()
        """Topics with transactions of theirs that were aborted."""

    def document(self, path: str) -> Any:
        """The JSON document at ``path`` below ``/admin/v2/``; None for 404."""
        return self._json(f"{self._root}{path}")

    def partitions_of(self, topics: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The partitions of each topic; a topic without partitions stands for itself.

        Raises :class:`TopicNotFoundError` if a topic does not exist, and :class:`AdminError` if one
        has more than :data:`TOPIC_PARTITIONS_MAX`, or an answer is none about partitions.
        """
        found = self.partitions_if_any(topics)
        require_topics(found)
        return found

    def partitions_if_any(self, topics: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """As :meth:`partitions_of`, with an empty tuple for a topic that does not exist."""
        return self._for_each(topics, self._partitions)

    def snapshots(
        self, partitions: Iterable[str], *, with_counts: bool = False
    ) -> dict[str, TopicSnapshot | None]:
        """A snapshot of each partition; None for one that does not exist (yet).

        ``with_counts`` estimates the messages per entry, with one more request for each partition.
        """

        return self._for_each(partitions, lambda topic: self._ready_snapshot(topic, with_counts))

    def positions_at(self, partitions: Iterable[str], publish_ms: int) -> dict[str, Position]:
        """The position just before the first entry published at ``publish_ms`` or later."""

        def position(topic: str) -> Position:
            with self._as_pulsar_answers(self._url(topic, f"messageid/{publish_ms}")):
                return self._position_at(topic, publish_ms)

        return self._for_each(partitions, position)

    def ledgers(self, topic: str) -> tuple[LedgerSpan, ...]:
        """The current ledgers of ``topic``, in order; none if it does not exist."""
        stats = self._get(topic, "internalStats")
        with self._as_pulsar_answers(self._url(topic, "internalStats")):
            return () if stats is None else _ledger_spans(stats)

    def fates(self, topic: str, entries: Iterable[EntryId]) -> dict[EntryId, Fate]:
        """What became of each of these entries of ``topic``, which did not arrive."""
        return self._for_each(entries, lambda entry: self._fate(topic, entry))

    def is_unsent(self, topic: str, entry: EntryId) -> bool:
        """Whether readers never get an entry that ``topic`` holds: a marker, or a message of an
        aborted transaction. False as well if the broker does not tell."""
        try:
            headers = self._told(self._url(topic, _entry_path(*entry))).headers
            return self._fate_of_held(topic, headers) is Fate.UNSENT
        except (urllib3.exceptions.HTTPError, AdminError, AccessError):
            return False

    def _fate_of_held(self, topic: str, headers: Mapping[str, str]) -> Fate:
        """What the headers about an entry that ``topic`` holds tell of its fate.

        Raises as :meth:`_told` if the broker does not tell whether its transaction was aborted.
        """
        if is_never_sent(headers):
            return Fate.UNSENT
        transaction = undecided_transaction(headers)
        if not transaction:
            return Fate.PASSED_OVER
        if (topic, transaction) not in self._aborted:
            url = f"{self._buffer_url(topic, 'transactionInBufferStats')}/{transaction}"
            with self._as_pulsar_answers(url):
                if decoded(self._told(url).body)["aborted"] is not True:
                    return Fate.PASSED_OVER
            self._aborted.add((topic, transaction))
        return Fate.UNSENT

    def _told(self, url: str) -> Response:
        """The answer about an entry or transaction, of one attempt: meanwhile nobody reads.

        Raises :class:`AdminError`, :class:`AccessError` and :class:`urllib3.exceptions.HTTPError`
        without one.
        """
        response = self._transport(url, min(self._timeout_s, ENTRY_TIMEOUT_S))
        if response.status != 200:
            raise AdminError(f"{url} answered {response.status}: {self._reason_in(response)}")
        return response

    def _fate(self, topic: str, entry: EntryId) -> Fate:
        """What became of an entry of ``topic``.

        Pulsar's brokers answer 500, or never, about a compressed chunk: they cannot decompress it
        alone. Brokers with transactions trim whole ledgers, so an entry without an answer is there
        if its ledger is. No other entry of that ledger costs the wait.
        """
        ledger = topic, entry[0]
        if ledger in self._silent:
            return Fate.UNSENT
        url, retry_status = self._url(topic, _entry_path(*entry)), _RETRY_STATUS - {500}
        try:
            response = self._request(url, retry_status, ENTRY_TIMEOUT_S)
        except _SilentError:
            is_held = any(each.ledger_id == entry[0] for each in self.ledgers(topic))
            if is_held and self._request(self._buffer_url(topic)).status == 200:
                self._silent.add(ledger)
                return Fate.UNSENT
            response = self._request(url, retry_status)
        if response.status not in (200, 404, 500):
            raise AdminError(f"{url} answered {response.status}: {self._reason_in(response)}")
        if response.status != 200:
            return Fate.GONE if response.status == 404 else Fate.UNSENT
        try:
            return self._fate_of_held(topic, response.headers)
        except (urllib3.exceptions.HTTPError, AdminError, AccessError):
            return Fate.UNSENT

    def _partitions(self, topic: str) -> tuple[str, ...]:
        metadata = self._get(topic, "partitions")
        if metadata is None:
            return ()
        count = metadata.get("partitions", 0) if isinstance(metadata, dict) else None
        if not isinstance(count, int):
            raise AdminError(f"{self._url(topic, 'partitions')} answered without a number")
        if count > TOPIC_PARTITIONS_MAX:
            raise AdminError(
                f"{topic} has more than {TOPIC_PARTITIONS_MAX:,} partitions, as its cluster says: "
                "so many are not read"
            )
        if count <= 0:
            return (topic,)
        return tuple(f"{topic}-partition-{index}" for index in range(count))

    def _ready_snapshot(self, topic: str, with_counts: bool) -> TopicSnapshot | None:
        """A snapshot, as soon as the broker knows which transactions of the topic have ended.

        Raises :class:`UnreachableError` if it does not within ``adminTimeoutMs``.
        """
        deadline = self._monotonic() + self._timeout_s
        pause_s = BACKOFF_FIRST_S
        while True:
            try:
                with self._as_pulsar_answers(self._url(topic, "internalStats")):
                    return self._snapshot(topic, with_counts)
            except NotReadyError as error:
                if self._monotonic() + pause_s >= deadline:
                    raise UnreachableError(
                        f"the broker does not know yet which transactions of {topic} have ended "
                        f"({error}; tried for {self._timeout_s:g} s)"
                    ) from error
            self._sleep(pause_s)
            pause_s = min(2 * pause_s, BACKOFF_MAX_S)

    def _snapshot(self, topic: str, with_counts: bool) -> TopicSnapshot | None:
        last = self._get(topic, "lastMessageId")
        stats = self._get(topic, "internalStats") if last is not None else None
        if last is None or stats is None:
            return None
        per_entry = float(max(1, int(last.get("batchIndex", -1)) + 1))
        if with_counts:
            counters = self._get(topic, f"stats{_STATS_QUERY}") or {}
            entries_added = int(stats.get("entriesAddedCounter", 0))
            if entries_added > 0 and int(counters.get("msgInCounter", 0)) >= entries_added:
                per_entry = int(counters["msgInCounter"]) / entries_added
        end = int(last["ledgerId"]), int(last["entryId"])
        readable = self._readable_end(topic, end) if min(end) >= 0 else None
        return TopicSnapshot(
            ledgers=_ledger_spans(stats),
            last_published=readable,
            messages_per_entry=per_entry,
            last_stored=end if readable not in (None, end) else None,
        )

    def _readable_end(self, topic: str, last: EntryId) -> EntryId:
        """``last``, or the entry before the first one of a transaction that has not ended."""
        url = self._buffer_url(topic)
        response = self._request(url)
        with self._as_pulsar_answers(url):
            return readable_end(response.status, response.body, last)

    def _position_at(self, topic: str, publish_ms: int) -> Position:
        found = self._get(topic, f"messageid/{publish_ms}")
        before_all = earliest(topic)
        if found is None:
            return before_all
        first = before_all._replace(
            ledger_id=int(found["ledgerId"]), entry_id=int(found["entryId"])
        )
        return first.before() if first.ledger_id >= 0 else before_all

    def _for_each(self, subjects: Iterable[_S], ask: Callable[[_S], _T]) -> dict[_S, _T]:
        names = list(subjects)
        if len(names) <= 1:
            return {name: ask(name) for name in names}
        with ThreadPoolExecutor(min(len(names), PARALLEL_REQUESTS_MAX)) as pool:
            return dict(zip(names, pool.map(ask, names), strict=True))

    def _get(self, topic: str, resource: str) -> Any:
        """The JSON response to a request about a topic; None for 404."""
        return self._json(self._url(topic, resource))

    def _json(self, url: str) -> Any:
        response = self._request(url)
        if response.status == 404:
            return None
        if response.status != 200:
            raise AdminError(f"{url} answered {response.status}: {self._reason_in(response)}")
        try:
            return decoded(response.body)
        except ValueError as error:
            begin = begin_of(response.body, self._access.scrubbed, 80)
            raise AdminError(f"{url} did not answer with JSON: {begin!r}") from error

    def _url(self, topic: str, resource: str) -> str:
        path = topic.removeprefix("persistent://")
        return f"{self._base}{quote(path, safe='/')}/{resource}"

    def _buffer_url(self, topic: str, resource: str = "transactionBufferStats") -> str:
        path = quote(topic.removeprefix("persistent://"), safe="/")
        return f"{self._transactions}{resource}/{path}"

    @contextmanager
    def _as_pulsar_answers(self, url: str) -> Iterator[None]:
        """Raise :class:`AdminError` where a field of an answer is missing, or of another kind."""
        try:
            yield
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            why = f"{type(error).__name__}: {self._access.scrubbed(str(error)):.80}"
            raise AdminError(f"{url} does not answer as Pulsar does ({why})") from error

    def _reason_in(self, response: Response) -> str:
        return reason_in(response.body, self._access.scrubbed)

    def _request(
        self,
        url: str,
        retry_status: frozenset[int] = _RETRY_STATUS,
        silence_s: float = math.inf,
    ) -> Response:
        """The first final response.

        Raises :class:`UnreachableError` if there is none before the deadline,
        :class:`_SilentError` if a request got no answer for ``silence_s``, if that is given, and
        :class:`AccessError` if the server refuses the credentials or its certificate is not
        trusted, or there are none.
        """
        deadline = self._monotonic() + self._timeout_s
        backoff_s = BACKOFF_FIRST_S
        while True:
            left_s = deadline - self._monotonic()
            try:
                wait_s = min(left_s, ATTEMPT_TIMEOUT_S, silence_s)
                response = self._transport(url, max(0.05, wait_s))
                if response.status in (401, 403):
                    raise AccessError(
                        f"{url} answered {response.status}: {self._reason_in(response)}; "
                        f"{self._access.advice()}"
                    )
                if _is_final(response, retry_status):
                    return response
                problem = f"answered {response.status}: {self._reason_in(response)}"
            except TokenUnavailableError as error:
                problem = f"was not asked: {error}"
            except urllib3.exceptions.HTTPError as error:
                refused = tls_refusal(error)
                if refused is not None:
                    raise AccessError(f"{url}: no TLS connection, {refused}") from error
                if silence_s < math.inf and isinstance(error, urllib3.exceptions.ReadTimeoutError):
                    raise _SilentError from error
                problem = f"cannot be reached: {self._access.scrubbed(cause_of(error))}"
            if self._monotonic() + backoff_s >= deadline:
                raise UnreachableError(f"{url} {problem} (tried for {self._timeout_s:g} s)")
            self._sleep(backoff_s)
            backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)


def _is_final(response: Response, retry_status: frozenset[int]) -> bool:
    """Whether a retry would have the same answer."""
    if response.status == 412:
        return not any(text in response.body for text in _NO_OWNER)
    if is_without_transactions(response.status, response.body):
        return True
    return response.status not in retry_status


def _entry_path(ledger_id: int, entry_id: int) -> str:
    return f"ledger/{ledger_id}/entry/{entry_id}"


def cause_of(error: BaseException) -> str:
    """The reason at the bottom of nested errors of an HTTP client."""
    below = getattr(error, "reason", None)
    if not isinstance(below, Exception):
        below = next((each for each in error.args[::-1] if isinstance(each, Exception)), None)
    if below is not None:
        return cause_of(below)
    if isinstance(error, http.client.BadStatusLine) and not isinstance(error, OSError):
        return "the answer is not HTTP"
    if isinstance(error, ssl.SSLEOFError):
        return "it closed the TLS connection; it may require a client certificate"
    if isinstance(error.__context__, OSError) and error.__context__.strerror:
        return error.__context__.strerror
    if isinstance(error, urllib3.exceptions.TimeoutError):
        return "it took too long to answer"
    # Some texts of the client begin with its repr, "HTTPConnection(host='h', port=1): ".
    return str(error).rpartition("): ")[2] or type(error).__name__


def _ledger_spans(stats: Any) -> tuple[LedgerSpan, ...]:
    """The ledgers of ``internalStats``. Other fields count the open one, which is last."""
    spans = [
        LedgerSpan(int(ledger["ledgerId"]), int(ledger["entries"]), int(ledger["size"]))
        for ledger in stats["ledgers"]
    ]
    if spans:
        newest = spans[-1]
        spans[-1] = LedgerSpan(
            newest.ledger_id,
            max(newest.entries, int(stats["currentLedgerEntries"])),
            max(newest.size_bytes, int(stats["currentLedgerSize"])),
        )
    return tuple(spans)

"""Requests to the brokers of one Pulsar cluster, read-only.

Brokers answer for the topics that they own and send other requests on, with status 307. The client
follows within the cluster and remembers the owner of each topic, so that the next request goes
there at once. Credentials go to the admin URL and to brokers that the cluster itself names, and
nowhere else.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from headgate.access.admin_api import (
    AccessRefusedError,
    AdminUrlError,
    UnreachableError,
    reason_in,
    split_url,
)
from headgate.access.authentication import Say, authentication
from headgate.access.client_config import ClientConfig
from headgate.access.refusals import REFUSALS, advice, scrubbed
from headgate.agent.http_transport import HttpTransport, origin
from headgate.agent.questions import topic_path
from headgate.agent.transport import RawReply, Transport
from headgate.base.clock import Clock
from headgate.base.errors import HeadgateError
from headgate.base.names import parse_topic
from headgate.base.units import MIB, NS_PER_S
from headgate.base.web_hosts import names_user

TIMEOUT_S: Final = 10.0
ANSWER_BYTES_MAX: Final = 16 * MIB
"""Largest answer but for surveys, of which one comes at a time: others come by the dozen. The
statistics of a topic with 10,000 consumers have about 10 MB."""
OK: Final = (200, 204)
REDIRECTS: Final = (301, 302, 307, 308)
HOPS_MAX: Final = 5
"""A topic that moves is sent on twice; a longer way is a loop."""
OWNERS_MAX: Final = 10_000
"""Topics whose owner is remembered."""
LOOKUP_PATH: Final = "/lookup/v2/topic/"

_REASON_CHARACTERS_MAX: Final = 300
_SERVER_CHARACTERS_MAX: Final = 300
_PLAIN_URL: Final = re.compile(
    r"https?://[^@\\\s\x00-\x20/?#]+(?:[/?][^\\\s\x00-\x20]*)?", re.IGNORECASE
)
"""A URL without a user, and without what libraries take apart in different ways: credentials would
go to another host than the one that was checked."""


class RedirectError(HeadgateError):
    """A broker sends a request on to where it may not go, or in circles."""


class NotABrokerError(HeadgateError):
    """What answers is no broker: a proxy, or another server. The text is one sentence."""


class Reply(NamedTuple):
    """A broker's answer; its status may be any but that of a redirect or a refusal."""

    status: int
    body: bytes | bytearray
    at_ns: int
    """Monotonic: the middle of the request that was answered."""
    took_s: float
    """Of all requests, redirects included."""
    owner: str
    """The broker that answered, as it is listed; empty if a balancer hides it."""
    requests: int
    """How many were sent: one more for each redirect."""
    reason: str
    """Why the broker did not do what it was asked, in its words and without a secret that was sent;
    empty if it did, or says none."""

    @property
    def is_ok(self) -> bool:
        """Whether the broker did what it was asked. What is not set has an answer without
        content."""
        return self.status in OK


class ClusterClient:
    """The brokers of one cluster. Several threads may use it at the same time."""

    def __init__(
        self,
        config: ClientConfig,
        environment: Mapping[str, str],
        clock: Clock,
        *,
        say: Say = lambda _text: None,
        transport: Transport | None = None,
    ) -> None:
        """``environment`` has secrets that ``config`` names, ``say`` gets warnings.

        Raises:
            InputError: the credentials have another form than their plugin's, or a file of
                certificates cannot be used.
            AdminUrlError: the admin URL is none.
        """
        self._config = config
        self._authentication = authentication(config, environment, say)
        self._clock = clock
        try:
            self._home = origin(config.admin_url)
            self._prefix = split_url(config.admin_url).path.rstrip("/")
        except AdminUrlError as error:
            raise AdminUrlError(f"{config.url_origin} is {error}") from error
        self._transport = transport or HttpTransport(config, clock)
        self._lock = threading.Lock()
        self._of_thread = threading.local()
        self._owners: OrderedDict[str, str] = OrderedDict()
        self._brokers: dict[str, str] = {}
        """The origin of each listed broker."""
        self._named: set[str] = set()
        """Origins that a lookup named."""

    @property
    def url(self) -> str:
        """The admin URL, as it was given."""
        return self._config.admin_url

    @property
    def brokers(self) -> list[str]:
        """The brokers that the cluster lists; empty while it is not known."""
        return list(self._brokers)

    def close(self) -> None:
        """Close idle connections."""
        self._transport.close()

    def note_brokers(self, brokers: Iterable[str]) -> None:
        """The cluster lists these brokers, as ``host:port``.

        Raises:
            NotABrokerError: a text is no ``host:port``.
        """
        listed = list(brokers)
        scheme, where = self._home.split("://")
        found = {}
        for broker in listed:
            try:
                found[broker] = origin(f"{scheme}://{broker}")
            except AdminUrlError as error:
                raise NotABrokerError(f"{self.url} lists a broker {broker[:80]!r}") from error
        if scheme == "https":
            # A broker is listed by its port without TLS, if it has one.
            port = where.rpartition(":")[2]
            found = {name: f"{url.rpartition(':')[0]}:{port}" for name, url in found.items()}
        with self._lock:
            # A single broker may list itself by a name that is only known on its machine.
            self._brokers = dict.fromkeys(found, self._home) if len(found) == 1 else found
            known = {*self._brokers, where}
            for topic in [t for t, owner in self._owners.items() if owner not in known]:
                del self._owners[topic]

    def note_owner(self, topic: str, broker: str) -> None:
        """``broker`` answered for ``topic``."""
        with self._lock:
            self._owners[topic] = broker
            self._owners.move_to_end(topic)
            while len(self._owners) > OWNERS_MAX:
                self._owners.popitem(last=False)

    def owner_of(self, topic: str) -> str:
        """The broker that answered last for a topic; empty if none is remembered."""
        with self._lock:
            return self._owners.get(topic, "")

    def forget_owner(self, topic: str) -> None:
        """The topic may have moved: ask the admin URL next."""
        with self._lock:
            self._owners.pop(topic, None)

    def get(
        self,
        path: str,
        *,
        owner: str = "",
        topic: str = "",
        timeout_s: float = TIMEOUT_S,
        bytes_max: int = ANSWER_BYTES_MAX,
    ) -> Reply:
        """A broker's answer to one GET.

        Args:
            path: encoded, from the first slash on, with its query.
            owner: the listed broker to ask; the remembered owner of ``topic`` or the admin URL if
                it is empty or not listed.
            topic: whose owner is remembered, if ``path`` is about one.
            timeout_s: for each request.
            bytes_max: most bytes of an answer.

        Raises:
            InputError: a file of credentials or certificates cannot be used.
            UnreachableError: no answer.
            AccessRefusedError: the credentials are refused.
            RedirectError: the request is sent on to a foreign server, or in circles.
            NotABrokerError: a web page answers.
            TokenUnavailableError: the issuer of tokens gives none.
        """
        url = self._url(owner or self.owner_of(topic), path)
        start_ns = self._clock.monotonic_ns()
        seen: list[str] = []
        while True:
            seen.append(url)
            begin_ns = self._clock.monotonic_ns()
            raw = self._send(url, topic, timeout_s, bytes_max)
            end_ns = self._clock.monotonic_ns()
            if raw.status not in REDIRECTS:
                break
            url = self._following(url, raw, seen, topic)
        answered = self._name(url)
        if raw.status in REFUSALS:
            raise self._refusal(raw)
        if raw.status == 200 and _is_page(raw):
            raise NotABrokerError(
                f"{origin(url)} answers with a web page, as a proxy or another server does: "
                "--admin-url must name a broker's admin API"
            )
        if topic and answered and raw.status == 200:
            self.note_owner(topic, answered)
        took_s = (end_ns - start_ns) / NS_PER_S
        return Reply(
            raw.status, raw.body, (begin_ns + end_ns) // 2, took_s, answered, len(seen),
            "" if raw.status in OK else self._reason(raw),
        )  # fmt: skip

    def take_sent(self) -> int:
        """How many requests the calling thread has sent since it last asked this: also those that
        got no answer, led nowhere, or asked for the owner of a topic."""
        sent: int = getattr(self._of_thread, "sent", 0)
        self._of_thread.sent = 0
        return sent

    def _send(self, url: str, topic: str, timeout_s: float, bytes_max: int) -> RawReply:
        with self._lock:
            # A token is asked of its issuer once, not by each thread.
            headers = self._authentication.headers()
        self._of_thread.sent = getattr(self._of_thread, "sent", 0) + 1
        try:
            return self._transport.get(url, headers, timeout_s, bytes_max)
        except UnreachableError:
            if topic:
                self.forget_owner(topic)
            raise

    def _url(self, broker: str, path: str) -> str:
        server = self._brokers.get(broker, self._home)
        return f"{server}{self._prefix if server == self._home else ''}{path}"

    def _name(self, url: str) -> str:
        """The broker at a URL, as it is listed. The admin URL may be that of a balancer, behind
        which any broker answers."""
        server = origin(url)
        names = (name for name, listed in self._brokers.items() if listed == server)
        return next(names, "" if server == self._home else server.partition("://")[2])

    def _following(self, url: str, raw: RawReply, seen: list[str], topic: str) -> str:
        """Where a redirect leads."""
        where = raw.headers.get("location", "")
        shown = scrubbed(where, self._authentication)[:80]
        if topic:
            self.forget_owner(topic)
        if names_user(where):
            raise RedirectError(
                f"{origin(url)} sends the request on to a URL with a user: no credentials go there"
            )
        if where.lower().startswith("http") and not _PLAIN_URL.fullmatch(where):
            raise RedirectError(
                f"{origin(url)} sends the request on to {shown!r}, a URL with "
                "characters that none has: no credentials go there"
            )
        try:
            server = origin(where) if "://" in where else ""
        except AdminUrlError:
            server = ""
        if not server:
            raise RedirectError(f"{origin(url)} sends the request on to {shown!r}, no URL")
        if where in seen or len(seen) > HOPS_MAX:
            raise RedirectError(f"{origin(url)} sends the request on in circles")
        if not (self._is_listed(server) or self._is_named(server, topic)):
            shown = scrubbed(server, self._authentication)[:_SERVER_CHARACTERS_MAX]
            raise RedirectError(
                f"{origin(url)} sends the request on to {shown}, which is no broker that the "
                "cluster lists: no credentials go there"
            )
        return where

    def _is_listed(self, server: str) -> bool:
        if server == self._home or server in self._named or server in self._brokers.values():
            return True
        # Over TLS the certificate proves the host, whatever its port.
        hosts = {_host(listed) for listed in self._brokers.values()}
        return _is_tls(server) and _is_tls(self._home) and _host(server) in hosts

    def _is_named(self, server: str, topic: str) -> bool:
        """Whether the cluster names ``server`` as the owner of a topic, where the role may not
        list brokers."""
        if not topic or self._brokers or _is_tls(server) != _is_tls(self._home):
            return False
        path = f"{LOOKUP_PATH}{topic_path(parse_topic(topic))}"
        raw = self._send(self._url("", path), "", TIMEOUT_S, ANSWER_BYTES_MAX)
        try:
            found = msgspec.json.decode(raw.body, type=dict[str, str | None])
            named = {
                origin(found[key] or "") for key in ("httpUrl", "httpUrlTls") if found.get(key)
            }
        except (msgspec.MsgspecError, AdminUrlError):
            return False
        if raw.status != 200 or server not in named:
            return False
        self._named.add(server)
        return True

    def _refusal(self, raw: RawReply) -> AccessRefusedError:
        reason = self._reason(raw) or "no reason is given"
        said = advice(raw.status, reason, self._config, self._authentication)
        return AccessRefusedError(self.url, raw.status, reason, said)

    def _reason(self, raw: RawReply) -> str:
        """Why a broker does not do what it is asked. It may repeat what was sent, and the readers
        of an agent see it."""
        return scrubbed(reason_in(raw.body), self._authentication)[:_REASON_CHARACTERS_MAX]


def _is_page(raw: RawReply) -> bool:
    kind = raw.headers.get("content-type", "")
    return "html" in kind or raw.body[:64].lstrip()[:1] == b"<"


def _is_tls(server: str) -> bool:
    return server.startswith("https:")


def _host(server: str) -> str:
    return urlsplit(server).hostname or ""

"""Connections to brokers by Pulsar's binary protocol, and the way to the broker of a topic.

A connection answers PING, and AUTH_CHALLENGE with the present credentials, whenever something is
read from it. It sends a PING of its own after :data:`PING_AFTER_S` without a byte, and has ended
after twice that time: a broker that vanished says nothing.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from pyspark_pulsar import commands
from pyspark_pulsar.access import Access, tls_refusal
from pyspark_pulsar.commands import CommandType, LookupType, ServerError, StoredEntry
from pyspark_pulsar.errors import (
    AccessError,
    PulsarSourceError,
    RefusedReadError,
    TokenUnavailableError,
    TopicNotFoundError,
)
from pyspark_pulsar.frame_reader import FrameReader, Peer
from pyspark_pulsar.handshake import connect_frame
from pyspark_pulsar.options import Connection
from pyspark_pulsar.tls_peer import TlsPeer

CONNECT_S_MAX: Final = 10.0
"""Longest wait for one TCP connection; ``operationTimeoutMs`` may hold several."""

SEND_S_MAX: Final = 10.0
"""Longest wait until the broker takes a command. Commands have some hundred bytes."""

PING_AFTER_S: Final = 15.0
REDIRECTS_MAX: Final = 20
"""As many as Pulsar's clients follow."""

_WHY_CHARACTERS_MAX: Final = 300
_PORT, _TLS_PORT = 6_650, 6_651
_REFUSALS: Final = (ServerError.AUTHENTICATION, ServerError.AUTHORIZATION)
_PERMANENT: Final = (
    ServerError.UNSUPPORTED_VERSION,
    ServerError.INVALID_TOPIC_NAME,
    ServerError.NOT_ALLOWED,
)
_ANSWERS: Final = {
    CommandType.SUCCESS: "success",
    CommandType.LOOKUP_RESPONSE: "lookup_response",
    CommandType.GET_LAST_MESSAGE_ID_RESPONSE: "last_id_response",
}
"""The fields of answers, which have a ``request_id``."""

log = logging.getLogger("pyspark_pulsar")


class TransientError(Exception):
    """A connection ended, or a request failed, and another attempt may succeed."""


class RequestError(Exception):
    """The broker refused a request: the code of ``ServerError``, and its text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code, self.text = code, text


class Address(NamedTuple):
    """Where a broker or proxy listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


Dial = Callable[[Address, float], Any]
"""Opens a TCP connection within so many seconds. Raises OSError."""


def dial(address: Address, timeout_s: float) -> socket.socket:
    """A TCP connection that sends small commands at once."""
    peer = socket.create_connection(address, timeout_s)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


class BrokerConnection:
    """One connection. Its methods raise :class:`TransientError` when it has ended."""

    def __init__(
        self, peer: Peer, address: Address, access: Access, monotonic: Callable[[], float]
    ) -> None:
        self.address = address
        self._peer, self._access, self._monotonic = peer, access, monotonic
        self._frames = FrameReader(peer, monotonic)
        self._requests = 0
        self._has_pinged = False
        self._credentials = ("", "")
        self.buffered_entry = self._frames.buffered_entry
        """The fast path to the next entry; see :class:`FrameReader`."""

    def greet(self, broker: str, deadline_s: float) -> None:
        """Open the connection by CONNECT, to ``broker`` (HOST:PORT) if the peer is a proxy.

        Raises :class:`RequestError` if the broker refuses it, and :class:`AccessError` if
        credentials cannot be read.
        """
        self._credentials = self._access.presented()
        self.send(connect_frame(self._access, broker=broker, answers_challenges=True))
        while True:
            found = self._awaited(deadline_s)
            if found.type == CommandType.CONNECTED:
                return
            if found.type == CommandType.ERROR:
                raise RequestError(found.error.error, _error_text(found.error, self._access))

    def new_request(self) -> int:
        """The id of the next request."""
        self._requests += 1
        return self._requests

    def ask(self, frame: bytes, request_id: int, kind: CommandType, deadline_s: float) -> Any:
        """The answer to a request: the field of a command of the type ``kind``.

        Raises :class:`RequestError` if the broker answers with an error.
        """
        self.send(frame)
        while True:
            found = self._awaited(deadline_s)
            if found.type == CommandType.ERROR and found.error.request_id == request_id:
                raise RequestError(found.error.error, _error_text(found.error, self._access))
            if found.type == CommandType.CLOSE_CONSUMER:
                raise TransientError("the broker closed the reader")
            if found.type == kind:
                answer = getattr(found, _ANSWERS[kind])
                if answer.request_id == request_id:
                    return answer

    def lookup(self, topic: str, deadline_s: float, **how: bool) -> commands.LookupAnswer:
        """Which broker has the topic; ``how``: ``is_authoritative`` and ``is_tls``."""
        number = self.new_request()
        frame = commands.lookup_frame(topic, number, is_authoritative=how["is_authoritative"])
        answer = self.ask(frame, number, CommandType.LOOKUP_RESPONSE, deadline_s)
        if answer.response == LookupType.FAILED:
            raise RequestError(answer.error, _error_text(answer, self._access))
        return commands.lookup_answer(answer, is_tls=how["is_tls"])

    def next(self, deadline_s: float) -> StoredEntry | Any | None:
        """The next entry, or a command that this class does not answer; None if none came in time.

        ``deadline_s`` is of the monotonic clock.
        """
        with _ended():
            while True:
                now_s = self._monotonic()
                found = self._frames.next_frame(min(deadline_s, now_s + PING_AFTER_S))
                if found is None:
                    self._notice_silence()
                elif isinstance(found, StoredEntry) or not self._answer(found):
                    return found
                if self._monotonic() >= deadline_s:
                    return None

    def send(self, frame: bytes) -> None:
        """Send a command."""
        with _ended():
            self._peer.settimeout(SEND_S_MAX)
            self._peer.sendall(frame)

    def close(self) -> None:
        """End the connection. A failure to do so is of no consequence."""
        with suppress(OSError):
            self._peer.close()

    def _awaited(self, deadline_s: float) -> Any:
        """The next command that is no entry, which has to come in time."""
        while True:
            found = self.next(deadline_s)
            if found is None or self._monotonic() >= deadline_s:
                raise TransientError(f"{self.address} does not answer in time")
            if not isinstance(found, StoredEntry):
                return found

    def _answer(self, command: Any) -> bool:
        """Whether the command needs nothing else."""
        kind = command.type
        if kind == CommandType.PING:
            self.send(commands.PONG_FRAME)
        elif kind == CommandType.AUTH_CHALLENGE:
            try:
                self._credentials = self._access.presented()
            except AccessError as error:
                log.warning("%s; the connection goes on with those that it has", error)
            self.send(commands.auth_response_frame(*self._credentials))
        return kind in (CommandType.PING, CommandType.PONG, CommandType.AUTH_CHALLENGE)

    def _notice_silence(self) -> None:
        silent_s = self._frames.silent_s
        if silent_s >= 2 * PING_AFTER_S:
            raise TransientError(f"{self.address} sent nothing for {silent_s:.0f} s")
        if silent_s < PING_AFTER_S:
            self._has_pinged = False
        elif not self._has_pinged:
            self._has_pinged = True
            self.send(commands.PING_FRAME)


@dataclass(frozen=True, slots=True)
class Dialer:
    """Opens connections to the brokers of a cluster.

    Its methods raise :class:`AccessError` if credentials are refused or a certificate is not
    trusted, and :class:`TransientError` if another attempt may succeed.
    """

    connection: Connection
    dial: Dial = dial
    monotonic: Callable[[], float] = time.monotonic

    @property
    def addresses(self) -> list[Address]:
        """The hosts of the service URL."""
        where = urlsplit(self.connection.service_url)
        return [_address(f"{where.scheme}://{host}") for host in where.netloc.split(",")]

    def to_topic(self, topic: str, address: Address) -> BrokerConnection:
        """A connection to the broker of a topic, which the broker or proxy at ``address`` names.

        Raises :class:`TopicNotFoundError` and :class:`RefusedReadError`, too.
        """
        deadline_s = self.monotonic() + self.connection.operation_timeout_ms / 1_000
        is_tls, is_authoritative = self._is_tls, False
        for _ in range(REDIRECTS_MAX + 1):
            asked = self.open(address, deadline_s)
            is_kept = False
            try:
                how = {"is_authoritative": is_authoritative, "is_tls": is_tls}
                answer = asked.lookup(topic, deadline_s, **how)
                target = _named(answer.url, topic, address)
                is_kept = not answer.is_redirect and not answer.through_proxy and target == address
            except RequestError as error:
                raise refusal(self.connection, topic, error) from error
            finally:
                if not is_kept:
                    asked.close()
            if is_kept:
                return asked
            if not answer.is_redirect:
                if answer.through_proxy:
                    return self.open(address, deadline_s, broker=str(target))
                return self.open(target, deadline_s)
            address, is_authoritative = target, answer.is_authoritative
        raise TransientError(f"more than {REDIRECTS_MAX} redirects to the broker of {topic}")

    def open(self, address: Address, deadline_s: float, broker: str = "") -> BrokerConnection:
        """A connection that the broker or proxy at ``address`` has accepted."""
        access, url = self.connection.access, self.connection.service_url
        peer: Any = None
        try:
            peer = self._secured(address, deadline_s)
            opened = BrokerConnection(peer, address, access, self.monotonic)
            opened.greet(broker, deadline_s)
        except BaseException as error:
            if peer is not None:
                with suppress(OSError):
                    peer.close()
            if isinstance(error, RequestError):
                raise refusal(self.connection, "", error) from error
            if isinstance(error, TokenUnavailableError):
                raise TransientError(str(error)) from error
            refused = tls_refusal(error) if isinstance(error, (OSError, TransientError)) else None
            if refused is not None:
                raise AccessError(f"{url}: no TLS connection, {refused}") from error
            if isinstance(error, (OSError, UnicodeError)):  # the latter: a host that is none
                raise TransientError(f"{address}: {error}") from error
            raise
        return opened

    @property
    def _is_tls(self) -> bool:
        return self.connection.service_url.startswith("pulsar+ssl:")

    def _secured(self, address: Address, deadline_s: float) -> Any:
        """A TCP connection, with TLS if the service URL says so."""
        context = self.connection.access.ssl_context() if self._is_tls else None
        left_s = deadline_s - self.monotonic()
        if left_s <= 0:
            raise TransientError(f"{address}: no connection in time")
        peer = self.dial(address, min(CONNECT_S_MAX, left_s))
        if context is None:
            return peer
        try:
            secured = TlsPeer(peer, context, address.host)
            secured.shake_hands(deadline_s, self.monotonic)
            return secured
        except BaseException:
            peer.close()
            raise


def refusal(
    connection: Connection, topic: str, error: RequestError
) -> PulsarSourceError | TransientError:
    """What a broker's error means to a query. ``topic`` is "" for the connection itself."""
    access, url, why = connection.access, connection.service_url, error.text
    if error.code in _REFUSALS:
        what = f"access to {topic}" if topic else "the connection"
        return AccessError(f"{url} refuses {what} ({why}): {access.advice()}")
    if error.code == ServerError.TOPIC_NOT_FOUND:
        return TopicNotFoundError(f"{url} has no topic {topic} ({why})")
    if error.code in _PERMANENT:
        return RefusedReadError(f"{url} refuses to read {topic or 'topics'} ({why})")
    return TransientError(why)


@contextmanager
def _ended() -> Iterator[None]:
    """Whatever ends a connection is one kind of error."""
    try:
        yield
    except (OSError, EOFError, ValueError) as error:
        raise TransientError(str(error) or type(error).__name__) from error


def _error_text(error: Any, access: Access) -> str:
    text = commands.error_text(error.error, error.message)
    return access.scrubbed(text)[:_WHY_CHARACTERS_MAX]


def _named(url: str, topic: str, asked: Address) -> Address:
    """The broker that the answer to a LOOKUP names."""
    try:
        return _address(url)
    except ValueError:
        raise TransientError(f"{asked} names no broker of {topic}") from None


def _address(url: str) -> Address:
    """The host and port of a service URL with one host. Raises :class:`ValueError` without one."""
    parts = urlsplit(url)
    if not parts.hostname:
        raise ValueError("no host")
    default = _TLS_PORT if parts.scheme == "pulsar+ssl" else _PORT
    return Address(parts.hostname, parts.port or default)

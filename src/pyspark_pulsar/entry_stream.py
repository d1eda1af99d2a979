"""The entries of one topic, in order, by a reader of Pulsar's binary protocol.

A *permit* lets the broker send one message. What arrives stays in the buffers of TCP until it is
wanted, so the memory does not depend on the permits, and one too many does no harm. One too few
would: so a time without entries grants more.
"""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pyspark_pulsar import commands
from pyspark_pulsar.broker_connection import (
    Address,
    BrokerConnection,
    Dial,
    Dialer,
    RequestError,
    TransientError,
    dial,
    refusal,
)
from pyspark_pulsar.commands import CommandType, StoredEntry
from pyspark_pulsar.entries import EntryId
from pyspark_pulsar.errors import ReadTimeoutError
from pyspark_pulsar.offsets import WHOLE_ENTRY, Position, order_key

if TYPE_CHECKING:
    from pyspark_pulsar.read_settings import ReadSettings

__all__ = ["EntryStream", "StoredEntry"]

PERMITS: Final = 1_000
"""Permits of a reader, unless ``receiverQueueSize`` says otherwise."""

REOPEN_PAUSE_S: Final = 1.0
"""Pause between the begins of two connections to the topic, or two attempts to open one."""

_PARTS_OF_MORE: Final = 8
_FAILURE_CHARACTERS_MAX: Final = 500

log = logging.getLogger("pyspark_pulsar")


class EntryStream:
    """The entries of one topic (a partition, or one without partitions) behind a position, each
    once and in order.

    A connection that ends, or a consumer that the broker closes, is opened again behind the last
    entry that was given. The broker says for that where the topic is now. No thread: PING and
    AUTH_CHALLENGE are answered while :meth:`next_entry` or :meth:`has_more` runs, and brokers end a
    connection that answers neither for about a minute.

    :meth:`__init__` and :meth:`next_entry` raise:
        AccessError: the credentials or rights are refused, a certificate is not trusted, or a file
            of credentials cannot be used.
        TopicNotFoundError, RefusedReadError: another attempt would not help.
        ReadTimeoutError: ``pollTimeoutMs`` has passed without a reader.
    """

    def __init__(
        self,
        topic: str,
        begin: Position,
        settings: ReadSettings,
        *,
        connect: Dial = dial,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Open a reader just after ``begin``. If that is within a batch, its entry is the first."""
        self._topic, self._begin, self._settings = topic, begin, settings
        self._dialer = Dialer(settings.connection, connect, monotonic)
        self._monotonic, self._sleep = monotonic, sleep
        self._hosts = self._dialer.addresses
        self._last = (begin.ledger_id, begin.entry_id - (begin.batch_index != WHOLE_ENTRY))
        """The entry before those to give. What a connection sends up to it was given before."""
        self._permits = settings.receiver_queue_size or PERMITS
        self._flow_at = max(1, self._permits // 2)
        self._taken = 0
        self._more, self._more_at = 0, self._last
        self._acked = self._last
        self._held: StoredEntry | None = None
        self._connection: BrokerConnection | None = None
        self._buffered: Callable[[], StoredEntry | None] = _nothing
        self._outage_s: float | None = None
        """When the first attempt to open a reader began that none has succeeded since."""
        self._next_attempt_s = monotonic()
        self.last_failure = ""
        """Why the last connection ended or could not be opened; "" if none did."""
        self._open(math.inf)

    def next_entry(self, timeout_s: float) -> StoredEntry | None:
        """The next entry; None if none came within ``timeout_s`` seconds.

        It may take ``operationTimeoutMs`` for each host longer while a connection is opened.
        """
        if self._held is None:
            found = self._buffered()
            if found is not None:
                place = found[:2]
                if place > self._last:
                    self._last = place
                    return found
                self.taken(1)
        return self._next_entry(timeout_s)

    def taken(self, messages: int) -> None:
        """Note that the entry given last counted as so many messages, which the broker may send in
        its place."""
        self._taken += messages
        if self._taken >= self._flow_at:
            self._grant(0)

    def has_more(self) -> bool:
        """Whether the topic's last message is behind the last entry given.

        True as well if the broker does not say so within ``operationTimeoutMs``.
        """
        if self._held is not None or self._connection is None:
            return True
        deadline_s = self._monotonic() + self._settings.connection.operation_timeout_ms / 1_000
        request_id = self._connection.new_request()
        self._send(commands.last_message_id_frame(request_id))
        while self._connection is not None:
            found = self._next(deadline_s)
            if isinstance(found, StoredEntry):
                self._held = found
                return True
            if found is None or self._monotonic() >= deadline_s:
                return True
            if found.type == CommandType.ERROR and found.error.request_id == request_id:
                return True
            answer = found.last_id_response
            if (
                found.type == CommandType.GET_LAST_MESSAGE_ID_RESPONSE
                and answer.request_id == request_id
            ):
                return self._is_behind(answer.last)
        return True

    def again(self, last: EntryId) -> None:
        """Open another reader: the next entry is the first one behind ``last`` that it gets."""
        self._lose("entries did not come, and are asked for again")
        self._held, self._last = None, last

    def close(self) -> None:
        """End the connection; no other method may follow. Never fails."""
        connection, self._connection, self._buffered = self._connection, None, _nothing
        if connection is not None:
            with suppress(TransientError):
                connection.send(commands.close_consumer_frame(connection.new_request()))
            connection.close()

    def _next_entry(self, timeout_s: float) -> StoredEntry | None:
        found: StoredEntry | Any | None
        found, self._held = self._held, None
        deadline_s = self._monotonic() + timeout_s
        while not isinstance(found, StoredEntry):
            if self._connection is None and not self._open(deadline_s):
                return None
            found = self._next(deadline_s)
            if not isinstance(found, StoredEntry) and self._monotonic() >= deadline_s:
                self._grant_more()
                return None
        self._last = found[:2]
        return found

    def _next(self, deadline_s: float) -> StoredEntry | Any | None:
        """The next entry to give, or a command; None if neither came in time or the connection
        ended."""
        found: StoredEntry | Any | None = None
        try:
            while self._connection is not None:
                found = self._connection.next(deadline_s)
                if not isinstance(found, StoredEntry) or found[:2] > self._last:
                    break
                found = None
                self.taken(1)  # at least: it is not taken apart
                if self._monotonic() >= deadline_s:
                    break
        except TransientError as error:
            self._lose(str(error))
            return None
        if isinstance(found, StoredEntry) or found is None:
            return found
        if found.type == CommandType.CLOSE_CONSUMER:
            self._lose("the broker closed the reader")
            return None
        return found

    def _is_behind(self, last: Any) -> bool:
        given = max(self._begin.order_key, order_key(*self._last, WHOLE_ENTRY))
        batch_index = last.batch_index if last.HasField("batch_index") else WHOLE_ENTRY
        return order_key(last.ledger_id, last.entry_id, batch_index) > given

    def _grant(self, more: int) -> None:
        """Grant the permits of what was taken, and ``more``."""
        permits = min(self._taken + more, commands.PERMITS_MAX)
        self._taken = 0
        if permits > 0:
            acked = commands.ack_frame(*self._last) if self._acked != self._last else b""
            self._acked = self._last
            self._send(acked + commands.flow_frame(permits))

    def _grant_more(self) -> None:
        """After a time without entries: the broker may have counted more messages than we.

        Without any entry since, it grants at most :attr:`_permits` in all.
        """
        if self._more_at != self._last:
            self._more, self._more_at = 0, self._last
        more = min(max(1, self._permits // _PARTS_OF_MORE), self._permits - self._more)
        self._more += more
        self._grant(more)

    def _send(self, frame: bytes) -> None:
        if self._connection is not None:
            try:
                self._connection.send(frame)
            except TransientError as error:
                self._lose(str(error))

    def _lose(self, why: str) -> None:
        """Give the connection up. What it buffered comes again."""
        connection, self._connection, self._buffered = self._connection, None, _nothing
        if connection is not None:
            connection.close()
        self.last_failure = why
        log.info("%s: the connection ended (%s)", self._topic, self.last_failure)

    def _open(self, deadline_s: float) -> bool:
        """Open a reader again; False if there was none at the deadline."""
        while True:
            now_s = self._monotonic()
            if self._next_attempt_s > now_s:
                self._sleep(max(0.0, min(self._next_attempt_s, deadline_s) - now_s))
                if self._next_attempt_s > deadline_s:
                    return False
                now_s = self._monotonic()
            self._next_attempt_s = now_s + REOPEN_PAUSE_S
            if self._outage_s is None:
                self._outage_s = now_s
            try:
                self._connection = self._opened()
            except TransientError as error:
                self._note_failure(error, self._outage_s)
                if self._monotonic() >= deadline_s:
                    return False
            else:
                self._buffered, self._outage_s = self._connection.buffered_entry, None
                return True

    def _note_failure(self, error: TransientError, outage_s: float) -> None:
        """Raise :class:`ReadTimeoutError` if no attempt is left."""
        settings = self._settings
        # A broker names hosts, of which it may make anything.
        why = settings.connection.access.scrubbed(str(error))
        self.last_failure = why[:_FAILURE_CHARACTERS_MAX]
        self._next_attempt_s = self._monotonic() + REOPEN_PAUSE_S
        if self._next_attempt_s >= outage_s + settings.poll_timeout_ms / 1_000:
            raise ReadTimeoutError(
                f"{self._topic}: {settings.connection.service_url} opened no reader within "
                f"{settings.poll_timeout_ms} ms (pollTimeoutMs): {self.last_failure}"
            ) from error
        log.info("%s: no reader yet (%s); retrying", self._topic, self.last_failure)

    def _opened(self) -> BrokerConnection:
        """A connection with a reader, by the first host of the service URL that leads to one."""
        last = len(self._hosts) - 1
        for number in range(last + 1):
            try:
                return self._subscribed(self._hosts[0])
            except TransientError:
                self._hosts.append(self._hosts.pop(0))
                if number == last:
                    raise
        raise AssertionError("a service URL has a host")

    def _subscribed(self, address: Address) -> BrokerConnection:
        connection = self._dialer.to_topic(self._topic, address)
        ledger_id, entry_id = self._last
        # Brokers send the entry at which a reader begins.
        start = (ledger_id, entry_id + 1) if ledger_id >= 0 else commands.EARLIEST_ID
        request_id = connection.new_request()
        name = f"reader-{secrets.token_hex(5)}"
        timeout_s = self._settings.connection.operation_timeout_ms / 1_000
        try:
            frame = commands.subscribe_frame(self._topic, name, request_id, start)
            deadline_s = self._monotonic() + timeout_s
            connection.ask(frame, request_id, CommandType.SUCCESS, deadline_s)
            connection.send(commands.flow_frame(self._permits))
        except BaseException as error:
            connection.close()
            if isinstance(error, RequestError):
                raise refusal(self._settings.connection, self._topic, error) from error
            raise
        self._taken = self._more = 0
        return connection


def _nothing() -> None:
    return None

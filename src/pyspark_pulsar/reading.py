"""One task: receive the messages of a range and yield them as Arrow record batches.

Exactness does not rest on the client: a message is dropped unless it lies behind the last one
taken, so that neither the start's partly read entry nor a redelivery after a reconnect gives a row
twice. The task is done when the last message due has been taken, when a message behind the end
arrives, or when the client says that nothing follows. Silence while messages are due ends in
:class:`ReadTimeoutError`, never in a shorter result.

Entries that were planned and did not arrive are lost only if their ledger is gone. They may also
be transaction markers or aborted messages, which no reader gets, so the admin service is asked
before loss is claimed.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pulsar
import pyarrow as pa

from pyspark_pulsar.columns import Message, MessageId, record_batch
from pyspark_pulsar.errors import DataLossError, ReadTimeoutError
from pyspark_pulsar.offsets import OrderKey, Position, batch_size_of
from pyspark_pulsar.options import Connection
from pyspark_pulsar.ranges import ReadRange

BATCH_ROWS_MAX = 10_000
BATCH_BYTES_MAX = 8 * 1024 * 1024
"""A record batch ends at either limit; one larger message makes a batch of its own."""

POLL_SLICE_MS = 1_000
"""How long the client waits before the task looks whether anything can still come."""

QUEUE_MESSAGES_MAX = 1_000
QUEUE_MESSAGES_MIN = 16
QUEUE_BYTES_MAX = 64 * 1024 * 1024
"""The client prefetches by count; large entries shorten its queue to about this size."""

log = logging.getLogger("pyspark_pulsar")


class Reader(Protocol):
    """What this module uses of a client's reader."""

    def read_next(self, timeout_millis: int) -> Message: ...
    def has_message_available(self) -> bool: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """What a task needs besides its range. Times are publish time in epoch milliseconds."""

    connection: Connection
    starting_time_ms: int | None
    ending_time_ms: int | None
    fail_on_data_loss: bool
    receiver_queue_size: int | None
    poll_timeout_ms: int


_clients: dict[tuple[int, Connection], pulsar.Client] = {}


def shared_client(connection: Connection) -> pulsar.Client:
    """This process's client for ``connection``, made at first use and kept for later tasks.

    The process id is part of the key because Spark forks its workers: a client must not be used
    on the other side of a fork.
    """
    key = (os.getpid(), connection)
    client = _clients.get(key)
    if client is None:
        client = pulsar.Client(
            connection.service_url,
            operation_timeout_seconds=max(1, connection.operation_timeout_ms // 1_000),
            connection_timeout_ms=min(10_000, connection.operation_timeout_ms),
            stats_interval_in_seconds=0,
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn),
        )
        _clients[key] = client
    return client


def open_reader(work: ReadRange, settings: ReadSettings) -> Any:
    """A client's reader placed just behind the range's start."""
    start = work.start
    if start.ledger_id < 0:
        first = pulsar.MessageId.earliest
    else:
        first = pulsar.MessageId(
            start.partition, start.ledger_id, start.entry_id, start.batch_index
        )
    return shared_client(settings.connection).create_reader(
        work.topic, first, receiver_queue_size=_queue_size(work, settings)
    )


def without_wrapper(reader: Any) -> Any:
    """The client's reader without its Python layer, which has the same methods.

    The layer makes an object a message and passes each call on: a fifth of a row's cost. Should
    the client be built otherwise some day, its public reader serves as well.
    """
    native = getattr(reader, "_reader", None)
    return native if hasattr(native, "read_next") else reader


def _queue_size(work: ReadRange, settings: ReadSettings) -> int:
    """How many messages the client may hold, by the range's largest mean entry size."""
    if settings.receiver_queue_size is not None:
        return settings.receiver_queue_size
    entry_bytes = max(1.0, *(part.entry_bytes_mean for part in work.due))
    return max(QUEUE_MESSAGES_MIN, min(QUEUE_MESSAGES_MAX, int(QUEUE_BYTES_MAX / entry_bytes)))


class RangeReader:
    """Takes the messages of one range from a reader, each once and in order.

    A message's key is its (ledger id, entry id, batch index) as the client says it. Almost every
    message lies between the last one taken and the last entry due of the current ledger, the
    *border*; only the others are looked at closely.
    """

    def __init__(
        self,
        reader: Reader,
        work: ReadRange,
        settings: ReadSettings,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reader = reader
        self._work = work
        self._settings = settings
        self._monotonic = monotonic
        self._slice_ms = min(POLL_SLICE_MS, settings.poll_timeout_ms)
        self._taken: OrderKey = work.start.order_key
        self._due_index = 0
        self._border = self._border_of(0)
        self._arrived: set[int] = set()
        self._finished = False

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The range's messages as record batches, none of them empty."""
        messages: list[Message] = []
        values: list[bytes] = []
        size_bytes = 0
        read_next, slice_ms, topic = self._reader.read_next, self._slice_ms, self._work.topic
        timed = self._settings.starting_time_ms, self._settings.ending_time_ms
        check_time = timed != (None, None)
        while not self._finished:
            try:
                message: Message | None = read_next(slice_ms)
            except pulsar.Timeout:
                message = self._wait_on()
            if message is None:
                break
            message_id = message.message_id()
            key = (message_id.ledger_id(), message_id.entry_id(), message_id.batch_index())
            if self._taken < key < self._border:
                self._taken = key
            elif not self._take(key, message_id):
                continue
            if check_time and not _published_within(message, *timed):
                continue
            value = message.data()
            if values and (
                len(values) >= BATCH_ROWS_MAX or size_bytes + len(value) > BATCH_BYTES_MAX
            ):
                yield record_batch(schema, topic, messages, values)
                messages, values, size_bytes = [], [], 0
            messages.append(message)
            values.append(value)
            size_bytes += len(value)
        if values:
            yield record_batch(schema, topic, messages, values)

    def missing_ledgers(self) -> frozenset[int]:
        """Ledgers whose last entry due did not arrive. Call after :meth:`batches`."""
        return frozenset(part.ledger_id for part in self._work.due) - self._arrived

    def _border_of(self, due_index: int) -> OrderKey:
        """Before the last entry due of a ledger; behind all ledgers, before everything."""
        if due_index >= len(self._work.due):
            return (-1, -1, -1)
        part = self._work.due[due_index]
        return (part.ledger_id, part.last_entry, -1)

    def _take(self, key: OrderKey, message_id: MessageId) -> bool:
        """Whether a message at or behind the border, or before the start, is wanted.

        Notes the arrival of a ledger's last entry, and the end of the range.
        """
        if key <= self._taken:
            return False
        if key > self._work.end.order_key:
            self._finished = True
            return False
        self._taken = key
        while self._due_index < len(self._work.due) and key[:2] > self._border[:2]:
            self._due_index += 1
            self._border = self._border_of(self._due_index)
        if key[:2] == self._border[:2]:
            self._arrived.add(key[0])
            last_ledger = self._due_index + 1 == len(self._work.due)
            self._finished = last_ledger and _ends_entry(message_id, key, self._work.end.order_key)
        return True

    def _wait_on(self) -> Message | None:
        """After a slice of silence: the next message, or None when none can come.

        Raises :class:`ReadTimeoutError` when ``pollTimeoutMs`` has passed in silence.
        """
        silent_s = (self._settings.poll_timeout_ms - self._slice_ms) / 1_000
        deadline = self._monotonic() + silent_s
        while self._may_follow():
            if self._monotonic() >= deadline:
                raise ReadTimeoutError(
                    f"{self._work.topic}: nothing arrived for {self._settings.poll_timeout_ms} ms "
                    f"(pollTimeoutMs), although messages up to {self._work.end} are due; "
                    f"read so far: {_show(self._taken)}"
                )
            try:
                return self._reader.read_next(self._slice_ms)
            except pulsar.Timeout:
                continue
        return None

    def _may_follow(self) -> bool:
        """Whether a message can still come; true while the broker cannot be asked."""
        try:
            return self._reader.has_message_available()
        except pulsar.PulsarException as error:
            log.info("%s: the broker does not answer (%s)", self._work.topic, error)
            return True


def read_range(
    work: ReadRange,
    settings: ReadSettings,
    schema: pa.Schema,
    ledger_ids: Callable[[str], frozenset[int]],
) -> Iterator[pa.RecordBatch]:
    """The task as a whole: open, read, close, and check for lost data.

    ``ledger_ids`` asks the admin service which ledgers a topic still holds; it is called only if
    entries did not arrive. Raises :class:`DataLossError` if ``failOnDataLoss`` is set and their
    ledgers are gone.
    """
    reader = open_reader(work, settings)
    try:
        reading = RangeReader(without_wrapper(reader), work, settings)
        yield from reading.batches(schema)
    finally:
        reader.close()
    missing = reading.missing_ledgers()
    gone = missing - ledger_ids(work.topic) if missing else missing
    if gone:
        report_loss(
            f"{work.topic}: ledgers {sorted(gone)} were trimmed before all of "
            f"({work.start}, {work.end}] was read",
            fail=settings.fail_on_data_loss,
        )


def report_loss(sentence: str, *, fail: bool) -> None:
    """Raise :class:`DataLossError`, or log a warning and go on, as ``failOnDataLoss`` says."""
    if fail:
        raise DataLossError(f"{sentence}. Set failOnDataLoss=false to go on without them")
    log.warning("%s; going on, because failOnDataLoss is false", sentence)


def _ends_entry(message_id: MessageId, key: OrderKey, end: OrderKey) -> bool:
    """Whether this message is the last that the range wants of its entry."""
    if key == end or message_id.batch_index() < 0:
        return True
    return message_id.batch_index() + 1 == batch_size_of(message_id.serialize())


def _published_within(message: Message, since_ms: int | None, until_ms: int | None) -> bool:
    """Whether the message was published at ``since_ms`` or later and before ``until_ms``."""
    publish_ms = message.publish_timestamp()
    return (since_ms is None or publish_ms >= since_ms) and (
        until_ms is None or publish_ms < until_ms
    )


def _show(key: OrderKey) -> str:
    """A place in words for an error message."""
    return str(Position(key[0], key[1])) if key[0] >= 0 else "nothing"

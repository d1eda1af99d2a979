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

from pyspark_pulsar.columns import Message, MessageId, Row, record_batch
from pyspark_pulsar.errors import DataLossError, ReadTimeoutError
from pyspark_pulsar.offsets import OrderKey, Position, batch_size_of, order_key
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


def _queue_size(work: ReadRange, settings: ReadSettings) -> int:
    """How many messages the client may hold, by the range's largest mean entry size."""
    if settings.receiver_queue_size is not None:
        return settings.receiver_queue_size
    entry_bytes = max(1.0, *(part.entry_bytes_mean for part in work.due))
    return max(QUEUE_MESSAGES_MIN, min(QUEUE_MESSAGES_MAX, int(QUEUE_BYTES_MAX / entry_bytes)))


class RangeReader:
    """Takes the messages of one range from a reader, each once and in order."""

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
        self._taken: OrderKey = work.start.order_key
        self._last_entry_of_ledger: dict[int, int] = {}

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The range's messages as record batches, none of them empty."""
        rows: list[Row] = []
        size_bytes = 0
        for row in self._rows():
            if rows and (
                len(rows) >= BATCH_ROWS_MAX or size_bytes + len(row.data) > BATCH_BYTES_MAX
            ):
                yield record_batch(schema, self._work.topic, rows)
                rows, size_bytes = [], 0
            rows.append(row)
            size_bytes += len(row.data)
        if rows:
            yield record_batch(schema, self._work.topic, rows)

    def missing_ledgers(self) -> frozenset[int]:
        """Ledgers of which entries were due and did not arrive. Call after :meth:`batches`."""
        return frozenset(
            part.ledger_id
            for part in self._work.due
            if self._last_entry_of_ledger.get(part.ledger_id, -1) < part.last_entry
        )

    def _rows(self) -> Iterator[Row]:
        """The messages of the range that also lie within the wanted publish times."""
        since_ms, until_ms = self._settings.starting_time_ms, self._settings.ending_time_ms
        timed = since_ms is not None or until_ms is not None
        for message, message_id in self._messages():
            if timed:
                publish_ms = message.publish_timestamp()
                if since_ms is not None and publish_ms < since_ms:
                    continue
                if until_ms is not None and publish_ms >= until_ms:
                    continue
            yield Row(message, message_id, message.data())

    def _messages(self) -> Iterator[tuple[Message, MessageId]]:
        """The messages in (start, end], each once."""
        end = self._work.end.order_key
        last_due = self._work.due[-1]
        last_entry = (last_due.ledger_id, last_due.last_entry)
        ledger_id = entry_id = -1
        try:
            while (message := self._next_message()) is not None:
                message_id = message.message_id()
                key = order_key(
                    message_id.ledger_id(), message_id.entry_id(), message_id.batch_index()
                )
                if key <= self._taken:
                    continue
                if key[0] != ledger_id:
                    self._note(ledger_id, entry_id)
                ledger_id, entry_id = key[0], key[1]
                if key > end:
                    break
                self._taken = key
                yield message, message_id
                if key[:2] == last_entry and _ends_entry(message_id, key, end):
                    break
        finally:
            self._note(ledger_id, entry_id)

    def _note(self, ledger_id: int, entry_id: int) -> None:
        """Remember how far a ledger was received, for :meth:`missing_ledgers`."""
        self._last_entry_of_ledger[ledger_id] = entry_id

    def _next_message(self) -> Message | None:
        """The next message, or None when none can come. Raises :class:`ReadTimeoutError`."""
        deadline: float | None = None
        while True:
            try:
                return self._reader.read_next(min(POLL_SLICE_MS, self._settings.poll_timeout_ms))
            except pulsar.Timeout:
                now = self._monotonic()
            if not self._may_follow():
                return None
            if deadline is None:
                deadline = now + (self._settings.poll_timeout_ms - POLL_SLICE_MS) / 1_000
            if now >= deadline:
                raise ReadTimeoutError(
                    f"{self._work.topic}: nothing arrived for {self._settings.poll_timeout_ms} ms "
                    f"(pollTimeoutMs), although messages up to {self._work.end} are due; "
                    f"read so far: {_show(self._taken)}"
                )

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
        reading = RangeReader(reader, work, settings)
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


def _show(key: OrderKey) -> str:
    """A place in words for an error message."""
    return str(Position(key[0], key[1])) if key[0] >= 0 else "nothing"

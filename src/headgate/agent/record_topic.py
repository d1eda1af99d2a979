"""Telemetry records to a topic of a Pulsar cluster, at least once.

A thread of its own sends what it took, and repeats a message until the topic has it. What waits is
bounded: while the cluster is away the oldest messages go first, and cost resolution and no amounts,
because counters are cumulative. A message that was sent twice has the same identity twice, which
the pipeline drops.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from headgate.agent.metrics import SinkCounts
from headgate.agent.records import Record
from headgate.base.errors import HeadgateError
from headgate.base.texts import size_text
from headgate.base.units import MIB
from headgate.record.codec import message_properties

logger = logging.getLogger("headgate.agent")

WAITING_BYTES_MAX: Final = 64 * MIB
"""Most bytes that wait to be sent."""
RETRY_S: Final = 5.0
LAST_SEND_S: Final = 5.0
"""How long a stop waits for the last messages."""


class TopicError(HeadgateError):
    """A message was not stored; the text says why."""


class TopicProducer(Protocol):
    """A producer of the telemetry topic."""

    def send(self, data: bytes, properties: dict[str, str]) -> None:
        """Store one message. Raises :class:`TopicError`."""
        ...

    def close(self) -> None:
        """Let it go; it raises nothing."""
        ...


class RecordTopic:
    """Sends records to a topic from a thread of its own."""

    def __init__(self, topic: str, connect: Callable[[], TopicProducer]) -> None:
        """``connect`` makes a producer; it raises :class:`HeadgateError` if it cannot."""
        self.name = "topic"
        self.counts = SinkCounts()
        self._topic = topic
        self._connect = connect
        self._waiting: deque[Record] = deque()
        self._waiting_bytes = 0
        self._condition = threading.Condition()
        self._stopping = threading.Event()
        self._producer: TopicProducer | None = None
        self._failing = False
        self._gives_up = False
        """Whether messages were given up since the topic last took one."""
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to send."""
        self._thread = threading.Thread(target=self._run, name="records", daemon=True)
        self._thread.start()

    def write(self, records: Sequence[Record]) -> None:
        """Take the messages of a window. If too much waits, the oldest are given up."""
        with self._condition:
            for record in records:
                self._waiting.append(record)
                self._waiting_bytes += len(record.data)
            before = self.counts.dropped
            while self._waiting_bytes > WAITING_BYTES_MAX and len(self._waiting) > 1:
                self._waiting_bytes -= len(self._waiting.popleft().data)
                self.counts.dropped += 1
            is_first = self.counts.dropped > before and not self._gives_up
            self._gives_up |= is_first
            self._condition.notify()
        if is_first:
            logger.warning(
                "%s waits for %s, and no more may: the oldest telemetry is given up",
                size_text(WAITING_BYTES_MAX), self._topic,
            )  # fmt: skip

    def close(self) -> None:
        """Send what waits, for a few seconds at most."""
        self._stopping.set()
        with self._condition:
            self._condition.notify()
        if self._thread is not None:
            self._thread.join(LAST_SEND_S)
        self.counts.dropped += len(self._waiting)

    def _run(self) -> None:
        while True:
            with self._condition:
                while not self._waiting and not self._stopping.is_set():
                    self._condition.wait()
                if not self._waiting:
                    break
                record = self._waiting[0]
            if self.send_one(record):
                continue
            if self._stopping.wait(RETRY_S):
                break  # one failure more would wait for longer than a stop does
        self._let_go()

    def send_one(self, record: Record) -> bool:
        """Send the first waiting message; whether the topic has it."""
        try:
            if self._producer is None:
                self._producer = self._connect()
            self._producer.send(record.data, message_properties(record.header, record.seq))
        except HeadgateError as error:
            self._failed(str(error))
            return False
        except Exception as error:
            # Whatever the client library raises, the thread must live to try again.
            self._failed(f"an unexpected error: {error!r}")
            return False
        if self._failing:
            self._failing = self._gives_up = False
            logger.info("telemetry is published to %s again", self._topic)
        self.counts.records += 1
        self.counts.bytes += len(record.data)
        with self._condition:
            # It may have been given up meanwhile.
            if self._waiting and self._waiting[0] is record:
                self._waiting.popleft()
                self._waiting_bytes -= len(record.data)
        return True

    def _failed(self, reason: str) -> None:
        self.counts.failures += 1
        if not self._failing:
            self._failing = True
            logger.warning("telemetry is not published to %s: %s", self._topic, reason)
        self._let_go()

    def _let_go(self) -> None:
        producer, self._producer = self._producer, None
        if producer is None:
            return
        try:
            producer.close()
        except Exception as error:
            logger.debug("the producer of the telemetry topic: %r", error)

"""Publishes the telemetry records to their topic, at wall-clock multiples of the interval.

Any client can read them; the pipeline does. The publisher is a producer of the engine like any
other, without a connection. No failure leaves it: telemetry must not harm what it reports.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from headgate.base.errors import HeadgateError, InvariantError
from headgate.base.names import parse_topic
from headgate.base.positions import Position
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.base.work_units import SLICE_UNITS
from headgate.engine.producer import Producer, UnboundedPort
from headgate.engine.topic import Topic
from headgate.record.codec import BatchHeader, encode_in_steps, message_properties
from headgate.record.fields import FULL_PERIOD_NS
from headgate.telemetry.background_task import BackgroundTask
from headgate.telemetry.records.admin_events import AdminEvents
from headgate.telemetry.records.names import PLAIN, HashedNames
from headgate.telemetry.records.row_buffer import Tables
from headgate.telemetry.records.sampler import Sampler
from headgate.telemetry.records.subjects import Instant
from headgate.wire.entry import build_entry
from headgate.wire.messages import MessageMetadata

if TYPE_CHECKING:
    from headgate.broker.service import Broker

logger = logging.getLogger("headgate.telemetry")

PRODUCER_NAME: Final = "headgate-telemetry"

CLOCK_STEP_NS: Final = NS_PER_S // 10
"""A larger step of the wall clock is marked in the record (docs/telemetry.md 3)."""


@dataclass(frozen=True, slots=True)
class PublisherStatistics:
    """Counts since the start."""

    windows: int
    messages: int
    """Records handed to the log."""
    failures: int
    """Windows or records that could not be published; their amounts come with later ones."""
    dropped_events: int
    dropped_rows: int


class TelemetryPublisher:
    """Samples one broker and publishes the changes.

    Make it before ``broker.start()``, so that it sees every topic from its loading; ``start`` it
    once the broker is ready, ``stop`` it before the broker is closed.
    """

    def __init__(
        self,
        broker: Broker,
        *,
        entropy: Callable[[int], bytes],
        source: str | None = None,
        names_key: bytes | None = None,
    ) -> None:
        """``entropy`` gives that many random bytes (16 are taken, for the boot id); ``source``
        names the stream over restarts, by default cluster and broker; with ``names_key`` the
        records have hashes for the names of tenants, namespaces, topics and subscriptions."""
        settings = broker.settings
        self._broker = broker
        names = PLAIN if names_key is None else HashedNames(names_key)
        self.sampler = Sampler(
            broker.engine, broker, broker.clock, broker, broker.info.broker_id, names
        )
        self._admin_events = AdminEvents(self.sampler.events, names)
        self.boot_id = str(uuid.UUID(bytes=entropy(16), version=4))
        self.source = source or f"{settings.clusterName}/{broker.info.broker_id}"
        self._name = parse_topic(settings.headgateTelemetryTopic)
        self._interval_ns = settings.headgateTelemetryIntervalMs * NS_PER_MS
        self._port = _Port(self)
        self._producer: tuple[Producer, Topic] | None = None
        self._task = BackgroundTask(broker.loop, "telemetry", "telemetry ended")
        self._seq = 0
        self._windows = self._messages = self._failures = 0
        self._failing = False
        self._ended_ns = broker.clock.wall_ns()
        self._offset_ns = self._wall_offset_ns()

    def start(self) -> None:
        """Begin publishing, unless the settings switch it off."""
        if self._task.is_started or not self._broker.settings.headgateTelemetryEnabled:
            return
        self._broker.audit.listeners.append(self._admin_events.changed)
        inputs = {"boot": self.boot_id, "version": self._broker.info.version}
        self.sampler.events.add(
            self._broker.clock.wall_ns(),
            "restart",
            inputs=inputs,
            outcome={"topics": len(self._broker.engine.topics)},
        )
        self._task.start(self._run())

    async def stop(self) -> None:
        """Publish the last window and end. Call it while the broker still runs."""
        if not self._task.is_started:
            return
        await self._task.stop()
        await self.publish_window(self._broker.clock.wall_ns())
        if self._producer is not None:
            producer, topic = self._producer
            topic.remove_producer(producer)
            self._producer = None

    def statistics(self) -> PublisherStatistics:
        """Counts since the start."""
        return PublisherStatistics(
            self._windows,
            self._messages,
            self._failures,
            self.sampler.events.dropped_count,
            self.sampler.dropped_rows_count,
        )

    async def _run(self) -> None:
        clock, interval_ns = self._broker.clock, self._interval_ns
        while True:
            end_ns = (clock.wall_ns() // interval_ns + 1) * interval_ns
            # The wall clock may be set back meanwhile, so that the end is far away again.
            while 0 < (left_ns := end_ns - clock.wall_ns()) <= interval_ns:
                await asyncio.sleep(left_ns / NS_PER_S)
            try:
                window = self.publish_window(clock.wall_ns() // interval_ns * interval_ns)
                await self._broker.turns.measured("a window of telemetry", window)
            except InvariantError:
                raise
            except Exception as error:
                if not self._failing:
                    logger.exception("a window of telemetry failed with an internal error")
                self.failed(repr(error))

    async def publish_window(self, end_ns: int) -> None:
        """Sample and publish the window that ends at ``end_ns`` (wall clock). Raises nothing but
        broken invariants and cancellation; a failure is logged once and counted."""
        header, at = self._window(end_ns)
        self._windows += 1
        sent = False
        try:
            async for tables in self.sampler.tables(at):
                await self._publish(header, tables)
                sent = True
            if not sent:
                await self._publish(header, {})
        except HeadgateError as error:
            self.failed(error)

    def _window(self, end_ns: int) -> tuple[BatchHeader, Instant]:
        offset_ns = self._wall_offset_ns()
        stepped = abs(offset_ns - self._offset_ns) > CLOCK_STEP_NS
        start_ns = self._ended_ns
        if end_ns <= start_ns:
            start_ns = end_ns - self._interval_ns
            self.sampler.clock_went_back(start_ns)
        self._offset_ns, self._ended_ns = offset_ns, end_ns
        full = self._windows == 0 or end_ns // FULL_PERIOD_NS != start_ns // FULL_PERIOD_NS
        header = BatchHeader(
            source=self.source,
            cluster=self._broker.settings.clusterName,
            broker=self._broker.info.broker_id,
            boot_id=self.boot_id,
            window_start_ns=start_ns,
            window_end_ns=end_ns,
            clock_step=stepped,
        )
        return header, Instant(start_ns, end_ns, full=full)

    def _wall_offset_ns(self) -> int:
        clock = self._broker.clock
        return clock.wall_ns() - clock.monotonic_ns()

    async def _publish(self, header: BatchHeader, tables: Tables) -> None:
        payloads = await self._encoded(header, tables)
        first_seq, self._seq = self._seq, self._seq + len(payloads)
        for place, payload in enumerate(payloads):
            producer, topic = await self._connected()
            self._broker.begin_turn()
            seq = first_seq + place
            metadata = MessageMetadata(
                producer_name=PRODUCER_NAME,
                sequence_id=seq,
                publish_time=self._broker.clock.wall_ns() // NS_PER_MS,
            )
            for key, value in message_properties(header, seq).items():
                metadata.properties.add(key=key, value=value)
            topic.publishing.publish(producer, seq, seq, 1, build_entry(metadata, payload))
            self._messages += 1

    async def _encoded(self, header: BatchHeader, tables: Tables) -> list[bytes]:
        """The messages of these rows, encoded in slices."""
        work = encode_in_steps(header, self._seq, tables)
        while True:
            try:
                next(work)
            except StopIteration as end:
                payloads: list[bytes] = end.value
                return payloads
            await self._broker.give_way(SLICE_UNITS // 2)

    async def _connected(self) -> tuple[Producer, Topic]:
        """This publisher as a producer of the live topic, which is made if it does not exist."""
        registry = self._broker.registry
        topic = registry.get(self._name) or await registry.create(self._name)
        known = self._producer
        if known is not None and known[1] is topic and not known[0].closed:
            return known
        producer = Producer(0, PRODUCER_NAME, self._port, connected_ms=self._broker.engine.now_ms)
        topic.add_producer(producer)
        self._producer = producer, topic
        return self._producer

    def failed(self, reason: object) -> None:
        """Count a failure; log it once, until publishing works again."""
        self._failures += 1
        if not self._failing:
            self._failing = True
            logger.warning("telemetry is not published to %s: %s", self._name, reason)

    def stored(self) -> None:
        """A record is durable."""
        if self._failing:
            self._failing = False
            logger.info("telemetry is published to %s again", self._name)


class _Port(UnboundedPort):
    """The :class:`~headgate.engine.producer.ProducerPort` of a producer without a connection."""

    def __init__(self, publisher: TelemetryPublisher) -> None:
        super().__init__()
        self._publisher = publisher

    def send_refused(self, _id: int, _sequence: int, reason: str, /) -> None:
        """The record was not stored."""
        self._publisher.failed(reason)

    def send_receipt(self, _id: int, _sequence: int, _highest: int, _at: Position, /) -> None:
        """The record is durable."""
        self._publisher.stored()

    def send_failed(self, _id: int, _sequence: int, reason: str, /) -> None:
        """The record was not stored."""
        self._publisher.failed(reason)

    def close_producer(self, _id: int, /) -> None:
        """The topic was unloaded; the next record looks it up again."""

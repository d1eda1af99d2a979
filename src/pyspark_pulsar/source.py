"""The data source that Spark loads for ``format("pulsar")``.

Planning runs in a Python process on the driver and uses the admin API only. Reading runs in the
executors' workers and uses the brokers. Spark pickles readers and sends them to the workers, so a
reader creates its admin client on first use and does not pickle it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pyspark_pulsar.admin import AdminClient
from pyspark_pulsar.columns import arrow_schema, spark_schema
from pyspark_pulsar.errors import UnreachableError
from pyspark_pulsar.losses import report_loss
from pyspark_pulsar.offsets import Position, earliest, offset_from_json, offset_to_json
from pyspark_pulsar.options import EARLIEST, LATEST, SourceOptions, StartOrEnd, parse_options
from pyspark_pulsar.ranges import (
    TopicSnapshot,
    admit,
    batch_start,
    end_position,
    plan_ranges,
    replaced_topic,
    stored_end,
)
from pyspark_pulsar.read_settings import ReadSettings
from pyspark_pulsar.reading import read_range
from pyspark_pulsar.resolve import require_snapshots, require_topics, resolve_end, resolve_start
from pyspark_pulsar.tracebacks import without_traceback

log = logging.getLogger("pyspark_pulsar")

IDLE_POLL_S = 0.25
"""Least time between two requests of a stream without new data. Spark's default trigger asks for
the latest offset every 10 ms."""


class DefaultSource(DataSource):
    """Read Apache Pulsar topics: ``spark.read`` or ``spark.readStream`` ``.format("pulsar")``.

    See :mod:`pyspark_pulsar.options` for the options. ``service.url``, ``admin.url`` and ``topic``
    or ``topics`` are required.
    """

    @classmethod
    def name(cls) -> str:
        """The name in ``format()``."""
        return "pulsar"

    @without_traceback()
    def schema(self) -> StructType:
        """The columns of the option ``columns``; all by default."""
        return spark_schema(parse_options(self.options).columns)

    @without_traceback()
    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch reader for the columns of ``schema``."""
        options = parse_options(self.options)
        options.check_batch()
        return PulsarReader(options, schema)

    @without_traceback()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """A stream reader for the columns of ``schema``."""
        options = parse_options(self.options)
        options.check_stream()
        return PulsarStreamReader(options, schema)


class RangePartition(InputPartition):
    """The range of one task, which Spark sends to the worker."""


class _ReaderBase:
    """Base of the batch reader and the stream reader."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._arrow_schema = arrow_schema(schema)
        self._admin_client: AdminClient | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The state without the admin client, whose connections belong to this process."""
        return self.__dict__ | {"_admin_client": None}

    @property
    def _admin(self) -> AdminClient:
        if self._admin_client is None:
            self._admin_client = AdminClient(self._options.connection)
        return self._admin_client

    def _partition_names(self) -> list[str]:
        by_topic = self._admin.partitions_of(self._options.topics)
        return sorted(name for names in by_topic.values() for name in names)

    def _start(self, names: Sequence[str], default: StartOrEnd) -> StartOrEnd | dict[str, Position]:
        """Where the query begins: the starting offsets, or a position before ``startingTime``."""
        since_ms = self._options.starting_time_ms
        if since_ms is None:
            return self._options.starting_offsets or default
        first_ms = since_ms - self._options.publish_time_skew_ms
        return self._admin.positions_at(names, first_ms) if first_ms > 0 else EARLIEST

    def _plan(
        self,
        starts: Mapping[str, Position],
        ends: Mapping[str, Position],
        snapshots: Mapping[str, TopicSnapshot | None],
    ) -> list[InputPartition]:
        plan = plan_ranges(starts, ends, snapshots, self._options.partitions_min)
        for sentence in plan.losses:
            report_loss(sentence, fail=self._options.fail_on_data_loss)
        return [RangePartition(work) for work in plan.ranges]

    def _read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # For an empty list of partitions Spark creates one task with the value None.
        if partition.value is None:
            return
        options = self._options
        settings = ReadSettings(
            connection=options.connection,
            starting_time_ms=options.starting_time_ms,
            ending_time_ms=options.ending_time_ms,
            fail_on_data_loss=options.fail_on_data_loss,
            receiver_queue_size=options.receiver_queue_size,
            poll_timeout_ms=options.poll_timeout_ms,
            publish_time_skew_ms=options.publish_time_skew_ms,
            message_bytes_max=options.message_bytes_max,
        )
        with without_traceback():
            yield from read_range(partition.value, settings, self._arrow_schema, self._admin)


class PulsarReader(_ReaderBase, DataSourceReader):
    """A batch reader; planning fixes both ends of the query."""

    @without_traceback()
    def partitions(self) -> list[InputPartition]:
        """The tasks, planned from the current partitions and ends of the topics."""
        names = self._partition_names()
        snapshots = self._admin.snapshots(names)
        held = require_snapshots(self._options.topics, snapshots)
        starts = resolve_start(self._start(names, EARLIEST), held)
        ends = resolve_end(self._end(names), held)
        return self._plan(starts, ends, held)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of one task."""
        return self._read(partition)

    def _end(self, names: Sequence[str]) -> StartOrEnd | dict[str, Position]:
        until_ms = self._options.ending_time_ms
        if until_ms is None:
            return self._options.ending_offsets or LATEST
        last_ms = until_ms + self._options.publish_time_skew_ms
        # A search for a future time would only exclude messages from wrong clocks.
        is_past = last_ms < time.time() * 1_000
        return self._admin.positions_at(names, last_ms) if is_past else LATEST


class PulsarStreamReader(_ReaderBase, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream reader; Spark's checkpoint stores the offsets, so that each message is read once."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._target: dict[str, Position] | None = None
        self._initial: dict[str, Position] | None = None
        self._is_fixed = False
        self._first_end: dict[str, Position] | None = None
        self._partitions: dict[str, tuple[str, ...]] = {}
        self._snapshots: dict[str, TopicSnapshot | None] = {}
        self._ends: dict[str, Position] = {}
        self._idle_since_s: float | None = None
        self._unreachable_since_s: float | None = None

    @without_traceback()
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a query without a checkpoint starts: ``startingOffsets``, by default latest, or
        ``startingTime``.

        Spark calls this method twice for the first batch of a query: before it requests the end of
        the batch, and when it plans the batch. The reader keeps its first answer. Otherwise
        ``latest`` could be after that end if a producer publishes in between.
        """
        if self._initial is None:
            names = self._partition_names()
            held = require_snapshots(self._options.topics, self._admin.snapshots(names))
            start = self._start(names, LATEST)
            self._initial = resolve_start(start, held)
            self._is_fixed = start == EARLIEST or all(
                position not in (end_position(topic, held[topic]), stored_end(topic, held[topic]))
                for topic, position in self._initial.items()
            )
        return offset_to_json(self._initial)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """One of the limits, so that Spark sees one; :meth:`latestOffset` applies both."""
        options = self._options
        if options.rows_per_trigger_max is not None:
            return ReadMaxRows(options.rows_per_trigger_max)
        if options.bytes_per_trigger_max is not None:
            return ReadMaxBytes(options.bytes_per_trigger_max)
        return ReadAllAvailable()

    @without_traceback()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of the query; the next run reads messages that are published later."""
        self._refresh()
        self._target = dict(self._ends)

    @without_traceback()
    def latestOffset(  # noqa: N802
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        """The end of the next batch: the current end of the topics, within the limits.

        The first batch of a query is empty and fixes its start. Spark stores the end of a batch
        before it runs, but never the start of the first. Without an empty batch, a query that is
        killed in its first batch would begin at a later ``latest`` and skip messages. A start that
        is no topic's end does not change with time, and needs no empty batch.

        If the cluster does not answer, the stream has no new data, and Spark calls again until
        ``pollTimeoutMs`` is over. With ``availableNow`` Spark would end the query then, so this
        method retries.
        """
        starts = offset_from_json(start)
        if self._initial is not None and not self._is_fixed:
            self._is_fixed = True
            if starts == self._initial:
                self._first_end = starts
                return start
        if self._idle_since_s is not None:
            time.sleep(max(0.0, self._idle_since_s + IDLE_POLL_S - time.monotonic()))
        while not self._try_refresh():
            if self._target is None:
                self._idle_since_s = time.monotonic()
                return offset_to_json(starts)
        self._check_missing_topics(starts)
        begins = self._batch_starts(starts)
        ends = self._ends_after(begins, self._ends if self._target is None else self._target)
        if not isinstance(limit, ReadAllAvailable):
            options = self._options
            held = {topic: self._snapshots[topic] for topic in ends}
            ends |= admit(
                begins,
                {topic: end for topic, end in ends.items() if held[topic] is not None},
                {topic: snapshot for topic, snapshot in held.items() if snapshot is not None},
                options.rows_per_trigger_max,
                options.bytes_per_trigger_max,
            )
        self._idle_since_s = time.monotonic() if ends == starts else None
        return offset_to_json(ends)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """The end of the topics at the last :meth:`latestOffset`, for the query's progress."""
        return offset_to_json(self._ends) if self._ends else None

    @without_traceback()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of one batch, which an earlier run may have planned."""
        starts, ends = offset_from_json(start), offset_from_json(end)
        changed = [topic for topic in ends if starts.get(topic) != ends[topic]]
        if any(topic not in self._snapshots for topic in changed):
            self._snapshots |= self._admin.snapshots(changed)
        begins = dict(starts)
        is_first = self._is_first(starts, ends)
        for topic in changed:
            held = self._snapshots[topic]
            if not is_first and topic in starts and held is not None:
                begins[topic] = batch_start(topic, held, starts[topic], ends[topic])
        return self._plan(begins, {topic: ends[topic] for topic in changed}, self._snapshots)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of one task."""
        return self._read(partition)

    def _is_first(self, starts: dict[str, Position], ends: dict[str, Position]) -> bool:
        """Whether this is the first batch of a query, before which it has read nothing.

        If a restarted query plans it again, ``latest`` may be after its end: then the batch is
        empty. In a later batch, a start after the end means that the topic was recreated.
        """
        if starts != self._initial:
            return False
        if self._first_end is None:
            self._first_end = ends
        return ends == self._first_end

    def _try_refresh(self) -> bool:
        """Whether the cluster answered. Raises UnreachableError after ``pollTimeoutMs``."""
        asked_s = time.monotonic()
        try:
            self._refresh()
        except UnreachableError as error:
            if self._unreachable_since_s is None:
                self._unreachable_since_s = asked_s
            waited_s = time.monotonic() - self._unreachable_since_s
            if waited_s >= self._options.poll_timeout_ms / 1_000:
                raise
            log.warning("%s; the stream waits and retries", error)
            return False
        self._unreachable_since_s = None
        return True

    def _refresh(self) -> None:
        """Request the partitions, which may be more than before, and their ends."""
        self._partitions = self._admin.partitions_if_any(self._options.topics)
        self._snapshots = self._admin.snapshots(
            sorted(chain.from_iterable(self._partitions.values())),
            with_counts=self._options.rows_per_trigger_max is not None,
        )
        self._ends = {
            topic: earliest(topic) if snapshot is None else end_position(topic, snapshot)
            for topic, snapshot in self._snapshots.items()
        }

    def _check_missing_topics(self, starts: Mapping[str, Position]) -> None:
        """Report topics that do not exist and have no offset; :meth:`_ends_after` reports the
        others.

        Raises :class:`TopicNotFoundError` for a topic of the options that may never have existed,
        such as a misspelt one. A topic that vanished in an earlier run looks the same, so there is
        no error if ``failOnDataLoss`` is false.
        """
        target = self._target or {}
        for topic in sorted(target.keys() - self._snapshots.keys()):
            del target[topic]
            if topic not in starts:
                report_loss(
                    f"{topic} no longer exists; the query has read nothing of it",
                    fail=self._options.fail_on_data_loss,
                )
        if self._options.fail_on_data_loss:
            require_topics(self._partitions, starts)

    def _batch_starts(self, starts: Mapping[str, Position]) -> dict[str, Position]:
        """``starts``, with the first message as start of each topic that was recreated."""
        begins = dict(starts)
        for topic, start in starts.items():
            snapshot = self._snapshots.get(topic)
            sentence = None if snapshot is None else replaced_topic(topic, snapshot, start)
            if sentence is not None:
                report_loss(sentence, fail=self._options.fail_on_data_loss)
                begins[topic] = earliest(topic)
        return begins

    def _ends_after(
        self, starts: Mapping[str, Position], ends: Mapping[str, Position]
    ) -> dict[str, Position]:
        """``ends``, but never before ``starts``; reports partitions that are gone as a loss."""
        forward = {
            topic: max(end, starts.get(topic, end), key=lambda position: position.order_key)
            for topic, end in ends.items()
        }
        for topic in starts:
            if topic not in self._snapshots:
                report_loss(
                    f"{topic} no longer exists or is not among the query's topics; "
                    f"the query read it up to {starts[topic]}",
                    fail=self._options.fail_on_data_loss,
                )
            elif topic not in forward:
                forward[topic] = starts[topic]
        return forward

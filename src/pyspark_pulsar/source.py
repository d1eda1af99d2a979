"""The classes that Spark calls: the data source, its batch reader and its stream reader.

Planning runs in one Python process on the driver and talks to the admin service only; reading
runs in the executors' workers and talks to the broker. Nothing here keeps a connection across
pickling: readers travel to the workers, so their admin client is made when first needed.
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
from pyspark_pulsar.client import ReadSettings
from pyspark_pulsar.columns import arrow_schema, spark_schema
from pyspark_pulsar.errors import UnreachableError
from pyspark_pulsar.failures import sentence_first
from pyspark_pulsar.offsets import Position, earliest, offset_from_json, offset_to_json
from pyspark_pulsar.options import EARLIEST, LATEST, SourceOptions, StartOrEnd, parse_options
from pyspark_pulsar.ranges import (
    TopicSnapshot,
    admit,
    begin_of,
    end_position,
    other_topic,
    plan_ranges,
)
from pyspark_pulsar.reading import read_range, report_loss
from pyspark_pulsar.resolve import require_snapshots, require_topics, resolve_end, resolve_start

log = logging.getLogger("pyspark_pulsar")

IDLE_POLL_S = 0.25
"""A stream without new data asks the cluster no more often than this, although Spark, with its
default trigger, asks every 10 ms."""


class DefaultSource(DataSource):
    """Read Apache Pulsar topics: ``spark.read`` or ``spark.readStream`` ``.format("pulsar")``.

    Options are described in :mod:`pyspark_pulsar.options`; ``service.url``, ``admin.url`` and
    ``topic`` or ``topics`` are required.
    """

    @classmethod
    def name(cls) -> str:
        """The name for ``format()``."""
        return "pulsar"

    @sentence_first()
    def schema(self) -> StructType:
        """The columns chosen by the option ``columns``; all by default."""
        return spark_schema(parse_options(self.options).columns)

    @sentence_first()
    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch reader for the columns of ``schema``."""
        options = parse_options(self.options)
        options.check_batch()
        return PulsarReader(options, schema)

    @sentence_first()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """A stream reader for the columns of ``schema``."""
        options = parse_options(self.options)
        options.check_stream()
        return PulsarStreamReader(options, schema)


class RangePartition(InputPartition):
    """One task's range, as Spark carries it to the worker."""


class _Planner:
    """What both readers share: the options, the admin client and the task itself."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._arrow_schema = arrow_schema(schema)
        self._admin_client: AdminClient | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave connections and cached answers behind: they belong to this process."""
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
        """Where the query begins: at an offset, or early enough for the time of the options."""
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
        # Spark makes one task with the value None of an empty list of partitions.
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
        )
        with sentence_first():
            yield from read_range(partition.value, settings, self._arrow_schema, self._admin)


class PulsarReader(_Planner, DataSourceReader):
    """A batch read: both ends are fixed when the query is planned."""

    @sentence_first()
    def partitions(self) -> list[InputPartition]:
        """The tasks, after asking the cluster for the topics' partitions and ends."""
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
        # What a search to a time to come would leave out are messages of clocks that are wrong.
        is_past = last_ms < time.time() * 1_000
        return self._admin.positions_at(names, last_ms) if is_past else LATEST


class PulsarStreamReader(_Planner, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream: Spark's checkpoint holds the offsets, so that each message is read once."""

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

    @sentence_first()
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a query without a checkpoint starts: ``startingOffsets``, by default latest, or
        ``startingTime``.

        Spark asks twice for a query's first batch: before it asks for the batch's end, and when it
        plans the batch. The first answer holds, or the start would lie behind that end on a topic
        that is being published to.
        """
        if self._initial is None:
            names = self._partition_names()
            held = require_snapshots(self._options.topics, self._admin.snapshots(names))
            start = self._start(names, LATEST)
            self._initial = resolve_start(start, held)
            self._is_fixed = start == EARLIEST or all(
                position != end_position(topic, held[topic])
                for topic, position in self._initial.items()
            )
        return offset_to_json(self._initial)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Tells Spark that there is a limit; :meth:`latestOffset` applies both of them."""
        options = self._options
        if options.rows_per_trigger_max is not None:
            return ReadMaxRows(options.rows_per_trigger_max)
        if options.bytes_per_trigger_max is not None:
            return ReadMaxBytes(options.bytes_per_trigger_max)
        return ReadAllAvailable()

    @sentence_first()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of the whole query: what is published later is left for the next run."""
        self._refresh()
        self._target = dict(self._ends)

    @sentence_first()
    def latestOffset(  # noqa: N802
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        """How far the next batch reads: all that is there, or less within the limits.

        A query's first batch is empty and fixes its start: Spark writes a batch's end down before
        it runs, and its start never. Without it a query that is killed in its first batch would
        begin at another ``latest``, and leave out what that batch held. A start that is no topic's
        end is the same place at any time, and needs none.

        A cluster that does not answer has no news: Spark asks again, until ``pollTimeoutMs`` is
        over. A pass with an end, ``availableNow``, would end by that, and is asked here again.
        """
        starts = offset_from_json(start)
        if self._initial is not None and not self._is_fixed:
            self._is_fixed = True
            if starts == self._initial:
                self._first_end = starts
                return start
        if self._idle_since_s is not None:
            time.sleep(max(0.0, self._idle_since_s + IDLE_POLL_S - time.monotonic()))
        while not self._refresh_patiently():
            if self._target is None:
                self._idle_since_s = time.monotonic()
                return offset_to_json(starts)
        self._check_gone(starts)
        begins = self._begins(starts)
        ends = self._forward(begins, self._ends if self._target is None else self._target)
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
        """The end that the last :meth:`latestOffset` saw, for the query's progress report."""
        return offset_to_json(self._ends) if self._ends else None

    @sentence_first()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of one batch. Also called for a batch that a former run had planned."""
        starts, ends = offset_from_json(start), offset_from_json(end)
        changed = [topic for topic in ends if starts.get(topic) != ends[topic]]
        if any(topic not in self._snapshots for topic in changed):
            self._snapshots |= self._admin.snapshots(changed)
        begins = dict(starts)
        is_first = self._is_first(starts, ends)
        for topic in changed:
            held = self._snapshots[topic]
            if not is_first and topic in starts and held is not None:
                begins[topic] = begin_of(topic, held, starts[topic], ends[topic])
        return self._plan(begins, {topic: ends[topic] for topic in changed}, self._snapshots)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of one task."""
        return self._read(partition)

    def _is_first(self, starts: dict[str, Position], ends: dict[str, Position]) -> bool:
        """Whether this is a query's first batch: nothing was read before, of whatever topic.

        When it is planned again after a restart, ``latest`` may lie behind its end: then it reads
        nothing. In a later batch a start behind the end is one of another topic.
        """
        if starts != self._initial:
            return False
        if self._first_end is None:
            self._first_end = ends
        return ends == self._first_end

    def _refresh_patiently(self) -> bool:
        """Whether the cluster answered. Raises :class:`UnreachableError` if it is gone too long."""
        asked_s = time.monotonic()
        try:
            self._refresh()
        except UnreachableError as error:
            if self._unreachable_since_s is None:
                self._unreachable_since_s = asked_s
            waited_s = time.monotonic() - self._unreachable_since_s
            if waited_s >= self._options.poll_timeout_ms / 1_000:
                raise
            log.warning("%s; the stream waits for it", error)
            return False
        self._unreachable_since_s = None
        return True

    def _refresh(self) -> None:
        """Ask the cluster for the partitions, which may have become more, and their ends."""
        self._partitions = self._admin.partitions_if_any(self._options.topics)
        self._snapshots = self._admin.snapshots(
            sorted(chain.from_iterable(self._partitions.values())),
            with_counts=self._options.rows_per_trigger_max is not None,
        )
        self._ends = {
            topic: earliest(topic) if snapshot is None else end_position(topic, snapshot)
            for topic, snapshot in self._snapshots.items()
        }

    def _check_gone(self, starts: Mapping[str, Position]) -> None:
        """Report what does not exist and has no offset; of what has one, :meth:`_forward` does.

        Raises :class:`TopicNotFoundError` for a topic of the options that may never have been
        there, as a misspelt one that was added; one that a former run has seen vanish looks the
        same, so it is let pass where ``failOnDataLoss`` is false.
        """
        target = self._target or {}
        for topic in sorted(target.keys() - self._snapshots.keys()):
            del target[topic]
            if topic not in starts:
                report_loss(
                    f"{topic} no longer exists; nothing of it was read",
                    fail=self._options.fail_on_data_loss,
                )
        if self._options.fail_on_data_loss:
            require_topics(self._partitions, starts)

    def _begins(self, starts: Mapping[str, Position]) -> dict[str, Position]:
        """``starts``; of a topic that is not the one they are of, before its first message."""
        begins = dict(starts)
        for topic, start in starts.items():
            snapshot = self._snapshots.get(topic)
            sentence = None if snapshot is None else other_topic(topic, snapshot, start)
            if sentence is not None:
                report_loss(sentence, fail=self._options.fail_on_data_loss)
                begins[topic] = earliest(topic)
        return begins

    def _forward(
        self, starts: Mapping[str, Position], ends: Mapping[str, Position]
    ) -> dict[str, Position]:
        """``ends``, never behind ``starts``; partitions that no longer exist are a loss."""
        forward = {
            topic: max(end, starts.get(topic, end), key=lambda position: position.order_key)
            for topic, end in ends.items()
        }
        for topic in starts:
            if topic not in self._snapshots:
                report_loss(
                    f"{topic} no longer exists or is not among the query's topics; "
                    f"it was read up to {starts[topic]}",
                    fail=self._options.fail_on_data_loss,
                )
            elif topic not in forward:
                forward[topic] = starts[topic]
        return forward

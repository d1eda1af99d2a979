"""The streaming source of telemetry: the topics of several clusters as one stream with one offset.

It reads each cluster with ``format("pulsar")``'s reader and keeps the positions by the cluster's
identity (``cluster_offsets``). So it does not matter at which URL a cluster is, in which order the
URLs stand, and which other clusters are read. Of two URLs of one cluster it reads the first that
answers.

Spark creates the reader on the driver, and sends a copy to each task.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from headgate.pipeline.cluster_identity import cluster_identity
from headgate.pipeline.streaming.cluster_offsets import (
    ClusterOffsets,
    Positions,
    of_topic,
    offsets_from_json,
    offsets_to_json,
    with_topic,
)
from pyspark_pulsar.admin import PARALLEL_REQUESTS_MAX, AdminClient
from pyspark_pulsar.columns import spark_schema
from pyspark_pulsar.errors import DataLossError, UnreachableError
from pyspark_pulsar.offsets import OFFSET_VERSION
from pyspark_pulsar.options import SourceOptions, parse_options
from pyspark_pulsar.ranges import ReadRange
from pyspark_pulsar.source import PulsarStreamReader, RangePartition
from pyspark_pulsar.tracebacks import without_traceback

TELEMETRY_FORMAT: Final = "headgate_telemetry"

ASK_TIMEOUT_MS: Final = 5_000
"""How long a broker has for its identity. Meanwhile the others wait, so it is short; a broker that
does not answer is asked again for the next batch."""

SILENT_S: Final = 60.0
"""A broker that has been silent for so long is asked once in that time."""

log = logging.getLogger("headgate.pipeline")

_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class ClusterRange:
    """The work of one task: a range of one cluster, read at the broker with this index."""

    broker: int
    cluster: str
    work: ReadRange


class ClusterPartition(InputPartition):
    """The range of one task, which Spark sends to the worker."""


class TelemetrySource(DataSource):
    """Telemetry topics of several clusters, for ``spark.readStream``.

    Options:

    * ``brokers``: a JSON list with the options of ``format("pulsar")`` for each broker.
    * ``starts``: a JSON object of the positions with which a cluster begins that the checkpoint
      does not have, by identity and partition; others begin with their first message.
    * ``absent``: a JSON list of clusters whose part of a planned batch is left out.
    """

    @classmethod
    def name(cls) -> str:
        """The name in ``format()``."""
        return TELEMETRY_FORMAT

    @without_traceback()
    def schema(self) -> StructType:
        """The columns of the first broker's option ``columns``."""
        return spark_schema(parse_options(json.loads(self.options["brokers"])[0]).columns)

    @without_traceback()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """A stream reader for the columns of ``schema``."""
        brokers = tuple(parse_options(each) for each in json.loads(self.options["brokers"]))
        for broker in brokers:
            broker.check_stream()
        return TelemetryStreamReader(
            brokers,
            schema,
            json.loads(self.options.get("starts", "{}")),
            frozenset(json.loads(self.options.get("absent", "[]"))),
        )


@dataclass(frozen=True, slots=True)
class _Silence:
    """A broker that does not answer."""

    since_s: float
    asked_s: float
    """When it was asked last."""
    error: UnreachableError


@dataclass(frozen=True, slots=True)
class _Cluster:
    """A cluster that is read now: at which broker, and by which reader."""

    broker: int
    reader: PulsarStreamReader


class TelemetryStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream reader over several clusters; each message is read once."""

    def __init__(
        self,
        brokers: tuple[SourceOptions, ...],
        schema: StructType,
        starts: ClusterOffsets,
        absent: frozenset[str] = frozenset(),
        *,
        admin_client: Callable[[SourceOptions], AdminClient] | None = None,
        reader_of: Callable[[SourceOptions, StructType], PulsarStreamReader] = PulsarStreamReader,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``starts`` and ``absent``: as in :class:`TelemetrySource`. All brokers have the same
        topic."""
        self._brokers = brokers
        self._topic = brokers[0].topics[0]
        self._schema = schema
        self._starts = starts
        self._absent = absent
        self._admin_client = _asking_client if admin_client is None else admin_client
        self._reader_of = reader_of
        self._monotonic = monotonic
        self._admins: dict[int, AdminClient] = {}
        self._clusters: dict[str, _Cluster] = {}
        self._silent: dict[int, _Silence] = {}
        self._is_bounded = False

    def __getstate__(self) -> dict[str, Any]:
        """The state without connections, which belong to this process."""
        return self.__dict__ | {"_admins": {}, "_clusters": {}, "_silent": {}}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """No positions: a cluster without any begins with its start, or its first message."""
        return offsets_to_json({})

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limit of the first reader; each applies its own."""
        return self._reader_of(self._brokers[0], self._schema).getDefaultReadLimit()

    @without_traceback()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of the query; the next run reads messages that are published later."""
        self._find_all()
        self._is_bounded = True
        readers = [cluster.reader for cluster in self._clusters.values()]
        _concurrently(PulsarStreamReader.prepareForTriggerAvailableNow, readers)

    @without_traceback()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next batch, each cluster within its limits.

        A cluster whose brokers do not answer has no new data. After ``pollTimeoutMs`` without an
        answer of any broker the query fails: one that is down must not end the telemetry of the
        others.
        """
        starts = offsets_from_json(start)
        if not self._is_bounded:
            self._find(needs_all=False)

        def end_of(name: str) -> Positions:
            begin = _own_offset(self._begin(starts, name))
            positions: Positions = self._clusters[name].reader.latestOffset(begin, limit)["t"]
            return positions

        names = sorted(self._clusters)
        ends: ClusterOffsets = starts
        for name, positions in zip(names, _concurrently(end_of, names), strict=True):
            ends = with_topic(ends, name, self._topic, positions)
        return offsets_to_json(ends)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """The ends of the topics at the last :meth:`latestOffset`, for the query's progress."""
        reported = {
            name: cluster.reader.reportLatestOffset() for name, cluster in self._clusters.items()
        }
        return offsets_to_json({name: each["t"] for name, each in reported.items() if each})

    @without_traceback()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of one batch, which an earlier run may have planned.

        Raises:
            DataLossError: that run read a cluster that no broker belongs to now.
        """
        starts, ends = offsets_from_json(start), offsets_from_json(end)
        changed = [name for name in sorted(ends) if starts.get(name) != ends[name]]
        if any(name not in self._clusters for name in changed):
            self._find(needs_all=False)
            while self._silent and any(name not in self._clusters for name in changed):
                self._find()
        missing = [name for name in changed if name not in {*self._clusters, *self._absent}]
        if missing:
            raise DataLossError(
                f"the planned batch has telemetry of {', '.join(missing)}, and the brokers that "
                "are read now are others: start the job again"
            )
        return [task for name in changed for task in self._tasks(name, starts, ends)]

    def _tasks(self, name: str, starts: ClusterOffsets, ends: ClusterOffsets) -> list[Any]:
        """The tasks of one cluster."""
        cluster = self._clusters.get(name)
        if cluster is None:
            return []
        planned = cluster.reader.partitions(
            _own_offset(self._begin(starts, name)), _own_offset(of_topic(ends[name], self._topic))
        )
        return [
            ClusterPartition(ClusterRange(cluster.broker, name, each.value)) for each in planned
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of one task.

        After the last one it asks whether the broker is still of the cluster for which the range
        was planned. Another data directory may have come to the same URL, with the same ids.

        Raises:
            DataLossError: it is not.
        """
        # For an empty list of partitions Spark creates one task with the value None.
        if partition.value is None:
            return
        task: ClusterRange = partition.value
        options = self._brokers[task.broker]
        yield from self._reader_of(options, self._schema).read(RangePartition(task.work))
        with without_traceback():
            found = self._identity_within(options)
            if found != task.cluster:
                raise DataLossError(
                    f"{options.connection.admin_url} is {found} now, and was {task.cluster} when "
                    "the batch was planned: start the job again, and it reads both"
                )

    def _identity_within(self, options: SourceOptions) -> str:
        """The identity of a broker, which may be restarting for ``pollTimeoutMs``."""
        deadline_s = self._monotonic() + options.poll_timeout_ms / 1_000
        admin = self._admin_client(options)
        while True:
            try:
                return cluster_identity(admin)
            except UnreachableError:
                if self._monotonic() >= deadline_s:
                    raise

    def _begin(self, offsets: ClusterOffsets, name: str) -> Positions:
        """The positions of a cluster in the topic, which may be those with which it begins."""
        own = of_topic(offsets.get(name, {}), self._topic)
        return own or of_topic(self._starts.get(name, {}), self._topic)

    def _find_all(self) -> None:
        """Find the clusters of all brokers, and wait for those that do not answer.

        Raises:
            UnreachableError: a broker has not answered for ``pollTimeoutMs``.
        """
        self._find()
        while self._silent:
            self._find()

    def _find(self, *, needs_all: bool = True) -> None:
        """Ask every broker for its cluster, of which a restart may have made another.

        ``needs_all``: False if the brokers that answer suffice. One that has been silent for
        :data:`SILENT_S` is then asked once in that time, because the others wait for it.

        Raises:
            UnreachableError: a broker has not answered for ``pollTimeoutMs``; if not all are
                needed, none has.
        """
        found: dict[str, _Cluster] = {}
        asked = [n for n in range(len(self._brokers)) if needs_all or not self._is_left_alone(n)]
        names = dict(zip(asked, _concurrently(self._ask, asked), strict=True))
        for broker, name in names.items():
            if name is None or name in found:
                continue
            before = self._clusters.get(name)
            if before is None or before.broker != broker:
                before = _Cluster(broker, self._reader_of(self._brokers[broker], self._schema))
            found[name] = before
        self._clusters = found
        self._check_patience(needs_all=needs_all)

    def _check_patience(self, *, needs_all: bool) -> None:
        """Raise the error of a broker that has been silent for too long, or of all of them."""
        now_s = self._monotonic()
        over = [
            silence.error
            for broker, silence in self._silent.items()
            if now_s - silence.since_s >= self._brokers[broker].poll_timeout_ms / 1_000
        ]
        if over and (needs_all or len(over) == len(self._brokers)):
            raise over[0]

    def _is_left_alone(self, broker: int) -> bool:
        silence, now_s = self._silent.get(broker), self._monotonic()
        return (
            silence is not None
            and len(self._silent) < len(self._brokers)
            and now_s - silence.since_s >= SILENT_S
            and now_s - silence.asked_s < SILENT_S
        )

    def _ask(self, broker: int) -> str | None:
        """The identity of a broker; None if it does not answer."""
        asked_s = self._monotonic()
        if broker not in self._admins:
            self._admins[broker] = self._admin_client(self._brokers[broker])
        try:
            name = cluster_identity(self._admins[broker])
        except UnreachableError as error:
            before = self._silent.get(broker)
            since_s = asked_s if before is None else before.since_s
            self._silent[broker] = _Silence(since_s, asked_s, error)
            log.warning("%s; the stream goes on without this broker and retries", error)
            return None
        self._silent.pop(broker, None)
        return name


def _asking_client(options: SourceOptions) -> AdminClient:
    connection = options.connection
    timeout_ms = min(connection.admin_timeout_ms, ASK_TIMEOUT_MS)
    return AdminClient(replace(connection, admin_timeout_ms=timeout_ms))


def _own_offset(positions: Positions) -> dict[str, Any]:
    """The offset of ``format("pulsar")`` for the positions of one cluster."""
    return {"v": OFFSET_VERSION, "t": dict(positions)}


def _concurrently(function: Callable[[_T], _R], items: Iterable[_T]) -> list[_R]:
    """``function`` of each item, in order. One item needs no thread."""
    each = list(items)
    if len(each) <= 1:
        return [function(one) for one in each]
    with ThreadPoolExecutor(min(len(each), PARALLEL_REQUESTS_MAX)) as pool:
        return list(pool.map(function, each))

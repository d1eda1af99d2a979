"""Telemetry of many subscriptions, written as rows of bronze by Spark tasks in parallel.

    python -m bench.telemetry FOLDER --subscriptions 10000 --minutes 60 --seed 1

The folder is then one of ``headgate pipeline``: ``show``, ``sql`` and ``report`` read it, and a
refresh computes the tables that follow. Each topic has two subscriptions. A broker has 2,000 topics
and sends a row for each subject every 10 s, in messages of up to 4,000 subscriptions. Seven topics
in ten are healthy, one is idle, one has a slow consumer, and one a dispatch limit that is too low;
their troubles last half an hour and come every hour. Every second topic has a size quota, and one
in twenty is held by a publish limit.

All values follow from the seed, the number of the topic and the time. So parts of the time may be
written apart, by several tasks, and later ones after earlier ones.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.flow.account.verdict import MEASURED
from headgate.pipeline.session import create_session
from headgate.pipeline.spark_options import SparkOptions
from headgate.pipeline.store.delta_log import commit_append, ensure_table
from headgate.pipeline.store.parquet_files import FileAdded, write_tables
from headgate.pipeline.tables.arrow_types import (
    TIMESTAMP,
    conform,
    partition_columns,
    table_arrow_schema,
)
from headgate.pipeline.tables.bronze import BATCH_KIND, BRONZE_SAMPLES
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.record.fields import PARKED_FIELD_NAMES, STATE_FIELD_NAMES, Kind

FIRST_HOUR: Final = 490_000
"""Hours since the epoch; it begins a day."""
WINDOW_S: Final = 10
TOPICS_OF_BROKER: Final = 2_000
SUBSCRIPTIONS_OF_TOPIC: Final = 2
MESSAGE_ROWS: Final = 4_000
"""Most subscriptions in one message."""
NS_PER_S: Final = 1_000_000_000
MESSAGE_BYTES: Final = 500
QUOTA_BYTES: Final = 100_000_000

CYCLE_S, GROWS_S, DRAINS_S = 3_600, 1_200, 600
HEALTHY, IDLE, SLOW, LIMITED = range(4)
_KINDS: Final = np.array([HEALTHY] * 7 + [IDLE, SLOW, LIMITED])
_TIMES_MAX: Final = 1 << 24
"""More than the seconds of half a year."""
_PRESENT: Final = ("caught_up", "no_permits", "throttled_topic_messages_hungry")

Longs = npt.NDArray[np.int64]
Columns = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Telemetry:
    """So many subscriptions over some minutes since :data:`FIRST_HOUR`."""

    subscriptions: int
    minutes: int
    seed: int = 1

    @property
    def topics(self) -> int:
        """Each has two subscriptions."""
        return -(-self.subscriptions // SUBSCRIPTIONS_OF_TOPIC)

    @property
    def brokers(self) -> int:
        """Each has up to :data:`TOPICS_OF_BROKER`."""
        return -(-self.topics // TOPICS_OF_BROKER)

    def topics_of(self, broker: int) -> Longs:
        """The numbers of a broker's topics."""
        first = broker * TOPICS_OF_BROKER
        return np.arange(first, min(first + TOPICS_OF_BROKER, self.topics))

    def parts(self, first_minute: int = 0) -> list[tuple[int, int, int]]:
        """Broker, first minute and the minute after the last one of each hour's part."""
        edges = [*range(first_minute - first_minute % 60 + 60, self.minutes, 60), self.minutes]
        begins = [first_minute, *edges[:-1]]
        return [
            (broker, begin, end)
            for begin, end in zip(begins, edges, strict=True)
            for broker in range(self.brokers)
            if begin < end
        ]


@dataclass(frozen=True, slots=True)
class _Topics:
    """Some topics at the ends of some windows; arrays are (windows, topics)."""

    number: Longs
    elapsed_s: Longs
    rate: Longs
    """Published messages a second, on average."""
    appended: Longs
    """Messages so far; each window's are between half and one and a half times the average."""
    in_flight: Longs
    """Messages that healthy consumers have not acknowledged yet."""
    kind: Longs
    trouble_s: Longs
    """How long the trouble of one of its subscriptions lasted so far, in all."""
    backlog: Longs
    """Of the subscription in trouble."""
    is_held: npt.NDArray[np.bool_]
    """Whether a publish limit holds its producers half of the time."""


def _mixed(numbers: Longs, seed: int) -> Longs:
    """A pseudo-random number below 2^31 for each number (splitmix64)."""
    mixed = numbers.astype(np.uint64) + np.uint64(seed * 0x9E3779B97F4A7C15 % (1 << 64))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed >> np.uint64(33)).astype(np.int64)


def _topics(numbers: Longs, elapsed_s: Longs, seed: int) -> _Topics:
    chance = _mixed(numbers, seed)
    kind = _KINDS[chance % 10]
    rate = np.where(kind == IDLE, 0, 2 ** (1 + chance // 10 % 7))
    offset_s = chance // 100 % 180 * WINDOW_S
    passed = np.maximum(elapsed_s[:, np.newaxis] - offset_s, 0)
    phase = passed % CYCLE_S
    growth = np.minimum(phase, GROWS_S)
    drained = 2 * np.maximum(phase - GROWS_S, 0)
    troubled = kind >= SLOW
    lasts_s = passed // CYCLE_S * (GROWS_S + DRAINS_S) + np.minimum(phase, GROWS_S + DRAINS_S)
    every = np.ones_like(passed)
    noise = _mixed(numbers * every * _TIMES_MAX + elapsed_s[:, np.newaxis], seed)
    is_idle = kind == IDLE
    return _Topics(
        number=numbers * every,
        elapsed_s=elapsed_s[:, np.newaxis] * every,
        rate=rate * every,
        appended=rate * elapsed_s[:, np.newaxis] + noise % np.maximum(rate * WINDOW_S // 2, 1),
        in_flight=np.where(is_idle, 0, noise // 1_000 % 8),
        kind=kind * every,
        trouble_s=np.where(troubled, lasts_s, 0),
        backlog=np.where(troubled, rate // 2 * np.maximum(growth - drained, 0), 0),
        is_held=(chance // 1_000 % 20 == 0) & (rate > 0) & (every > 0),
    )


def _spans(topics: _Topics, origin_ns: int) -> Columns:
    to_ns = origin_ns + topics.elapsed_s * NS_PER_S
    return {
        "covered_from_ns": to_ns - WINDOW_S * NS_PER_S,
        "covered_to_ns": to_ns,
        "counting_since_ns": np.full_like(to_ns, origin_ns),
        "incarnation": np.ones_like(to_ns),
    }


def _subscriptions(topics: _Topics, which: int, origin_ns: int) -> Columns:
    """The rows of each topic's subscription number ``which``, (windows, topics).

    Only the first is in trouble, but a topic's limit slows both.
    """
    troubled = (topics.kind == LIMITED) | ((topics.kind == SLOW) & (which == 0))
    trouble_ns = np.where(troubled, topics.trouble_s, 0) * NS_PER_S
    waiting = np.where(troubled, topics.backlog, 0)
    backlog = waiting + topics.in_flight
    rest_ns = topics.elapsed_s * NS_PER_S - trouble_ns
    is_idle = topics.rate == 0
    # The same while nothing is added to it, so that no account falls.
    noise = _mixed(topics.number * _TIMES_MAX + rest_ns // NS_PER_S, which)
    quarter_ns, tenth_ns = WINDOW_S * NS_PER_S // 8, WINDOW_S * NS_PER_S // 20
    acked = topics.appended - backlog
    columns = _spans(topics, origin_ns) | dict.fromkeys(
        (*STATE_FIELD_NAMES, "skipped", "rewound", "redelivered", "expired", "evicted", "delayed"),
        np.zeros_like(backlog),
    )
    cause = np.where(topics.kind == LIMITED, 2, 1)
    present = np.where(waiting > 0, cause, 0)
    awaiting_ns = np.where(is_idle, 0, rest_ns // 4 + noise % quarter_ns)
    dispatching_ns = np.where(is_idle, 0, rest_ns // 10 + noise % tenth_ns)
    limit = np.where(topics.kind == LIMITED, np.maximum(topics.rate, 1), 0)
    columns |= {
        "state_caught_up_ns": rest_ns - awaiting_ns - dispatching_ns,
        "state_awaiting_ack_ns": awaiting_ns,
        "state_dispatching_ns": dispatching_ns + trouble_ns // 10,
        **{
            f"state_{_PRESENT[code]}_ns": np.where(cause == code, trouble_ns - trouble_ns // 10, 0)
            for code in (1, 2)
        },
        "appended": topics.appended,
        "msgs_out": acked,
        "bytes_out": acked * MESSAGE_BYTES,
        "acked": acked,
        "backlog_messages": backlog,
        "backlog_bytes": backlog * MESSAGE_BYTES,
        "oldest_age_ns": waiting * NS_PER_S // np.maximum(topics.rate, 1) + noise % 200_000_000,
        "unacked": np.minimum(backlog, 100),
        "permits": np.where(present == 1, 0, 1_000 - topics.number % 500),
        "consumers": 1 + topics.number % 3,
        "state": pa.array(_PRESENT).take(pa.array(present.ravel())),
        "limit_topic_messages": pa.array(limit.ravel(), mask=limit.ravel() == 0),
        "limit_topic_period_ns": pa.array(np.full(limit.size, NS_PER_S)),
        "limit_topic_source": _text_where(limit > 0, "topic policy"),
    }
    return columns


def _topic_rows(topics: _Topics, origin_ns: int) -> Columns:
    size = (topics.backlog + topics.in_flight) * MESSAGE_BYTES
    held_ns = np.where(topics.is_held, topics.elapsed_s * NS_PER_S // 2, 0)
    both = np.where(topics.kind == LIMITED, 2, 1)
    acked = 2 * (topics.appended - topics.in_flight) - both * topics.backlog
    has_quota = topics.number % 2 == 0
    columns = _spans(topics, origin_ns) | dict.fromkeys(PARKED_FIELD_NAMES, np.zeros_like(size))
    return columns | {
        "msgs_in": topics.appended,
        "bytes_in": topics.appended * MESSAGE_BYTES,
        "msgs_out": acked,
        "bytes_out": acked * MESSAGE_BYTES,
        "storage_bytes": size + 10_000_000,
        "backlog_bytes": size,
        "oldest_age_ns": topics.backlog * NS_PER_S // np.maximum(topics.rate, 1),
        "oldest_subscription": _text_where(topics.backlog > 0, "s0"),
        "producers": np.ones_like(size),
        "parked_topic_rate_ns": held_ns,
        "parked_topic_rate_messages": np.where(topics.is_held, 5, 0),
        "publish_limit_messages_per_s": pa.array(
            topics.rate.ravel().astype(np.float64), mask=~topics.is_held.ravel()
        ),
        "publish_limit_source": _text_where(topics.is_held, "topic policy"),
        "quota_size_limit_bytes": pa.array(
            np.full(size.size, QUOTA_BYTES), mask=~has_quota.ravel()
        ),
        "quota_size_policy": _text_where(has_quota, "producer_request_hold"),
        "quota_size_source": _text_where(has_quota, "namespace policy acme/ns"),
    }


def _limiter_rows(topics: _Topics, origin_ns: int) -> Columns:
    """The dispatch limits, of topics of kind :data:`LIMITED`."""
    waiting_ns = topics.trouble_s * NS_PER_S
    granted = 2 * (topics.appended - topics.backlog)
    waits = topics.backlog > 0
    columns = _spans(topics, origin_ns) | {
        "limit": np.maximum(topics.rate, 1),
        "limit_period_ns": np.full_like(granted, NS_PER_S),
        "limit_source": _text_where(waits | True, "topic policy"),
        "offered": 2 * topics.appended,
        "granted": granted,
        "waiting_ns": waiting_ns,
        "waiters_max": np.where(waits, 2, 0),
        "level": _text_where(waits | True, "topic"),
        "dimension": _text_where(waits | True, "messages"),
    }
    for place in (1, 2):
        columns[f"waiter_{place}"] = _text_where(waits, f"s{place - 1}")
        amount = topics.rate.ravel() * WINDOW_S // 2
        columns[f"waiter_{place}_amount"] = pa.array(amount, mask=~waits.ravel())
    return columns


def _text_where(there: Any, text: str) -> pa.Array:
    """The text in some rows, null in the others."""
    return pa.array([text]).take(pa.array(np.zeros(there.size, np.int64), mask=~there.ravel()))


@dataclass(frozen=True, slots=True)
class _Windows:
    """The windows of one broker in some minutes."""

    broker: int
    numbers: Longs
    """Since the beginning."""
    messages: int
    """For each window."""
    origin_ns: int

    def header(self, window: Longs, message: Longs, row: Longs, kind: str) -> Columns:
        """The header of rows: their windows' place in :attr:`numbers`, the number of their message
        in the window, and their place in it."""
        number = self.numbers[window]
        end_ns = self.origin_ns + (number + 1) * WINDOW_S * NS_PER_S
        count = len(end_ns)

        def same(value: object, type_: pa.DataType) -> pa.Array:
            return pa.repeat(pa.scalar(value, type_), count)

        return {
            **partition_columns(end_ns - 1),
            "kind": same(kind, pa.string()),
            "source": same(f"telemetry-{self.broker}", pa.string()),
            "cluster": same("east", pa.string()),
            "broker": same(f"broker-{self.broker}:6650", pa.string()),
            "boot_id": same("boot", pa.string()),
            "seq": pa.array(number * self.messages + message),
            "row": pa.array(row.astype(np.int32)),
            "window_start_ns": pa.array(end_ns - WINDOW_S * NS_PER_S),
            "window_end_ns": pa.array(end_ns),
            "window_end": pa.array(end_ns // 1_000).cast(TIMESTAMP),
            "clock_step": same(False, pa.bool_()),
            "evidence": same(MEASURED, pa.string()),
        }


def minute_rows(
    telemetry: Telemetry, broker: int, minute: int, count: int = 1
) -> Iterator[pa.Table]:
    """The rows of bronze of one broker in ``count`` minutes, a table for each kind."""
    numbers = telemetry.topics_of(broker)
    per_message = MESSAGE_ROWS // SUBSCRIPTIONS_OF_TOPIC
    per_minute = MINUTE_NS // NS_PER_S // WINDOW_S
    windows = _Windows(
        broker,
        np.arange(minute * per_minute, (minute + count) * per_minute),
        -(-len(numbers) // per_message),
        FIRST_HOUR * HOUR_NS,
    )
    topics = _topics(numbers, (windows.numbers + 1) * WINDOW_S, telemetry.seed)
    window, place = np.indices(topics.number.shape).reshape(2, -1)
    names = pa.array([f"persistent://acme/ns-{n % 50}/topic-{n:07}" for n in numbers.tolist()])
    message, row = place // per_message, place % per_message
    topic = {"topic": names.take(pa.array(place))}
    for which in range(SUBSCRIPTIONS_OF_TOPIC):
        yield _table(
            windows.header(window, message, SUBSCRIPTIONS_OF_TOPIC * row + which,
                           Kind.SUBSCRIPTION.value),
            topic | {"subscription": _text_where(place >= 0, f"s{which}"),
                     "type": _text_where(place >= 0, "Shared")},
            _subscriptions(topics, which, windows.origin_ns),
        )  # fmt: skip
    yield _table(
        windows.header(window, message, row, Kind.TOPIC.value),
        topic,
        _topic_rows(topics, windows.origin_ns),
    )
    limited = np.flatnonzero(topics.kind[0] == LIMITED)
    if len(limited):
        some = _topics(numbers[limited], (windows.numbers + 1) * WINDOW_S, telemetry.seed)
        window, place = np.indices(some.number.shape).reshape(2, -1)
        yield _table(
            windows.header(window, limited[place] // per_message, place, Kind.LIMITER.value),
            {"subject": names.take(pa.array(limited[place]))},
            _limiter_rows(some, windows.origin_ns),
        )
    window, message = np.indices((len(windows.numbers), windows.messages)).reshape(2, -1)
    yield _table(windows.header(window, message, np.zeros_like(message), BATCH_KIND))


def _table(*columns: Columns) -> pa.Table:
    merged: Columns = {}
    for some in columns:
        merged |= some
    arrays = {
        name: value if isinstance(value, pa.Array) else pa.array(value.ravel())
        for name, value in merged.items()
    }
    return conform(arrays, table_arrow_schema(BRONZE_SAMPLES), len(arrays["date"]))


def write_part(root: str, telemetry: Telemetry, part: tuple[int, int, int]) -> list[FileAdded]:
    """Write the files of one broker in a part of an hour; nothing is committed."""
    broker, begin, end = part
    # A small broker has as many rows in some minutes as a large one in one.
    step = max(1, TOPICS_OF_BROKER // len(telemetry.topics_of(broker)))
    rows = (
        (BRONZE_SAMPLES.name, table)
        for minute in range(begin, end, step)
        for table in minute_rows(telemetry, broker, minute, min(step, end - minute))
    )
    return write_tables(root, f"{broker}-{begin}", rows)


def write_telemetry(
    spark: SparkSession, root: str, telemetry: Telemetry, first_minute: int = 0
) -> None:
    """Append the telemetry from a minute on to bronze, in one commit."""
    ensure_table(root, BRONZE_SAMPLES)
    parts = telemetry.parts(first_minute)
    # An hour of a broker that has few topics is little work.
    tasks = min(len(parts), max(spark.sparkContext.defaultParallelism, len(parts) // 8))
    found = (
        spark.sparkContext.parallelize(parts, tasks)
        .flatMap(lambda part: write_part(root, telemetry, part))
        .collect()
    )
    commit_append(root, BRONZE_SAMPLES, found, None)


def main() -> None:
    """Write a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of the tables; new or empty")
    parser.add_argument("--subscriptions", type=int, default=10_000)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.subscriptions < 1 or options.minutes < 1:
        parser.error("--subscriptions and --minutes: 1 or more is allowed")
    if options.folder.exists() and any(options.folder.iterdir()):
        parser.error(f"{options.folder} is not empty")
    options.folder.mkdir(parents=True, exist_ok=True)
    root = str(options.folder.resolve())
    spark = create_session("telemetry", options=SparkOptions(), log_path=Path(root, "_spark.log"))
    telemetry = Telemetry(options.subscriptions, options.minutes, options.seed)
    try:
        write_telemetry(spark, root, telemetry)
    finally:
        spark.stop()
    sys.stdout.write(f"{telemetry.brokers:,} brokers, {telemetry.topics:,} topics\n")


if __name__ == "__main__":
    main()

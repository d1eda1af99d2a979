"""What the tasks of a query need to know besides their range."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_pulsar.options import MESSAGE_BYTES_MAX, PUBLISH_TIME_SKEW_MS, Connection


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """The options of a task. Times are publish times in milliseconds since the epoch."""

    connection: Connection
    starting_time_ms: int | None
    ending_time_ms: int | None
    fail_on_data_loss: bool
    receiver_queue_size: int | None
    poll_timeout_ms: int
    publish_time_skew_ms: int = PUBLISH_TIME_SKEW_MS
    message_bytes_max: int = MESSAGE_BYTES_MAX

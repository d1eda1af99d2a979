"""The Pulsar client of a Spark worker, one for each process.

The client retries transient failures (a refused connection, a broker that is starting) for
``operationTimeoutMs``. A restart of a broker may take longer, so :func:`open_reader` retries until
``pollTimeoutMs`` is over. A permanent error ends the task immediately.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pulsar

from pyspark_pulsar.access import Access
from pyspark_pulsar.errors import AccessError, ReadTimeoutError
from pyspark_pulsar.handshake import check_credentials
from pyspark_pulsar.offsets import WHOLE_ENTRY, Position
from pyspark_pulsar.options import MESSAGE_BYTES_MAX, PUBLISH_TIME_SKEW_MS, Connection
from pyspark_pulsar.ranges import ReadRange

QUEUE_MESSAGES_MAX = 1_000
QUEUE_MESSAGES_MIN = 16
QUEUE_BYTES_MAX = 64 * 1024 * 1024
"""The client prefetches by count. For large entries, the count is reduced to about this size."""

CONNECT_TIMEOUT_MS_MAX = 10_000
"""Longest wait for one TCP connection; ``operationTimeoutMs`` may hold several attempts."""

PROBE_TIMEOUT_S = 5.0
"""Longest wait for a broker's answer when the credentials are checked."""

RETRY_PAUSE_S = 1.0
"""Pause between two attempts to open a reader."""

log = logging.getLogger("pyspark_pulsar")


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


_clients: dict[tuple[int, Connection], pulsar.Client] = {}


def shared_client(connection: Connection) -> pulsar.Client:
    """This process's client for ``connection``, created on first use and kept for later tasks.

    The process id is part of the key because Spark forks its workers: a client does not survive a
    fork. Raises :class:`AccessError` if a token or certificate cannot
    be read, or the broker refuses it.
    """
    key = (os.getpid(), connection)
    client = _clients.get(key)
    if client is None:
        access = connection.access
        access.check_files()
        check_credentials(connection, min(PROBE_TIMEOUT_S, connection.operation_timeout_ms / 1_000))
        client = pulsar.Client(
            connection.service_url,
            authentication=_authentication(access),
            operation_timeout_seconds=max(1, connection.operation_timeout_ms // 1_000),
            connection_timeout_ms=min(CONNECT_TIMEOUT_MS_MAX, connection.operation_timeout_ms),
            stats_interval_in_seconds=0,
            tls_trust_certs_file_path=access.trust_path,
            tls_allow_insecure_connection=access.allow_insecure,
            tls_validate_hostname=access.verify_hostname,
            tls_certificate_file_path=access.certificate_path,
            tls_private_key_file_path=access.key_path,
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn),
        )
        _clients[key] = client
    return client


def _authentication(access: Access) -> pulsar.Authentication | None:
    """The credentials of the client; it reads a token again for each connection.

    It keeps a user and password as they are when it is created, which the C++ client demands.
    """
    pair = access.current_password()
    if pair is not None:
        return pulsar.AuthenticationBasic(*pair)
    latest = access.current_token()
    if latest is None:
        if access.certificate_path is not None and access.key_path is not None:
            return pulsar.AuthenticationTLS(access.certificate_path, access.key_path)
        return None

    def current() -> str:
        # A thread of the client calls this function, and must not see an exception.
        nonlocal latest
        try:
            latest = access.current_token()
        except AccessError as error:
            log.warning("%s; the client continues with the token that it read last", error)
        return latest or ""

    return pulsar.AuthenticationToken(current)


def open_reader(
    work: ReadRange,
    settings: ReadSettings,
    start: Position | None = None,
    *,
    listener: Callable[[Any, Any], None] | None = None,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Any:
    """A reader of the client just after ``start``, by default the start of the range. Given a
    ``listener``, it prefetches nothing.

    Brokers send the entry at which a client begins, whether it takes it or not. One that is
    malformed is a loss of the range before, so the client begins with the entry behind it.

    Raises :class:`AccessError` if the broker refuses the credentials, and
    :class:`ReadTimeoutError` when ``pollTimeoutMs`` has passed without a reader.
    """
    start = work.start if start is None else start
    # A client that does not discard an encrypted message never asks for one in its place.
    discard = pulsar.ConsumerCryptoFailureAction.DISCARD
    how: dict[str, Any] = {"receiver_queue_size": 1, "crypto_failure_action": discard}
    if listener is not None:
        how["reader_listener"] = listener
    else:
        how["receiver_queue_size"] = _queue_size(work, settings)
    if start.ledger_id < 0:
        first = pulsar.MessageId.earliest
    else:
        how["start_message_id_inclusive"] = True
        entry_id = start.entry_id + (start.batch_index == WHOLE_ENTRY)
        first = pulsar.MessageId(start.partition, start.ledger_id, entry_id, start.batch_index)
    connection = settings.connection
    client = shared_client(connection)
    deadline = monotonic() + settings.poll_timeout_ms / 1_000
    while True:
        try:
            return client.create_reader(work.topic, first, **how)
        except (pulsar.AuthenticationError, pulsar.AuthorizationError) as error:
            raise AccessError(
                f"{connection.service_url} refuses access to {work.topic} "
                f"({connection.access.scrubbed(str(error))}): {connection.access.advice()}"
            ) from error
        except _PERMANENT_ERRORS:
            raise
        except pulsar.PulsarException as error:
            if monotonic() + RETRY_PAUSE_S >= deadline:
                raise ReadTimeoutError(
                    f"{work.topic}: {connection.service_url} opened no reader within "
                    f"{settings.poll_timeout_ms} ms (pollTimeoutMs): {error}"
                ) from error
            log.info("%s: no reader yet (%s); retrying", work.topic, error)
        check_credentials(connection, min(PROBE_TIMEOUT_S, connection.operation_timeout_ms / 1_000))
        sleep(RETRY_PAUSE_S)


_PERMANENT_ERRORS = (
    pulsar.InvalidConfiguration,
    pulsar.InvalidTopicName,
    pulsar.InvalidUrl,
    pulsar.NotAllowedError,
    pulsar.TopicNotFound,
    pulsar.UnsupportedVersionError,
)
"""Errors that another attempt cannot resolve."""


def native_reader(reader: Any) -> Any:
    """The native reader inside the client's Python reader; it has the same methods.

    The Python layer creates an object for each message and forwards each call, which is a fifth of
    the cost of a row. If a later client has no native reader, the public one works as well.
    """
    native = getattr(reader, "_reader", None)
    return native if hasattr(native, "read_next") else reader


def entry_bytes(work: ReadRange) -> float:
    """The largest mean entry size of any ledger in the range, in bytes; at least 1."""
    return max(1.0, *(part.entry_bytes_mean for part in work.due))


def _queue_size(work: ReadRange, settings: ReadSettings) -> int:
    """How many messages the client may prefetch, by the mean entry size."""
    if settings.receiver_queue_size is not None:
        return settings.receiver_queue_size
    fit = int(QUEUE_BYTES_MAX / entry_bytes(work))
    return max(QUEUE_MESSAGES_MIN, min(QUEUE_MESSAGES_MAX, fit))

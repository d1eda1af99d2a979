"""Refusals of commands: an error code for the client, a line in the log for the operator.

Clients act on the code: some codes make them retry, others fail the call at once. The log line
tells the operator why a client fails, for example that it uses a feature which Headgate lacks.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from headgate.base.bounded_lines import BoundedLines, RoleLines
from headgate.base.errors import HeadgateError, InputError, StorageError
from headgate.base.names import InvalidNameError
from headgate.broker.connection.address_counts import peer_network_of
from headgate.broker.connection.client_connection import ClientConnection
from headgate.engine import errors
from headgate.metadata.errors import RefusalError, TooManyTopicsError
from headgate.schema.errors import IncompatibleSchemaError, InvalidSchemaError
from headgate.security.errors import (
    CredentialsError,
    OriginalPrincipalError,
    UncheckedCredentialsError,
)
from headgate.wire import commands
from headgate.wire.codes import CommandType, ServerError
from headgate.wire.messages import BaseCommand

logger = logging.getLogger("headgate.connection")

LINES_MAX: Final = 8
"""Most log lines about refused commands of one connection: a client that repeats itself must not
fill the log."""

_BY_TYPE: tuple[tuple[type[HeadgateError], ServerError], ...] = (
    (InvalidNameError, ServerError.INVALID_TOPIC_NAME),
    (errors.ProducerBusyError, ServerError.PRODUCER_BUSY),
    (errors.ProducerFencedError, ServerError.PRODUCER_FENCED),
    (errors.TopicTerminatedError, ServerError.TOPIC_TERMINATED_ERROR),
    (errors.ProducersHeldError, ServerError.PRODUCER_BLOCKED_QUOTA_EXCEEDED_ERROR),
    (errors.ProducersRefusedError, ServerError.PRODUCER_BLOCKED_QUOTA_EXCEEDED_EXCEPTION),
    (errors.ConsumerBusyError, ServerError.CONSUMER_BUSY),
    (errors.SubscriptionNotFoundError, ServerError.SUBSCRIPTION_NOT_FOUND),
    (errors.ConsumerNotFoundError, ServerError.CONSUMER_NOT_FOUND),
    (errors.UnsupportedVersionError, ServerError.UNSUPPORTED_VERSION_ERROR),
    # Clients retry after this one, so they reconnect once an administrator accepts the loss.
    (errors.DamagedError, ServerError.PERSISTENCE_ERROR),
    (errors.TopicFencedError, ServerError.SERVICE_NOT_READY),
    (errors.SubscriptionBusyError, ServerError.METADATA_ERROR),
    (IncompatibleSchemaError, ServerError.INCOMPATIBLE_SCHEMA),
    (InvalidSchemaError, ServerError.INCOMPATIBLE_SCHEMA),
    (errors.NotAllowedError, ServerError.NOT_ALLOWED_ERROR),
    (StorageError, ServerError.PERSISTENCE_ERROR),
    (InputError, ServerError.METADATA_ERROR),
)

_BY_STATUS = {
    401: ServerError.AUTHORIZATION_ERROR,
    403: ServerError.AUTHORIZATION_ERROR,
    404: ServerError.TOPIC_NOT_FOUND,
    405: ServerError.NOT_ALLOWED_ERROR,
    412: ServerError.METADATA_ERROR,
    429: ServerError.TOO_MANY_REQUESTS,
}


def protocol_error(error: HeadgateError) -> tuple[ServerError, str]:
    """The protocol's code and the text that answer a command which raised ``error``."""
    if isinstance(error, TooManyTopicsError):
        return ServerError.NOT_ALLOWED_ERROR, error.reason
    if isinstance(error, CredentialsError):
        return _of_credentials(error)
    if isinstance(error, RefusalError):
        return _BY_STATUS.get(error.status, ServerError.UNKNOWN_ERROR), error.reason
    for kind, code in _BY_TYPE:
        if isinstance(error, kind):
            return code, str(error)
    return ServerError.UNKNOWN_ERROR, str(error)


def _of_credentials(error: CredentialsError) -> tuple[ServerError, str]:
    """What a client may learn. Clients take an authentication error as final."""
    if isinstance(error, UncheckedCredentialsError):
        return ServerError.SERVICE_NOT_READY, "Credentials are not checked now: try again later"
    if isinstance(error, OriginalPrincipalError):
        return ServerError.AUTHORIZATION_ERROR, f"Invalid roles: {error}"
    return ServerError.AUTHENTICATION_ERROR, "Failed to authenticate"


_LOGGED: Final = (
    ServerError.NOT_ALLOWED_ERROR,
    ServerError.INCOMPATIBLE_SCHEMA,
    ServerError.AUTHORIZATION_ERROR,
)


def unrequested_error(text: str) -> bytes:
    """The frame that tells a client why its connection ends, though it has asked nothing."""
    connect = BaseCommand(type=CommandType.CONNECT)
    return commands.refuse(connect, ServerError.NOT_ALLOWED_ERROR, text) or b""


class RefusalLogger:
    """Logs the refusals of one connection, each text once."""

    def __init__(self, lines: BoundedLines, role_lines: RoleLines) -> None:
        """``lines`` bounds what is logged about clients that have not authenticated, ``role_lines``
        about all others."""
        self._lines = lines
        self._role_lines = role_lines
        self._logged: set[str] = set()

    def refused(self, client: ClientConnection, kind: int, code: ServerError, why: object) -> None:
        """Log that the broker refused a command of type ``kind`` with ``code`` because of
        ``why``, if no retry can succeed: the client uses what Headgate lacks, or what it may
        not."""
        if code in _LOGGED:
            text = f"{client.address}: {CommandType(kind).name} refused: {why}"
            self._log(client, logging.INFO, text)

    def delay_ignored(
        self, client: ClientConnection, producer_name: str, topic_name: object
    ) -> None:
        """Log that the broker ignores the delay which a producer's messages ask for."""
        self._log(
            client,
            logging.WARNING,
            f"{client.address}: producer {producer_name[:80]!r} of {topic_name} asks for delayed "
            "delivery, which is switched off there: its messages are delivered at once",
        )

    def broke_protocol(self, client: ClientConnection, error: object) -> None:
        """Log that a connection ends because its client sent what the protocol does not allow."""
        self.ended(client, "%s broke the protocol and is disconnected: %s", error)

    def ended(self, client: ClientConnection, text: str, *values: object) -> None:
        """Log why the broker ends a connection. ``text`` is a constant with places for the client's
        address and ``values``."""
        if client.peer is None:
            self._lines.info(text, client.address, *values)
        else:
            self._write(client, logging.INFO, text % (client.address, *values))

    def _log(self, client: ClientConnection, level: int, text: str) -> None:
        if text not in self._logged and len(self._logged) < LINES_MAX:
            self._logged.add(text)
            self._write(client, level, text)

    def _write(self, client: ClientConnection, level: int, text: str) -> None:
        identity = client.identity
        role = identity.original_role or identity.role or peer_network_of(client.address)
        if logger.isEnabledFor(level):
            self._role_lines.log(partial(logger.log, level), role, text)

"""The table of cold commands: which function carries each out.

A handler that has to wait is a coroutine function; what it raises is answered to the client in the
reply that the command has for failures.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from headgate.broker.commands import consuming, lookups, producing, schemas
from headgate.wire.codes import CommandType
from headgate.wire.messages import BaseCommand

if TYPE_CHECKING:
    from headgate.broker.connection import Connection

Handler = Callable[["Connection", BaseCommand], Coroutine[Any, Any, None] | None]

HANDLERS: dict[int, Handler] = {
    CommandType.LOOKUP: lookups.lookup,
    CommandType.PARTITIONED_METADATA: lookups.partition_metadata,
    CommandType.GET_TOPICS_OF_NAMESPACE: lookups.topics_of_namespace,
    CommandType.GET_SCHEMA: schemas.get_schema,
    CommandType.GET_OR_CREATE_SCHEMA: schemas.get_or_create_schema,
    CommandType.PRODUCER: producing.create_producer,
    CommandType.CLOSE_PRODUCER: producing.close_producer,
    CommandType.SUBSCRIBE: consuming.subscribe,
    CommandType.UNSUBSCRIBE: consuming.unsubscribe,
    CommandType.SEEK: consuming.seek_consumer,
    CommandType.REDELIVER_UNACKNOWLEDGED_MESSAGES: consuming.redeliver,
    CommandType.CLOSE_CONSUMER: consuming.close_consumer,
    CommandType.GET_LAST_MESSAGE_ID: consuming.last_message_id,
}
"""Every command that is built and not carried out by the connection itself."""

"""Which protocol error a refusal becomes. Clients act on the number: see ``ServerError``."""

from __future__ import annotations

from headgate.base.errors import HeadgateError, InputError, StorageError
from headgate.base.names import InvalidNameError
from headgate.engine import errors
from headgate.metadata.errors import IncompatibleSchemaError, RefusalError
from headgate.wire.codes import ServerError

_BY_TYPE: tuple[tuple[type[HeadgateError], ServerError], ...] = (
    (InvalidNameError, ServerError.INVALID_TOPIC_NAME),
    (errors.ProducerBusyError, ServerError.PRODUCER_BUSY),
    (errors.ProducerFencedError, ServerError.PRODUCER_FENCED),
    (errors.ProducersHeldError, ServerError.PRODUCER_BLOCKED_QUOTA_EXCEEDED_ERROR),
    (errors.ProducersRefusedError, ServerError.PRODUCER_BLOCKED_QUOTA_EXCEEDED_EXCEPTION),
    (errors.ConsumerBusyError, ServerError.CONSUMER_BUSY),
    # One that clients try again: when the loss is accepted, they come back by themselves.
    (errors.DamagedError, ServerError.PERSISTENCE_ERROR),
    (errors.TopicFencedError, ServerError.SERVICE_NOT_READY),
    (errors.SubscriptionBusyError, ServerError.METADATA_ERROR),
    (IncompatibleSchemaError, ServerError.INCOMPATIBLE_SCHEMA),
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


def refusal_of(error: HeadgateError) -> tuple[ServerError, str]:
    """The code and text that tell a client of ``error``."""
    if isinstance(error, RefusalError):
        return _BY_STATUS.get(error.status, ServerError.UNKNOWN_ERROR), error.reason
    for kind, code in _BY_TYPE:
        if isinstance(error, kind):
            return code, str(error)
    return ServerError.UNKNOWN_ERROR, str(error)

"""The error for a request that the metadata refuses."""

from __future__ import annotations

from headgate.base.errors import HeadgateError


class RefusalError(HeadgateError):
    """The request cannot be carried out; nothing was changed.

    Attributes:
        status: the HTTP status that the admin API answers with. The binary protocol maps it to
            a server error code (404 to TopicNotFound or MetadataError, 409 to a busy one...).
        reason: the text for the client, in Pulsar's words where Pulsar has some.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class IncompatibleSchemaError(HeadgateError):
    """What a client takes a topic's messages for is not what the topic's schema says."""


def not_found(reason: str) -> RefusalError:
    """What the request names does not exist."""
    return RefusalError(404, reason)


def conflict(reason: str) -> RefusalError:
    """What exists already, or is in use, forbids the request."""
    return RefusalError(409, reason)


def not_allowed(reason: str) -> RefusalError:
    """A name or value fails Pulsar's preconditions (it answers these with 412)."""
    return RefusalError(412, reason)

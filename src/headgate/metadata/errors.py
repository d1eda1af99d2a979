"""Errors of requests that the metadata refuses."""

from __future__ import annotations

from headgate.base.errors import CorruptionError, HeadgateError


class DamagedMetadataError(CorruptionError):
    """The file of the metadata is damaged.

    Attributes:
        problem: what is damaged, without what to do.
    """

    def __init__(self, problem: str, way_out: str) -> None:
        super().__init__(f"{problem}. {way_out}")
        self.problem = problem


class RefusalError(HeadgateError):
    """The request is refused; nothing was changed.

    Attributes:
        status: the HTTP status of the admin API's response. The binary protocol maps it to a server
            error code (404 to TopicNotFound or MetadataError, 409 to a busy error).
        reason: the text for the client, in Pulsar's words where Pulsar has some.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class UnauthorizedError(RefusalError):
    """The client may not do that.

    Attributes:
        why: the reason for the operator; the client only gets ``reason``, which says nothing of
            what exists.
    """

    def __init__(self, status: int, reason: str, why: str) -> None:
        super().__init__(status, reason)
        self.why = why

    def __str__(self) -> str:
        return f"{self.reason} ({self.why})"


class TooManyTopicsError(RefusalError):
    """The namespace has as many topics as it may."""

    def __init__(self) -> None:
        super().__init__(412, "Exceed maximum number of topics in namespace.")


def no_memory_reason(tenant: str) -> str:
    """Why a tenant gets no more topics and durable subscriptions."""
    return (
        f"The broker is near the limit on its memory, and tenant {tenant} is one of those with the "
        "most topics and subscriptions: delete some, or try again later"
    )


def not_found(reason: str) -> RefusalError:
    """The error for a request about something that does not exist."""
    return RefusalError(404, reason)


def conflict(reason: str) -> RefusalError:
    """The error for a request that conflicts with something that exists or is in use."""
    return RefusalError(409, reason)


def not_allowed(reason: str) -> RefusalError:
    """The error for a name or value that fails a precondition of Pulsar."""
    return RefusalError(412, reason)

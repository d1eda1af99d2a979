"""The JSON of backlog quotas in the admin API, and of their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from headgate.admin.body import last_of
from headgate.admin.routing import Call, Query
from headgate.metadata.errors import RefusalError, not_found
from headgate.metadata.policies import (
    QUOTA_KINDS,
    BacklogQuota,
    JavaInt,
    JavaLong,
    QuotaKind,
    QuotaPolicyName,
)

_KIND_DEFAULT: Final[QuotaKind] = "destination_storage"
_SIZES: Final = ("limit", "limitSize")

QUOTA_TYPE: Final = Query(
    "backlogQuotaType", QuotaKind, _KIND_DEFAULT, "The type of quota that is meant."
)


class BacklogQuotaBody(Struct, rename="camel"):
    """A backlog quota as clients send it and see it."""

    limit: JavaLong = -1
    """Older name of limitSize: the one that comes last in the body counts for both."""
    limit_size: JavaLong = -1
    """Bytes of a destination_storage quota; negative or left out: no limit."""
    limit_time: JavaInt = -1
    """Seconds of a message_age quota; negative, 0 or left out: no limit."""
    policy: QuotaPolicyName | None = None
    """The action at the limit; required."""


BacklogQuotaMap = dict[QuotaKind, BacklogQuotaBody]
"""Quotas by their types."""


def quota_kind(call: Call) -> QuotaKind:
    """The type of quota that a request names.

    Raises:
        RefusalError: 404 for one that does not exist.
    """
    text = call.query.get(QUOTA_TYPE.name, _KIND_DEFAULT)
    for kind in QUOTA_KINDS:
        if text == kind:
            return kind
    allowed = " or ".join(QUOTA_KINDS)
    raise not_found(f"{QUOTA_TYPE.name} is {text[:80]!r}: {allowed} is allowed")


def decoded_quota(call: Call, subject: str) -> BacklogQuota | None:
    """The quota in a request's body; ``None`` if it has no body.

    ``subject`` names the object of the quota in error texts, such as ``namespace[acme/ns]``.

    Raises:
        RefusalError: 400.
    """
    body: BacklogQuotaBody | None = call.decoded(BacklogQuotaBody)
    return None if body is None else _quota(body, last_of(call.body, _SIZES), subject)


def decoded_quotas(
    call: Call, field: str, bodies: Mapping[QuotaKind, BacklogQuotaBody] | None, subject: str
) -> dict[QuotaKind, BacklogQuota]:
    """The quotas that were decoded from ``field`` of a request's body, in the order of types.

    Raises:
        RefusalError: 400.
    """
    return {
        kind: _quota(bodies[kind], last_of(call.body, _SIZES, field, kind), subject)
        for kind in QUOTA_KINDS
        if bodies and kind in bodies
    }


def shown_quotas(quotas: Mapping[QuotaKind, BacklogQuota]) -> BacklogQuotaMap:
    """Quotas as a reply has them."""
    return {
        kind: BacklogQuotaBody(quota.limit_size, quota.limit_size, quota.limit_time, quota.policy)
        for kind, quota in quotas.items()
    }


def _quota(body: BacklogQuotaBody, size_name: str | None, subject: str) -> BacklogQuota:
    """``size_name``: which of the two names of the size counts."""
    if body.policy is None:
        raise RefusalError(
            400,
            f"Set {subject} backlog quota failed because the data validation failed. "
            "the attribute policy cannot be null",
        )
    size = body.limit if size_name == "limit" else body.limit_size
    return BacklogQuota(body.policy, size, body.limit_time)

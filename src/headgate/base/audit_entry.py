"""One entry of the audit log: who asked for what, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from headgate.base.identity import NOBODY, Identity


class AuditResult(StrEnum):
    """What became of a request."""

    ALLOWED = "allowed"
    """The broker carried it out."""
    REFUSED = "refused"
    """The broker carried nothing out, for a reason that the client can know: a permission, a name,
    a state."""
    FAILED = "failed"
    """The disk or an internal error ended it, the client was gone first, or a part of it was
    refused. The change, or a part of it, may be there."""


class ValueChange(NamedTuple):
    """A policy or setting that a request gave another value. None: it is not set."""

    name: str
    """The field of the policies, or the name of the setting."""
    key: str
    """Of a policy with a value for each subscription or type, which one; else empty."""
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One request, for the audit log."""

    operation: str
    """As authorization names it: ``topic.delete``."""
    resource: str
    """A topic's full name, a namespace, a tenant, a setting; empty for the broker itself."""
    result: AuditResult
    identity: Identity = NOBODY
    address: str = ""
    """``host:port`` of the client; empty if unknown."""
    subscription: str = ""
    status: int = 0
    """The HTTP status of the answer; 0 for an allowed command of the binary protocol."""
    reason: str = ""
    """Why it was refused or failed."""
    request: str = ""
    """Method and path of the route, or the command's name. It has no value that a client chose."""
    change: str = ""
    """The new value of a policy, as the client sent it."""
    values: tuple[ValueChange, ...] = ()
    """The policies and settings that have another value now. The lines of the log do not show
    them."""


def result_of(status: int) -> AuditResult:
    """What an answer with this HTTP status means."""
    if status < 400:
        return AuditResult.ALLOWED
    return AuditResult.REFUSED if status < 500 else AuditResult.FAILED

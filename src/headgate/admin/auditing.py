"""What the audit log notes of a request: every change, and every read that was refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from headgate.admin.operations import Operation
from headgate.admin.routing import Progress, Reply, Route
from headgate.admin.value_changes import value_changes
from headgate.base.audit_entry import AuditEntry, AuditResult, ValueChange, result_of
from headgate.base.identity import identity_of
from headgate.metadata.catalog import Change

READS: Final = frozenset({"GET", "HEAD"})
READS_THAT_ACT: Final = frozenset({Operation.BROKER_QUOTAS})
RENEWALS: Final = frozenset({("PUT", "/admin/v2/headgate/backup/{backup}")})
"""Repeated while something goes on whose begin has its line."""
_SCHEMAS: Final = "/admin/v2/schemas/{tenant}/{namespace}/{topic}"
QUESTIONS: Final = frozenset(
    {("POST", f"{_SCHEMAS}/compatibility"), ("POST", f"{_SCHEMAS}/version")}
)
"""They have a body and change nothing."""
_SHOWN_BODIES: Final = frozenset(
    {
        Operation.NAMESPACE_POLICY_WRITE,
        Operation.TOPIC_POLICY_WRITE,
        Operation.TENANT_CREATE,
        Operation.TENANT_UPDATE,
        Operation.NAMESPACE_PERMISSIONS_WRITE,
        Operation.TOPIC_PERMISSIONS_WRITE,
    }
)
"""Changes whose body the line shows, behind the role of a grant. No secret can be in it."""
BODY_CHARACTERS_MAX: Final = 300
"""Of a longer body a line shows what is in force now. A client could write the value behind text
that means nothing, where the line is cut."""
_REFUSALS: Final = frozenset({401, 403})


@dataclass(slots=True)
class Asked:
    """What is known of a request while it is carried out."""

    route: Route | None = None
    """None: no route has its method and path."""
    params: Mapping[str, str] = field(default_factory=dict)
    resource: str = ""
    """What authorization was asked about."""
    body: bytes = b""
    changes: list[Change] = field(default_factory=list)
    """The changes of the metadata that it made."""
    progress: Progress = field(default_factory=Progress)

    @property
    def is_partly_done(self) -> bool:
        """Whether some of a change is carried out."""
        is_any_done = self.progress.is_partly_done or bool(self.changes)
        return self.route is not None and is_change(self.route) and is_any_done


def is_change(route: Route) -> bool:
    """Whether ``route`` changes something."""
    if (route.method, route.path) in RENEWALS | QUESTIONS:
        return False
    return route.method not in READS or route.operation in READS_THAT_ACT


def audit_entry(scope: Mapping[str, Any], asked: Asked, reply: Reply) -> AuditEntry | None:
    """The entry of a request that was answered; None if it is not noted."""
    route = asked.route
    if route is None:
        return None
    # A read may create the topic that it asks about (checkAllowAutoCreation).
    if not (is_change(route) or asked.changes or reply.status in _REFUSALS):
        return None
    result = result_of(reply.status)
    if result is AuditResult.REFUSED and asked.is_partly_done:
        result = AuditResult.FAILED  # else who has one part refused would hide the others
    # What failed may be there, in part or whole.
    is_shown = result is not AuditResult.REFUSED and route.operation in _SHOWN_BODIES
    values = value_changes(asked.changes)
    return AuditEntry(
        operation=route.operation,
        resource=asked.resource or asked.params.get("name", ""),
        result=result,
        identity=identity_of(scope),
        address=_address(scope),
        subscription=asked.params.get("subscription", ""),
        status=reply.status,
        reason=reply.reason,
        request=f"{route.method} {route.path}",
        change=_change(asked, values) if is_shown else "",
        values=values,
    )


def _change(asked: Asked, values: tuple[ValueChange, ...]) -> str:
    """What was set, as the client sent it, or as it is in force if that is long; whose rights."""
    text = asked.body.decode("utf-8", "replace")
    if role := asked.params.get("role"):
        return f"{role} {text}".rstrip()
    if len(text) <= BODY_CHARACTERS_MAX or not values:
        return text
    return ", ".join(
        f"{each.name}{f'[{each.key}]' if each.key else ''}={_json(each.after)}" for each in values
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()


def _address(scope: Mapping[str, Any]) -> str:
    client = scope.get("client")
    return f"{client[0]}:{client[1]}" if client else ""

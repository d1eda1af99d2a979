"""The audit log: one JSON object a line for each change and each refusal.

The logger is ``headgate.audit``. Every change that the admin API carried out for a super user has
its line. A role that is none could fill the disk with them, with a skip of no messages as well, so
:mod:`headgate.broker.audit_limit` has a bound for the changes of each role. Refusals, failures and
commands of the binary protocol cost a client nothing, and have a smaller one. What is beyond is
counted. Commands about a tenant that are carried out, or may be, have a bound of their own: nobody
who may do nothing there can take the lines of a subscription's deletion.

A name is cut at :data:`TEXT_MAX` characters, and everything that is not ASCII or controls a
terminal is escaped, so that no name can make a line of its own.

Producers and consumers that connect are lines at the level ``debug``: thousands do when a broker
starts again, and stats list them. All other lines are at ``info``.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any, Final

from headgate.base.audit_entry import AuditEntry, AuditResult
from headgate.base.clock import Clock
from headgate.base.identity import Identity
from headgate.base.instants import iso_time
from headgate.base.names import tenant_of
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.broker.audit_limit import WINDOW_NS, LineLimit, Source, change_limit
from headgate.broker.connection.address_counts import host_of
from headgate.policy.setting_info import names_of

logger = logging.getLogger("headgate.audit")

TEXT_MAX: Final = 300
"""Characters of a name or reason that a line shows."""

SHORT_MAX: Final = 50
"""The same of a text of which most has to be escaped."""

CONNECTING: Final = frozenset({"topic.produce", "topic.consume"})
"""Operations that are lines at ``debug`` when they are allowed."""

TENANTS_MAX: Final = 1_000
"""Tenants, and roles, of which bounds are kept beside those that have left lines out."""

HTTP_REQUEST: Final = "http.request"
"""The operation of a request that was refused before anybody looked at its route."""

Listener = Callable[[AuditEntry, int], None]
"""Receives each change of the admin API that was carried out, and the wall clock (ns)."""


class AuditLog:
    """The audit log of one broker."""

    def __init__(
        self, clock: Clock, loop: asyncio.AbstractEventLoop, super_user_roles: str = ""
    ) -> None:
        """``loop`` has the timer after which lines that were left out are counted.
        ``super_user_roles`` is the setting ``superUserRoles``: their changes have no bound, nor
        those of clients of a broker without authentication."""
        self._unbounded = frozenset(["", *names_of(super_user_roles)])
        self._clock = clock
        self._loop = loop
        self._limit = LineLimit()
        self._login_limit = LineLimit()
        self._web_limit = LineLimit()
        self._done_limits: dict[str, LineLimit] = {}
        """Of commands that were carried out, or may be, by tenant."""
        self._change_limits: dict[str, LineLimit] = {}
        """Of changes of the admin API, by the client that asks for them."""
        self._timer: asyncio.TimerHandle | None = None
        self.listeners: list[Listener] = []

    def note_failed_login(self, method: str, address: str, reason: str) -> None:
        """Note that a client could not be authenticated. ``address`` is its host.

        Such lines have a bound of their own: nobody who is not authenticated can take those of
        others.
        """
        request = f"credentials of the method {method}"
        entry = AuditEntry(
            "connection.open",
            "",
            AuditResult.REFUSED,
            address=address,
            request=request,
            reason=reason,
            status=401,
        )
        source = Source("", address, entry.operation, entry.result)
        self._note_unknown(entry, source, self._login_limit)

    def note_refused_request(self, status: int, address: str, reason: str, request: str) -> None:
        """Note that a request over HTTP was refused before it was asked who sends it. ``address``
        is its ``host:port``, ``request`` its method, or empty if that did not arrive.

        These lines have a bound of their own, too.
        """
        entry = AuditEntry(
            HTTP_REQUEST,
            "",
            AuditResult.REFUSED,
            address=address.removeprefix("/"),
            request=request,
            reason=reason,
            status=status,
        )
        self._note_unknown(entry, _source(entry), self._web_limit)

    def _note_unknown(self, entry: AuditEntry, source: Source, limit: LineLimit) -> None:
        if logger.isEnabledFor(logging.INFO) and self._may_write(limit, source):
            logger.info("%s", _line(self._time(), entry))

    @property
    def notes_connecting(self) -> bool:
        """Whether producers and consumers that connect have lines."""
        return logger.isEnabledFor(logging.DEBUG)

    def note(self, entry: AuditEntry, *, is_bounded: bool = True) -> None:
        """Write one line, unless the client has had too many; then count it.

        ``is_bounded`` is false for changes of the admin API that were carried out, which the
        listeners receive, and for those that may be: a super user has all of their lines, another
        role very many.
        """
        is_allowed = entry.result is AuditResult.ALLOWED
        if is_allowed and not is_bounded:
            for listener in self.listeners:
                listener(entry, self._clock.wall_ns())
        level = logging.DEBUG if is_allowed and entry.operation in CONNECTING else logging.INFO
        if not logger.isEnabledFor(level):
            return
        limit = self._limit_of(entry) if is_bounded else self._change_limit_of(entry.identity)
        if limit is None or self._may_write(limit, _source(entry)):
            logger.log(level, "%s", _line(self._time(), entry))

    def _limit_of(self, entry: AuditEntry) -> LineLimit:
        if entry.result is AuditResult.REFUSED:
            return self._limit
        tenant = tenant_of(entry.resource)
        self._done_limits = limits = _with_room(self._done_limits, tenant)
        return limits.setdefault(tenant, LineLimit())

    def _change_limit_of(self, identity: Identity) -> LineLimit | None:
        """None if the changes of a client have no bound."""
        if {identity.role, identity.original_role} <= self._unbounded:
            return None
        self._change_limits = limits = _with_room(self._change_limits, identity.text)
        return limits.setdefault(identity.text, change_limit())

    def _may_write(self, limit: LineLimit, source: Source) -> bool:
        if limit.allows(source, self._clock.monotonic_ns()):
            return True
        if self._timer is None:
            self._timer = self._loop.call_later(WINDOW_NS / NS_PER_S, self._end_window)
        return False

    def close(self) -> None:
        """Write the counts of what was left out."""
        if self._timer is not None:
            self._timer.cancel()
            self._end_window()

    def _end_window(self) -> None:
        self._timer = None
        limits = (
            self._limit, self._login_limit, self._web_limit, *self._done_limits.values(),
            *self._change_limits.values(),
        )  # fmt: skip
        self._done_limits.clear()
        self._change_limits.clear()
        for limit in limits:
            for source, count in limit.end_window(self._clock.monotonic_ns()).items():
                fields = {"time": self._time(), **source._asdict(), "leftOut": count}
                logger.info("%s", _encoded(fields))

    def _time(self) -> str:
        return iso_time(self._clock.wall_ns() // NS_PER_MS)


def _with_room(limits: dict[str, LineLimit], name: str) -> dict[str, LineLimit]:
    """The bounds with a place for that of ``name``; of very many those stay that have counts."""
    if name in limits or len(limits) < TENANTS_MAX:
        return limits
    return {each: limit for each, limit in limits.items() if limit.has_left_out}


def _source(entry: AuditEntry) -> Source:
    return Source(entry.identity.role, host_of(entry.address), entry.operation, entry.result)


def _line(time: str, entry: AuditEntry) -> str:
    """An entry as JSON; what is empty is left out, but for the role."""
    optional = {
        "originalRole": entry.identity.original_role,
        "resource": entry.resource,
        "subscription": entry.subscription,
    }
    return _encoded(
        {
            "time": time,
            "role": entry.identity.role,
            "address": entry.address,
            "operation": entry.operation,
            **{name: text for name, text in optional.items() if text},
            "request": entry.request,
            **({"change": entry.change} if entry.change else {}),
            "result": entry.result,
            **({"status": entry.status} if entry.status else {}),
            **({"reason": entry.reason} if entry.reason else {}),
        }
    )


def _encoded(fields: dict[str, Any]) -> str:
    return json.dumps(
        {name: _cut(value) for name, value in fields.items()},
        ensure_ascii=True,
        separators=(",", ":"),
    )


def _cut(value: Any) -> Any:
    if not isinstance(value, str) or len(value) <= SHORT_MAX:
        return value
    # Characters that are escaped take up to twelve bytes.
    is_plain = len(json.dumps(value[:TEXT_MAX])) <= 2 * TEXT_MAX
    shown = value[: TEXT_MAX if is_plain else SHORT_MAX]
    return value if len(shown) == len(value) else f"{shown}..."

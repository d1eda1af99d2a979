"""A bounded history of what changed, by subject: the last hour, or less where very much changed.

All subjects together have a bound, and each has one of its own. A subject that changes all the time
loses its own oldest changes first, and so does a tenant: nobody's changes are pushed out by another
tenant, unless they are more than its share. What was lost is known:
:meth:`ChangeLog.complete_since_ms`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

from headgate.base.names import tenant_of
from headgate.base.units import MS_PER_S, S_PER_HOUR

HOUR_MS: Final = S_PER_HOUR * MS_PER_S

CHANGES_MAX: Final = 5_000
"""Changes of all subjects that a broker keeps in one history: at most 5 MB."""

SWEEP_MS: Final = 60 * MS_PER_S
"""How often the changes of all tenants are looked through for old ones."""

TOPIC_MAX: Final = 60
"""Changes of one topic or partition in one history."""

REPORTED_MAX: Final = 200
"""Changes of one report, the newest."""

NAMES_MAX: Final = 8
"""Names that a change keeps of the clients that came, and of those that left."""

NAME_MAX: Final = 60
"""Characters of such a name."""


class Dated(Protocol):
    """A change, as far as the history needs it."""

    @property
    def at_ms(self) -> int:
        """Milliseconds since the epoch. Changes are added in this order, clocks permitting."""


T = TypeVar("T", bound=Dated)


@dataclass(slots=True)
class _Subject(Generic[T]):
    changes: deque[T] = field(default_factory=deque)
    lost_ms: int = 0
    """The newest change that its own bound took from it."""


@dataclass(slots=True)
class _Tenant:
    order: deque[str] = field(default_factory=deque)
    """For each change its subject: the first one loses its oldest change next. If a subject's own
    bound takes a change, the next change takes its place here."""
    lost_ms: int = 0
    """The newest change that the bound of all took from it."""


class ChangeLog(Generic[T]):
    """The changes of many subjects."""

    def __init__(self, total_max: int, subject_max: int) -> None:
        """At most ``total_max`` changes, and ``subject_max`` of one subject. A subject is a topic,
        a namespace, or empty for the broker."""
        self._total_max = total_max
        self._subject_max = subject_max
        self._subjects: dict[str, _Subject[T]] = {}
        self._tenants: dict[str, _Tenant] = {}
        self._count = 0
        self._swept_ms = 0

    def __len__(self) -> int:
        return self._count

    def add(self, subject: str, change: T) -> None:
        """Add a change."""
        now_ms = change.at_ms
        if abs(now_ms - self._swept_ms) >= SWEEP_MS:
            self._sweep(now_ms)
        tenant = self._tenants.setdefault(tenant_of(subject), _Tenant())
        self._forget_old(tenant, now_ms)
        found = self._subjects.get(subject)
        if found is None:
            found = self._subjects[subject] = _Subject()
        if len(found.changes) >= self._subject_max:
            found.lost_ms = max(found.lost_ms, found.changes.popleft().at_ms)
        else:
            tenant.order.append(subject)
            self._count += 1
        found.changes.append(change)
        if self._count > self._total_max:
            loser = self._loser(tenant)
            loser.lost_ms = max(loser.lost_ms, self._drop_first(loser).at_ms)

    def _loser(self, adding: _Tenant) -> _Tenant:
        """The tenant that loses its oldest change: one that has more than its share."""
        if len(adding.order) > max(1, self._total_max / len(self._tenants)):
            return adding
        return max(self._tenants.values(), key=lambda each: len(each.order))

    def _sweep(self, now_ms: int) -> None:
        self._swept_ms = now_ms
        for name, tenant in list(self._tenants.items()):
            self._forget_old(tenant, now_ms)
            if not tenant.order and abs(now_ms - tenant.lost_ms) > HOUR_MS:
                del self._tenants[name]

    def _forget_old(self, tenant: _Tenant, now_ms: int) -> None:
        while tenant.order:
            oldest = self._subjects[tenant.order[0]].changes[0]
            # If the clock was set back, changes of the far future would stay for ever.
            if abs(now_ms - oldest.at_ms) <= HOUR_MS:
                break
            self._drop_first(tenant)

    def forget_tenant(self, name: str, at_ms: int) -> None:
        """Forget all that is known of a tenant, which was deleted at ``at_ms``: the next one of
        that name may be of other people."""
        tenant = self._tenants.get(name)
        if tenant is None:
            return
        tenant.lost_ms = at_ms
        while tenant.order:
            self._drop_first(tenant)

    def _drop_first(self, tenant: _Tenant) -> T:
        subject = tenant.order.popleft()
        self._count -= 1
        found = self._subjects[subject]
        dropped = found.changes.popleft()
        if not found.changes:
            del self._subjects[subject]
        return dropped

    def newest_first(self, subject: str) -> list[T]:
        """The changes of one subject, also those older than an hour that are still there."""
        found = self._subjects.get(subject)
        return [] if found is None else [*reversed(found.changes)]

    def since(self, subject: str, since_ms: int) -> list[T]:
        """The changes of one subject from an instant on, in order."""
        found = self._subjects.get(subject)
        if found is None:
            return []
        return [change for change in found.changes if change.at_ms >= since_ms]

    def complete_since_ms(self, subject: str, now_ms: int) -> int:
        """Since when no change of the subject is missing: at most an hour ago."""
        found, tenant = self._subjects.get(subject), self._tenants.get(tenant_of(subject))
        lost_ms = 0 if tenant is None else tenant.lost_ms
        if found is not None:
            lost_ms = max(lost_ms, found.lost_ms)
        return max(now_ms - HOUR_MS, lost_ms)

"""What changed about a topic in the last hour, gathered from what the broker keeps of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from headgate.base.audit_entry import AuditEntry
from headgate.base.instants import iso_time
from headgate.base.names import TopicName
from headgate.base.sliced import Sliced
from headgate.base.units import NS_PER_MS
from headgate.engine.engine import Engine
from headgate.engine.topic import Topic
from headgate.explain.change_log import HOUR_MS, REPORTED_MAX
from headgate.explain.changes import (
    QUOTA,
    BeforeGrowth,
    Change,
    Changes,
    PlainChange,
    before_growth,
    change_reports,
    message_changes,
)
from headgate.observe.changes.adaptive_changes import AdaptiveChanges
from headgate.observe.changes.admin_changes import OF_BROKER, AdminChanges, started
from headgate.observe.changes.client_changes import ClientChanges, MergedClients
from headgate.observe.explain.window import Part
from headgate.observe.history.parked import ParkedHistory

_TENANT_DELETED: Final = "tenant.delete"


class TopicChanges:
    """What is known to have changed about one topic."""

    def __init__(
        self,
        engine: Engine,
        changes: list[Change],
        complete_since_ms: int,
        roles_of: Collection[str],
        started_ms: int | None = None,
    ) -> None:
        """``changes``: what was made with the topic and its clients. ``roles_of``: the levels
        at which the reader may see who made a change, and the values of policies. ``started_ms``:
        when the broker started; None if that is more than an hour ago."""
        self._engine = engine
        self._made = changes
        self._taken: list[Change] = []
        """What took messages, and quotas that were reached."""
        self._complete_since_ms = complete_since_ms
        self._roles_of = roles_of
        self._started_ms = started_ms

    def _at_ms(self, at_ns: int) -> int:
        return self._engine.now_ms - (self._engine.now_ns - at_ns) // NS_PER_MS

    def before_growth(
        self, verdict: str, subscription: str, began_ns: int | None
    ) -> BeforeGrowth | None:
        """What changed before the backlog of a subscription grew; None without a backlog, or if
        that is not known."""
        if began_ns is None:
            return None
        return before_growth(
            self._made,
            verdict=verdict,
            subscription=subscription,
            began_ms=self._at_ms(began_ns),
            complete_since_ms=self._complete_since_ms,
            roles_of=self._roles_of,
            started_ms=self._started_ms,
        )

    def add_messages(self, part: Part) -> None:
        """Add what took messages from a subscription, or its part on one partition."""
        engine, name = self._engine, part.subscription.name
        self._taken += message_changes(part.hour, name, engine.now_ns, engine.now_ms)

    def add_quotas(self, parked: ParkedHistory, topic: Topic) -> None:
        """Add when a quota stopped the producers of a topic or partition."""
        for at_ns in parked.quota_reached_ns(topic):
            text = "a backlog quota was reached and stopped producers"
            self._taken.append(PlainChange(self._at_ms(at_ns), QUOTA, "topic", text))

    def report(self) -> Changes:
        """All of it as a report."""
        changes = sorted([*self._made, *self._taken], key=lambda each: each.at_ms)
        complete_ms = self._complete_since_ms
        if len(changes) > REPORTED_MAX:
            changes = changes[-REPORTED_MAX:]
            complete_ms = max(complete_ms, changes[0].at_ms)
        return Changes(
            complete_since=iso_time(complete_ms),
            changes=change_reports(changes, self._roles_of),
        )


class ChangeHistory:
    """The changes of one broker's topics."""

    def __init__(self, engine: Engine, started_ms: Callable[[], int]) -> None:
        """``started_ms``: when the broker started, on the wall clock."""
        self._engine = engine
        self._started_ms = started_ms
        self.admin = AdminChanges()
        self.adaptive = AdaptiveChanges()
        self.clients = ClientChanges(lambda: engine.now_ms)
        engine.client_observer = self.clients

    def changed(self, entry: AuditEntry, wall_ns: int) -> None:
        """The broker carried a change out at ``wall_ns``, of the wall clock. A listener of its
        audit log."""
        self.admin.changed(entry, wall_ns)
        if entry.operation == _TENANT_DELETED:
            for log in (self.admin.log, self.adaptive.log, self.clients.log):
                log.forget_tenant(entry.resource, wall_ns // NS_PER_MS)

    def of_topic(
        self, name: TopicName, parts: Sequence[TopicName], roles_of: Collection[str]
    ) -> Sliced[TopicChanges]:
        """What was made with a topic and its clients in the last hour; ``parts`` are the names of
        its partitions, or only its own."""
        now_ms, admin, clients = self._engine.now_ms, self.admin.log, self.clients.log
        since_ms, started_ms = now_ms - HOUR_MS, self._started_ms()
        complete_ms = max(since_ms, started_ms)
        is_recent = started_ms >= since_ms
        found: list[Change] = [started(started_ms)] if is_recent else []
        subjects = [OF_BROKER, str(name.namespace), name.full, name.base.full]
        for subject in dict.fromkeys(subjects + [part.full for part in parts]):
            found += admin.since(subject, since_ms)
            complete_ms = max(complete_ms, admin.complete_since_ms(subject, now_ms))
            yield
        merged = MergedClients()
        for part in parts:
            found += self.adaptive.log.since(part.full, since_ms)
            slowed_ms = self.adaptive.log.complete_since_ms(part.full, now_ms)
            complete_ms = max(complete_ms, slowed_ms)
            merged.add(clients.since(part.full, since_ms))
            complete_ms = max(complete_ms, clients.complete_since_ms(part.full, now_ms))
            yield
        found += merged.all()
        return TopicChanges(
            self._engine, found, complete_ms, roles_of, started_ms if is_recent else None
        )

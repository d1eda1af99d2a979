"""What changed about a topic in the last hour, and which change came before its backlog grew."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Protocol

from msgspec import Struct

from headgate.base.instants import iso_time
from headgate.base.units import MS_PER_S, NS_PER_MINUTE, NS_PER_MS, S_PER_MINUTE
from headgate.explain.points import Point
from headgate.flow.sentences.changes import (
    by_role,
    growth_sentence,
    messages_clause,
    older_sentence,
)

POLICY: Final = "policy"
SETTING: Final = "setting"
CONSUMERS: Final = "consumers"
PRODUCERS: Final = "producers"
TOPIC: Final = "topic"
SUBSCRIPTION: Final = "subscription"
MESSAGES: Final = "messages"
QUOTA: Final = "quota"
BROKER: Final = "broker"
SLOWED: Final = "slowed"
RELEASED: Final = "released"
"""Kinds of changes."""

LEVELS: Final = frozenset(("subscription", "topic", "namespace", "broker"))
"""Levels at which changes are made."""

SOUGHT_S: Final = 10 * S_PER_MINUTE
"""A change so long before a backlog grew may have been the reason."""

LATE_MS: Final = 3 * MS_PER_S
"""The begin is the last instant at which there was no backlog, and the history looks once in a
round: the change that makes the backlog grow may come so long after that instant."""

APART_NS: Final = 5 * NS_PER_MINUTE
"""Messages that are taken again after so long a pause are another change."""

_REASONS: Final = (
    POLICY, SETTING, CONSUMERS, PRODUCERS, TOPIC, SUBSCRIPTION, QUOTA, BROKER, RELEASED,
)  # fmt: skip
"""Kinds that may make a backlog grow. What a quota or TTL took is a consequence, and so is that
adaptive throttling slowed producers."""

_LIMITED: Final = (POLICY, SETTING)
_MOST_LIKELY: Final = {
    "THROTTLED_SUBSCRIPTION": _LIMITED,
    "THROTTLED_TOPIC": _LIMITED,
    "THROTTLED_BROKER": _LIMITED,
    "NO_CONSUMER": (CONSUMERS, SUBSCRIPTION),
    "CONSUMER": (CONSUMERS, PRODUCERS, SUBSCRIPTION, RELEASED),
}
"""By verdict: the kinds that are pointed out first if there is one of them. A slow broker has
reasons of any kind, or none that is a change."""


class Change(Protocol):
    """One change."""

    @property
    def at_ms(self) -> int:
        """When it began, in milliseconds since the epoch."""

    @property
    def kind(self) -> str:
        """One of the kinds above."""

    @property
    def level(self) -> str:
        """Where it was made: ``topic``, ``namespace``, ``broker`` or ``subscription``."""

    @property
    def subscription(self) -> str:
        """The one that it is about; empty if it is about all of the topic."""

    @property
    def role(self) -> str:
        """Who made it; empty if that is not known."""

    @property
    def relieves(self) -> bool:
        """Whether it can only make a backlog smaller: consumers that came, or producers that
        left."""

    def clause(self, *, with_values: bool = True) -> str:
        """What it is, as a clause without the role. Without values it says that a policy or setting
        was changed, and not to what."""


@dataclass(frozen=True, slots=True)
class PlainChange:
    """A change whose text is known when it is made."""

    at_ms: int
    kind: str
    level: str
    text: str
    subscription: str = ""
    role: str = ""
    text_without_values: str = ""
    """For readers who may not see the values in ``text``; empty if everybody may."""
    relieves: bool = False
    """Whether it can only make a backlog smaller."""

    def clause(self, *, with_values: bool = True) -> str:
        """What it is, as a clause without the role."""
        return (
            self.text if with_values or not self.text_without_values else self.text_without_values
        )


class ChangeReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """A change of the last hour."""

    at: str
    """When it began."""
    kind: str
    """``policy``, ``setting``, ``consumers``, ``producers``, ``topic``, ``subscription``,
    ``messages`` (evicted, expired, skipped or set back), ``quota``, ``broker``, ``slowed`` or
    ``released`` (producers, by adaptive throttling)."""
    level: str
    """Where it was made: ``subscription``, ``topic``, ``namespace`` or ``broker``."""
    subscription: str | None
    """Null if it is about all of the topic."""
    role: str | None
    """Who made it; null if that is not known, or the reader may not see roles."""
    sentence: str
    """What it is. Values of policies and settings that nothing else in the report shows are left
    out if the reader may not read policies at that level."""


class Changes(Struct, frozen=True, kw_only=True, rename="camel"):
    """What changed about a topic in the last hour."""

    complete_since: str
    """Earlier changes may be missing: the broker had not started, an hour ago, or there were too
    many."""
    changes: list[ChangeReport]
    """The oldest first."""


class BeforeGrowth(Struct, frozen=True, kw_only=True, rename="camel"):
    """What changed before a backlog grew."""

    growing_since: str
    changed_at: str | None
    """When the newest change before that was made, of those that fit the verdict if there are any;
    up to three seconds after it: in that time the backlog was noticed. Null if none that may be the
    reason is known in the ten minutes before, or the backlog is older than the broker's start."""
    kind: str | None
    sentence: str


def change_reports(changes: Sequence[Change], roles_of: Collection[str]) -> list[ChangeReport]:
    """Changes as reports, the oldest first. At the levels ``roles_of`` they have roles, and values
    that nothing else in the report shows."""
    return [
        ChangeReport(
            at=iso_time(each.at_ms),
            kind=each.kind,
            level=each.level,
            subscription=each.subscription or None,
            role=_role_of(each, roles_of) or None,
            sentence=_clause_of(each, roles_of),
        )
        for each in sorted(changes, key=lambda each: each.at_ms)
    ]


def _role_of(change: Change, roles_of: Collection[str]) -> str:
    """Who made a change, if the reader may know it."""
    return change.role if change.level in roles_of else ""


def _clause_of(change: Change, roles_of: Collection[str]) -> str:
    """What a change is and who made it, as far as the reader may know it."""
    clause = change.clause(with_values=change.level in roles_of)
    return by_role(clause, _role_of(change, roles_of))


def before_growth(
    changes: Sequence[Change],
    *,
    verdict: str,
    subscription: str,
    began_ms: int,
    complete_since_ms: int,
    roles_of: Collection[str],
    late_ms: int = LATE_MS,
    started_ms: int | None = None,
) -> BeforeGrowth | None:
    """The change that came before the backlog of a subscription grew, which began at ``began_ms``.
    Its role and values are named if it was made at one of the levels ``roles_of``. A change up to
    ``late_ms`` after the begin may be the reason, too; a start of the broker is not. What can only
    make a backlog smaller is no reason.

    A backlog that began before ``started_ms``, a start of the broker in the known time, is older
    than what is known of changes. None if it began before all changes are known for another reason,
    so that the one before it may be missing.
    """
    growing_since = iso_time(began_ms)
    if started_ms is not None and began_ms < started_ms:
        started = iso_time(started_ms)
        is_same_day = growing_since[:10] == started[:10]
        since = _clock(growing_since) if is_same_day else growing_since[:19].replace("T", " ")
        sentence = older_sentence(since, _clock(started))
        return BeforeGrowth(
            growing_since=growing_since, changed_at=None, kind=None, sentence=sentence
        )
    if began_ms + late_ms < complete_since_ms:
        return None
    since_ms = began_ms - SOUGHT_S * MS_PER_S
    found = [
        each
        for each in changes
        if each.kind in _REASONS
        and not each.relieves
        and each.subscription in ("", subscription)
        and since_ms <= each.at_ms <= began_ms + (0 if each.kind == BROKER else late_ms)
    ]
    first = _MOST_LIKELY.get(verdict, ())
    fitting = [each for each in found if each.kind in first]
    newest = max(fitting or found, key=lambda each: each.at_ms, default=None)
    clause = ""
    if newest is not None:
        clause = _clause_of(newest, roles_of)
    at = "" if newest is None else iso_time(newest.at_ms)
    return BeforeGrowth(
        growing_since=growing_since,
        changed_at=at or None,
        kind=None if newest is None else newest.kind,
        sentence=growth_sentence(_clock(growing_since), clause, _clock(at), SOUGHT_S),
    )


def _clock(instant: str) -> str:
    """``12:31:05`` of an ISO instant."""
    return instant[11:19]


_TAKEN: Final = ("evicted", "expired", "skipped", "rewound")


def message_changes(
    points: Sequence[Point], subscription: str, now_ns: int, now_ms: int
) -> Iterator[PlainChange]:
    """What evicted, expired, skipped or set back messages, by the points of one subscription's last
    hour. ``now_ns`` and ``now_ms`` are the same instant."""

    def at_ms(at_ns: int) -> int:
        return now_ms - (now_ns - at_ns) // NS_PER_MS

    for field in _TAKEN:
        began_ns, last_ns, amount = 0, 0, 0
        for before, after in pairwise(points):
            gained = getattr(after, field) - getattr(before, field)
            if gained <= 0:
                continue
            if amount and before.at_ns - last_ns > APART_NS:
                yield _messages(field, amount, subscription, at_ms(began_ns))
                amount = 0
            if not amount:
                began_ns = after.at_ns
            amount += gained
            last_ns = after.at_ns
        if amount:
            yield _messages(field, amount, subscription, at_ms(began_ns))


def _messages(field: str, amount: int, subscription: str, at_ms: int) -> PlainChange:
    text = messages_clause(field, amount, subscription)
    return PlainChange(at_ms, MESSAGES, SUBSCRIPTION, text, subscription)

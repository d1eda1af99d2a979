"""What changed about a topic, each change as a clause: who set what, which clients came or left.

A clause begins with a small letter, has no full stop, and leaves out whatever is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headgate.base.texts import number

NAMES_SHOWN: Final = 3

_LIMITS: Final = {
    "dispatch_rate": "the dispatch limit of {topic}",
    "subscription_dispatch_rate": "the dispatch limit of each subscription of {topic}",
    "dispatch_rate_by_subscription": "the dispatch limit of subscription {key}",
    "publish_rate": "the publish limit of {topic}",
    "backlog_quotas": "the {key} quota of {topic}",
    "message_ttl_in_seconds": "the message TTL of {topic}",
    "retention": "the retention of {topic}",
    "max_unacked_messages_per_consumer": (
        "the limit of unacknowledged messages of each consumer of {topic}"
    ),
    "max_unacked_messages_per_subscription": (
        "the limit of unacknowledged messages of each subscription of {topic}"
    ),
}
"""The policies that hold messages most often, in words."""

REPORTED: Final = frozenset(
    {"dispatch_rate", "subscription_dispatch_rate", "dispatch_rate_by_subscription", "publish_rate",
     "backlog_quotas"}
)  # fmt: skip
"""Policies whose values in force are in every report on a topic."""

_QUOTAS: Final = {"destination_storage": "size", "message_age": "time"}


def policy_name(policy: str, key: str, namespace: str) -> str:
    """What a policy of a topic, or of all topics of a namespace, limits. ``policy`` is the name of
    its field, ``key`` the subscription or type of quota that it is about."""
    topic = f"each topic of namespace {namespace}" if namespace else "the topic"
    words = _LIMITS.get(policy, f"the policy {_camel(policy)} of {{topic}}")
    return words.format(topic=topic, key=_QUOTAS.get(key, key))


def _camel(field: str) -> str:
    first, *others = field.split("_")
    return first + "".join(map(str.capitalize, others))


def value_clause(name: str, before: str | None, after: str | None) -> str:
    """``the dispatch limit of the topic was changed from 500 msg/s to 100 msg/s``; None: not
    set."""
    if after is None:
        return f"{name} was removed" + (f" (it was {before})" if before else "")
    if before is None:
        return f"{name} was set to {after}"
    return f"{name} was changed from {before} to {after}"


def change_clause(name: str, before: str | None, after: str | None) -> str:
    """The same without values, for who may not see them."""
    how = "removed" if after is None else "set" if before is None else "changed"
    return f"{name} was {how}"


def by_role(clause: str, role: str) -> str:
    """The clause with who did it, if that is known."""
    return f"{clause} by {role}" if role else clause


@dataclass(frozen=True, slots=True)
class ClientsFacts:
    """The clients of one kind that came or left within a minute."""

    subscription: str
    """Empty for producers."""
    came: int
    left: int
    came_names: Sequence[str]
    """The first of them, without those that came back."""
    left_names: Sequence[str]
    """The first of them, without those that came back."""
    came_back: int
    """How many of those that left came again, under the same name."""
    before: int
    """How many there were before."""
    after: int
    came_versions: Sequence[str]
    left_versions: Sequence[str]

    @property
    def is_replaced(self) -> bool:
        """Whether other clients took the place of all that were there, as in a deployment."""
        return 0 < self.before <= self.left - self.came_back and self.came > self.came_back


def clients_clause(facts: ClientsFacts) -> str:
    """``2 of 3 consumers of billing left (a, b)``."""
    one = "consumer" if facts.subscription else "producer"
    whose = f" of {facts.subscription}" if facts.subscription else ""
    left, came = facts.left - facts.came_back, facts.came - facts.came_back
    if facts.is_replaced:
        who = f"the {one}" if left == came == 1 else f"all {_count(left, one)}"
        text = f"{who}{whose} {_was(left)} replaced{_by(facts.came_names, came, one)}"
        return text + _versions(facts) + ", as a deployment does"
    clauses = []
    if left:
        clauses.append(_left_clause(facts, left, one, whose))
    if came:
        word = "another " if left or facts.before else "a "
        who = f"{word}{one}" if came == 1 else f"{_count(came, one)}"
        clauses.append(f"{who}{whose} connected{_names(facts.came_names, came)}")
    if facts.came_back and not clauses:
        who = f"a {one}" if facts.came_back == 1 else _count(facts.came_back, one)
        return f"{who}{whose} lost the connection and came back"
    return " and ".join(clauses) + _versions(facts)


def _left_clause(facts: ClientsFacts, left: int, one: str, whose: str) -> str:
    names = _names(facts.left_names, left)
    if facts.after == 0 and not facts.came:
        who = f"the last {one}" if left == 1 else f"all {_count(left, one)}"
        return f"{who}{whose} left{names}"
    return f"{number(left)} of {_count(facts.before, one)}{whose} left{names}"


def _count(amount: int, one: str) -> str:
    return f"{amount:,} {one}{'s' * (amount != 1)}"


def _was(amount: int) -> str:
    return "was" if amount == 1 else "were"


def _names(names: Sequence[str], amount: int) -> str:
    return f" ({_listed(names, amount)})" if names else ""


def _by(names: Sequence[str], amount: int, one: str) -> str:
    return f" by {_listed(names, amount)}" if names else f" by {_count(amount, one)}"


def _listed(names: Sequence[str], amount: int) -> str:
    shown = names[:NAMES_SHOWN]
    more = amount - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")


def _versions(facts: ClientsFacts) -> str:
    new = [version for version in facts.came_versions if version not in facts.left_versions]
    if not new or not facts.left_versions:
        return ""
    return f"; client {', '.join(new)} instead of {', '.join(facts.left_versions)}"


def messages_clause(kind: str, amount: int, subscription: str) -> str:
    """What took messages from a subscription, or gave them back to it. ``kind`` is ``evicted``,
    ``expired``, ``skipped`` or ``rewound``."""
    what = f"{amount:,} message{'s' * (amount != 1)}"
    if kind == "evicted":
        return f"a backlog quota evicted {what} of {subscription}"
    if kind == "rewound":
        return f"the cursor of {subscription} was set back by {what}"
    verb = "expired" if kind == "expired" else f"{_was(amount)} skipped"
    return f"{what} of {subscription} {verb}"


def growth_sentence(since: str, clause: str, at: str, sought_s: int) -> str:
    """``The backlog began at 12:31:05 UTC; at 12:30:58 the dispatch limit ...``. An empty
    ``clause``: no change that may be the reason is known within ``sought_s`` before."""
    head = f"The backlog began at {since} UTC"
    if not clause:
        return f"{head}; no change that explains it is known in the {sought_s // 60} minutes before"
    return f"{head}; at {at} {clause}"


def older_sentence(since: str, started: str) -> str:
    """Of a backlog that the broker found when it started: what changed before it, is not known."""
    return (
        f"The backlog began at {since} UTC; it is older than this start of the broker ({started}), "
        "and earlier changes are not known"
    )

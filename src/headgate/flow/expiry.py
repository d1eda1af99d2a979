"""When unacknowledged messages expire: the time to live in force, and when to look (law of expiry).

A message is expired when the broker received it at least its topic's TTL ago. Ages are on the time
of the log. The oldest message of a topic decides when to look at it next; a topic without a backlog
cannot have an expired message before a whole TTL has passed, so a publish needs no look.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headgate.base.units import MS_PER_S
from headgate.flow.limits.precedence import TOPIC_POLICY, most_specific, namespace_policy_source

LOOK_MS_MIN: Final = MS_PER_S
"""From a look at a topic to the next one, at least."""

LOOKS_PER_TTL: Final = 64
"""Looks at a busy topic within one TTL, at most: a long TTL is enforced in larger steps, so that
its cost does not depend on the number of messages."""


class MessageTtl(NamedTuple):
    """A time to live in force."""

    ttl_s: int
    """Seconds, at least 1."""
    source: str
    """Where it is set: ``topic policy``, ``namespace policy acme/ns``, ``broker setting ...``."""


def effective_ttl(
    *, topic_s: int | None, namespace_s: int | None, namespace: str, broker_s: int
) -> MessageTtl | None:
    """The TTL of a topic: its policy, else its namespace's, else the broker's setting; None if the
    first that is set is 0."""
    found = most_specific(
        (topic_s, TOPIC_POLICY),
        (namespace_s, namespace_policy_source(namespace)),
        (broker_s, "broker setting ttlDurationDefaultInSeconds"),
    )
    if found is None or found[0] <= 0:
        return None
    return MessageTtl(*found)


def first_kept_ms(log_ms: int, ttl: MessageTtl) -> int:
    """The receive time of the oldest message that has not expired at ``log_ms``."""
    return log_ms - ttl.ttl_s * MS_PER_S + 1


def next_expiry_look_ms(
    log_ms: int, ttl: MessageTtl, oldest_ms: int | None, interval_ms: int, *, has_expired: bool
) -> int:
    """When to look at a topic next, at ``log_ms``; times are of the log.

    ``oldest_ms`` is when its oldest unacknowledged message was received, None without one. The next
    look follows within ``interval_ms`` in any case: a seek may bring back older messages. If the
    present look ``has_expired`` messages, the next one keeps a distance.
    """
    ttl_ms = ttl.ttl_s * MS_PER_S
    due_ms = (log_ms if oldest_ms is None else oldest_ms) + ttl_ms
    distance_ms = max(ttl_ms // LOOKS_PER_TTL, LOOK_MS_MIN) if has_expired else LOOK_MS_MIN
    return min(max(due_ms, log_ms + distance_ms), log_ms + max(interval_ms, LOOK_MS_MIN))


def ttl_text(ttl: MessageTtl) -> str:
    """``the message TTL of 60 s (topic policy)``; an empty source is left out."""
    return f"the message TTL of {ttl.ttl_s:,} s" + f" ({ttl.source})" * bool(ttl.source)

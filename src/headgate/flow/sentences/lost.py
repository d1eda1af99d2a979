"""Words about messages that were lost before they were acknowledged: evicted, or expired."""

from __future__ import annotations


def evicted_text(count: int, quota: str) -> str:
    """``the size quota of 1 MiB (topic policy) evicted 1,200 messages``; ``quota`` is that of
    :func:`headgate.flow.sentences.quota.quota_text`, empty if it is not known."""
    return f"{quota or 'a backlog quota'} evicted {_messages(count)}"


def expired_text(count: int, ttl: str) -> str:
    """``the message TTL of 60 s (topic policy) expired 1,200 messages``; ``ttl`` is that of
    :func:`headgate.flow.expiry.ttl_text`, empty if a request expired them or it is not known."""
    return f"{ttl} expired {_messages(count)}" if ttl else f"{_messages(count)} expired"


def unacknowledged_text(count: int) -> str:
    """What follows either: ``before they were acknowledged``."""
    return f"before {'it was' if count == 1 else 'they were'} acknowledged"


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"

"""What becomes of one backlog: it empties, or it fills a quota, and never both.

Two paces are known. That of the verdict's window, up to a minute, counts messages that were
consumed; that of a size quota counts bytes, and its newest seconds weigh most. Around a standstill
their signs may differ. The quota's forecast has alerts and tables of its own, so where it expects a
breach, no time of emptying is claimed.

A time quota bounds the age of one message. That message may be stuck while the others are consumed,
so such a breach and an emptying are claimed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from headgate.flow.quota.backlog_quota import QuotaType

STILL_SHARE: Final = 0.05
"""A backlog stands still if it shrank by less than this part of itself, and of what was published
meanwhile."""


class Outlook(NamedTuple):
    """What is expected at the present paces."""

    empty_s: float | None
    """Seconds until the backlog is gone; None if it is not expected to be."""
    breach_s: float | None
    """Seconds until the first quota is reached, 0 while one is; None if none is expected to be."""
    breached: QuotaType | None
    """That quota."""


def emptying_s(backlog: int, consumed: int, published: int, window_s: float) -> float | None:
    """Seconds until a backlog is gone at the pace of a window.

    None without a backlog, and if it stands still or does not shrink.

    Args:
        backlog: messages at the end of the window.
        consumed: by how many it shrank, without those that were evicted, expired or skipped.
        published: messages that came in the window.
        window_s: its length.
    """
    if backlog <= 0 or consumed <= 0:
        return None
    if consumed < STILL_SHARE * min(published, backlog):
        return None
    return backlog * window_s / consumed


def outlook(empty_s: float | None, breaches_s: Sequence[float | None]) -> Outlook:
    """What to claim of an emptying by :func:`emptying_s` and of the quotas that this backlog fills.

    Args:
        empty_s: seconds until the backlog is gone, by itself.
        breaches_s: seconds until each quota is reached, indexed by :class:`QuotaType`; 0 while it
            is, None without a forecast.
    """
    soonest = min(
        ((seconds, kind) for kind in QuotaType if (seconds := breaches_s[kind]) is not None),
        default=None,
    )
    fills = breaches_s[QuotaType.SIZE] is not None
    breach_s, breached = (None, None) if soonest is None else soonest
    return Outlook(None if fills else empty_s, breach_s, breached)

"""One sentence for an operator: what holds the backlog, since when, and what would help.

The words are about *this* judgement and these figures; nothing is guessed. Whatever is not known
is left out of the sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.base.units import NS_PER_S, S_PER_MINUTE
from headgate.flow.limits import Dimension, DispatchLimit
from headgate.flow.verdict import THROTTLED, Judgement, Verdict

_SECONDS_PER_HOUR = 60 * S_PER_MINUTE
_LEVEL_NAMES = ("subscription", "topic", "broker-wide")


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known besides the judgement; every field may be left at its default.

    ``limit`` and ``limit_source`` are those of the limiter that the judgement names.
    ``waiting_subscriptions`` wait for it now. ``permits`` of ``permits_max`` were free for
    ``hungry_share`` of the time. Rates are messages a second. ``since_s``: for how many seconds
    this has been so. ``stopped_by``: the consumer state that took most time, as its label.
    """

    backlog: int = 0
    limit: DispatchLimit | None = None
    limit_source: str = ""
    waiting_subscriptions: int = 0
    permits: int | None = None
    permits_max: int | None = None
    hungry_share: float | None = None
    appended_per_s: float | None = None
    acked_per_s: float | None = None
    since_s: float | None = None
    stopped_by: str = ""


_STOPPED = {
    "awaiting_ack": "everything is with the consumer, unacknowledged",
    "no_permits": "the consumer's receiver queue was full",
    "unacked_limit": "the consumer reached the limit of unacknowledged messages",
    "socket_full": "the consumer did not read its connection",
    "key_blocked": "the owners of the next keys were not ready",
}


def number(value: float) -> str:
    """A figure for people: thousands separated, a fraction only where it says something."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}"


def duration(seconds: float) -> str:
    """A length of time in its largest sensible unit."""
    if seconds < 2 * S_PER_MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * _SECONDS_PER_HOUR:
        return f"{seconds / S_PER_MINUTE:.0f} min"
    return f"{seconds / _SECONDS_PER_HOUR:.0f} h"


def percent(share: float) -> str:
    """A share as ``97 %``."""
    return f"{100 * share:.0f} %"


def limit_text(limit: DispatchLimit, dimension: Dimension) -> str:
    """``50 msg/s``, ``1,000 B/s`` or ``100 msg per 360 s``."""
    amount = limit.amount(dimension) or 0
    unit = "msg" if dimension == Dimension.MESSAGES else "B"
    if limit.period_ns == NS_PER_S:
        return f"{amount:,} {unit}/s"
    return f"{amount:,} {unit} per {number(limit.period_ns / NS_PER_S)} s"


def sentence(judgement: Judgement, circumstances: Circumstances) -> str:
    """The verdict in one sentence (it ends with a full stop and holds no line break)."""
    verdict = judgement.verdict
    if verdict is Verdict.NONE:
        text = _none(judgement, circumstances)
    elif verdict is Verdict.CONSUMER:
        text = _consumer(judgement, circumstances)
    elif verdict is Verdict.NO_CONSUMER:
        text = f"no consumer is connected{_since(circumstances)}{_backlog(circumstances)}"
        text += "; connect one, or delete the subscription if nobody needs it"
    elif verdict is Verdict.BROKER:
        text = f"the broker itself took most of the time{_since(circumstances)}"
        text += " (loading, reading from disk or sending), not a limit or a consumer"
    else:
        text = _throttled(judgement, circumstances)
    if judgement.second is not None and not judgement.bystander:
        text += (
            f"; {judgement.second.value} is within 5 % of it"
            f" ({percent(judgement.shares[judgement.second])} of the time), so take both in view"
        )
    return f"{verdict.value}: {text}."


def _since(facts: Circumstances) -> str:
    return "" if facts.since_s is None else f" for {duration(facts.since_s)}"


def _backlog(facts: Circumstances) -> str:
    return f", {facts.backlog:,} messages wait" if facts.backlog else ""


def _none(judgement: Judgement, facts: Circumstances) -> str:
    if judgement.shares[Verdict.NONE] == 1.0:
        return "nothing is waiting"
    rate = "" if facts.acked_per_s is None else f" at {number(facts.acked_per_s)} msg/s"
    return f"the consumer keeps up{rate}; what is unacknowledged is in flight"


def _named_limit(judgement: Judgement, facts: Circumstances, limiter: Verdict) -> str:
    """``the topic limit of 50 msg/s (namespace policy acme/ns)``."""
    text = f"the {_LEVEL_NAMES[THROTTLED.index(limiter)]} limit"
    if facts.limit is not None and judgement.dimension is not None:
        text += f" of {limit_text(facts.limit, judgement.dimension)}"
    return text + (f" ({facts.limit_source})" if facts.limit_source else "")


def _consumer(judgement: Judgement, facts: Circumstances) -> str:
    text = "the consumer is the bottleneck"
    if facts.acked_per_s is not None and judgement.growth < 0:
        text = f"the backlog drains at the consumer's own pace of {number(facts.acked_per_s)} msg/s"
    elif facts.acked_per_s is not None:
        text = f"the consumer acknowledges only {number(facts.acked_per_s)} msg/s"
        if facts.appended_per_s is not None:
            text += f" of {number(facts.appended_per_s)} msg/s published"
    text += _since(facts)
    if facts.stopped_by in _STOPPED:
        text += f" ({_STOPPED[facts.stopped_by]})"
    if judgement.bystander and judgement.second is not None:
        text += f"; {_named_limit(judgement, facts, judgement.second)} only stands by"
    elif facts.limit is not None and facts.limit_source and judgement.dimension is None:
        text += f"; no limit holds it ({facts.limit_source} leaves it room)"
    return text + "; faster or more consumers would help, a higher limit would not"


def _throttled(judgement: Judgement, facts: Circumstances) -> str:
    text = f"{_named_limit(judgement, facts, judgement.verdict)} held "
    if facts.waiting_subscriptions > 1:
        text += f"{facts.waiting_subscriptions:,} waiting subscriptions"
    else:
        text += "this subscription"
    text += _since(facts)
    if facts.hungry_share is not None and facts.permits is not None:
        of = "" if facts.permits_max is None else f" of {facts.permits_max:,}"
        text += (
            f"; the consumer had {facts.permits:,}{of} permits free"
            f" for {percent(facts.hungry_share)} of the time"
        )
    if judgement.would_have_grown:
        return text + "; raising it helps only in part: less is consumed than published"
    if facts.appended_per_s is not None and judgement.growth > 0:
        published = number(facts.appended_per_s)
        return text + f"; {published} msg/s are published, so raise it above that"
    return text

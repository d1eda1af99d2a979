"""One sentence about a verdict: what holds the backlog, since when, and what would help.

The sentence is about *this* judgement and these figures. It guesses nothing: it leaves out whatever
is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

from headgate.base.texts import duration, number, percent
from headgate.base.units import NS_PER_S
from headgate.flow.account.verdict import CLOSE_SHARE, THROTTLED, Judgement, Verdict
from headgate.flow.limits.precedence import ABOVE_PUBLISH_RATE
from headgate.flow.limits.rate_limit import Dimension, RateLimit
from headgate.flow.quota.outlook import STILL_SHARE
from headgate.flow.sentences.lost import evicted_text, expired_text, unacknowledged_text

NOTHING_PER_S = 0.05
"""The sentence calls a rate below this "nothing"."""
INFERRED_TEXT = "(inferred from counters)"
"""The end of a sentence whose account of time was inferred from counters."""
UNLOAD: Final = "unload the topic"
"""What ends a stuck dispatcher: it is made anew."""
STUCK_SHARE_MIN: Final = 0.5
"""A dispatcher that was stuck for more than this part of the broker's time is the cause."""
_MOST = 0.5
_KEEPS_UP = 1 - STILL_SHARE
"""A consumer that gets this part of what is published keeps up with it."""
_NEAR_LIMIT = 0.9
"""A consumer that gets this part of what a limit lets through is about as fast as the limit."""
_HANGS = "check whether it hangs, fails or never acknowledges"
_LETS_LITTLE_MORE = "lets hardly more through"
_SILENT_S_MIN = 30.0
_SILENT_ACKS_MIN = 5.0
"""A consumer may hang if it acknowledged nothing for this long, in which it would have acknowledged
this many messages at its mean rate. Fewer prove nothing: some consumers acknowledge once a minute.
"""
_LEVEL_NAMES = ("subscription", "topic", "broker-wide")


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The known figures beside the judgement; each has a default that means "not known".

    ``backlog`` counts messages that could be delivered, ``delayed`` those that are not due yet.
    ``limit`` and ``limit_source`` belong to the limiter that the judgement names, while it held. If
    ``limit_changed``, ``limit_at_end`` was in force at the end; None means that no limit was. Now
    ``waiting_subscriptions`` wait for it; 0 if they were not counted. ``permits`` of
    ``permits_max`` are free now, and at least half of them were for ``hungry_share`` of the time.
    If ``batches_count_as_one``, limits in messages count a batch as one. Rates are messages a
    second; ``bytes_per_message`` is a mean. The situation has lasted for ``since_s`` seconds, or
    longer if ``since_at_least``. Nothing was acknowledged in the last ``silent_s`` seconds.
    ``stopped_by`` is the label of the consumer state that took the most time; the dispatcher was
    stuck for ``stuck_share`` of it. A backlog quota
    evicted ``evicted`` messages before they were acknowledged, in the judged time; ``evicted_by``
    is the last one that did (:func:`headgate.flow.sentences.quota.quota_text`). ``expired``
    messages reached their age before they were acknowledged; ``expired_by`` is the last TTL that
    took some (:func:`headgate.flow.expiry.ttl_text`). The figures are
    sums over ``partitions``, each of which has the limit for itself;
    ``partitions_without_consumer`` of them have no consumer now while others have one.
    ``one_at_a_time`` says that one consumer gets all messages (Failover, Exclusive).
    """

    backlog: int = 0
    delayed: int = 0
    limit: RateLimit | None = None
    limit_source: str = ""
    limit_changed: bool = False
    limit_at_end: RateLimit | None = None
    waiting_subscriptions: int = 0
    permits: int | None = None
    permits_max: int | None = None
    hungry_share: float | None = None
    appended_per_s: float | None = None
    delivered_per_s: float | None = None
    acked_per_s: float | None = None
    bytes_per_message: float | None = None
    since_s: float | None = None
    since_at_least: bool = False
    silent_s: float | None = None
    stopped_by: str = ""
    stuck_share: float = 0.0
    evicted: int = 0
    evicted_by: str = ""
    expired: int = 0
    expired_by: str = ""
    partitions: int = 1
    partitions_without_consumer: int = 0
    batches_count_as_one: bool = False
    one_at_a_time: bool = False


_STOPPED = {
    "awaiting_ack": "the consumer holds everything, unacknowledged",
    "no_permits": "the consumer's receiver queue was full",
    "unacked_limit": "the consumer reached the limit of unacknowledged messages",
    "socket_full": "the consumer did not read its connection",
    "key_blocked": "the consumers of the next keys were not ready",
}


def limit_text(limit: RateLimit, dimension: Dimension) -> str:
    """``50 msg/s``, ``1,000 B/s`` or ``100 msg per 360 s``. A relative limit shows its present
    amount with its reason: ``1,200 msg/s (200 above the publish rate)``."""
    above = _above_publish_rate(limit, dimension)
    return _amount_text(limit, dimension) + (f" ({above})" if above else "")


def _amount_text(limit: RateLimit, dimension: Dimension) -> str:
    amount = limit.amount(dimension) or 0
    text = f"{amount:,} {'msg' if dimension == Dimension.MESSAGES else 'B'}"
    if limit.period_ns == NS_PER_S:
        return f"{text}/s"
    return f"{text} per {number(limit.period_ns / NS_PER_S)} s"


def _above_publish_rate(limit: RateLimit, dimension: Dimension) -> str:
    """The reason for the amount of a relative limit; empty for a plain limit."""
    if limit.base is None:
        return ""
    return f"{limit.base.amount(dimension) or 0:,} {above_what(limit.times)}"


def above_what(times: int) -> str:
    """What a relative limit comes on top of."""
    if times == 1:
        return "above the publish rate"
    if times:
        return f"above {times} x the publish rate"
    return "above what all topics need"


def _limit_and_source(limit: RateLimit, dimension: Dimension, source: str) -> str:
    """``50 msg/s (topic policy)``, ``245 msg/s (topic policy, 45 above the publish rate)``."""
    why = ", ".join(filter(None, (source, _above_publish_rate(limit, dimension))))
    return _amount_text(limit, dimension) + (f" ({why})" if why else "")


def sentence(judgement: Judgement, circumstances: Circumstances) -> str:
    """The verdict in one sentence, with a full stop and without a line break."""
    verdict = judgement.verdict
    if verdict is Verdict.NONE:
        text = _none(judgement, circumstances)
    elif verdict is Verdict.CONSUMER:
        text = _consumer(judgement, circumstances)
    elif verdict is Verdict.NO_CONSUMER:
        text = _no_consumer(judgement, circumstances)
    elif verdict is Verdict.BROKER:
        text = _broker(judgement, circumstances)
    else:
        text = _throttled(judgement, circumstances)
    evicted, expired = circumstances.evicted, circumstances.expired
    if evicted and verdict is not Verdict.CONSUMER:
        lost = evicted_text(evicted, circumstances.evicted_by)
        text += f"; {lost} {unacknowledged_text(evicted)}"
    if expired:
        lost = expired_text(expired, circumstances.expired_by)
        text += f"; {lost} {unacknowledged_text(expired)}"
    if circumstances.delayed:
        text += f"; {_delayed(circumstances.delayed)}"
    if judgement.second is not None and not judgement.bystander:
        text += (
            f"; {judgement.second.value} is within 5 % of it"
            f" ({percent(judgement.shares[judgement.second])} of the time), so consider both"
        )
    if judgement.is_inferred:
        text += f" {INFERRED_TEXT}"
    return f"{verdict.value}: {text}."


def _delayed(count: int) -> str:
    return "1 message is not due yet" if count == 1 else f"{count:,} messages are not due yet"


def _since(facts: Circumstances) -> str:
    if facts.since_s is None:
        return ""
    return f" for {'at least ' * facts.since_at_least}{duration(facts.since_s)}"


def _backlog(facts: Circumstances) -> str:
    if not facts.backlog:
        return ""
    return ", 1 message waits" if facts.backlog == 1 else f", {facts.backlog:,} messages wait"


def _none(judgement: Judgement, facts: Circumstances) -> str:
    if judgement.shares[Verdict.NONE] == 1.0:
        return "nothing is waiting"
    rate = "" if facts.acked_per_s is None else f" at {number(facts.acked_per_s)} msg/s"
    return f"the consumer keeps up{rate}; the unacknowledged messages are in flight"


def _no_consumer(judgement: Judgement, facts: Circumstances) -> str:
    if facts.partitions_without_consumer:
        of = f"{facts.partitions_without_consumer:,} of {facts.partitions:,}"
        return f"{of} partitions have no consumer{_backlog(facts)}; connect one to each"
    if facts.permits is not None:
        most = judgement.shares[Verdict.NO_CONSUMER] > _MOST
        during = "most of the time" if most else "a part of the time"
        return f"no consumer was connected for {during}, now one is{_backlog(facts)}"
    is_so = "is" if facts.since_s is None else "has been"
    text = f"no consumer {is_so} connected{_since(facts)}{_backlog(facts)}"
    return f"{text}; connect one, or delete the subscription if nobody needs it"


def _named_limit(judgement: Judgement, facts: Circumstances, limiter: Verdict) -> str:
    """``the topic limit of 50 msg/s (namespace policy acme/ns)``."""
    text = f"the {_LEVEL_NAMES[THROTTLED.index(limiter)]} limit"
    if facts.limit is not None and judgement.dimension is not None:
        text += f" of {_limit_and_source(facts.limit, judgement.dimension, facts.limit_source)}"
        if facts.batches_count_as_one and judgement.dimension == Dimension.MESSAGES:
            text += ", a batch counting as one message,"
    elif facts.limit_source:
        text += f" ({facts.limit_source})"
    if facts.partitions > 1 and limiter is not Verdict.THROTTLED_BROKER:
        text += f" on each of {facts.partitions:,} partitions"
    return text


def _consumer(judgement: Judgement, facts: Circumstances) -> str:
    text = "the consumer is the bottleneck"
    advice = "faster or more consumers would help"
    if _only_one_works(facts):
        advice = "a faster consumer would help, another would only stand by"
    if judgement.bystander or judgement.second not in THROTTLED:
        advice += ", a higher limit would not"
    keeps_pace = _keeps_pace(facts)
    if keeps_pace and _has_ended(judgement, facts):
        return (
            f"the consumer acknowledges {number(facts.acked_per_s or 0)} msg/s of "
            f"{number(facts.appended_per_s or 0)} msg/s published; messages waited for "
            f"{percent(1 - judgement.shares[Verdict.NONE])} of the time, and none does any more"
        )
    stays = facts.backlog > 0 and abs(judgement.growth) <= STILL_SHARE * facts.backlog
    if facts.evicted:
        text, advice = _too_late(facts)
    elif facts.acked_per_s is not None and judgement.growth < 0 and not (keeps_pace and stays):
        text = f"the backlog drains at the consumer's own pace of {number(facts.acked_per_s)} msg/s"
    elif facts.acked_per_s is not None:
        rate = f"only {number(facts.acked_per_s)} msg/s"
        if facts.acked_per_s < NOTHING_PER_S:
            rate, advice = "nothing", _HANGS
        if keeps_pace:
            rate = f"{number(facts.acked_per_s)} msg/s"
        text = f"the consumer acknowledges {rate}"
        if facts.appended_per_s is not None:
            text += f" of {number(facts.appended_per_s)} msg/s published"
        if keeps_pace and stays:
            text += ", no more than that, so the backlog does not shrink"
    if not facts.evicted and facts.silent_s is not None and _fell_silent(facts):
        text += f", nothing for the last {duration(facts.silent_s)}"
        advice = _HANGS
    if facts.since_s is not None:
        text += f",{_since(facts)} now"
    if facts.stopped_by in _STOPPED:
        text += f" ({_STOPPED[facts.stopped_by]})"
    is_slow = not facts.evicted and advice is not _HANGS
    is_near = is_slow and _is_near_limit(facts)
    is_next = False
    if judgement.bystander and judgement.second is not None:
        limit = _named_limit(judgement, facts, judgement.second)
        text += f"; {limit} {_LETS_LITTLE_MORE if is_near else 'is not the cause'}"
        is_next = is_slow and _is_next(facts)
    elif facts.limit is not None and facts.limit_source and judgement.dimension is None:
        counted = Dimension.BYTES if facts.limit.messages is None else Dimension.MESSAGES
        limit = _limit_and_source(facts.limit, counted, facts.limit_source)
        text += f"; the limit of {limit} "
        text += _LETS_LITTLE_MORE if is_near else "is not what holds it back"
        is_next = is_slow and _is_next(facts)
    who = "a faster consumer" if _only_one_works(facts) else "faster or more consumers"
    if is_near:
        advice = f"{who} and a higher limit would help together, neither alone"
    elif is_next:
        advice = (
            f"{who} would help until that limit holds, which lets less through than the"
            f" {number(facts.appended_per_s or 0)} msg/s published: then raise it, too"
        )
    return f"{text}; {advice}"


def _only_one_works(facts: Circumstances) -> bool:
    """Whether a further consumer would get nothing."""
    return facts.one_at_a_time and facts.partitions <= 1


def _has_ended(judgement: Judgement, facts: Circumstances) -> bool:
    """Whether the backlog has ended and was short: nothing waits now, nor did for most of the
    time."""
    waits = facts.backlog > 0 or facts.evicted > 0 or facts.expired > 0
    return not waits and judgement.growth <= 0 and judgement.shares[Verdict.NONE] > _MOST


def _fell_silent(facts: Circumstances) -> bool:
    """Whether a consumer stopped acknowledging while messages wait."""
    if facts.silent_s is None or facts.acked_per_s is None or not facts.backlog:
        return False
    due = facts.acked_per_s * facts.silent_s
    return facts.silent_s >= _SILENT_S_MIN and due >= _SILENT_ACKS_MIN


def _keeps_pace(facts: Circumstances) -> bool:
    """Whether a consumer acknowledges about as much as is published, as it does if a quota slows
    the producers to its rate."""
    acked, published = facts.acked_per_s, facts.appended_per_s
    if acked is None or published is None or acked < NOTHING_PER_S:
        return False
    return _KEEPS_UP * published <= acked <= published / _KEEPS_UP


def _is_near_limit(facts: Circumstances) -> bool:
    """Whether a consumer is about as fast as the limit, so that the verdict may change with every
    gust of load, and neither a faster consumer nor a higher limit helps much alone."""
    if facts.acked_per_s is None:
        return False
    return facts.acked_per_s >= _NEAR_LIMIT * _through_per_s(facts)


def _is_next(facts: Circumstances) -> bool:
    """Whether the limit would hold a consumer that were fast enough: it lets less through
    than is published. A relative limit follows what is published."""
    if facts.appended_per_s is None or facts.limit is None or facts.limit.base is not None:
        return False
    if facts.limit_source.endswith(ABOVE_PUBLISH_RATE):
        return False
    return facts.appended_per_s > _through_per_s(facts)


def _through_per_s(facts: Circumstances) -> float:
    """The messages a second that the limit lets through; infinite if that is not known."""
    if facts.limit is None or facts.limit_changed:
        return inf
    through = []
    messages, size = (facts.limit.per_second(dimension) for dimension in Dimension)
    if messages is not None and not facts.batches_count_as_one:
        through.append(messages)
    if size is not None and facts.bytes_per_message:
        through.append(size / facts.bytes_per_message)
    return facts.partitions * min(through, default=inf)


def _too_late(facts: Circumstances) -> tuple[str, str]:
    """The finding about a consumer whose messages a quota evicts, and what would help.

    An acknowledgement of an evicted message counts nowhere. So few acknowledgements in time do not
    mean that the consumer acknowledges few messages.
    """
    them = "it" if facts.evicted == 1 else "them"
    text = f"{evicted_text(facts.evicted, facts.evicted_by)} before the consumer"
    text += f" acknowledged {them}"
    handed, published = facts.delivered_per_s, facts.appended_per_s
    if handed is not None and handed < NOTHING_PER_S:
        return (
            f"{text}; it was handed nothing",
            "check whether it hangs; a larger quota only delays this",
        )
    if handed is not None:
        text += f"; it was handed {number(handed)} msg/s"
        if published is not None:
            text += f" of {number(published)} msg/s published"
    if facts.acked_per_s is not None:
        rate = f"{number(facts.acked_per_s)} msg/s"
        if facts.acked_per_s < NOTHING_PER_S:
            rate = "nothing"
        text += f"{' and' if handed is not None else '; it'} acknowledged {rate} in time"
    if handed is not None and published is not None and handed >= _KEEPS_UP * published:
        return (
            text,
            "it receives as fast as is published: let it acknowledge earlier, or raise the quota",
        )
    who = "a faster consumer" if _only_one_works(facts) else "faster or more consumers"
    return text, f"{who}, earlier acknowledgements or a larger quota would help"


def _throttled(judgement: Judgement, facts: Circumstances) -> str:
    text = f"{_named_limit(judgement, facts, judgement.verdict)} held "
    if facts.waiting_subscriptions > 1:
        text += f"{facts.waiting_subscriptions:,} waiting subscriptions"
    else:
        text += "this subscription"
    if facts.since_s is not None:
        text += f" for {'at least ' * facts.since_at_least}the last {duration(facts.since_s)}"
    if facts.hungry_share is not None:
        text += f"; the consumer had room for {percent(facts.hungry_share)} of the time"
        if facts.permits is not None:
            of = "" if facts.permits_max is None else f" of {facts.permits_max:,}"
            text += f" ({facts.permits:,}{of} permits are free)"
    if judgement.shares[Verdict.BROKER] > CLOSE_SHARE and judgement.second is not Verdict.BROKER:
        behind = percent(judgement.shares[Verdict.BROKER])
        text += f"; for {behind} of the time it was the broker itself that was behind"
    if facts.limit_changed:
        text += f"; by the end it was {_limit_at_end(judgement, facts)}"
        if not _amount_at_end(judgement, facts):
            return text  # a limit that is gone cannot be raised
    if judgement.would_have_grown:
        return text + "; raising it helps only in part: less is consumed than published"
    relative = _relative_advice(judgement, facts)
    if relative:
        return f"{text}; {relative}"
    moot = facts.batches_count_as_one and facts.limit_changed
    if facts.appended_per_s is not None and judgement.growth > 0 and not moot:
        text += f"; {_advice(judgement, facts, facts.appended_per_s)}"
    return text


def _relative_advice(judgement: Judgement, facts: Circumstances) -> str:
    """Why a backlog drains slowly below a relative limit, and what would help; empty for a plain
    limit. What is published moves such a limit, so it can be raised above nothing."""
    limit = facts.limit_at_end if facts.limit_changed else facts.limit
    if limit is None or judgement.dimension is None:
        return ""
    added = "what is on top of that"
    if limit.base is not None:
        added = f"the {_amount_text(limit.base, judgement.dimension)} on top of that"
    elif not facts.limit_source.endswith(ABOVE_PUBLISH_RATE):
        return ""
    shared = ", divided among all that share it" if limit.base and limit.times != 1 else ""
    return (
        f"it follows what is published, so the backlog shrinks by at most {added}{shared}: raise"
        " the amount on top, or set a fixed limit"
    )


def _broker(judgement: Judgement, facts: Circumstances) -> str:
    if facts.stuck_share > STUCK_SHARE_MIN * judgement.shares[Verdict.BROKER]:
        return _stuck(facts)
    text = f"the broker itself took most of the time{_since(facts)}"
    text += " (seeking, failing over, reading from disk or sending)"
    held = sum(judgement.shares[limiter] for limiter in THROTTLED)
    if held < CLOSE_SHARE:
        return f"{text}, not a limit or a consumer"
    return f"{text}; a limit held it for {percent(held)}, and raising it would not help the rest"


def _stuck(facts: Circumstances) -> str:
    """Messages wait for a consumer that has room, and nothing is scheduled to send them."""
    permits = "permits"
    if facts.permits is not None:
        of = "" if facts.permits_max is None else f" of {facts.permits_max:,}"
        permits = f"{facts.permits:,}{of} permits"
    return (
        f"the dispatcher is stuck{_since(facts)}: the consumer has {permits} free"
        f"{_backlog(facts)}, and the broker sends nothing; {UNLOAD}"
    )


def _amount_at_end(judgement: Judgement, facts: Circumstances) -> int | None:
    """The amount of the limit at the end; None if there was none in that dimension."""
    at_end = facts.limit_at_end if facts.limit_changed else facts.limit
    if at_end is None or judgement.dimension is None:
        return None
    return at_end.amount(judgement.dimension)


def _limit_at_end(judgement: Judgement, facts: Circumstances) -> str:
    gone = not _amount_at_end(judgement, facts)
    if gone or facts.limit_at_end is None or judgement.dimension is None:
        return "gone"
    return limit_text(facts.limit_at_end, judgement.dimension)


def _lets_through(judgement: Judgement, facts: Circumstances, needed_per_s: float) -> bool:
    """Whether the limit at the end allows at least ``needed_per_s``."""
    amount = _amount_at_end(judgement, facts)
    at_end = facts.limit_at_end if facts.limit_changed else facts.limit
    if not amount or at_end is None:
        return False
    return amount * NS_PER_S / at_end.period_ns >= needed_per_s


def _advice(judgement: Judgement, facts: Circumstances, appended_per_s: float) -> str:
    """How far to raise the limit for all subscriptions that it holds; no advice to raise it if it
    allows what is published."""
    broad = judgement.verdict is Verdict.THROTTLED_BROKER
    if facts.batches_count_as_one and judgement.dimension == Dimension.MESSAGES:
        needed = "the batches that are published"
        if broad:
            needed += " to all topics"
        elif facts.waiting_subscriptions > 1:
            needed += f", once for each of the {facts.waiting_subscriptions:,} subscriptions"
        return f"raise it above {needed}"
    rate, unit = appended_per_s / (1 if broad else facts.partitions), "msg/s"
    if judgement.dimension == Dimension.MESSAGES:
        published = f"{number(rate)} msg/s are published"
    elif facts.bytes_per_message is not None:
        rate, unit = round(rate * facts.bytes_per_message), "B/s"
        published = f"{number(rate)} B/s are published"
    else:
        return "more is published than it lets through, so raise it"
    if broad:
        if facts.limit_changed and _lets_through(judgement, facts, rate):
            return f"{published} here"  # what the other topics need is not known
        return f"{published} here, so raise it above what all topics need together"
    if facts.partitions > 1:
        published += " to a partition on average"
    needed, through = "that", "which it lets through"
    if judgement.verdict is Verdict.THROTTLED_TOPIC and facts.waiting_subscriptions != 1:
        if facts.waiting_subscriptions:
            rate *= facts.waiting_subscriptions
            published += (
                f" and each of the {facts.waiting_subscriptions:,} subscriptions needs them"
            )
            needed = f"{number(rate)} {unit}"
            through = f"{needed} in all, which it lets through"
        else:
            # If the waiting subscriptions were not counted, others may share the limit.
            needed = "that, or above the sum if several subscriptions share it"
            through = "which it lets through where no other subscription shares it"
            if _lets_through(judgement, facts, rate):
                return f"{published}, {through}"
    if _lets_through(judgement, facts, rate):
        return f"{published}, {through}, so it need not be raised"
    return f"{published}, so raise it above {needed}"

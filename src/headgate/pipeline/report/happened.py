"""What happened, in sentences: the first thing on the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headgate.flow.sentences.backlog import percent
from headgate.flow.sentences.quota import time_text
from headgate.pipeline.output.attribution import messages_text, subscriptions_text
from headgate.pipeline.report.backlogs import Backlogs, Unused
from headgate.pipeline.report.colors import BLAME_NAMES
from headgate.pipeline.report.publishing import HeldTopic
from headgate.pipeline.report.quality import Quality
from headgate.pipeline.report.quota_states import APPROACHED, REACHED
from headgate.pipeline.report.quotas import Evictions, Quotas, QuotaTopic, breach_time_ns
from headgate.pipeline.report.sections import (
    growth_text,
    main_cause,
    name_text,
    quota_acts,
    said_text,
    short,
    subscription_text,
)
from headgate.pipeline.time_span import instant

_BLAMES_TOLD_MAX: Final = 3
_SHARE_TOLD_MIN: Final = 0.005
"""Less reads as 0 %."""


def happened(
    found: Backlogs,
    quotas: Quotas,
    held: Sequence[HeldTopic],
    lost: Evictions,
    known: Quality,
) -> list[str]:
    """What happened, in sentences: the most urgent first."""
    said = [_backlogs_sentence(found)]
    said += [
        f"{name_text(o)} {growth_text(o)}: {o.verdict} (confidence {o.confidence:.2f}). "
        f"{said_text(o)}"
        for o in [o for o in found.offenders if not o.is_unused][:3]
        if o.growth_messages > 0
    ]
    if found.unused.subscriptions:
        said.append(_unused_sentence(found.unused))
    said += _quota_sentences(quotas)
    if held:
        said.append(
            f"Producers of {short(held[0].topic)} were held longest: "
            f"{time_text(held[0].longest_s)} by the {main_cause(held[0])} "
            f"({percent(held[0].held_share)} of the range)."
        )
    if lost.worst:
        said.append(
            f"Backlog quotas evicted {messages_text(lost.messages)}, most from "
            f"{short(lost.worst[0].topic)}."
        )
    if known.completeness is not None and known.completeness < 0.99:
        said.append(
            f"Only {100 * known.completeness:.1f} % of the time is covered by telemetry: amounts "
            "are right, times are less sure."
        )
    return said


def _quota_sentences(quotas: Quotas) -> list[str]:
    """What is reached, what was, and what is approached."""
    said = []
    reached = next((t for t in quotas.topics if t.state == REACHED), None)
    if reached is not None:
        said.append(f"{_reached_text(reached, 'is')}{_more(quotas.reached - 1, 'reached')}.")
    earlier = next((t for t in quotas.topics if t.has_acted and t.state != REACHED), None)
    if earlier is not None:
        others = quotas.were_reached - 1
        more = f"; {others:,} more {'was' if others == 1 else 'were'}" if others > 0 else ""
        said.append(f"{_reached_text(earlier, 'was')}{more}.")
    soonest = next((t for t in quotas.topics if t.state == APPROACHED), None)
    if soonest is not None and soonest.breach is not None:
        said.append(
            f"The next quota to be reached is the {soonest.breach.quota} quota of "
            f"{short(soonest.topic)}, likely at {instant(breach_time_ns(soonest.breach))}"
            f"{_more(quotas.approached - 1, 'approached')}."
        )
    return said


def _reached_text(topic: QuotaTopic, verb: str) -> str:
    """``The size quota of public/default/t is reached: it held producers for 37 min``."""
    quota = f"{topic.reached_quota} quota" if topic.reached_quota else "backlog quota"
    when = "" if verb == "is" else " earlier in the range"
    acts = " and ".join(quota_acts(topic))
    return f"The {quota} of {short(topic.topic)} {verb} reached{when}" + f": it {acts}" * bool(acts)


def _more(count: int, what: str) -> str:
    return f"; {count:,} more {'is' if count == 1 else 'are'} {what}" if count > 0 else ""


def _backlogs_sentence(found: Backlogs) -> str:
    others = subscriptions_text(found.subscriptions - found.unused.subscriptions)
    if not found.growing:
        which = f"{others} that had a consumer" if found.unused.subscriptions else others
        return f"No backlog grew through anybody's fault; {which} had telemetry."
    blamed = {b: s for b, s in found.blame_seconds.items() if b != "NONE" and s > 0}
    whole = sum(blamed.values())
    most = sorted(blamed.items(), key=lambda item: -item[1])
    told = [(b, s) for b, s in most[:_BLAMES_TOLD_MAX] if s >= _SHARE_TOLD_MIN * whole]
    parts = [f"{percent(s / whole)} on {_blame_text(b)}" for b, s in told]
    rest = whole - sum(s for _, s in told)
    if rest >= _SHARE_TOLD_MIN * whole:
        parts.append(f"{percent(rest / whole)} on others")
    return (
        f"The backlogs of {found.growing:,} of {others} grew, by "
        f"{messages_text(found.growth_messages)} together. Of their time that somebody is to blame "
        f"for ({time_text(whole)}, summed over these subscriptions), {_and(parts)}."
    )


def _and(parts: Sequence[str]) -> str:
    """``75 % is blamed on the topic limit, 20 % on the consumer``."""
    return ", ".join(parts).replace(" on ", " is blamed on ", 1)


def _unused_sentence(found: Unused) -> str:
    """Whom nobody reads, apart from the others: their time would outweigh all else."""
    name, growth = subscription_text(*found.name), found.growth_messages
    if found.subscriptions == 1:
        return (
            f"1 more subscription, {name}, had no consumer throughout; it has "
            f"{messages_text(found.backlog_messages)}, {growth:,} of them new. Connect a consumer, "
            "or delete it if nobody needs it."
        )
    return (
        f"{found.subscriptions:,} more subscriptions had no consumer throughout; their backlogs "
        f"grew by {messages_text(growth)} together, and the largest is that of {name} with "
        f"{messages_text(found.backlog_messages)}. Connect consumers, or delete those that nobody "
        "needs."
    )


def _blame_text(blame: str) -> str:
    """``the topic limit``; where there is nobody, no article goes with it."""
    return "the lack of a consumer" if blame == "NO_CONSUMER" else f"the {BLAME_NAMES[blame]}"

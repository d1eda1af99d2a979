"""The page's summary: what happened in the range, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headgate.base.texts import percent, time_text
from headgate.pipeline.output.attribution import messages_text, subscriptions_text
from headgate.pipeline.report.backlogs import Backlogs, UnusedSubscriptions
from headgate.pipeline.report.legend import BLAME_NAMES
from headgate.pipeline.report.publishing import ParkedTopic
from headgate.pipeline.report.quality import Quality
from headgate.pipeline.report.quota_states import APPROACHED, REACHED
from headgate.pipeline.report.quotas import Evictions, Quotas, QuotaTopic, breach_time_ns
from headgate.pipeline.report.sections import (
    growth_text,
    main_cause,
    name_text,
    quota_acts,
    sentence_text,
    short,
    subscription_text,
)
from headgate.pipeline.time_span import instant

_BLAMES_SHOWN_MAX: Final = 3
_SHARE_SHOWN_MIN: Final = 0.005
"""A smaller share rounds to 0 %."""


def summary_sentences(
    found: Backlogs,
    quotas: Quotas,
    held: Sequence[ParkedTopic],
    lost: Evictions,
    known: Quality,
) -> list[str]:
    """What happened in the range, the most urgent first."""
    sentences = [_backlogs_sentence(found)]
    sentences += [
        f"{name_text(o)} {growth_text(o)}: {o.verdict} (confidence {o.confidence:.2f}). "
        f"{sentence_text(o)}"
        for o in [o for o in found.worst if not o.is_unused][:3]
        if o.growth_messages > 0
    ]
    if found.unused.subscriptions:
        sentences.append(_unused_sentence(found.unused))
    sentences += _quota_sentences(quotas)
    if held:
        sentences.append(
            f"Producers of {short(held[0].topic)} were held longest: "
            f"{time_text(held[0].longest_s)} by the {main_cause(held[0])} "
            f"({percent(held[0].held_share)} of the range)."
        )
    if lost.worst:
        sentences.append(
            f"Backlog quotas evicted {messages_text(lost.messages)}, most from "
            f"{short(lost.worst[0].topic)}."
        )
    if known.completeness is not None and known.completeness < 0.99:
        sentences.append(
            f"Telemetry covers only {100 * known.completeness:.1f} % of the time: amounts are "
            "exact, times are less certain."
        )
    return sentences


def _quota_sentences(quotas: Quotas) -> list[str]:
    """One sentence about each: a reached quota, one that was reached earlier, the next one."""
    sentences: list[str] = []
    reached = next((t for t in quotas.topics if t.state == REACHED), None)
    if reached is not None:
        sentences.append(f"{_reached_text(reached, 'is')}{_more(quotas.reached - 1, 'reached')}.")
    earlier = next((t for t in quotas.topics if t.was_reached and t.state != REACHED), None)
    if earlier is not None:
        others = quotas.were_reached - 1
        more = f"; {others:,} more {'was' if others == 1 else 'were'}" if others > 0 else ""
        sentences.append(f"{_reached_text(earlier, 'was')}{more}.")
    soonest = next((t for t in quotas.topics if t.state == APPROACHED), None)
    if soonest is not None and soonest.breach is not None:
        sentences.append(
            f"The next quota to be reached is the {soonest.breach.quota} quota of "
            f"{short(soonest.topic)}, likely at {instant(breach_time_ns(soonest.breach))}"
            f"{_more(quotas.approached - 1, 'approached')}."
        )
    return sentences


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
        return f"No backlog with a cause grew. There is telemetry of {which}."
    blamed = {b: s for b, s in found.blame_seconds.items() if b != "NONE" and s > 0}
    whole = sum(blamed.values())
    most = sorted(blamed.items(), key=lambda item: -item[1])
    shown = [(b, s) for b, s in most[:_BLAMES_SHOWN_MAX] if s >= _SHARE_SHOWN_MIN * whole]
    parts = [f"{percent(s / whole)} to {_blame_text(b)}" for b, s in shown]
    rest = whole - sum(s for _, s in shown)
    if rest >= _SHARE_SHOWN_MIN * whole:
        parts.append(f"{percent(rest / whole)} to others")
    return (
        f"The backlogs of {found.growing:,} of {others} grew, by "
        f"{messages_text(found.growth_messages)} in total. Of their time with a cause "
        f"({time_text(whole)}, summed over these subscriptions), {_joined(parts)}."
    )


def _joined(parts: Sequence[str]) -> str:
    """``75 % is due to the topic limit, 20 % to the consumer``."""
    return ", ".join(parts).replace(" to ", " is due to ", 1)


def _unused_sentence(found: UnusedSubscriptions) -> str:
    """A separate sentence about unused subscriptions: their time would outweigh all other."""
    name, growth = subscription_text(*found.name), found.growth_messages
    if found.subscriptions == 1:
        return (
            f"1 more subscription, {name}, had no consumer at any time. Its backlog is "
            f"{messages_text(found.backlog_messages)}, {growth:,} of them new. Connect a consumer, "
            "or delete the subscription if it is not needed."
        )
    return (
        f"{found.subscriptions:,} more subscriptions had no consumer at any time. Their backlogs "
        f"grew by {messages_text(growth)} in total, and the largest is that of {name} with "
        f"{messages_text(found.backlog_messages)}. Connect consumers, or delete the subscriptions "
        "that are not needed."
    )


def _blame_text(blame: str) -> str:
    """The cause in a sentence: ``the topic limit``."""
    return "the lack of a consumer" if blame == "NO_CONSUMER" else f"the {BLAME_NAMES[blame]}"

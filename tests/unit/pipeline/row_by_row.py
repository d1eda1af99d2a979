"""Minutes of ``intervals`` to one judgement, row by row: what the kernels over arrays must equal.

A minute and a range go the same way: amounts and seconds are summed, levels are taken at the two
ends, and the law of ``headgate.flow`` judges the sums. Plain values in and out; neither Spark,
Arrow nor NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headgate.base.texts import size_text, time_text
from headgate.flow.account.account import LABELS
from headgate.flow.account.demonstrated import (
    Interval,
    demonstrated_ack_per_s,
    hungry_share,
    stopped_by,
    stuck_share,
)
from headgate.flow.account.verdict import (
    INFERRED,
    MEASURED,
    THROTTLED,
    Evidence,
    Judgement,
    LimitFact,
    Verdict,
    blame_shares,
    judge,
)
from headgate.flow.limits.precedence import ABOVE_PUBLISH_RATE
from headgate.flow.limits.rate_limit import Dimension, Level, RateLimit
from headgate.flow.sentences.backlog import Circumstances, sentence
from headgate.pipeline.tables.attribution import BLAMES
from headgate.record.fields import STATE_FIELD_NAMES

NS_PER_S: Final = 1_000_000_000

Minute = Mapping[str, Any]
"""One row of ``intervals``."""

START: Final = "_start"
END: Final = ""
"""Ends of the names of levels at both ends of a minute."""

SOLE_SHARE_MIN: Final = 0.9
"""Who was delivered this part of a topic's limit shares it with nobody: two get a half each."""

_GAINS: Final = ("appended", "rewound")
_LOSSES: Final = ("acked", "skipped", "expired", "evicted")
_SUMMED: Final = (*_GAINS, *_LOSSES, "msgs_out", "bytes_out", "covered_ns")


def proven_rate_per_s(minutes: Sequence[Minute]) -> float | None:
    """What the consumers have shown they can do, in acknowledged messages a second.

    None when no minute proves any: see :mod:`headgate.flow.account.demonstrated`.
    """
    return demonstrated_ack_per_s(_interval(minute) for minute in minutes)


def _interval(minute: Minute) -> Interval:
    backlog = min(_whole_backlog(minute, at) - _not_due(minute, at) for at in (START, END))
    return Interval(
        covered_ns=_accounted_ns(minute),
        cells_ns=_cells(minute),
        acked=minute["acked"] or 0,
        evicted=(minute["evicted"] or 0) + (minute["expired"] or 0),
        oldest_age_ns=(minute["oldest_age_max_ns"] or 0) if backlog > 0 else 0,
    )


def _whole_backlog(minute: Minute, at: str) -> int:
    """What is not acknowledged at an end of a minute, also what is not due."""
    return minute["backlog_messages" + at] or 0


def _not_due(minute: Minute, at: str) -> int:
    """The delayed messages of that."""
    return min(max(0, _whole_backlog(minute, at)), minute["delayed" + at] or 0)


def judge_minutes(
    minutes: Sequence[Minute], demonstrated_per_s: float | None, topic_waiters: int = 0
) -> dict[str, Any]:
    """Judge one subscription over its minutes, in time order; at least one.

    ``topic_waiters``: how many subscriptions waited for the topic's limit, where there are several.

    Returns the columns of ``tables.JUDGEMENT_COLUMNS``.
    """
    first, last = minutes[0], minutes[-1]
    sums = {name: sum(minute[name] or 0 for minute in minutes) for name in _SUMMED}
    cells = [_cells(minute) for minute in minutes]
    total_cells = [sum(column) for column in zip(*cells, strict=True)]
    held = _minutes_of_limits(minutes, cells)
    start, end = _whole_backlog(first, START), _whole_backlog(last, END)
    delayed_start, delayed = _not_due(first, START), _not_due(last, END)
    span_ns = last["to_ns"] - first["from_ns"]
    net = sum(sums[name] for name in _GAINS) - sum(sums[name] for name in _LOSSES)
    residual = end - start - net
    moved = max(1, abs(end - start), sum(sums[name] for name in (*_GAINS, *_LOSSES)))
    completeness = min(1.0, sums["covered_ns"] / span_ns)
    inferred = any(minute["evidence"] == INFERRED for minute in minutes)
    # Inferred amounts follow from the growth itself, and where messages come in batches, from
    # which a backlog counts one, they do not add up to it.
    unexplained = 0.0 if inferred else min(1.0, abs(residual) / moved)
    oldest = max((minute["oldest_age_max_ns"] or 0) for minute in minutes)
    evidence = Evidence(
        window_ns=max(1, sum(total_cells) or sums["covered_ns"]),
        cells_ns=total_cells,
        backlog_start=start - delayed_start,
        backlog_end=end - delayed,
        oldest_age_ns_max=oldest,
        appended=max(0, sums["appended"] - delayed + delayed_start),
        delivered=sums["msgs_out"],
        acked=sums["acked"],
        unacked_start=first["unacked_start"] or 0,
        unacked_end=last["unacked"] or 0,
        evicted=sums["evicted"] + sums["expired"],
        delivered_bytes=sums["bytes_out"],
        limits=_limit_facts(held),
        sub_windows_ns=cells if len(cells) > 1 else (),
        demonstrated_ack_per_s=demonstrated_per_s,
        completeness=completeness * (1.0 - unexplained),
        is_inferred=inferred,
    )
    judgement = judge(evidence)
    facts = _circumstances(evidence, judgement, minutes, cells, held, topic_waiters)
    return {
        **_columns(judgement),
        "growth_messages": end - delayed - start + delayed_start,
        "backlog_messages": end - delayed,
        "delayed_messages": delayed,
        "residual_messages": None if inferred else residual,
        "appended": sums["appended"],
        "acked": sums["acked"],
        "evicted": sums["evicted"],
        "expired": sums["expired"],
        "from_ns": first["from_ns"],
        "to_ns": last["to_ns"],
        "oldest_age_max_ns": oldest,
        "proven_rate_per_s": demonstrated_per_s,
        "completeness": completeness,
        "accounted_ns": evidence.window_ns,
        "evidence": INFERRED if evidence.is_inferred else MEASURED,
        "sentence": sentence(judgement, facts),
    }


def _columns(judgement: Judgement) -> dict[str, Any]:
    shares = {verdict.value: share for verdict, share in judgement.shares.items()}
    return {
        **{f"share_{blame.lower()}": shares.get(blame, 0.0) for blame in BLAMES},
        "verdict": judgement.verdict.value,
        "second": None if judgement.second is None else judgement.second.value,
        "bystander": judgement.bystander,
        "dimension": None if judgement.dimension is None else judgement.dimension.name.lower(),
        "grows_without_limit": judgement.would_have_grown,
        "confidence": judgement.confidence,
    }


def _accounted_ns(minute: Minute) -> int:
    """Amounts and the account go over rows that were lost; ``covered_ns`` leaves them out."""
    return sum(_cells(minute)) or int(minute["covered_ns"])


def _cells(minute: Minute) -> list[int]:
    return [minute[name] or 0 for name in STATE_FIELD_NAMES]


def _limit(minute: Minute, level: Level) -> RateLimit | None:
    prefix = f"limit_{level.name.lower()}_"
    messages, size = minute[prefix + "messages"], minute[prefix + "bytes"]
    if not messages and not size:
        return None
    return RateLimit(messages or None, size or None, minute[prefix + "period_ns"] or NS_PER_S)


def _setting(minute: Minute, level: Level) -> RateLimit | str | None:
    """What is set: the limit, but of one that moves with the publish rate only its source."""
    source = minute[f"limit_{level.name.lower()}_source"] or ""
    return source if source.endswith(ABOVE_PUBLISH_RATE) else _limit(minute, level)


def _minutes_of_limits(
    minutes: Sequence[Minute], cells: Sequence[Sequence[int]]
) -> dict[Level, Minute]:
    """By level the last minute with the limit that held for longest; the last one if none held.

    A minute knows the limit at its end. Where that is another than at the end of the minute
    before, the lower one of the two held: the other let more through.
    """
    found = {}
    for level in Level:
        held_ns: dict[RateLimit | str | None, int] = {}
        latest: dict[RateLimit | str | None, Minute] = {}
        before = minutes[0]
        for minute, account in zip(minutes, cells, strict=True):
            tighter = _tighter(before, minute, level)
            limit = _setting(tighter, level)
            ns = sum(n for n, labels in zip(account, LABELS, strict=True) if labels.level is level)
            held_ns[limit] = held_ns.get(limit, 0) + ns
            latest[limit] = tighter
            before = minute
        longest = max(held_ns, key=lambda limit: held_ns[limit])
        found[level] = latest[longest] if held_ns[longest] else minutes[-1]
    return found


def _tighter(before: Minute, minute: Minute, level: Level) -> Minute:
    """Which of two minutes has the lower limit; the later one if that cannot be told."""
    if _setting(before, level) == _setting(minute, level):
        return minute
    old, new = _limit(before, level), _limit(minute, level)
    if old is None or new is None:
        return minute if old is None else before
    for dimension in Dimension:
        rates = old.per_second(dimension), new.per_second(dimension)
        if rates[0] != rates[1]:
            return before if (rates[0] or math.inf) < (rates[1] or math.inf) else minute
    return minute


def _limit_facts(held: Mapping[Level, Minute]) -> list[LimitFact]:
    limits = [(level, _limit(held[level], level)) for level in Level]
    return [
        LimitFact(level, limit.per_second(Dimension.MESSAGES), limit.per_second(Dimension.BYTES))
        for level, limit in limits
        if limit is not None
    ]


def _circumstances(
    evidence: Evidence,
    judgement: Judgement,
    minutes: Sequence[Minute],
    cells: Sequence[Sequence[int]],
    held: Mapping[Level, Minute],
    topic_waiters: int,
) -> Circumstances:
    last = minutes[-1]
    named = next((v for v in (judgement.verdict, judgement.second) if v in THROTTLED), None)
    level = None if named is None or judgement.dimension is None else Level(THROTTLED.index(named))
    window_s = evidence.window_ns / NS_PER_S
    limit = None if level is None else _limit(held[level], level)
    at_end = None if level is None else _limit(last, level)
    changed = level is not None and _setting(last, level) != _setting(held[level], level)
    return Circumstances(
        backlog=max(evidence.backlog_end, 0),
        delayed=_not_due(last, END),
        limit=limit,
        limit_source=(
            "" if level is None else held[level][f"limit_{level.name.lower()}_source"] or ""
        ),
        limit_changed=changed,
        limit_at_end=at_end,
        waiting_subscriptions=_waiting(judgement, held, minutes, topic_waiters),
        permits=last["permits"] if last["consumers"] else None,
        hungry_share=hungry_share(evidence.cells_ns, level),
        appended_per_s=sum(minute["appended"] or 0 for minute in minutes) / window_s,
        delivered_per_s=evidence.delivered / window_s,
        acked_per_s=evidence.acked / window_s,
        bytes_per_message=(
            evidence.delivered_bytes / evidence.delivered if evidence.delivered else None
        ),
        since_s=_since_s(judgement.verdict, held, minutes, cells),
        silent_s=_silent_s(minutes),
        stopped_by=stopped_by(evidence.cells_ns),
        stuck_share=stuck_share(evidence.cells_ns),
        evicted=sum(minute["evicted"] or 0 for minute in minutes),
        evicted_by=_evicted_by(minutes),
        expired=sum(minute["expired"] or 0 for minute in minutes),
        expired_by=_expired_by(minutes),
    )


def _expired_by(minutes: Sequence[Minute]) -> str:
    """The TTL of the last minute in which messages expired."""
    expiring = [minute for minute in minutes if minute["expired"]]
    if not expiring or expiring[-1]["expired_by_ttl_ns"] is None:
        return ""
    source = expiring[-1]["expired_by_source"]
    text = f"the message TTL of {expiring[-1]['expired_by_ttl_ns'] // NS_PER_S:,} s"
    return f"{text} ({source})" if source else text


def _evicted_by(minutes: Sequence[Minute]) -> str:
    """The quota of the last minute in which one evicted."""
    evicting = [minute for minute in minutes if minute["evicted"]]
    if not evicting or evicting[-1]["evicted_by"] is None:
        return ""
    kind, limit = evicting[-1]["evicted_by"], evicting[-1]["evicted_by_limit"]
    if limit is None:
        return ""
    size = kind == "size"
    text = f"the {kind} quota of " + (size_text(limit) if size else time_text(limit / NS_PER_S))
    source = evicting[-1]["evicted_by_source"]
    return f"{text} ({source})" if source else text


def _silent_s(minutes: Sequence[Minute]) -> float:
    """How long nothing was acknowledged, at the end."""
    begin = minutes[-1]["to_ns"]
    for minute in reversed(minutes):
        if minute["acked"]:
            break
        begin = minute["from_ns"]
    return (minutes[-1]["to_ns"] - begin) / NS_PER_S


def _waiting(
    judgement: Judgement,
    held: Mapping[Level, Minute],
    minutes: Sequence[Minute],
    topic_waiters: int,
) -> int:
    """How many subscriptions waited for the topic limit that is blamed; 0 where it is not known."""
    if judgement.verdict is not Verdict.THROTTLED_TOPIC or judgement.dimension is None:
        return 0
    return topic_waiters if topic_waiters > 1 else int(_is_sole(judgement, held, minutes))


def _is_sole(judgement: Judgement, held: Mapping[Level, Minute], minutes: Sequence[Minute]) -> bool:
    """Whether the blamed topic limit was this subscription's alone, while it held."""
    if judgement.verdict is not Verdict.THROTTLED_TOPIC or judgement.dimension is None:
        return False
    setting = _setting(held[Level.TOPIC], Level.TOPIC)
    name = "msgs_out" if judgement.dimension == Dimension.MESSAGES else "bytes_out"
    got, allowed = 0, 0.0
    for minute in minutes:
        limit = _limit(minute, Level.TOPIC)
        rate = None if limit is None else limit.per_second(judgement.dimension)
        if rate is not None and _setting(minute, Level.TOPIC) == setting:
            got += minute[name] or 0
            allowed += rate * _accounted_ns(minute) / NS_PER_S
    return got >= SOLE_SHARE_MIN * allowed > 0


def _since_s(
    verdict: Verdict,
    held: Mapping[Level, Minute],
    minutes: Sequence[Minute],
    cells: Sequence[Sequence[int]],
) -> float | None:
    """How long the last minutes have all blamed the same, a limiter with the limit of ``held``;
    None when the last one does not."""
    level = Level(THROTTLED.index(verdict)) if verdict in THROTTLED else None
    setting = None if level is None else _setting(held[level], level)
    begin = None
    for minute, account in zip(reversed(minutes), reversed(cells), strict=True):
        shares = blame_shares(account)
        if max(shares, key=lambda blame: shares[blame]) is not verdict:
            break
        if level is not None and setting is not None and _setting(minute, level) != setting:
            break
        begin = minute["from_ns"]
    return None if begin is None else (minutes[-1]["to_ns"] - begin) / NS_PER_S

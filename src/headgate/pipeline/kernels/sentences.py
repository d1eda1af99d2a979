"""Sentences of many verdicts, each built once by ``headgate.flow.sentences.backlog``.

The sentence of a healthy minute has only a rate, so one is built for each rate and reused. Every
other sentence has its own figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headgate.base.units import NS_PER_S
from headgate.flow.account.account import LABELS, Cell
from headgate.flow.account.demonstrated import CONSUMER_STATES
from headgate.flow.account.verdict import Judgement, Verdict
from headgate.flow.expiry import MessageTtl, ttl_text
from headgate.flow.limits.rate_limit import Dimension, Level, RateLimit
from headgate.flow.sentences.backlog import Circumstances, sentence
from headgate.flow.sentences.quota import quota_text
from headgate.pipeline.kernels.account_windows import AccountWindows, LimitArrays
from headgate.pipeline.kernels.array_types import Doubles, Flags, Longs
from headgate.pipeline.kernels.verdict_arrays import LEVEL_CODES, NO_CODE, VERDICTS, JudgementArrays

_NONE: Final = VERDICTS.index(Verdict.NONE)
_RATES_KEPT: Final = 1 << 16

# The last label wins a tie, as in ``headgate.flow.account.demonstrated.stopped_by``.
_STOPPING: Final = sorted(
    (
        (labels.state.value, cell)
        for cell, labels in enumerate(LABELS)
        if labels.state in CONSUMER_STATES
    ),
    reverse=True,
)
_HUNGRY: Final = [
    [
        cell
        for cell, labels in enumerate(LABELS)
        if labels.level is level and labels.consumer == "hungry"
    ]
    for level in Level
]


@dataclass(frozen=True, slots=True)
class CircumstanceArrays:
    """Facts for the sentences of n windows besides their verdicts.

    ``sources``: by level, the sources of the limits that throttled. ``at_end`` and ``changed``
    ([Level, n]): the limits in force at the end, and whether they differ; None for windows of a
    minute. ``permits``: null if no consumer is connected. ``one_at_a_time``: whether one consumer
    gets all messages. ``evicted_by``: the quota that evicted last, with the columns
    ``tables.intervals.EVICTED_BY``; ``expired_by``: the TTL that expired messages last, with
    ``EXPIRED_BY``. ``since_s``: how long the verdict has been the same, NaN if it is another at the
    end. ``silent_s``: time without an acknowledgement at the end. ``waiting``: how many
    subscriptions waited for the blamed topic limit, 0 if there is none or it is not known.
    """

    sources: tuple[pa.Array, ...]
    permits: pa.Array
    one_at_a_time: Flags
    evicted_by: pa.Table
    expired_by: pa.Table
    since_s: Doubles
    silent_s: Doubles
    waiting: Longs
    at_end: LimitArrays | None = None
    changed: Flags | None = None


def named_levels(judged: JudgementArrays) -> Longs:
    """The level of the limiter that each verdict names; :data:`NO_CODE` without one."""
    first, second = LEVEL_CODES[judged.verdict], LEVEL_CODES[judged.second]
    second = np.where(judged.second == NO_CODE, NO_CODE, second)
    level = np.where(first != NO_CODE, first, second)
    return np.where(judged.dimension == NO_CODE, NO_CODE, level).astype(np.int64)


def sentence_column(
    windows: AccountWindows, judged: JudgementArrays, facts: CircumstanceArrays
) -> pa.Array:
    """One sentence for each window."""
    window_s = windows.accounted_ns() / NS_PER_S
    acked_per_s = windows.sums["acked"] / window_s
    texts: list[str] = []
    places = np.empty(len(judged.verdict), np.int32)
    idle = judged.shares[_NONE] == 1.0
    lost = windows.sums["evicted"] + windows.sums["expired"]
    healthy = (judged.verdict == _NONE) & (lost == 0) & (windows.delayed_end == 0)
    for is_idle, is_inferred in ((False, False), (True, False), (False, True), (True, True)):
        alike = healthy & (idle == is_idle)
        rows = np.flatnonzero(alike & (windows.is_inferred == is_inferred))
        rates, place = np.unique(
            np.zeros(len(rows)) if is_idle else acked_per_s[rows], return_inverse=True
        )
        places[rows] = place + len(texts)
        texts += [_healthy(rate, is_idle, is_inferred) for rate in rates.tolist()]
    rows = np.flatnonzero(~healthy)
    places[rows] = np.arange(len(rows)) + len(texts)
    texts += [
        sentence(judgement, circumstances)
        for judgement, circumstances in zip(
            _judgements(windows, judged, rows),
            _circumstances(windows, judged, facts, rows, window_s),
            strict=True,
        )
    ]
    column = pa.DictionaryArray.from_arrays(pa.array(places), pa.array(texts, pa.string()))
    return column.cast(pa.string())


@lru_cache(maxsize=_RATES_KEPT)
def _healthy(acked_per_s: float, is_idle: bool, is_inferred: bool) -> str:
    shares = dict.fromkeys(VERDICTS, 0.0) | {Verdict.NONE: float(is_idle)}
    judgement = Judgement(Verdict.NONE, None, False, shares, None, 0.0, None, 0, is_inferred)
    return sentence(judgement, Circumstances(acked_per_s=acked_per_s))


def _judgements(
    windows: AccountWindows, judged: JudgementArrays, rows: Longs
) -> Iterator[Judgement]:
    seconds = [None if code == NO_CODE else VERDICTS[code] for code in judged.second[rows].tolist()]
    dimensions = [
        None if code == NO_CODE else Dimension(code) for code in judged.dimension[rows].tolist()
    ]
    grown = [None if code == NO_CODE else bool(code) for code in judged.would_have_grown[rows]]
    return map(
        Judgement,
        [VERDICTS[code] for code in judged.verdict[rows].tolist()],
        seconds,
        judged.bystander[rows].tolist(),
        [dict(zip(VERDICTS, row, strict=True)) for row in judged.shares[:, rows].T.tolist()],
        dimensions,
        judged.confidence[rows].tolist(),
        grown,
        judged.growth[rows].tolist(),
        windows.is_inferred[rows].tolist(),
    )


def _circumstances(
    windows: AccountWindows,
    judged: JudgementArrays,
    facts: CircumstanceArrays,
    rows: Longs,
    window_s: Doubles,
) -> Iterator[Circumstances]:
    levels = named_levels(judged)[rows]
    limits = _limits(windows.limits, levels, rows)
    if facts.at_end is None or facts.changed is None:
        changed, at_end = [False] * len(rows), limits
    else:
        changed = ((levels != NO_CODE) & facts.changed[levels, rows]).tolist()
        at_end = _limits(facts.at_end, levels, rows)
    delivered = windows.sums["msgs_out"][rows]
    size = windows.sums["bytes_out"][rows] / np.maximum(delivered, 1)
    columns: dict[str, list[Any]] = {
        "backlog": np.maximum(windows.deliverable_end(), 0)[rows].tolist(),
        "delayed": windows.delayed_end[rows].tolist(),
        "limit": limits,
        "limit_source": _sources(facts.sources, levels, rows),
        "limit_changed": changed,
        "limit_at_end": at_end,
        "waiting_subscriptions": facts.waiting[rows].tolist(),
        "permits": facts.permits.take(pa.array(rows)).to_pylist(),
        "one_at_a_time": facts.one_at_a_time[rows].tolist(),
        "hungry_share": _optional(_hungry_share(windows.cells_ns[:, rows], levels)),
        "appended_per_s": (windows.sums["appended"] / window_s)[rows].tolist(),
        "delivered_per_s": (windows.sums["msgs_out"] / window_s)[rows].tolist(),
        "acked_per_s": (windows.sums["acked"] / window_s)[rows].tolist(),
        "bytes_per_message": _optional(np.where(delivered > 0, size, np.nan)),
        "since_s": _optional(facts.since_s[rows]),
        "silent_s": facts.silent_s[rows].tolist(),
        "stopped_by": _stopped_by(windows.cells_ns[:, rows]),
        "stuck_share": _stuck_share(windows.cells_ns[:, rows]).tolist(),
        "evicted": windows.sums["evicted"][rows].tolist(),
        "expired": windows.sums["expired"][rows].tolist(),
        "evicted_by": texts_of_lost(
            facts.evicted_by, windows.sums["evicted"], rows, evicted_by_text
        ),
        "expired_by": texts_of_lost(
            facts.expired_by, windows.sums["expired"], rows, expired_by_text
        ),
    }
    for values in zip(*columns.values(), strict=True):
        yield Circumstances(**dict(zip(columns, values, strict=True)))


def texts_of_lost(
    causes: pa.Table, lost: Longs, rows: Longs, text_of: Callable[[Mapping[str, Any]], str]
) -> list[str]:
    """By row: the text of what took messages; empty if none was ``lost``, or it is not known."""
    texts = np.full(len(rows), "", object)
    places = np.flatnonzero(lost[rows] > 0)
    taken = causes.take(pa.array(rows[places])).to_pylist()
    for place, cause in zip(places.tolist(), taken, strict=True):
        texts[place] = text_of(cause)
    return texts.tolist()


def evicted_by_text(quota: Mapping[str, Any]) -> str:
    """The text of the quota in the columns ``EVICTED_BY`` of a row; empty without a quota."""
    kind, limit = quota["evicted_by"], quota["evicted_by_limit"]
    if kind is None or limit is None:
        return ""
    scale = 1 if kind == "size" else NS_PER_S
    return quota_text(kind, limit / scale, quota["evicted_by_source"] or "")


def expired_by_text(cause: Mapping[str, Any]) -> str:
    """The text of the TTL in the columns ``EXPIRED_BY`` of a row; empty without one."""
    ttl_ns = cause["expired_by_ttl_ns"]
    if ttl_ns is None:
        return ""
    return ttl_text(MessageTtl(ttl_ns // NS_PER_S, cause["expired_by_source"] or ""))


def _optional(values: Doubles) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def _limits(limits: LimitArrays, levels: Longs, rows: Longs) -> list[RateLimit | None]:
    """By row: the limit at its level; None if the row names no level, or there is no limit."""
    parts = (part[levels, rows].tolist() for part in (limits.messages, limits.bytes))
    return [
        _rate_limit(messages, size, period_ns) if level != NO_CODE else None
        for level, messages, size, period_ns in zip(
            levels.tolist(), *parts, limits.period_ns[levels, rows].tolist(), strict=True
        )
    ]


@lru_cache(maxsize=_RATES_KEPT)
def _rate_limit(messages: int, size: int, period_ns: int) -> RateLimit | None:
    if messages <= 0 and size <= 0:
        return None
    return RateLimit(messages if messages > 0 else None, size if size > 0 else None, period_ns)


def _sources(sources: tuple[pa.Array, ...], levels: Longs, rows: Longs) -> list[str]:
    found = np.full(len(rows), "", object)
    for level in Level:
        there = levels == level
        texts: Any = sources[level].take(pa.array(rows[there])).to_pylist()
        found[there] = [text or "" for text in texts]
    return found.tolist()


def _hungry_share(cells_ns: Longs, levels: Longs) -> Doubles:
    """The same as ``headgate.flow.account.demonstrated.hungry_share``, with NaN for None."""
    hungry = np.stack([cells_ns[cells].sum(axis=0) for cells in _HUNGRY])
    total = cells_ns.sum(axis=0)
    share = hungry[levels, np.arange(len(levels))] / np.maximum(total, 1)
    return np.where((levels != NO_CODE) & (total > 0), share, np.nan)


def _stuck_share(cells_ns: Longs) -> Doubles:
    """The same as ``headgate.flow.account.demonstrated.stuck_share``."""
    share: Doubles = cells_ns[Cell.STUCK] / np.maximum(cells_ns.sum(axis=0), 1)
    return share


def _stopped_by(cells_ns: Longs) -> list[str]:
    """The same as ``headgate.flow.account.demonstrated.stopped_by``."""
    held = cells_ns[[cell for _, cell in _STOPPING]]
    place = np.where(held.max(axis=0, initial=0) > 0, held.argmax(axis=0), len(_STOPPING))
    names = [*(name for name, _ in _STOPPING), ""]
    return [names[i] for i in place.tolist()]

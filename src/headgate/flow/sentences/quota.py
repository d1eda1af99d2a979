"""One sentence about a backlog quota: how full it is, and what happens at its limit.

``explain`` and the pipeline's table ``quota_usage`` say it with the same words. As in
:mod:`headgate.flow.sentences.backlog`, whatever is not known is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from headgate.base.units import S_PER_MINUTE
from headgate.flow.quota.backlog_quota import RELEASE_PERCENT, QuotaPolicy
from headgate.flow.sentences.backlog import number, percent

_S_PER_HOUR: Final = 60 * S_PER_MINUTE
_S_PER_DAY: Final = 24 * _S_PER_HOUR

_USE_SHOWN_MAX: Final = 0.99
"""A quota that is not exceeded is never told to be full, however little is left."""

_KIB: Final = 1024.0
_LARGER_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class BreachForecast:
    """When a limit is reached, in seconds from now: a likely time between two edges, each of which
    one breach in ten lies beyond."""

    earliest_s: float | None
    """None: no edges are known."""
    likely_s: float | None
    """None: it is possible, not likely."""
    latest_s: float | None
    """None: that edge is too far away to be told."""


def size_text(size_bytes: float) -> str:
    """An amount of data in binary units: ``900 B``, ``1.5 MiB``, ``10 GiB``."""
    value, unit = float(size_bytes), "B"
    for larger in _LARGER_UNITS:
        # What would round to 1,024 of a unit is 1 of the next.
        if abs(value) < _KIB - 0.5:
            break
        value, unit = value / _KIB, larger
    return f"{number(value)} {unit}"


def time_text(seconds: float) -> str:
    """A length of time in at most two units: ``45 s``, ``26 min``, ``2 h 4 m``, ``3 d 4 h``."""
    whole_s = round(seconds)
    if whole_s < 2 * S_PER_MINUTE:
        return f"{whole_s} s"
    minutes = round(seconds / S_PER_MINUTE)
    if minutes < 60:
        return f"{minutes} min"
    if whole_s < 2 * _S_PER_DAY:
        hours, rest = divmod(minutes, 60)
        return f"{hours} h {rest} m" if rest else f"{hours} h"
    days, rest = divmod(round(seconds / _S_PER_HOUR), 24)
    return f"{days} d {rest} h" if rest else f"{days} d"


def about_text(seconds: float) -> str:
    """A length of time that is not known well, in one unit: ``45 s``, ``26 min``, ``1.5 h``."""
    if round(seconds) < 2 * S_PER_MINUTE:
        return f"{round(seconds)} s"
    minutes = round(seconds / S_PER_MINUTE)
    return f"{minutes} min" if minutes < 90 else f"{number(seconds / _S_PER_HOUR)} h"


def quota_text(kind: str, limit: float, source: str) -> str:
    """``the size quota of 1 MiB (topic policy)``: a quota as other sentences name it. ``kind`` is
    ``size`` or ``time``, ``limit`` in bytes or seconds; no ``source``: it is not known."""
    amount = size_text(limit) if kind == "size" else time_text(limit)
    return f"the {kind} quota of {amount}" + f" ({source})" * bool(source)


def quota_sentence(
    *,
    use: float,
    limit_text: str,
    source: str,
    kind: Literal["size", "time"],
    policy: str,
    subscription: str | None,
    oldest_age_s: float | None,
    seconds_to_breach: float | None,
    exceeded: bool,
    slowest: str | None = None,
    forecast: BreachForecast | None = None,
    reached: str = "",
) -> str:
    """Say how one quota of a topic stands; no line break, no full stop.

    ``use`` is the part of the limit that is taken (0.83). While ``exceeded`` producers are stopped,
    also below the limit, until there is room.
    ``limit_text`` is the limit for people (:func:`size_text`, :func:`time_text`), ``source`` where
    it is set, ``policy`` Pulsar's name of what happens at the limit. ``subscription`` holds the
    oldest unacknowledged message, which is ``oldest_age_s`` old. ``seconds_to_breach``: until the
    limit is reached at the present rate, None when it does not come nearer or nobody knows.
    ``slowest`` has the largest backlog: whom a size quota takes from, where that is known.
    ``forecast`` says when it is reached with more than the present rate, and is told instead.
    ``reached``: when the limit was reached lately, though it is not exceeded now (``in this
    minute``, ``3 s ago``); what keeps the topic just below it is the quota, so nothing is forecast.
    """
    quota = f"its {limit_text} {'time ' * (kind == 'time')}quota" + f" ({source})" * bool(source)
    loser = slowest if kind == "size" else subscription
    holder = ""
    if subscription is not None:
        age = "" if oldest_age_s is None else f" ({time_text(oldest_age_s)})"
        holder = f"subscription {subscription} holds the oldest message{age}"
        if kind == "size" and slowest not in (None, subscription):
            holder = f"subscription {slowest} has the largest backlog, {holder}"
    if exceeded and 0 < use < 1 and policy != QuotaPolicy.EVICTION:
        # It was reached, and producers go on a little below it.
        text = f"the topic is at {percent(min(use, _USE_SHOWN_MAX))} of {quota}, after reaching it"
        text += (
            f": {consequence(policy, loser, are='are ')} until it is down to {RELEASE_PERCENT} %"
        )
        return f"{text}; {holder}" if holder else text
    if exceeded:
        text = f"the topic is over {quota}: {consequence(policy, loser, are='are ')}"
        return f"{text}; {holder}" if holder else text
    if reached:
        text = f"the topic reached {quota} {reached} and is at {percent(min(use, _USE_SHOWN_MAX))}"
        text += f" of it: {consequence(policy, loser, are='are ')}"
        return f"{text}; {holder}" if holder else text
    parts = [f"the topic is at {percent(min(use, _USE_SHOWN_MAX))} of {quota}"]
    if holder:
        parts.append(holder)
    breaks = ""
    if forecast is not None:
        breaks = _forecast_text(forecast, kind, limit_text)
    elif seconds_to_breach is not None:
        when = "any moment" if seconds_to_breach < 1 else f"in {time_text(seconds_to_breach)}"
        breaks = f"at the present rate it breaks {when}"
    if breaks:
        parts += [breaks, f"then: {consequence(policy, loser)}"]
    return ", ".join(parts)


def _forecast_text(forecast: BreachForecast, kind: str, limit_text: str) -> str:
    """``it reaches 10 GiB in about 2 h (1.5 h to 3.1 h)``; empty where nothing is expected."""
    earliest, likely, latest = (
        None if seconds is None else about_text(seconds)
        for seconds in (forecast.earliest_s, forecast.likely_s, forecast.latest_s)
    )
    does, may = f"it reaches {limit_text}", f"it may reach {limit_text}"
    if kind == "time":
        does = f"its oldest message is {limit_text} old"
        may = f"its oldest message may be {limit_text} old"
    if likely is None:
        return "" if earliest is None else f"{may} in {earliest} at the earliest"
    if (forecast.likely_s or 0.0) < 1:
        return f"{does} any moment"
    text = f"{does} in about {likely}"
    if earliest is not None and latest is None:
        return f"{text} ({earliest} at the earliest)"
    return text if earliest is None or earliest == latest else f"{text} ({earliest} to {latest})"


def consequence(policy: str, loser: str | None, *, are: str = "") -> str:
    """What a policy does at the limit; one that this version does not know, by its name. Counters
    of a cluster do not tell the policy: it is empty then.

    ``loser`` is whom eviction takes from, where that is known; with ``are`` (``are ``) it happens
    now.
    """
    if policy == QuotaPolicy.HOLD:
        return f"producers {are}held"
    if policy == QuotaPolicy.EXCEPTION:
        return "producers are refused with an error"
    if policy == QuotaPolicy.EVICTION:
        who = "its slowest subscription" if loser is None else f"subscription {loser}"
        return f"{who} loses its oldest messages"
    return policy or "its policy is not known"

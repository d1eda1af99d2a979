"""One sentence about a backlog quota: how full it is, and what happens at its limit.

``explain`` and the pipeline's table ``quota_usage`` print it. Like
:mod:`headgate.flow.sentences.backlog`, it leaves out whatever is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from headgate.base.texts import about_text, percent, size_text, time_text
from headgate.flow.quota.backlog_quota import RELEASE_PERCENT, QuotaPolicy

_USE_SHOWN_MAX: Final = 0.99
"""A quota that is not exceeded never shows as full, however little is left."""


@dataclass(frozen=True, slots=True)
class BreachForecast:
    """When a limit is reached, in seconds from now: the likely time, and the range in which eight
    of ten breaches lie."""

    earliest_s: float | None
    """None if the range is unknown."""
    likely_s: float | None
    """None if a breach is possible, but not likely."""
    latest_s: float | None
    """None if it is too far away."""


def quota_text(kind: str, limit: float, source: str) -> str:
    """``the size quota of 1 MiB (topic policy)``: the name of a quota in other sentences. ``kind``
    is ``size`` or ``time``, ``limit`` is in bytes or seconds; ``source`` is empty if unknown."""
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
    """How full one quota of a topic is, without line break and full stop.

    ``use`` is the used part of the limit (0.83). While ``exceeded``, the quota stops producers,
    also a little below the limit, until there is room. ``limit_text`` is the limit as text,
    ``source`` is where the quota is set, and ``policy`` is Pulsar's name.
    ``subscription`` has the oldest unacknowledged message, which is ``oldest_age_s`` old; None if
    unknown. ``slowest`` has the largest backlog, so a size quota evicts from it; None if unknown.
    At the present rate the limit is reached in ``seconds_to_breach``; None if it does not approach,
    or is unknown. A ``forecast`` uses more than the present rate and replaces that. ``reached``
    says when the limit was reached lately, if it is not exceeded now (``in this minute``, ``3 s
    ago``): the quota then keeps the topic just below its limit, so there is no forecast.
    """
    quota = f"its {limit_text} {'time ' * (kind == 'time')}quota" + f" ({source})" * bool(source)
    loser = slowest if kind == "size" else subscription
    holder = ""
    if subscription is not None:
        age = "" if oldest_age_s is None else f" ({time_text(oldest_age_s)})"
        holder = f"subscription {subscription} holds the oldest message{age}"
        if kind == "size" and slowest not in (None, subscription):
            holder = f"subscription {slowest} has the largest backlog, {holder}"
    elif kind == "size" and slowest is not None:
        holder = f"subscription {slowest} has the largest backlog"
    if exceeded and 0 < use < 1 and policy != QuotaPolicy.EVICTION:
        # The limit was reached, and producers are released a little below it.
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
    """``it reaches 10 GiB in about 2 h (1.5 h to 3.1 h)``; empty without an expected breach."""
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
    """What a policy does at the limit.

    A policy that this version does not know appears by its name; it is empty if it comes from the
    counters of another cluster, which do not report it. ``loser`` is the subscription that eviction
    takes from, None if unknown. ``are`` is ``are `` if it happens now.
    """
    if policy == QuotaPolicy.HOLD:
        return f"producers {are}held"
    if policy == QuotaPolicy.EXCEPTION:
        return "producers are refused with an error"
    if policy == QuotaPolicy.EVICTION:
        who = "its slowest subscription" if loser is None else f"subscription {loser}"
        return f"{who} loses its oldest messages"
    return policy or "its policy is not known"

"""The table of limits in force."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headgate.base.texts import time_text
from headgate.cli.explain.figures import Report, count_text, short_name
from headgate.cli.explain.page import Page


def add_limits(page: Page, limits: Sequence[Report]) -> None:
    """Add a row for each dimension of each limit: its amount, its source and its waiters."""
    if not limits:
        page.add("No dispatch limit and no publish limit is in force.")
        return
    page.add("Limits in force", bold=True)
    rows = []
    for same in _alike(limits):
        first, waiters = same[0], sum(limit["waiters"] for limit in same)
        if first["unlimited"]:
            rows.append((_limit_name(first), "unlimited", first["source"]))
        for place, budget in enumerate(first["budgets"]):
            used = sum(limit["budgets"][place]["inWindow"] for limit in same)
            text = f"{budget['source']}; {used:,} in the last {time_text(budget['periodS'])}"
            if debt := sum(limit["budgets"][place]["debt"] for limit in same):
                text += f", {debt:,} over it, paid by waiting"
            text += f"; {_waiting(waiters, same)}"
            rows.append((_limit_name(first), _budget_text(same, place), text))
    page.rows(rows)


def _alike(limits: Sequence[Report]) -> Iterable[list[Report]]:
    """Groups of limits that differ in the partition only."""
    found: dict[tuple[str, ...], list[Report]] = {}
    for limit in limits:
        budgets = (
            f"{b['text'] if b['abovePublishRate'] is None else b['abovePublishRate']} {b['source']}"
            for b in limit["budgets"]
        )
        found.setdefault((_limit_name(limit), *budgets), []).append(limit)
    return found.values()


def _budget_text(limits: Sequence[Report], place: int) -> str:
    """One dimension of limits that differ in the partition only."""
    budgets = [limit["budgets"][place] for limit in limits]
    first = budgets[0]
    if len(budgets) == 1:
        return str(first["text"])
    if first["abovePublishRate"] is None:
        return f"{first['text']} x {len(budgets)}"
    # A relative limit differs between partitions.
    least, most = (pick(b["limit"] for b in budgets) for pick in (min, max))
    rate = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    unit = "msg" if first["dimension"] == "messages" else "B"
    per = "/s" if first["periodS"] == 1 else f" per {time_text(first['periodS'])}"
    why = str(first["text"]).partition(" (")[2]
    times = [b["publishRateTimes"] for b in budgets]
    if min(times) != max(times):
        above = f"{first['abovePublishRate']:,} above"
        why = f"{above} {min(times)} to {max(times)} x the publish rate)"
    return f"{rate} {unit}{per} ({why} x {len(budgets)}"


def _limit_name(limit: Report) -> str:
    _, of, subscription = str(limit["subject"]).partition(" / ")
    level = str(limit["level"]).replace("_", " ")
    return f"{level} {subscription}" if of else level


def _waiting(waiters: int, limits: Sequence[Report]) -> str:
    if not waiters:
        return "none waiting"
    if limits[0]["level"] == "subscription":
        return "it waits"
    if limits[0]["level"].startswith("publish"):
        return f"{count_text(waiters, 'producer')} waiting"
    names = {
        f"{short_name(held['topic'])} {held['subscription']}"
        for limit in limits
        for held in limit["longestWaiting"]
    }
    listed = ", ".join(sorted(names))
    more = ", ..." if waiters > len(names) else ""
    return f"{waiters:,} waiting" + (f" ({listed}{more})" if names else "")

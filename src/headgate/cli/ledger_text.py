"""The results of ``headgate ledger verify`` and ``repair`` as lines for a terminal."""

from __future__ import annotations

import shlex
from typing import Any, Final

from headgate.base.texts import size_text

Row = dict[str, Any]
_COSTS_SHOWN_MAX: Final = 10
_TOPICS_SHOWN_MAX: Final = 10


def verify_text(found: Row) -> str:
    """The result of ``verify`` as lines: each damaged place first, then notes and totals."""
    lines: list[str] = []
    if found["metadataProblem"]:
        lines += [f"metadata: {found['metadataProblem']}", *_metadata_lines(found), ""]
    notes: list[str] = []
    refuses = bool(found["metadataProblem"])
    damaged = int(refuses)
    own = {"log": "", "findings": found["findings"]}
    for log in [own, *found["logs"]]:
        for finding in log["findings"]:
            where = f"{_place(finding, finding.get('log', log['log']))}: {finding['what']}"
            if not finding["isDamage"]:
                notes.append(where)
                continue
            damaged += 1
            refuses |= finding["refusesStart"]
            lines += [where, *_cost_lines(finding), ""]
    if notes:
        lines += ["Notes, which are no damage:", *(f"    {note}" for note in notes), ""]
    lines += [
        f"{found['directory']}/{log['log']}: read {size_text(log['readBytes'])} in "
        f"{log['files']:,} files, {log['soundEntries']:,} sound entries in {log['batches']:,} "
        "batches"
        for log in found["logs"]
    ]
    if not damaged:
        lines.append("Nothing is damaged.")
    else:
        lines.append(f"DAMAGED in {damaged:,} place{'' if damaged == 1 else 's'}.")
    if refuses:
        lines.append("A broker does not start on this directory as it is.")
    return "\n".join(lines) + "\n"


def repair_text(found: Row) -> str:
    """The result of ``repair`` as lines: what it changed, what stays damaged, what to do next."""
    lines: list[str] = []
    dry_run = found["dryRun"]
    rebuilt = found["metadataRepair"]
    if rebuilt is not None:
        would = "would: " if dry_run or not rebuilt["isDone"] else "did: "
        rest = [line.strip() for line in _metadata_lines(found)]
        lines += [f"metadata: {rebuilt['found']}", f"    {would}{rest[0]}"]
        lines += [*(f"    {line}" for line in rest[1:]), ""]
    for where, repairs in _by_place(found["repairs"]).items():
        lines += [
            where,
            *(f"    {'would' if dry_run else 'did'}: {_change(repair)}" for repair in repairs),
            *_cost_lines({**repairs[0], "refusesStart": False}),
            "",
        ]
    left = [
        (log["log"], finding)
        for log in found["logs"]
        for finding in log["findings"]
        if finding["isDamage"]
    ]
    if left:
        lines += ["No copy of this is left, so a repair cannot bring it back:", ""]
    for log, finding in left:
        lines += [f"{_place(finding, log)}: {finding['what']}", *_cost_lines(finding), ""]
    return "\n".join([*lines, *_repair_end(found, [finding for _, finding in left])]) + "\n"


def _by_place(repairs: list[Row]) -> dict[str, list[Row]]:
    """The repairs by what was found where: one finding can take several changes."""
    found: dict[str, list[Row]] = {}
    for repair in repairs:
        found.setdefault(f"{_place(repair, repair['log'])}: {repair['what']}", []).append(repair)
    return found


def _change(repair: Row) -> str:
    if repair["changed"] != repair["file"]:
        return f"in {repair['changed']}: {repair['change']}"
    return str(repair["change"])


def _repair_end(found: Row, left: list[Row]) -> list[str]:
    """The totals of a repair, and what to do next."""
    rebuilt = found["metadataRepair"]
    count, lines = len(found["repairs"]) + bool(rebuilt and rebuilt["isDone"]), []
    places = f"{count:,} place{'' if count == 1 else 's'}"
    if found["dryRun"] and count:
        lines.append(f"A repair would change {places}, and keep a copy first. Nothing is changed.")
    elif count:
        lines.append(f"Repaired {places}. The bytes from before are in {found['copies']}.")
    elif left or found["metadataProblem"]:
        lines.append("Nothing can be repaired, so nothing is changed.")
    else:
        lines.append("Nothing is damaged, so nothing is changed.")
    if any(repair["costs"] and repair["refusesStart"] for repair in found["repairs"]):
        lines += [
            "What is listed there as lost is given up: no topic refuses because of it. If a backup",
            "has it, put all of the backup back instead.",
        ]
    if found["metadataProblem"]:
        lines += _metadata_steps(found)
    if any(finding["refusesStart"] for finding in left):
        lines.append(
            "A broker does not start on this directory as it is: do what is said above, or"
        )
        lines.append("put back a backup.")
    elif left and not found["metadataProblem"]:
        lines += _next_steps(left)
    return lines


def _metadata_lines(found: Row) -> list[str]:
    """What can be rebuilt of metadata that a start refuses."""
    rebuilt = found["metadataRepair"]
    if rebuilt is None:
        return ["    a log is missing or older, so the metadata is not at fault"]
    source = rebuilt["source"] or "the numbers of the topics, since there is no copy"
    counts = ", ".join(f"{rebuilt[kind]:,} {kind}" for kind in ("tenants", "namespaces", "topics"))
    lines = [f"    rebuild it from {source}: {counts}"]
    if rebuilt["isComplete"]:
        return [*lines, "    nothing that the logs know of is lost"]
    if rebuilt["changesLost"] and rebuilt["source"]:
        lines.append(
            f"    lost: the last {rebuilt['changesLost']:,} changes of tenants, topics, policies, "
            "schemas and settings"
        )
    if not rebuilt["source"]:
        lines.append("    lost: names of topics, tenants, policies, schemas and settings")
    made = rebuilt["madeNames"]
    lines += [
        f"    topic number {row['topicNumber']} gets the name {row['topic']}"
        for row in made[:_TOPICS_SHOWN_MAX]
    ]
    if len(made) > _TOPICS_SHOWN_MAX:
        lines.append(f"    and {len(made) - _TOPICS_SHOWN_MAX:,} more; --json has all")
    return lines


def _metadata_steps(found: Row) -> list[str]:
    """What to do about metadata that a repair left as they are."""
    if found["metadataRepair"] is None:
        return [
            f"The metadata does not fit: {found['metadataProblem']}.",
            "Put metadata and logs back from the same backup.",
        ]
    return [
        "The metadata is not rebuilt, because something would stay lost, as listed.",
        "Put metadata and logs back from the same backup. If there is none, run:",
        f"    headgate ledger repair --rebuild-metadata --data-dir {found['directory']}",
    ]


def _next_steps(left: list[Row]) -> list[str]:
    """How to go on with damage that stays."""
    costs = [cost for finding in left for cost in finding["costs"]]
    if not costs:
        return ["A broker starts and loses nothing by what stays damaged."]
    lines = ["If a backup has these files, put all of it back. If not, start the broker."]
    topics = list(dict.fromkeys(cost["topic"] for cost in costs if cost.get("topic")))
    if topics:
        lines.append(
            "A topic or subscription that lost something refuses, or stops before the damage, until"
        )
        lines.append("you accept that:")
        shown = topics[:_TOPICS_SHOWN_MAX]
        lines += [
            f"    headgate admin topics accept-damage {shlex.quote(topic)}" for topic in shown
        ]
        if len(topics) > len(shown):
            lines.append(f"    and {len(topics) - len(shown):,} more; --json has all")
    if any(cost["kind"] in ("subscription", "state") for cost in costs):
        lines.append("Any topic may refuse: `headgate explain` lists those that do.")
    return lines


def _place(finding: Row, log: str) -> str:
    """Where something was found; ``log`` is empty for a file of the data directory itself."""
    name = f"{log}/{finding['file']}" if log else str(finding["file"])
    offset, size_bytes = finding["offset"], finding["bytes"]
    if not size_bytes:
        return f"{name} offset {offset}" if offset else name
    return f"{name} offset {offset} to {offset + size_bytes} ({size_bytes:,} bytes)"


def _cost_lines(finding: Row) -> list[str]:
    costs = finding["costs"]
    lines = [f"    {_cost_text(cost)}" for cost in costs[:_COSTS_SHOWN_MAX]]
    if len(costs) > len(lines):
        lines.append(f"    and {len(costs) - len(lines):,} more; --json has all")
    if finding["refusesStart"]:
        lines.append("    a broker does not start with it")
    return lines or ["    costs no message"]


def _cost_text(cost: Row) -> str:
    topic = cost.get("topic") or f"topic number {cost.get('topicNumber')} (of unknown name)"
    kind = cost["kind"]
    if kind == "lost":
        first = cost["firstMessageId"] or f"entry {cost['firstOrdinal']}"
        last = cost["lastMessageId"] or f"entry {cost['lastOrdinal']}"
        if cost["entries"] == 1:
            return f"lost: message {first} of {topic}"
        return f"lost: {cost['entries']:,} messages of {topic}, {first} to {last}"
    if kind == "may be lost":
        first = cost["firstMessageId"] or f"entry {cost['firstOrdinal']}"
        return f"may be lost: messages of {topic} near {first}"
    if kind == "acknowledgements":
        return (
            f"may be lost: acknowledgements of subscription {cost['subscription']} of {topic}, "
            "whose messages then come again"
        )
    if kind == "subscription":
        return "may be lost: a subscription of any topic that was created there"
    return "lost: the positions and subscriptions of all topics; records give back a part of them"

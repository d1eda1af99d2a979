"""Lets the agent see records of a real Apache Pulsar at several periods, and counts how often it is
right.

    python -m tests.peer.agent_truth.judge FOLDER [--show]

Of each record it takes the answers that an agent with that period would have asked for, jittered as
the agent's are. A verdict that has not settled counts as wrong.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.limits_reading import LimitAnswers, limits_look
from headgate.agent.reading import proof_look, topic_look
from headgate.base.units import NS_PER_S
from headgate.explain.delivery import Instant
from tests.peer.agent_truth.situations import FACTORS, labels

CASES = ((1.0, 60.0, 0.90), (5.0, 300.0, 0.95), (15.0, 300.0, None), (60.0, 300.0, None))
"""Period in seconds, time looked for, and the least part that is right."""
NORMAL_95 = 1.96
JITTER = (0.5, 1.5)


class Line(NamedTuple):
    """One recorded answer."""

    at_ns: int
    kind: str
    topic: str
    status: int
    body: bytes


def lines(path: Path) -> list[Line]:
    """The answers of a record, in their order."""
    with gzip.open(path, "rt") as file:
        found = [_line(json.loads(text)) for text in file]
    return sorted(found)


def _line(value: dict[str, Any]) -> Line:
    parts = value["path"].split("/")
    topic = f"persistent://{'/'.join(parts[4:7])}" if parts[3] == "persistent" else ""
    body = b"" if value["body"] == "" else json.dumps(value["body"]).encode()
    return Line(value["at_ns"], value["kind"], topic, value["status"], body)


def limits(record: list[Line], topic: str) -> LimitAnswers:
    """The policies of a topic, as the agent asks for them."""
    own = {line.kind: line.body for line in record if line.topic == topic and line.status < 300}
    shared = {line.kind: line.body for line in record if not line.topic and line.status < 300}
    return LimitAnswers(
        dispatch_rate=own.get("dispatchRate"),
        subscription_dispatch_rate=own.get("subscriptionDispatchRate"),
        publish_rate=own.get("publishRate"),
        namespace=shared.get("namespace"),
        settings=shared.get("configuration"),
    )


def seen(record: list[Line], period_s: float, for_s: float, seed: int) -> Iterator[Line]:
    """What an agent with that period asks for from the beginning of the record on."""
    chance = random.Random(seed)
    begun_ns = record[0].at_ns
    due_ns: dict[str, float] = {}
    for line in record:
        if line.at_ns > begun_ns + for_s * NS_PER_S or line.status != 200:
            continue
        if line.kind == "proof" or (
            line.kind == "stats" and line.at_ns >= due_ns.get(line.topic, 0)
        ):
            if line.kind == "stats":
                wait_s = period_s * chance.uniform(*JITTER) if period_s > 1 else 0.0
                due_ns[line.topic] = line.at_ns + wait_s * NS_PER_S
            yield line


def verdicts(record: list[Line], looks: list[Line]) -> dict[tuple[str, str], str]:
    """The verdict on each (topic, subscription) after these looks."""
    history = ClusterHistory("truth")
    topics = sorted({line.topic for line in looks})
    known: set[str] = set()
    for line in looks:
        if line.kind == "proof":
            history.note_proof(proof_look(line.body, line.topic, line.at_ns))
            continue
        history.note_look(topic_look(line.body, line.topic, line.at_ns))
        if line.topic not in known:
            # A history takes the limits of topics that it knows.
            known.add(line.topic)
            answers = limits(record, line.topic)
            history.note_limits(limits_look(line.topic, line.at_ns, answers))
    instant = Instant(looks[-1].at_ns, 0)
    return {
        (topic, report["subscription"]): report["verdict"]
        for topic in topics
        for report in history.topic(topic, instant)["subscriptions"]
    }


def interval(right: int, count: int) -> str:
    """The part that is right, with Wilson's interval of 95 %."""
    part, square = right / count, NORMAL_95**2
    middle = (part + square / (2 * count)) / (1 + square / count)
    half = NORMAL_95 * sqrt(part * (1 - part) / count + square / (4 * count**2))
    half /= 1 + square / count
    return f"{right} of {count} = {part:.1%} ({middle - half:.1%} to {middle + half:.1%})"


def judge(folder: Path, *, show: bool) -> int:
    """Print the accuracy by period, and with ``show`` each wrong verdict. Returns 1 if the accuracy
    that is asked for is missed."""
    meant = {key: value for factor in FACTORS for key, value in labels(factor).items()}
    records = [lines(path) for path in sorted(folder.glob("*.jsonl.gz"))]
    missed = 0
    for period_s, for_s, least in CASES:
        right = 0
        wrong: list[str] = []
        for seed, record in enumerate(records):
            found = verdicts(record, [*seen(record, period_s, for_s, seed)])
            for (topic, name), verdict in found.items():
                if verdict == meant[topic, name]:
                    right += 1
                else:
                    wrong.append(f"  {topic.rpartition('/')[2]} {name}: {verdict}")
        count = right + len(wrong)
        note = "" if least is None else f"; at least {least:.0%}"
        said = [f"a look each {period_s:g} s, after {for_s:g} s: {interval(right, count)}{note}"]
        sys.stdout.write("\n".join(said + sorted(wrong) * show) + "\n")
        missed += least is not None and right < least * count
    return int(missed > 0)


def main() -> int:
    """Judge the records of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", action="store_true", help="print wrong verdicts")
    options = parser.parse_args()
    return judge(options.folder, show=options.show)


if __name__ == "__main__":
    raise SystemExit(main())

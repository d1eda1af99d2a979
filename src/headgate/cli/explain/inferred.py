"""What the page says of an answer that was inferred from looks at an Apache Pulsar cluster."""

from __future__ import annotations

from typing import Final

from headgate.base.texts import about_text, size_text
from headgate.cli.explain.figures import Report, capitalized, count_text, rate_text
from headgate.cli.explain.page import INDENT, Page

EMPTY: Final = (
    "A broker lists its topics and their backlogs once a minute, so what began just now is missing:"
    " ask again in a minute, or name a TOPIC."
)
"""Beside a list without any backlog, which is no proof that there is none."""

_SHOWN_SHARE: Final = 0.05
"""A smaller part of what was published is an error: a broker reads its counters one by one."""


def is_inferred(report: Report) -> bool:
    """Whether looks from outside are all the evidence."""
    return bool(report.get("evidence") == "inferred")


def cluster_text(answer: Report) -> str:
    """``Apache Pulsar 4.0.8``; an agent's answer has no release."""
    return " ".join(filter(None, ("Apache Pulsar", answer.get("clusterVersion"))))


def is_noise(report: Report, window: Report, amount: float) -> bool:
    """Whether an amount of a window is too small to be told from the looks' own error."""
    if not is_inferred(report):
        return False
    published_per_s = window["appendedPerS"] or 0.0  # null where it is not known
    return bool(amount < _SHOWN_SHARE * published_per_s * window["windowS"])


def evidence_text(report: Report) -> str:
    """How much was seen of a subscription: ``inferred from 28 looks in 30 s``."""
    text = f"inferred from {count_text(report['looks'], 'look')}"
    if report["looks"] > 1:
        text += f" in {about_text(report['lookedForS'])}"
    if proof := report.get("proof"):
        text += f"; {_proof_text(proof)}"
    if report["notSeen"]:
        text += f"; not seen: {'; '.join(report['notSeen'])}"
    return text


def _proof_text(proof: Report) -> str:
    """What ``internalStats`` says of a dispatcher that is stuck."""
    parts = [f"internalStats {about_text(proof['agoS'])} ago"]
    if proof["readPosition"] is not None:
        parts.append(f"read position {proof['readPosition']} of {proof['lastPosition'] or '?'}")
    if proof["pendingReads"] is not None:
        parts.append(f"{count_text(proof['pendingReads'], 'read')} under way")
    if proof["hasPendingRead"]:
        parts.append("the dispatcher believes that it reads")
    return ", ".join(parts)


def inferred_publishing_line(answer: Report) -> str:
    """Producers, rate and stored bytes of a topic in one line, as far as they are known."""
    side = answer["publishing"]
    parts = []
    if side["producers"] is not None:
        parts.append(f"producers on {count_text(side['producers'], 'connection')}")
    if side["messagesPerS"] is not None:
        text = f"{rate_text(side['messagesPerS'])} msg/s"
        if side["bytesPerS"] is not None:
            text += f" ({size_text(side['bytesPerS'])}/s)"
        parts.append(f"{text} published")
    if answer["storageBytes"] is not None:
        parts.append(f"{size_text(answer['storageBytes'])} stored")
    return "; ".join(parts) or "What is published is not known."


def add_not_seen(page: Page, answer: Report) -> None:
    """Add what the whole answer leaves open."""
    if not answer.get("notSeen"):
        return
    page.blank()
    page.add("Not seen:", bold=True)
    for sentence in answer["notSeen"]:
        page.add(f"{capitalized(sentence)}.", first=INDENT, rest=INDENT)

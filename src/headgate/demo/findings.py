"""The judgement of one subscription, from explain or from the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.demo.scenes import Subject


@dataclass(frozen=True, slots=True)
class Finding:
    """A judgement of one subscription."""

    subject: Subject
    backlog: int
    growth: int
    verdict: str
    confidence: float
    shares: Mapping[str, float]
    """Blame by verdict."""
    sentence: str
    state: str = ""
    """``throttled_topic, hungry``; empty in the tables."""
    confidence_level: str = ""
    """``settling``, ``low``, ``medium`` or ``high``; empty in the tables."""
    limit_level: str = ""
    """Level of the limit that is named; empty when none is, and in the tables."""
    limit_text: str = ""
    limit_source: str = ""

    @property
    def is_throttled(self) -> bool:
        """Whether a limit is to blame."""
        return self.verdict.startswith("THROTTLED_")

    @property
    def reason(self) -> str:
        """The sentence without the verdict, for a line that shows the verdict already."""
        return self.sentence.removeprefix(f"{self.verdict}: ")

    def shares_text(self) -> str:
        """``CONSUMER 97 %, BROKER 3 %``."""
        parts = sorted(((share, name) for name, share in self.shares.items()), reverse=True)
        return ", ".join(f"{name} {100 * share:.0f} %" for share, name in parts if share > 0.005)


def from_explain(cluster: str, report: Mapping[str, Any]) -> Finding:
    """One element of ``subscriptions`` in an answer of explain."""
    limit = report["limit"] or {}
    state = report["state"]
    if report["stateConsumer"]:
        state += f", {report['stateConsumer']}"
    return Finding(
        subject=Subject(cluster, report["topic"], report["subscription"]),
        backlog=report["backlogMessages"],
        growth=report["growthMessages"],
        verdict=report["verdict"],
        confidence=report["confidence"],
        shares=report["shares"],
        sentence=report["sentence"],
        state=state,
        confidence_level=report["confidenceLevel"],
        limit_level=limit.get("level", ""),
        limit_text=limit.get("text", ""),
        limit_source=limit.get("source", ""),
    )


def from_table(row: Mapping[str, Any]) -> Finding:
    """One judgement of ``headgate pipeline attribute --format json``."""
    return Finding(
        subject=Subject(row["cluster"], row["topic"], row["subscription"]),
        backlog=row["backlog"],
        growth=row["growth"],
        verdict=row["verdict"],
        confidence=row["confidence"] or 0.0,
        shares=row["shares"],
        sentence=row["sentence"],
    )

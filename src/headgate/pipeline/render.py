"""Judgements for people and programs. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TextIO

from headgate.pipeline.tables import BLAMES

_NS_PER_S: Final = 1_000_000_000


def judgement_document(row: Mapping[str, Any]) -> dict[str, Any]:
    """A judgement as JSON shows it."""
    return {
        "cluster": row["cluster"],
        "topic": topic_text(row),
        "subscription": row["subscription"],
        "incarnation": row["incarnation"],
        "verdict": row["verdict"],
        "second": row["second"],
        "bystander": row["bystander"],
        "dimension": row["dimension"],
        "confidence": _rounded(row["confidence"]),
        "completeness": _rounded(row["completeness"]),
        "growth": row["growth_messages"],
        "backlog": row["backlog_messages"],
        "residual": row["residual_messages"],
        "proven_rate_per_s": _rounded(row["proven_rate_per_s"]),
        "grows_without_limit": row["grows_without_limit"],
        "seconds": _rounded((row["to_ns"] - row["from_ns"]) / _NS_PER_S),
        "shares": {blame: _rounded(row[f"share_{blame.lower()}"]) for blame in BLAMES},
        "sentence": row["sentence"],
    }


def topic_text(row: Mapping[str, Any]) -> str:
    """The topic's full name, of a partition with its suffix."""
    partition = row["partition"]
    suffix = "" if partition is None or partition < 0 else f"-partition-{partition}"
    return f"{row['topic']}{suffix}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def worst_first(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Growing backlogs first, then by name."""
    return sorted(
        rows,
        key=lambda row: (-row["growth_messages"], row["topic"] or "", row["subscription"] or ""),
    )


def write_judgements(rows: Sequence[Mapping[str, Any]], style: str, out: TextIO) -> None:
    """Write judgements to ``out``: a JSON array (``json``) or three lines each (``table``)."""
    if style == "json":
        lines = ",\n".join(json.dumps(judgement_document(row)) for row in worst_first(rows))
        out.write(f"[{lines}]\n")
        return
    for row in worst_first(rows):
        subscription = f"{topic_text(row).removeprefix('persistent://')} / {row['subscription']}"
        out.write(
            f"{row['verdict']:<22} confidence {row['confidence']:4.2f}  "
            f"growth {row['growth_messages']:>+12,}  {subscription}\n"
            f"    {_shares(row)}\n    {row['sentence']}\n"
        )
    if not rows:
        out.write("no subscription has telemetry in this range\n")


def _shares(row: Mapping[str, Any]) -> str:
    shares = sorted(((row[f"share_{b.lower()}"], b) for b in BLAMES), reverse=True)
    return ", ".join(f"{blame} {100 * share:.0f} %" for share, blame in shares if share >= 0.005)

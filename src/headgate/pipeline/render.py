"""Judgements for people and programs. Standard library and rich only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TextIO

from rich.console import Console
from rich.table import Table

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
    """Write judgements to ``out``: a JSON array (``json``) or a table (``table``)."""
    if style == "json":
        lines = ",\n".join(json.dumps(judgement_document(row)) for row in worst_first(rows))
        out.write(f"[{lines}]\n")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("topic", "subscription", "verdict"):
        table.add_column(name, overflow="fold")
    for name in ("confidence", "growth"):
        table.add_column(name, justify="right")
    table.add_column("shares", overflow="fold")
    table.add_column("sentence", overflow="fold", ratio=1)
    for row in worst_first(rows):
        table.add_row(
            topic_text(row).removeprefix("persistent://"), row["subscription"], row["verdict"],
            f"{row['confidence']:.2f}", f"{row['growth_messages']:+,}", _shares(row),
            row["sentence"],
        )
    console = Console(file=out, highlight=False, markup=False)
    console.print(table)


def _shares(row: Mapping[str, Any]) -> str:
    shares = sorted(((row[f"share_{b.lower()}"], b) for b in BLAMES), reverse=True)
    return ", ".join(f"{blame} {100 * share:.0f} %" for share, blame in shares if share >= 0.005)

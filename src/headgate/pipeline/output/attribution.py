"""Attribution as text: judged subscriptions for a terminal, as JSON or CSV."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from textwrap import TextWrapper, wrap
from typing import Any, Final, TextIO

from headgate.base.units import NS_PER_S
from headgate.flow.account.verdict import Verdict, blamed_shares, nobody_text
from headgate.flow.sentences.limiter import SHARE_SHOWN_MIN
from headgate.pipeline.output.rows import WIDTH_MIN, write_rows
from headgate.pipeline.output.unused_subscriptions import is_unused
from headgate.pipeline.tables.attribution import BLAMES
from headgate.pipeline.time_span import instant

CSV_COLUMNS: Final = (
    "cluster", "topic", "subscription", "incarnation", "verdict", "second", "bystander",
    "dimension", "confidence", "completeness", "growth", "backlog", "residual", "evicted",
    "proven_rate_per_s", "grows_without_limit", "seconds",
    *(f"share_{blame.lower()}" for blame in BLAMES), "sentence",
)  # fmt: skip
"""Columns of judgements as CSV."""

WIDTH_MAX: Final = 120
"""Longer lines are hard to read, whatever the terminal's width."""

_INDENT: Final = "    "
_BOLD, _RED, _GREEN, _YELLOW, _MAGENTA = "1", "31", "32", "33", "35"
_COLORS: Final = {
    "NONE": _GREEN,
    "CONSUMER": _YELLOW,
    "NO_CONSUMER": _YELLOW,
    "BROKER": _MAGENTA,
}
"""Colours of verdicts; those of limiters are red."""


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
        "evidence": row["evidence"],
        "growth": row["growth_messages"],
        "backlog": row["backlog_messages"],
        "delayed": row["delayed_messages"],
        "residual": row["residual_messages"],
        "evicted": row["evicted"],
        "expired": row["expired"],
        "proven_rate_per_s": _rounded(row["proven_rate_per_s"]),
        "grows_without_limit": row["grows_without_limit"],
        "seconds": _rounded((row["to_ns"] - row["from_ns"]) / NS_PER_S),
        "shares": {blame: _rounded(row[f"share_{blame.lower()}"]) for blame in BLAMES},
        "sentence": row["sentence"],
    }


def topic_text(row: Mapping[str, Any]) -> str:
    """The topic's full name, of a partition with its suffix."""
    partition = row["partition"]
    suffix = "" if partition is None or partition < 0 else f"-partition-{partition}"
    return f"{row['topic']}{suffix}"


def topics_text(count: int) -> str:
    """``1 topic``, ``2 topics``."""
    return "1 topic" if count == 1 else f"{count:,} topics"


def subscriptions_text(count: int) -> str:
    """``1 subscription``, ``2 subscriptions``."""
    return "1 subscription" if count == 1 else f"{count:,} subscriptions"


def messages_text(count: int) -> str:
    """``1 message``, ``2 messages``."""
    return "1 message" if count == 1 else f"{count:,} messages"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def worst_first(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Growing backlogs first, those of unused subscriptions after the others; then by name."""
    return sorted(
        rows,
        key=lambda row: (
            row["growth_messages"] <= 0,
            is_unused(row),
            -row["growth_messages"],
            row["topic"] or "",
            row["subscription"] or "",
        ),
    )


def write_judgements(
    rows: Sequence[Mapping[str, Any]],
    style: str,
    out: TextIO,
    *,
    width: int = WIDTH_MAX,
    color: bool = False,
) -> None:
    """Write judgements to ``out``: a JSON array (``json``), ``csv`` or paragraphs (``table``).

    CSV has a column ``share_<blame>`` for each of the shares.

    ``width``: characters in a line of the table. Names are never broken, so that they can be
    copied. ``color`` adds no information.
    """
    if style == "json":
        lines = ",\n".join(json.dumps(judgement_document(row)) for row in worst_first(rows))
        out.write(f"[{lines}]\n")
        return
    if style == "csv":
        _write_csv(worst_first(rows), out)
        return
    if not rows:
        out.write("No subscription has telemetry in this range.\n")
        return
    wrapper = paragraph_wrapper(width)
    begin, end = min(row["from_ns"] for row in rows), max(row["to_ns"] for row in rows)
    title = f"{instant(begin)} to {instant(end)}: {subscriptions_text(len(rows))}"
    title += ", the fastest growing backlog first" * (len(rows) > 1)
    if len({is_unused(row) for row in rows if row["growth_messages"] > 0}) > 1:
        title += ", subscriptions without any consumer last"
    for line in wrap(title, wrapper.width):
        out.write(f"{bold(line, color)}\n")
    clusters = {row["cluster"] for row in rows}
    for place, row in enumerate(worst_first(rows), start=1):
        name = topic_text(row).removeprefix("persistent://")
        where = f"{row['cluster']}: " * (len(clusters) > 1)
        head = f"{where}{name}  subscription {row['subscription']}"
        out.write(f"\n{place:>2}. {bold(head, color)}\n")
        out.write("\n".join(_paragraphs(row, wrapper, color)) + "\n")


def paragraph_wrapper(width: int) -> TextWrapper:
    """A wrapper for indented paragraphs of that width, which breaks no name."""
    return TextWrapper(
        min(max(width, WIDTH_MIN), WIDTH_MAX),
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def bold(text: str, color: bool) -> str:
    """The text in bold, if ``color``."""
    return _styled(text, _BOLD, color)


def _write_csv(rows: Sequence[Mapping[str, Any]], out: TextIO) -> None:
    flat = []
    for row in rows:
        document = judgement_document(row)
        shares = document.pop("shares")
        sentence = document.pop("sentence")
        flat.append(
            document | {f"share_{b.lower()}": s for b, s in shares.items()} | {"sentence": sentence}
        )
    write_rows("csv", CSV_COLUMNS, flat, out)


def _paragraphs(row: Mapping[str, Any], wrapper: TextWrapper, color: bool) -> Iterator[str]:
    verdict = str(row["verdict"])
    yield from wrapper.wrap(_growth_text(row))
    sentence = str(row["sentence"]).removeprefix(f"{verdict}: ")
    lines = wrapper.wrap(f"{verdict} (confidence {row['confidence']:.2f}): {sentence}")
    code = _COLORS.get(verdict, _RED)
    colored = _styled(verdict, f"{_BOLD};{code}", color)
    yield lines[0].replace(verdict, colored, 1)
    yield from lines[1:]
    yield from wrapper.wrap(f"Time blamed on: {_shares_text(row)}")


def _growth_text(row: Mapping[str, Any]) -> str:
    """``backlog 1,996, grew by 1,200 in 40 s (30/s)``."""
    growth, seconds = row["growth_messages"], (row["to_ns"] - row["from_ns"]) / NS_PER_S
    text = f"backlog {row['backlog_messages']:,}"
    if growth == 0 or seconds <= 0:
        return f"{text}, as large as {seconds:,.0f} s before"
    per_s = abs(growth) / seconds
    verb = "grew" if growth > 0 else "shrank"
    rate = f"{per_s:,.0f}" if per_s >= 10 else f"{per_s:.2f}"
    return f"{text}, {verb} by {abs(growth):,} in {seconds:,.0f} s ({rate}/s)"


def _shares_text(row: Mapping[str, Any]) -> str:
    """The shares of blame as the verdict counts them, without those that it clears."""
    shares = {Verdict(blame): row[f"share_{blame.lower()}"] for blame in BLAMES}
    verdict = Verdict(row["verdict"])
    if verdict is Verdict.NONE:
        return nobody_text(shares)
    second = None if row["second"] is None else Verdict(row["second"])
    read = blamed_shares(shares, verdict, second, bystander=bool(row["bystander"]))
    order = sorted(((share, blame.value) for blame, share in read.items()), reverse=True)
    return ", ".join(
        f"{blame} {100 * share:.0f} %" for share, blame in order if share >= SHARE_SHOWN_MIN
    )


def _styled(text: str, code: str, color: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if color else text

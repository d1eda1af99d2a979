"""Which rows a request of the page asks for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.errors import InputError
from headgate.base.input_errors import InputErrors
from headgate.base.units import NS_PER_US
from headgate.pipeline.output.attribution import topic_text
from headgate.pipeline.output.rows import plain_value
from headgate.pipeline.tables.attribution import BLAMES
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.time_span import Span, iso_text, parse_time

COUNT_MAX: Final = 500
"""Most entries of one answer."""
COUNT: Final = 100
"""Entries of one answer if the request does not say."""

DAY_NS: Final = 24 * HOUR_NS
RANGE_NS: Final = DAY_NS
"""Length of the range if the request does not say, up to the end of the tables. Also the longest
range of an answer from minutes."""

_TEXT_CHARACTERS_MAX: Final = 1_024


@dataclass(frozen=True, slots=True)
class Selection:
    """A range of time, and what passes."""

    since_ns: int
    until_ns: int
    verdict: str = ""
    """A cause; empty: any."""
    tenant: str = ""
    text: str = ""
    """A part of a topic's or subscription's name, in any case."""
    count: int = COUNT

    @property
    def span(self) -> Span:
        """The range."""
        return Span(self.since_ns, self.until_ns)

    def named(self, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.Table]:
        """The rows of the tenant whose names have the text. The batches have ``topic`` and may have
        ``subscription``."""
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            if self.tenant:
                prefix = pc.starts_with(
                    pc.replace_substring_regex(rows["topic"], r"^[a-z-]+://", ""),
                    pattern=f"{self.tenant}/",
                )
                rows = rows.filter(prefix)
            if self.text:
                rows = rows.filter(self._has_text(rows))
            if rows.num_rows:
                yield rows

    def _has_text(self, rows: pa.Table) -> Any:
        found = None
        for name in ("topic", "subscription"):
            if name in rows.column_names:
                has = pc.match_substring(rows[name], pattern=self.text, ignore_case=True)
                has = pc.fill_null(has, False)
                found = has if found is None else pc.or_(found, has)
        return found

    def document(self) -> dict[str, Any]:
        """The range, as each answer has it."""
        return {"since": iso_text(self.since_ns), "until": iso_text(self.until_ns)}


def selection_of(
    query: Mapping[str, str],
    known: Span,
    now_ns: int,
    *,
    range_max_ns: int,
    count_max: int = COUNT_MAX,
) -> Selection:
    """Read the parameters ``since``, ``until``, ``verdict``, ``tenant``, ``text`` and ``count``.

    ``known`` is the range of the tables; a range that is not given is its end. Times are ISO 8601
    with an offset, or an age.

    Raises:
        InputError: a parameter is malformed, or the range is empty or longer than
            ``range_max_ns``. One error names all faults.
    """
    faults = InputErrors()
    end_ns = now_ns if known.until_ns is None else known.until_ns
    since_ns, until_ns, count = None, end_ns, min(COUNT, count_max)
    with faults.collecting():
        if query.get("until"):
            until_ns = parse_time(query["until"], now_ns, "until")
    with faults.collecting():
        if query.get("since"):
            since_ns = parse_time(query["since"], now_ns, "since")
    with faults.collecting():
        count = _count(query.get("count", ""), count, count_max)
    verdict = query.get("verdict", "")
    if verdict and verdict not in BLAMES:
        faults.add(f"verdict {verdict[:40]!r}: {', '.join(BLAMES)} is allowed")
    names = {name: query.get(name, "") for name in ("tenant", "text")}
    for name, text in names.items():
        if len(text) > _TEXT_CHARACTERS_MAX:
            faults.add(f"{name} is longer than {_TEXT_CHARACTERS_MAX} characters")
    faults.raise_any()
    if since_ns is None:
        since_ns = max(0, until_ns - min(RANGE_NS, range_max_ns))
    if since_ns >= until_ns:
        raise InputError("since does not lie before until")
    if until_ns - since_ns > range_max_ns + MINUTE_NS:
        raise InputError(f"at most {range_max_ns // HOUR_NS} h between since and until are allowed")
    return Selection(since_ns, until_ns, verdict, **names, count=count)


def _count(text: str, usual: int, most: int) -> int:
    if not text:
        return usual
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not is_number or not 1 <= int(text) <= most:
        raise InputError(f"count {text[:20]!r}: 1 to {most} is allowed")
    return int(text)


def required(query: Mapping[str, str], name: str) -> str:
    """A parameter that a request must have.

    Raises:
        InputError: it is not there.
    """
    if not query.get(name):
        raise InputError(f"the parameter {name} is missing")
    return query[name]


def topic_names(full: str) -> list[str]:
    """The names that the tables may have for a topic: its own, and without a partition's suffix."""
    base, separator, index = full.rpartition("-partition-")
    return [full, base] if separator and index.isdigit() else [full]


def is_topic(row: Mapping[str, Any], full: str) -> bool:
    """Whether a row of the tables is about the topic of this full name."""
    return topic_text(row) == full


def document(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Columns of a row as JSON has them: ``peak_minute`` becomes ``peakMinute``, an instant
    ``start_ns`` or duration ``age_ns`` is left to the caller."""
    return {camel(name): plain_value(row[name]) for name in names}


def camel(name: str) -> str:
    """``backlog_messages`` as the REST names it: ``backlogMessages``."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def instant_or_none(time_ns: int | None) -> str | None:
    """An instant as JSON has it, cut to microseconds."""
    return None if time_ns is None else iso_text(time_ns // NS_PER_US * NS_PER_US)

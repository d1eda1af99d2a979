"""Compares the messages that a log should hold with those that were found sound in its files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.ledger.format.records import segment_name, segment_of_name
from headgate.ledger.tools.findings import Cost, CostKind, Finding, Report

Place = tuple[int, int]
"""A segment, and an offset in it."""

_NOWHERE: Place = (0, 0)
_END: Place = (1 << 64, 0)


class Span(NamedTuple):
    """Successive sound entries of a topic in one segment."""

    first: int
    stop: int
    begin: Place
    end: Place


@dataclass(slots=True)
class TopicCoverage:
    """What is known of one topic of the log."""

    number: int
    first: int = 0
    """The first retained ordinal."""
    end: int = 0
    """One past the last entry that is known to have been stored."""
    spans: list[Span] = field(default_factory=list)
    damaged: dict[int, Finding] = field(default_factory=dict)
    """Damaged entries by ordinal."""
    unindexed: dict[int, Finding] = field(default_factory=dict)
    """Entries by ordinal whose index is damaged, and which reads do not find by the records."""
    accepted: list[tuple[int, int]] = field(default_factory=list)
    """Ranges of entries whose loss is known from before."""
    ledgers: dict[int, int] = field(default_factory=dict)
    """First ordinal of each ledger, by its id."""
    run_segment: int = 0
    """The last segment with a RUN record of the topic."""
    begin: int = -1
    """The ordinal of the first RUN record found; -1 without one."""
    last: Place = _NOWHERE
    """The last place with a record of the topic."""

    def found(self, ordinal: int, begin: Place, stop: int) -> None:
        """Note a sound entry."""
        self.last = begin
        self.end = max(self.end, ordinal + 1)
        end = (begin[0], stop)
        if self.spans:
            span = self.spans[-1]
            if span.stop == ordinal and span.begin[0] == begin[0]:
                self.spans[-1] = span._replace(stop=ordinal + 1, end=end)
                return
        self.spans.append(Span(ordinal, ordinal + 1, begin, end))

    def note_unindexed(self, ordinal: int, finding: Finding) -> None:
        """Note an entry whose index is damaged, and which reads do not find by the records."""
        self.end = max(self.end, ordinal + 1)
        self.unindexed[ordinal] = finding

    def continues(self, ordinal: int, segment: int) -> bool:
        """Whether an entry is the one after the last record of the topic in a segment."""
        return self.last[0] == segment and ordinal == self.end

    def message_id(self, ordinal: int) -> str:
        """``ledger:entry`` of an ordinal; empty if its ledger is unknown."""
        firsts = sorted((first, ledger) for ledger, first in self.ledgers.items())
        at = bisect_right(firsts, (ordinal, 1 << 64)) - 1
        return "" if at < 0 else f"{firsts[at][1]}:{ordinal - firsts[at][0]}"

    def lost(self, first: int, stop: int) -> Cost:
        """The cost of a range of lost entries."""
        ids = self.message_id(first), self.message_id(stop - 1)
        return Cost(CostKind.LOST, self.number, first, stop, *ids)

    def gaps(self) -> Iterator[tuple[int, int, Place, Place]]:
        """Ranges of retained entries without a sound record, with the places around them."""
        at, before = self.first, _NOWHERE
        for span in sorted(self.spans):
            if span.stop <= at:
                before = max(before, span.end)
                continue
            if span.first > at:
                yield at, min(span.first, self.end), before, span.begin
            at, before = span.stop, span.end
        if at < self.end:
            yield at, self.end, before, _END


def assign_losses(
    topic: TopicCoverage, holes: list[tuple[Place, Finding]], segments: set[int], report: Report
) -> None:
    """Add what the topic lost to the findings that explain it, or to new ones.

    ``holes`` are the unreadable places of the log in order, ``segments`` the files that exist.
    """
    for first, stop, before, after in topic.gaps():
        for low, high in _ranges(topic, first, stop):
            finding = topic.damaged.get(low) or topic.unindexed.get(low)
            if finding is None:
                finding = next((f for place, f in holes if before <= place <= after), None)
            if finding is None:
                missing = _missing(before, after, segments)
                what = "messages are missing: a segment file is gone"
                finding = report.add(segment_name(missing), 0, 0, what)
                holes.append(((missing, 0), finding))
                holes.sort(key=lambda hole: hole[0])
            _add_cost(finding, topic, low, high)
    for ordinal, finding in _superseding(topic):
        _add_cost(finding, topic, ordinal, ordinal + 1)


def _superseding(topic: TopicCoverage) -> Iterator[tuple[int, Finding]]:
    """Damaged retained entries of which rewriting left a sound copy in an earlier segment, which
    goes soon: reads take the later one."""
    spans, at = sorted(topic.spans), 0
    around: list[Span] = []
    for ordinal, finding in sorted((topic.unindexed | topic.damaged).items()):
        while at < len(spans) and spans[at].first <= ordinal:
            around.append(spans[at])
            at += 1
        around = [span for span in around if ordinal < span.stop]
        is_known = ordinal < topic.first or any(a <= ordinal < b for a, b in topic.accepted)
        last_segment = max((span.begin[0] for span in around), default=0)
        if not is_known and 0 < last_segment < (segment_of_name(finding.file) or 0):
            yield ordinal, finding


def _add_cost(finding: Finding, topic: TopicCoverage, low: int, high: int) -> None:
    """Add a range of lost entries to a finding, or to its last range if it continues that."""
    last = finding.costs[-1] if finding.costs else None
    continued = (CostKind.LOST, topic.number, low)
    if last is not None and (last.kind, last.topic, last.stop) == continued:
        finding.costs[-1] = topic.lost(last.first, high)
    else:
        finding.costs.append(topic.lost(low, high))


def _ranges(topic: TopicCoverage, first: int, stop: int) -> Iterator[tuple[int, int]]:
    """The parts of a gap that are neither accepted nor of different findings."""
    low = first
    for accepted_first, accepted_stop in [*sorted(topic.accepted), (stop, stop)]:
        high = min(max(accepted_first, low), stop)
        marks = sorted(o for o in topic.damaged.keys() | topic.unindexed if low <= o < high)
        for ordinal in marks:
            if low < ordinal:
                yield low, ordinal
            yield ordinal, ordinal + 1
            low = ordinal + 1
        if low < high:
            yield low, high
        low = max(low, accepted_stop)
        if low >= stop:
            return


def _missing(before: Place, after: Place, segments: set[int]) -> int:
    """The first segment between two places that has no file."""
    low = before[0] + 1
    return next((s for s in range(low, min(after[0], low + 10_000)) if s not in segments), low)

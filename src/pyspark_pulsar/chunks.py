"""Chunked messages that begin before the range of a task.

A producer splits a large message into chunks. Each chunk is an entry, and entries of other
producers may lie between them. A message belongs to the range with its last chunk, which is also
the entry of its message id. So every message belongs to exactly one range, in each read.

The client delivers the message only to a reader that began before its first chunk. Other readers
skip its chunks silently, like transaction markers. So a task asks the admin API for the kind of
entries that gave no message, where a chunk of such a message may be. From each last chunk among
them it searches backwards for the first chunk, and reads again from there.
"""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice

from pyspark_pulsar.ranges import DueEntries, LedgerSpan

EntryId = tuple[int, int]
"""(ledger id, entry id) of one entry."""


PORTION_ENTRIES = 256
"""Most entries in one query to the admin API, which takes one request for each."""

SAMPLE_ENTRIES = 1_024
"""How many entries are asked about where no message can begin before the range. If one in a hundred
is encrypted, thirty thousand such ranges are found out and one is not."""


ENTRIES_BETWEEN_MAX = 16_384
"""Most entries of other producers between two chunks of a message. Each costs a request. A producer
sends its chunks one after the other, so more entries lie between two chunks only if one is missing,
or seconds late in a topic with tens of thousands of entries per second."""

SEARCHED_MAX = 131_072
"""How many entries a task asks about in its searches for first chunks: some minutes."""
KNOWN_MAX = 65_536
"""About so many entries a task remembers from these searches."""
KNOWN_PER_REQUEST = 64
"""So many remembered entries count as one that is asked about."""


class NoChunk(enum.Enum):
    """The kind of an entry that is not a chunk."""

    WHOLE = "whole"
    """A complete message, or a marker, which readers do not receive."""
    GONE = "gone"
    """The topic does not hold the entry."""
    ENCRYPTED = "encrypted"
    """A message, batch or chunk that only a reader with its key receives."""
    UNREADABLE = "unreadable"
    """The admin API knows the entry and cannot show it."""
    MALFORMED = "malformed"
    """A compressed message or a batch that nobody can take apart."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One part of the chunked message ``uuid``: ``index`` counts from 0, below ``count``."""

    uuid: str
    index: int
    count: int

    @property
    def is_last(self) -> bool:
        """Whether the message ends here."""
        return self.index + 1 == self.count


EntryQuery = Callable[[list[EntryId]], Mapping[EntryId, Chunk | NoChunk]]
"""Returns the kind of each entry."""


@dataclass(frozen=True, slots=True)
class MissingRange:
    """Entries of one ledger, both ends included, that gave no message."""

    ledger_id: int
    first_entry: int
    last_entry: int

    @property
    def entries(self) -> int:
        """The number of entries."""
        return self.last_entry - self.first_entry + 1


def entry_ids(missing: Iterable[MissingRange]) -> Iterator[EntryId]:
    """The ids of the single entries, in order."""
    for one_range in missing:
        for entry_id in range(one_range.first_entry, one_range.last_entry + 1):
            yield one_range.ledger_id, entry_id


def without_trimmed(ask: EntryQuery, missing: Sequence[MissingRange]) -> list[MissingRange]:
    """``missing``, all of one ledger, without the first entries that the topic no longer holds.

    A binary search finds them: brokers trim from the begin, whole ledgers or a part of one. The
    query has lost the entries that were trimmed.
    """
    begins = list(accumulate((part.entries for part in missing), initial=0))
    low, high = 0, begins[-1]
    probe = low
    while low < high:
        part = bisect_right(begins, probe) - 1
        entry = (missing[part].ledger_id, missing[part].first_entry + probe - begins[part])
        if ask([entry])[entry] is NoChunk.GONE:
            low = probe + 1
        else:
            high = probe
        probe = (low + high) // 2
    return [
        replace(part, first_entry=part.first_entry + max(0, low - begin))
        for part, begin in zip(missing, begins, strict=False)
        if begin + part.entries > low
    ]


@dataclass(frozen=True, slots=True)
class EntryKinds:
    """The kinds of some of the entries that gave no message."""

    kinds: Mapping[EntryId, Chunk | NoChunk]
    """In the order of the entries."""
    is_sample: bool
    """Whether entries between these were not asked about."""


def kinds_of_missing(
    ask: EntryQuery, due: Sequence[DueEntries], missing: Sequence[MissingRange]
) -> Iterator[EntryKinds]:
    """The kinds of entries of a range that gave no message, with a bounded number of requests.

    Most are transaction markers, or chunks of messages that arrived. A message that began before
    the range has its next chunk within :data:`ENTRIES_BETWEEN_MAX` entries of the range's begin, or
    is unreadable; and so on from each of its chunks. Of all entries that follow,
    :data:`SAMPLE_ENTRIES` are asked about, evenly spread: whether they are encrypted or gone.
    """
    begun: set[str] = set()
    limit = ENTRIES_BETWEEN_MAX
    left = sum(part.entries for part in missing)
    rest = _numbered(due, missing)
    while portion := list(islice(rest, PORTION_ENTRIES)):
        if portion[0][0] > limit:
            break
        kinds = ask([entry for _, entry in portion])
        for number, entry in portion:
            kind = kinds[entry]
            if isinstance(kind, Chunk) and kind.index == 0:
                begun.add(kind.uuid)
            elif isinstance(kind, Chunk) and kind.uuid not in begun:
                limit = max(limit, number + ENTRIES_BETWEEN_MAX)
        left -= len(portion)
        yield EntryKinds({entry: kinds[entry] for _, entry in portion}, is_sample=False)
    step = max(1, -(-left // SAMPLE_ENTRIES))
    for entries in portions(_every(step, missing, left)):
        kinds = ask(entries)
        yield EntryKinds({entry: kinds[entry] for entry in entries}, is_sample=step > 1)


def _every(step: int, missing: Sequence[MissingRange], left: int) -> Iterator[EntryId]:
    """The first of the last ``left`` entries, and each ``step``-th one after it. Those between are
    not gone through: only the cluster says how many there are."""
    begins = list(accumulate((part.entries for part in missing), initial=0))
    for number in range(begins[-1] - left, begins[-1], step):
        part = bisect_right(begins, number) - 1
        yield missing[part].ledger_id, missing[part].first_entry + number - begins[part]


def _numbered(
    due: Sequence[DueEntries], missing: Iterable[MissingRange]
) -> Iterator[tuple[int, EntryId]]:
    """The single entries, in order, each with the number of entries before it in the range."""
    before = accumulate((part.entries for part in due), initial=0)
    offsets = {part.ledger_id: n - part.first_entry for part, n in zip(due, before, strict=False)}
    return ((offsets[entry[0]] + entry[1], entry) for entry in entry_ids(missing))


def entries_before(ledgers: Sequence[LedgerSpan], entry: EntryId) -> Iterator[EntryId]:
    """The entries before ``entry`` in ``ledgers``, which are in order; the last one first."""
    for ledger in reversed(ledgers):
        if ledger.ledger_id <= entry[0]:
            behind = entry[1] if ledger.ledger_id == entry[0] else ledger.entries
            for entry_id in reversed(range(behind)):
                yield ledger.ledger_id, entry_id


def portions(entries: Iterable[EntryId], size: int = PORTION_ENTRIES) -> Iterator[list[EntryId]]:
    """``entries`` in lists of at most ``size``."""
    rest = iter(entries)
    while portion := list(islice(rest, size)):
        yield portion


class ChunkSearch:
    """Searches of one task for first chunks, which share what they learn and a bound.

    Producers may send last chunks of messages that never began. A search for the first one of each
    would take :data:`ENTRIES_BETWEEN_MAX` requests.
    """

    def __init__(self, ask: EntryQuery, ledgers: Sequence[LedgerSpan]) -> None:
        """``ask`` returns the kinds of entries of ``ledgers``, which are in order."""
        self._ask, self._ledgers = ask, ledgers
        self._known: dict[EntryId, Chunk | NoChunk] = {}
        self._left: float = SEARCHED_MAX

    def first_chunk(self, entry: EntryId, last: Chunk) -> EntryId | None:
        """The first chunk of the message whose last chunk is ``entry``; None if it is not found.

        Each query asks for as many entries as there are chunks: without entries of other producers
        between them, one query finds all. The search ends at the first entry of the topic, at a
        missing chunk, and after :data:`ENTRIES_BETWEEN_MAX` entries that are no chunk of the
        message. After :data:`SEARCHED_MAX` entries of all searches each ends after
        :data:`PORTION_ENTRIES`.
        """
        next_index, passed, searched, is_hidden = last.index, 0, 0, False
        size = max(1, min(last.count, PORTION_ENTRIES))
        for portion in portions(entries_before(self._ledgers, entry), size):
            found = self._kinds(portion)
            searched += len(portion)
            for each in portion:
                kind = found[each]
                passed += 1
                if kind is NoChunk.GONE:
                    return None
                if kind is NoChunk.UNREADABLE:  # it may be a chunk
                    is_hidden = True
                if not isinstance(kind, Chunk) or kind.uuid != last.uuid:
                    continue
                if kind.index >= next_index:
                    continue
                if kind.index + 1 < next_index and not is_hidden:
                    return None
                if kind.index == 0:
                    return each
                next_index, passed, is_hidden = kind.index, 0, False
            if passed >= ENTRIES_BETWEEN_MAX:
                return None
            if self._left <= 0 and searched >= PORTION_ENTRIES:
                return None
        return None

    def _kinds(self, entries: list[EntryId]) -> Mapping[EntryId, Chunk | NoChunk]:
        new = [entry for entry in entries if entry not in self._known]
        self._left -= max(len(new), len(entries) / KNOWN_PER_REQUEST)
        if new:
            if len(self._known) > KNOWN_MAX:
                self._known, new = {}, entries
            self._known |= self._ask(new)
        return self._known

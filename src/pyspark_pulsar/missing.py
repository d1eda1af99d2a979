"""Due entries that did not arrive, and what became of them."""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice

from pyspark_pulsar.entries import EntryId

PORTION_ENTRIES = 256
"""Most entries in one query to the admin API, which takes one request for each."""

SAMPLE_ENTRIES = 1_024
"""How many entries are asked about, evenly spread. If one in a hundred is gone, thirty thousand
such ranges are found out and one is not."""


class Fate(enum.Enum):
    """What became of an entry that did not arrive."""

    GONE = "gone"
    """The topic no longer holds it."""
    UNSENT = "unsent"
    """Readers never get it, or the cluster does not tell whether they do."""
    PASSED_OVER = "passed over"
    """The topic holds it, and readers get it: the broker moved the reader beyond it."""


FateQuery = Callable[[list[EntryId]], Mapping[EntryId, Fate]]
"""Returns the fate of each entry."""


@dataclass(frozen=True, slots=True)
class MissingRange:
    """Entries of one ledger, both ends included, that did not arrive."""

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


def without_trimmed(ask: FateQuery, missing: Sequence[MissingRange]) -> list[MissingRange]:
    """``missing``, all of one ledger, without the first entries that the topic no longer holds.

    A binary search finds them: brokers trim from the begin, whole ledgers or a part of one. The
    query has lost the entries that were trimmed.
    """
    begins = list(accumulate((part.entries for part in missing), initial=0))
    low, high = 0, begins[-1]
    probe = low
    while low < high:
        entry = _entry_at(missing, begins, probe)
        if ask([entry])[entry] is Fate.GONE:
            low = probe + 1
        else:
            high = probe
        probe = (low + high) // 2
    return [
        replace(part, first_entry=part.first_entry + max(0, low - begin))
        for part, begin in zip(missing, begins, strict=False)
        if begin + part.entries > low
    ]


def fates_of(
    ask: FateQuery, missing: Sequence[MissingRange]
) -> tuple[list[EntryId], list[EntryId], bool]:
    """Those of some entries that are gone, those that were passed over, and whether only a sample
    was asked about, because there are more than :data:`SAMPLE_ENTRIES`."""
    begins = list(accumulate((part.entries for part in missing), initial=0))
    step = max(1, -(-begins[-1] // SAMPLE_ENTRIES))
    gone: list[EntryId] = []
    passed: list[EntryId] = []
    # Those between are not gone through: only the cluster says how many there are.
    rest = (_entry_at(missing, begins, number) for number in range(0, begins[-1], step))
    while portion := list(islice(rest, PORTION_ENTRIES)):
        answers = ask(portion)
        gone += [entry for entry in portion if answers[entry] is Fate.GONE]
        passed += [entry for entry in portion if answers[entry] is Fate.PASSED_OVER]
    return gone, passed, step > 1


def spread(missing: Sequence[MissingRange], count: int) -> list[EntryId]:
    """At most ``count`` of the entries, evenly spread from the first one on."""
    begins = list(accumulate((part.entries for part in missing), initial=0))
    step = max(1, -(-begins[-1] // count))
    return [_entry_at(missing, begins, number) for number in range(0, begins[-1], step)]


def _entry_at(missing: Sequence[MissingRange], begins: Sequence[int], number: int) -> EntryId:
    """The entry before which there are ``number`` others; ``begins`` are the first numbers."""
    part = bisect_right(begins, number) - 1
    return missing[part].ledger_id, missing[part].first_entry + number - begins[part]

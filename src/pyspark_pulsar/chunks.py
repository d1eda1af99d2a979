"""Chunked messages that begin before the range that has to give them.

A producer cuts a large message into chunks, an entry each, with other producers' entries between
them. Ranges are cut at entries, so the rule is: a message belongs to the range that holds its last
chunk, which is also the place that its id names. What has been stored decides, so every message
has exactly one range, whoever reads and however often.

The client gives the message only to a reader that began in front of its first chunk; to others the
rest of it is silence, as are transaction markers. So a task asks the admin service what those
entries are that it was due and did not get, looks backwards from each last chunk among them for
the first chunk, and reads once more from there.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from pyspark_pulsar.ranges import LedgerSpan

Place = tuple[int, int]
"""(ledger id, entry id) of one entry."""


PORTION_ENTRIES = 256
"""Most entries that the admin service is asked about in one go."""


ENTRIES_BETWEEN_MAX = 16_384
"""Entries of others that may lie between two chunks of a message. Each costs a question, and a
producer sends its chunks one after the other: so many come between only where its next one is
missing, or seconds late in a topic of tens of thousands of entries a second."""


class Other(enum.Enum):
    """An entry that is no chunk."""

    WHOLE = "whole"
    """A message of its own, or a marker that readers do not get."""
    GONE = "gone"
    """The topic does not hold it."""
    UNREADABLE = "unreadable"
    """The admin service has it and cannot show it."""


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


Ask = Callable[[list[Place]], Mapping[Place, Chunk | Other]]
"""Tells what entries are."""


@dataclass(frozen=True, slots=True)
class Hole:
    """Entries of one ledger that were due and gave no message, both ends included."""

    ledger_id: int
    first_entry: int
    last_entry: int


def places_of(holes: Iterable[Hole]) -> Iterator[Place]:
    """The single entries, in order."""
    for hole in holes:
        for entry_id in range(hole.first_entry, hole.last_entry + 1):
            yield hole.ledger_id, entry_id


def still_held(ask: Ask, hole: Hole) -> Hole:
    """``hole`` without the entries at its begin that the topic no longer holds; perhaps empty.

    Brokers trim from the begin, by whole ledgers or within one: so few questions tell of many
    entries. Who planned to read what is missing here has lost it.
    """
    low, high = hole.first_entry, hole.last_entry + 1
    probe = low
    while low < high:
        place = (hole.ledger_id, probe)
        if ask([place])[place] is Other.GONE:
            low = probe + 1
        else:
            high = probe
        probe = (low + high) // 2
    return Hole(hole.ledger_id, low, hole.last_entry)


def places_before(ledgers: Sequence[LedgerSpan], place: Place) -> Iterator[Place]:
    """The entries before ``place`` that the topic's ``ledgers``, in order, hold: backwards."""
    for ledger in reversed(ledgers):
        if ledger.ledger_id <= place[0]:
            behind = place[1] if ledger.ledger_id == place[0] else ledger.entries
            for entry_id in reversed(range(behind)):
                yield ledger.ledger_id, entry_id


def portions(places: Iterable[Place], size: int = PORTION_ENTRIES) -> Iterator[list[Place]]:
    """``places`` in lists of at most ``size``."""
    rest = iter(places)
    while portion := list(islice(rest, size)):
        yield portion


def first_chunk(
    ask: Ask,
    ledgers: Sequence[LedgerSpan],
    place: Place,
    last: Chunk,
) -> Place | None:
    """Where the message begins whose last chunk is the entry ``place``; None if it is not held.

    ``ask`` says what entries are. As many are asked about at once as there are chunks: these are
    all unless other producers' entries lie between them. The search ends with the begin of what
    the topic holds, where a chunk is missing among those that were found, and where
    :data:`ENTRIES_BETWEEN_MAX` entries before the last that was found are none of them.
    """
    met, passed, is_hidden = last.index, 0, False
    for portion in portions(places_before(ledgers, place), min(last.count, PORTION_ENTRIES)):
        found = ask(portion)
        for each in portion:
            what = found[each]
            passed += 1
            if what is Other.GONE:
                return None
            if what is Other.UNREADABLE:  # which may be a chunk
                is_hidden = True
            if not isinstance(what, Chunk) or what.uuid != last.uuid or what.index >= met:
                continue
            if what.index + 1 < met and not is_hidden:
                return None
            if what.index == 0:
                return each
            met, passed, is_hidden = what.index, 0, False
        if passed >= ENTRIES_BETWEEN_MAX:
            return None
    return None

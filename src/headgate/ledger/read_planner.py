"""Plans backlog reads from the index, for the event loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headgate.base.errors import StorageError, invariant
from headgate.ledger.errors import TopicGoneError
from headgate.ledger.format.records import ENTRY_HEAD_BYTES
from headgate.ledger.index.block_cache import BlockKey, FetchedBlock
from headgate.ledger.index.state import LogState
from headgate.ledger.index.topic_log import NumberedTopic
from headgate.ledger.reader import ReadPlan
from headgate.ledger.settings import LedgerSettings

INDEX_AHEAD: Final = 4
"""Blocks of the index are fetched for so many reads at once."""


class ReadPlanner:
    """Finds the extent of a segment that a read needs."""

    def __init__(self, state: LogState, settings: LedgerSettings) -> None:
        self._state = state
        self._settings = settings

    def locate(
        self, handle: NumberedTopic, ordinal: int, count_max: int, bytes_max: int
    ) -> ReadPlan:
        """Plan a read of entries from ``ordinal`` on, which is retained and durable.

        The plan has at least one entry and at most ``count_max``, within one extent and, beyond the
        first entry, within ``bytes_max`` of bodies. It has no sound entry beside a lost one. Add
        topic numbers to the plan's ``wanted_topics`` to read their entries in the extent too.
        """
        topic = self._state.topics[handle.number]
        invariant(topic.first <= ordinal < topic.end, "a read of a missing entry")
        segment, run_end = topic.run_of(ordinal)
        end = min(run_end, ordinal + max(count_max, 1))
        if topic.lost:
            end = topic.lost_from(ordinal, end)
        start = topic.columns(ordinal, ordinal + 1).offsets[0]
        end = topic.offset_end(ordinal, end, start + self._settings.extent_bytes)
        offsets, _, _, _, totals = topic.columns(ordinal, end)
        count = 1
        while count < len(offsets) and totals[count + 1] - totals[0] <= bytes_max:
            count += 1
        sizes = [totals[at + 1] - totals[at] for at in range(count)]
        needed = offsets[count - 1] + ENTRY_HEAD_BYTES + sizes[-1] - start
        version, data_end = self._file_of(topic.number, segment)
        size = min(max(self._settings.extent_bytes, needed), data_end - start)
        return ReadPlan(
            topic.number, segment, version, start, size, needed, ordinal, count, offsets[:count],
            sizes,
        )  # fmt: skip

    def missing_index(self, handle: NumberedTopic, ordinal: int, count_max: int) -> list[BlockKey]:
        """The blocks of the index that :meth:`locate` needs and that are not in memory. If any are,
        those of :data:`INDEX_AHEAD` times as many entries, for the reads that follow."""
        topic = self._state.topics[handle.number]
        missing = topic.missing_blocks(ordinal, ordinal + count_max)
        if not missing:
            return []
        ahead = topic.missing_blocks(ordinal, ordinal + INDEX_AHEAD * count_max)
        return ahead[: max(len(missing), self._state.blocks.blocks_max // INDEX_AHEAD)]

    def keep_index(self, fetched: Iterable[FetchedBlock]) -> StorageError | None:
        """Keep blocks that were fetched; returns why one of them could not be read, or that its
        topic is gone (:class:`TopicGoneError`).

        A block whose entries lie in another file by now, or are trimmed, is not kept.
        """
        failed: StorageError | None = None
        for each in reversed([*fetched]):  # those that are needed first are evicted last
            topic = self._state.topics.get(each.key.topic_number)
            if topic is None:
                # Else its look-ups would be repeated without end: no file has the block any more.
                failed = TopicGoneError(each.key.topic_number)
            stored = None if topic is None else topic.stored
            self._state.blocks.keep(each, stored)
            is_needed = stored is not None and stored.has(each.key)
            if each.block is None and is_needed and isinstance(each.error, StorageError):
                failed = each.error
        return failed

    def _file_of(self, number: int, segment: int) -> tuple[int, int]:
        """The version of the file with a topic's entries of a segment, and its end of records."""
        switch = self._state.switch
        if switch is not None and segment == switch.segment and number in switch.pending:
            return switch.version, switch.data_end
        info = self._state.segments[segment]
        return info.version, info.data_end

    def is_outdated(self, plan: ReadPlan) -> bool:
        """Whether the first planned entry was released since, or lies in another file now."""
        topic = self._state.topics.get(plan.topic_number)
        if topic is None or plan.first_ordinal < topic.first:
            return True
        segment, _ = topic.run_of(plan.first_ordinal)
        version, _ = self._file_of(topic.number, segment)
        return (segment, version) != (plan.segment, plan.version)

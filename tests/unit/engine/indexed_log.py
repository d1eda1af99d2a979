"""What the fake logs of tests have in common: the index of all entries is in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left

from headgate.engine.ports import IndexPart, RunningTotals, Totals
from headgate.ledger.index.columns import TopicTotals


class IndexedLog(ABC):
    """Entries of one topic in one ledger, none of them lost, whose index is never on the disk."""

    damage = ""
    trim_end = 0
    memory_first = 0

    @abstractmethod
    def messages_before(self, ordinal: int) -> int: ...

    @abstractmethod
    def bytes_before(self, ordinal: int) -> int: ...

    @abstractmethod
    def received_ms(self, ordinal: int) -> int: ...

    def is_indexed(self, ordinal: int) -> bool:
        return True

    def indexed_stop(self, first: int, stop: int) -> int:
        return stop

    def running_totals(self, first: int, stop: int) -> RunningTotals:
        ordinals = range(first, stop + 1)
        messages = [self.messages_before(ordinal) for ordinal in ordinals]
        return messages, [self.bytes_before(ordinal) for ordinal in ordinals], first, stop

    def index_of(self, ordinals: object) -> list[IndexPart]:
        return []

    def totals_near(self, ordinal: int) -> tuple[Totals, bool]:
        before = max(ordinal - 1, 0)
        return TopicTotals(
            self.messages_before(ordinal), self.bytes_before(ordinal), self.received_ms(before), 0
        ), True

    def received_latest_ms(self, ordinal: int) -> int:
        return self.received_ms(ordinal)

    def ledger_starts(self) -> list[int]:
        return [0]

    def ordinal_with_bytes_before(self, size_bytes: int, first: int, stop: int) -> int:
        return first + bisect_left(range(first, stop), size_bytes, key=self.bytes_before)

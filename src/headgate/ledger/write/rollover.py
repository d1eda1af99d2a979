"""Ledger rollover: closes the last ledger of a topic and opens the next one."""

from __future__ import annotations

from typing import Final

from headgate.ledger.index.state import LogState
from headgate.ledger.index.topic_log import NumberedTopic, TopicLog
from headgate.ledger.settings import LedgerSettings

LEDGERS_GIVEN: Final = 1 << 62
"""A topic's ``ledger_limit`` while a copy opens the same ledgers as the source."""
_RECHECK_ENTRIES = 1_000
"""Entries after which a full ledger that was too young to close is checked again."""


class LedgerRollover:
    """Closes and opens the ledgers of all topics of a log."""

    def __init__(self, settings: LedgerSettings, state: LogState) -> None:
        self._settings = settings
        self._state = state
        self._opened_or_full: dict[int, None] = {}

    def is_due(self, handle: NumberedTopic, log_ms: int) -> bool:
        """Whether to close a topic's last ledger, which must exist, for its age or size."""
        return log_ms >= self.due_ms(handle)

    def due_ms(self, handle: NumberedTopic) -> int:
        """When to close a topic's last ledger, which must exist, for its age or its present size:
        a time of the log."""
        topic, settings = self._state.topics[handle.number], self._settings
        _, first, created_ms = topic.last_ledger()
        large = topic.staged_ledger_bytes() >= settings.ledger_bytes_max
        crowded = topic.staged_end - first >= settings.ledger_entries_max
        full_ms = settings.ledger_age_ms_min if large or crowded else settings.ledger_age_ms_max
        return created_ms + min(full_ms, settings.ledger_age_ms_max)

    def take_opened_or_full(self) -> list[int]:
        """The numbers of the topics with a new ledger, or one that has all its entries, since the
        last call, each once."""
        found, self._opened_or_full = list(self._opened_or_full), {}
        return found

    def roll(self, handle: NumberedTopic, log_ms: int) -> None:
        """Close a topic's last ledger, so that it can be trimmed; an empty one stays open.

        The next entry belongs to a new ledger. This stages no record.
        """
        self._state.topics[handle.number].roll_ledger(self._state.next_ledger_id, log_ms)
        self._state.next_ledger_id += 1

    def open_if_due(self, topic: TopicLog, received_ms: int) -> bool:
        """Open the ledger that the topic's next entry needs. Returns whether it is new."""
        ordinal = topic.staged_end
        ledger_id = self._state.next_ledger_id
        if topic.ledger_limit == LEDGERS_GIVEN:
            return topic.last_ledger()[1] == ordinal
        if topic.ledger_limit >= 0:
            last_id, first, _ = topic.last_ledger()
            if ordinal == first:
                ledger_id = last_id  # rolled over and empty: its age counts from now
            elif not self.is_due(topic, received_ms):
                if ordinal >= topic.ledger_limit:
                    is_filled = ordinal - first == self._settings.ledger_entries_max - 1
                    topic.ledger_limit = ordinal + (1 if is_filled else _RECHECK_ENTRIES)
                    if is_filled:  # it may be closed from now on, whether more entries come or not
                        self._opened_or_full[topic.number] = None
                return False
        topic.open_ledger(ledger_id, ordinal, received_ms)
        topic.ledger_limit = ordinal + max(self._settings.ledger_entries_max - 1, 1)
        self._opened_or_full[topic.number] = None
        if ledger_id == self._state.next_ledger_id:
            self._state.next_ledger_id += 1
        return True

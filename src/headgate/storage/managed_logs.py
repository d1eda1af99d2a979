"""The logs of one broker, and which of them holds a topic.

The main log holds all topics except the telemetry topic, which has a separate log, so that its
retention of days pins no segments of other topics. Each log has its own group commits, reads,
maintenance and writing thread; one thread does the upkeep of all. A topic's row in the metadata
names its log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headgate.engine.topic import Topic
from headgate.ledger import CommitLog
from headgate.storage.committer import Committer
from headgate.storage.entry_reader import EntryReader
from headgate.storage.index_loader import IndexLoader
from headgate.storage.lanes import Lane
from headgate.storage.loaded_index import LoadedIndex
from headgate.storage.log_maintenance import LogMaintenance
from headgate.storage.log_rewriting import LogRewriting
from headgate.storage.paced_removal import PacedRemoval
from headgate.storage.store_binding import MAIN_LOG

TELEMETRY_LOG: Final = "telemetry-log"
"""Name of the telemetry log in topic rows, and of its folder."""

LOGS: Final = (MAIN_LOG, TELEMETRY_LOG)
"""The names of all logs, the main one first."""


@dataclass(frozen=True, slots=True)
class ManagedLog:
    """One log with the parts that commit, read and maintain it."""

    log: CommitLog
    lane: Lane
    """The thread that writes the log."""
    committer: Committer
    reader: EntryReader
    index: IndexLoader
    maintenance: LogMaintenance
    rewriting: LogRewriting
    removal: PacedRemoval


class ManagedLogs:
    """All logs of one broker, the main one first."""

    def __init__(self, main: ManagedLog, telemetry: ManagedLog | None) -> None:
        self.main = main
        self.telemetry = telemetry
        self._all = (main,) if telemetry is None else (main, telemetry)
        self._elsewhere: dict[int, ManagedLog] = {}
        """The logs of topics that are not in the main log, by topic number."""
        self.loaded_index = LoadedIndex(lambda topic: self.of(topic).index)

    def __iter__(self) -> Iterator[ManagedLog]:
        return iter(self._all)

    def by_name(self) -> dict[str, CommitLog]:
        """The logs with their names in metrics and reports."""
        names = ("main", "telemetry")
        return {name: managed.log for name, managed in zip(names, self._all, strict=False)}

    def register(self, number: int, log: str) -> ManagedLog:
        """Register a loaded topic whose row names ``log``; returns that log."""
        if log == TELEMETRY_LOG and self.telemetry is not None:
            self._elsewhere[number] = self.telemetry
        return self.numbered(number)

    def numbered(self, number: int) -> ManagedLog:
        """The log of the topic with that number."""
        return self._elsewhere.get(number, self.main)

    def of(self, topic: Topic) -> ManagedLog:
        """The log of a live topic."""
        return self._elsewhere.get(topic.log.number, self.main)

    def log_of(self, topic: Topic) -> CommitLog:
        """The log that holds a live topic."""
        return self.of(topic).log

    def run_maintenance(self) -> None:
        """Run the due maintenance of every log."""
        for managed in self._all:
            managed.maintenance.run()
            managed.rewriting.run()
            managed.removal.run()

    def stop_maintenance(self) -> None:
        """Start no more maintenance; a running job is the last one."""
        for managed in self._all:
            managed.maintenance.stop()
            managed.rewriting.stop()
            managed.removal.stop()

    def internal_errors(self) -> list[str]:
        """The maintenance jobs that fail with an internal error at present, each with the error."""
        return [
            error
            for managed in self._all
            for error in (
                *managed.maintenance.internal_errors(),
                managed.rewriting.internal_error,
                managed.removal.internal_error,
            )
            if error
        ]

    def drop_topic(self, number: int, log: str) -> None:
        """Delete a topic whose row named ``log`` from that log."""
        self.register(number, log).log.drop_topic(number)
        self._elsewhere.pop(number, None)

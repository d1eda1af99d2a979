"""The logs of one broker, and which of them holds a topic.

All topics are in the main log but the broker's own telemetry, which has one for itself, so that
what is kept of it for days pins nothing else's segments. Each log has its own group commits, reads
and upkeep, and a thread that writes it. A topic's row in the metadata says in which log it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headgate.engine.topic import Topic
from headgate.ledger import CommitLog
from headgate.storage.committer import Committer
from headgate.storage.entry_reader import EntryReader
from headgate.storage.lanes import Lane
from headgate.storage.log_maintenance import LogMaintenance

TELEMETRY_LOG: Final = "telemetry-log"
"""The telemetry's log in rows of topics; also the name of its folder."""


@dataclass(frozen=True, slots=True)
class ManagedLog:
    """One log and what works it."""

    log: CommitLog
    lane: Lane
    """Where it is written."""
    committer: Committer
    reader: EntryReader
    maintenance: LogMaintenance


class ManagedLogs:
    """Every log of one broker; the main one first."""

    def __init__(self, main: ManagedLog, telemetry: ManagedLog | None) -> None:
        self.main = main
        self.telemetry = telemetry
        self._all = (main,) if telemetry is None else (main, telemetry)
        self._elsewhere: dict[int, ManagedLog] = {}
        """The topics that are not in the main log, by number."""

    def __iter__(self) -> Iterator[ManagedLog]:
        return iter(self._all)

    def enter(self, number: int, log: str) -> ManagedLog:
        """A topic is loaded, whose row names this log; returns it."""
        if log == TELEMETRY_LOG and self.telemetry is not None:
            self._elsewhere[number] = self.telemetry
        return self.numbered(number)

    def numbered(self, number: int) -> ManagedLog:
        """The log of the topic with that number."""
        return self._elsewhere.get(number, self.main)

    def of(self, topic: Topic) -> ManagedLog:
        """The log of a live topic."""
        return self._elsewhere.get(topic.log.number, self.main)

    def run_maintenance(self) -> None:
        """Run the due maintenance of every log."""
        for managed in self._all:
            managed.maintenance.run()

    def stop_maintenance(self) -> None:
        """Start no more maintenance; a job that runs is the last one."""
        for managed in self._all:
            managed.maintenance.stop()

    def bugs(self) -> list[str]:
        """The maintenance that fails with an internal error at present, each with the error."""
        return [bug for managed in self._all for bug in managed.maintenance.bugs()]

    def drop_topic(self, number: int, log: str) -> None:
        """A topic is deleted, whose row named this log."""
        self.enter(number, log).log.drop_topic(number)
        self._elsewhere.pop(number, None)

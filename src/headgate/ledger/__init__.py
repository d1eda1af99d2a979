"""The commit log: entries, acknowledgements and cursors of all topics, durable in one stream."""

from headgate.fs.api import Space
from headgate.ledger.batch import Batch
from headgate.ledger.commit_log import CommitLog
from headgate.ledger.copying import copy_topic
from headgate.ledger.cursors import CursorState
from headgate.ledger.errors import (
    DirectoryInUseError,
    LogFailedError,
    LogFullError,
    UnknownFormatError,
    UnknownTopicsError,
)
from headgate.ledger.identity import Identity, LogFound, look_at_log
from headgate.ledger.maintenance import Job
from headgate.ledger.reader import ReadPlan, entries_of
from headgate.ledger.settings import LedgerSettings
from headgate.ledger.statistics import LogStatistics
from headgate.ledger.times_bound import TimesBound
from headgate.ledger.topic_log import LedgerInfo, TopicLog

__all__ = [
    "Batch",
    "CommitLog",
    "CursorState",
    "DirectoryInUseError",
    "Identity",
    "Job",
    "LedgerInfo",
    "LedgerSettings",
    "LogFailedError",
    "LogFound",
    "LogFullError",
    "LogStatistics",
    "ReadPlan",
    "Space",
    "TimesBound",
    "TopicLog",
    "UnknownFormatError",
    "UnknownTopicsError",
    "copy_topic",
    "entries_of",
    "look_at_log",
]

"""The commit log: entries, acknowledgements and cursors of all topics, durable in one stream.

Other packages import from here. ``commit_log`` is the interface to the event loop. Below it are,
each importing only those after it: ``recovery`` and ``space`` (starts, maintenance), ``write``
(staging, batches, the writer), ``index`` (topics, cursors, footers, checkpoints) and ``format``
(bytes on disk). ``tools`` check the files of a log that is not open. Imports ``fs`` and ``base``.
"""

from headgate.fs.api import Space
from headgate.ledger.commit_log import CommitLog
from headgate.ledger.copying import copy_topic
from headgate.ledger.errors import (
    DirectoryInUseError,
    LogFailedError,
    LogFullError,
    OlderLogError,
    TopicGoneError,
    UnknownFormatError,
    UnknownTopicsError,
)
from headgate.ledger.format.identity import Identity, LogFound, look_at_log
from headgate.ledger.index.block_cache import BlockKey, BlockMissingError, FetchedBlock
from headgate.ledger.index.cursors import CursorState
from headgate.ledger.index.receive_time_bound import ReceiveTimeBound
from headgate.ledger.index.topic_log import LedgerInfo, TopicLog
from headgate.ledger.reader import ReadPlan, entries_of
from headgate.ledger.settings import LedgerSettings
from headgate.ledger.space.maintenance import Job
from headgate.ledger.statistics import LogStatistics, SpaceUse
from headgate.ledger.write.batch import Batch

__all__ = [
    "Batch",
    "BlockKey",
    "BlockMissingError",
    "CommitLog",
    "CursorState",
    "DirectoryInUseError",
    "FetchedBlock",
    "Identity",
    "Job",
    "LedgerInfo",
    "LedgerSettings",
    "LogFailedError",
    "LogFound",
    "LogFullError",
    "LogStatistics",
    "OlderLogError",
    "ReadPlan",
    "ReceiveTimeBound",
    "Space",
    "SpaceUse",
    "TopicGoneError",
    "TopicLog",
    "UnknownFormatError",
    "UnknownTopicsError",
    "copy_topic",
    "entries_of",
    "look_at_log",
]

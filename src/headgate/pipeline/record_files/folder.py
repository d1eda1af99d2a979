"""The new files of a folder of records (``timed_folders``), and the tasks that read them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from headgate.pipeline.timed_folders import TimedFolder, timed_folders
from headgate.record.frames import FILE_SUFFIX

SOURCE_PREFIX: Final = "files:"
"""Before the folder's name in the application transaction, and in quarantined rows."""


@dataclass(frozen=True, slots=True)
class RecordFilesTask:
    """Consecutive files that one Spark task reads; sent as JSON."""

    label: str
    path: str
    times_ms: Sequence[int]
    upto_ms: Mapping[str, int]
    """By table: the last file whose rows it has. A killed run may have committed to some tables."""

    def to_json(self) -> str:
        """The task as a value of a DataFrame's column."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> RecordFilesTask:
        """The task from :meth:`to_json`."""
        return cls(**json.loads(text))


def file_name(time_ms: int) -> str:
    """The file name of the window of an instant."""
    return f"{time_ms}{FILE_SUFFIX}"


def record_folders(folder: str) -> list[TimedFolder]:
    """The clusters whose records a folder holds.

    Raises:
        InputError: it is no folder, cannot be read or holds no records, or two clusters in it have
            the same name.
    """
    return timed_folders(folder, FILE_SUFFIX, "records", "cluster")


def record_tasks(
    folder: TimedFolder, upto_ms: Mapping[str, int | None], count: int
) -> list[RecordFilesTask]:
    """The files that some table lacks, in at most ``count`` tasks; none if there is nothing new.

    ``upto_ms``: by table, the last file whose rows it has; None: of none.
    """
    known = {table: -1 if ms is None else ms for table, ms in upto_ms.items()}
    new = [ms for ms in folder.times_ms if ms > min(known.values())]
    size = max(1, -(-len(new) // max(1, count)))
    return [
        RecordFilesTask(folder.label, folder.path, new[first : first + size], known)
        for first in range(0, len(new), size)
    ]

"""Sentences about telemetry that expired before a job read it. No Spark here.

Topics keep their messages for a limited time. A job that did not run for longer continues after the
lost messages, and only the sequence numbers show that they are missing.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.pipeline.derived.coverage import batches_of, windows_of
from headgate.pipeline.kernels.sequence_gaps import LastSeen, find_gaps, newest, sentences
from headgate.pipeline.store.delta_log import TableFile
from headgate.pipeline.store.log_changes import change_since, followed
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES

_FILES_AT_ONCE: Final = 24
"""Files that are read at once in the search for the newest messages."""


class TelemetryGaps:
    """Finds gaps between the telemetry in bronze at its creation and rows that are added later."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._version = followed(root, BRONZE_SAMPLES.name).version
        self._last_seen: dict[str, LastSeen] = {}

    def new_sentences(self) -> list[str]:
        """Sentences about gaps before and among the rows that were added since the last call."""
        bronze = followed(self._root, BRONZE_SAMPLES.name)
        version = bronze.version
        change = change_since(self._root, BRONZE_SAMPLES.name, self._version, version, bronze.files)
        added, self._version = batches_of(change.files), version
        if not added:
            return []
        rows = windows_of(self._root, added)
        new = {file.path for file in added}
        before = [file for file in batches_of(bronze.files()) if file.path not in new]
        self._find_known(set(rows.column("source").to_pylist()) - set(self._last_seen), before)
        gaps, last_seen = find_gaps(self._last_seen, rows)
        self._last_seen |= last_seen
        return sentences(gaps)

    def _find_known(self, sources: set[str], files: list[TableFile]) -> None:
        """Find the newest message of each of these sources, beginning with the newest files."""
        by_hour = sorted(files, key=lambda file: file.hour, reverse=True)
        while sources and by_hour:
            # All files of an hour together: any of them may have the newest message.
            hour = by_hour[:_FILES_AT_ONCE][-1].hour
            some = [file for file in by_hour if file.hour >= hour]
            by_hour = by_hour[len(some) :]
            rows = windows_of(self._root, some)
            wanted = pc.is_in(rows.column("source"), pa.array(sorted(sources), pa.string()))
            found = newest(rows.filter(wanted))
            self._last_seen |= found
            sources = sources - set(found)

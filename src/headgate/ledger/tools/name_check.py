"""Finds segment files with wrong names, and the renames that give them their names back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headgate.fs.api import Fs
from headgate.ledger.format.records import RENAMED_SUFFIX, SEGMENT_HEADER_BYTES
from headgate.ledger.recovery.file_names import SegmentFile, segment_files
from headgate.ledger.tools.findings import Mend, Report

WRONG_NAME: Final = "under a wrong name"
"""Part of each finding about a file that has the name of another segment."""


def check_names(fs: Fs, directory: str, names: Sequence[str], report: Report) -> dict[int, str]:
    """The file of each segment; reports those with wrong names. The log is then checked as if they
    had their names, because a start refuses until they have. Raises :class:`OSError`."""
    found = sorted(
        segment_files(fs, directory, names), key=lambda file: (file.is_misnamed, file.name)
    )
    files: dict[int, str] = {}
    for file in found:
        other = files.setdefault(file.segment, file.name)
        if file.is_misnamed:
            _report(report, file, "" if other == file.name else other, names)
    return files


def _report(report: Report, file: SegmentFile, other: str, names: Sequence[str]) -> None:
    """Report a misnamed file. ``other`` is another file of its segment; empty if there is none."""
    right = file.right_name
    what = f"the file is that of segment {file.segment:016x} {WRONG_NAME}: it belongs under {right}"
    finding = report.add(file.name, 0, SEGMENT_HEADER_BYTES, what)
    finding.refuses_start = True
    if other:
        finding.what += f", and {other} is a file of that segment, too; nothing is read from it"
        finding.mends = [Mend(file.name, "move it away", None)]
        return
    way = right + RENAMED_SUFFIX
    if right not in names:
        finding.mends = [Mend(file.name, f"rename it to {right}", None, new_name=right)]
    elif way not in names:  # the file with the right name has a wrong one, too
        what = f"rename it to {right}, by way of {way}"
        finding.mends = [Mend(file.name, what, None, new_name=way)]

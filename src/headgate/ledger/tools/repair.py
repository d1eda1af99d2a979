"""Repairs a log that nobody has open, and keeps a copy of all that it changes.

Nothing is invented: a repair writes what checksums or a second copy prove, or makes the file that a
start asks for before it goes on without lost records. Lost messages stay lost, and their topics
refuse until an operator accepts that.

Each step is durable before the next: the copy, the line of the report, the change. So after a crash
at any point every changed byte has its copy, and a second repair does what is left.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headgate.fs.api import Fs
from headgate.ledger.format.directory import TEMPORARY_SUFFIX, read_file, write_file
from headgate.ledger.format.identity import Identity
from headgate.ledger.space.hole_punching import PAGE_BYTES
from headgate.ledger.tools.findings import Finding, Mend, Report
from headgate.ledger.tools.verify import verify_log

REPORT_NAME: Final = "report.json"
"""One object a line for each change."""
_ROUNDS_MAX: Final = 5
"""Files get their names back in up to two rounds, and a repaired record can make the repair of a
footer possible."""
_FOLDERS_MADE_MAX: Final = 2
"""A log's folder of copies, and the one of the whole repair around it."""


@dataclass(frozen=True, slots=True)
class Repair:
    """One change of a repair."""

    finding: Finding
    mend: Mend
    copy: str
    """The file in the folder of copies with the bytes before; empty if there were none."""


def plan_repairs(fs: Fs, directory: str, report: Report) -> list[Repair]:
    """What a repair would change next, in order. Changes nothing.

    Files with wrong names come first and alone: other changes name files, too.
    """
    names = set(fs.list_directory(directory))
    found = [
        Repair(finding, mend, "")
        for finding in report.findings
        for mend in finding.mends
        if mend.new_name
    ]
    if found:
        return found
    mends = [mend for finding in report.findings for mend in finding.mends]
    moved = {mend.file for mend in mends if mend.content is None}
    planned: set[int] = set()
    for finding in report.findings:
        for mend in finding.mends:
            if id(mend) in planned or (mend.file in moved and mend.content is not None):
                continue  # one change repairs several findings
            planned.add(id(mend))
            copy = mend.file if mend.offset is None else f"{mend.file}.offset-{mend.offset}"
            found.append(Repair(finding, mend, copy if mend.file in names else ""))
    return found


def repair_log(
    fs: Fs,
    directory: str,
    aside: str,
    topics: Mapping[int, str] | None,
    identity: Identity | None = None,
) -> tuple[list[Repair], Report]:
    """Repair a log; returns the changes, and what is damaged after them. Blocks.

    ``aside`` is the folder for copies, made if something is changed; ``topics`` and ``identity``
    as for :func:`headgate.ledger.tools.verify.verify_log`, which tells the errors.
    """
    done: list[Repair] = []
    for _ in range(_ROUNDS_MAX):
        report = verify_log(fs, directory, topics, identity=identity)
        repairs = plan_repairs(fs, directory, report)
        if not repairs:
            return done, report
        apply_repairs(fs, directory, aside, repairs)
        done += repairs
    return done, verify_log(fs, directory, topics, identity=identity)


def apply_repairs(fs: Fs, directory: str, aside: str, repairs: list[Repair]) -> None:
    """Make these changes, each after its copy and its line of the report are durable. Blocks."""
    _make_folder(fs, aside)
    for repair in repairs:
        if repair.copy:
            _copy(fs, directory, aside, repair)
        _note(fs, aside, repair)
        _apply(fs, directory, repair.mend)


def _make_folder(fs: Fs, aside: str) -> None:
    """Make the folder for copies, and the one around it, durably."""
    fs.make_directory(aside)
    above = aside
    for _ in range(_FOLDERS_MADE_MAX):
        above = above.rpartition("/")[0]
        if above:
            fs.sync_directory(above)


def _copy(fs: Fs, directory: str, aside: str, repair: Repair) -> None:
    """Keep the bytes before the change. A copy that an interrupted repair made stays."""
    if repair.copy in fs.list_directory(aside):
        return
    mend = repair.mend
    data = read_file(fs, f"{directory}/{mend.file}")
    if mend.offset is not None and mend.content is not None:
        end = len(data) if mend.to_end else mend.offset + len(mend.content)
        data = data[mend.offset : end]
    write_file(fs, aside, repair.copy, [data])


def _note(fs: Fs, aside: str, repair: Repair) -> None:
    """Add a line to the report beside the copies."""
    finding, mend = repair.finding, repair.mend
    line = {
        "file": mend.file,
        "offset": mend.offset,
        "found": finding.what,
        "done": mend.what,
        "copy": repair.copy or None,
        "lost": [
            [str(cost.kind), cost.topic, cost.first, cost.stop, cost.first_id, cost.last_id]
            for cost in finding.costs
        ],
    }
    before = b""
    if REPORT_NAME in fs.list_directory(aside):
        before = read_file(fs, f"{aside}/{REPORT_NAME}")
    write_file(fs, aside, REPORT_NAME, [before, json.dumps(line).encode(), b"\n"])


def _apply(fs: Fs, directory: str, mend: Mend) -> None:
    path = f"{directory}/{mend.file}"
    if mend.new_name:
        fs.rename(path, f"{directory}/{mend.new_name}")
        fs.sync_directory(directory)
    elif mend.content is None:
        fs.remove(path)
        fs.sync_directory(directory)
    elif mend.offset is None:
        write_file(fs, directory, mend.file, [mend.content])
    elif mend.to_end:
        _replace(fs, directory, mend.file, read_file(fs, path)[: mend.offset] + mend.content)
    else:
        file = fs.open(path, writable=True)
        try:
            file.write_at(mend.offset, [mend.content])
            file.sync_data()
        finally:
            file.close()


def _replace(fs: Fs, directory: str, name: str, data: bytes) -> None:
    """Replace a file durably and atomically. Pages of zeros stay holes, so that a segment with
    holes takes no more room than before."""
    temporary = f"{directory}/{name}{TEMPORARY_SUFFIX}"
    file = fs.create(temporary)
    try:
        file.truncate(len(data))
        for at in range(0, len(data), PAGE_BYTES):
            page = data[at : at + PAGE_BYTES]
            if page.strip(b"\0"):
                file.write_at(at, [page])
        file.sync_data()
    finally:
        file.close()
    fs.rename(temporary, f"{directory}/{name}")
    fs.sync_directory(directory)

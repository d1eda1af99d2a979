"""Reads every byte of a log's directory and reports what is damaged, and what that costs."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

from headgate.base.errors import CorruptionError
from headgate.fs.api import Fs
from headgate.ledger.errors import UnknownFormatError
from headgate.ledger.format.directory import (
    FORMAT_VERSION,
    PIECE_BYTES,
    file_size,
    read_file,
)
from headgate.ledger.format.flush_position import (
    FLUSH_POSITION_NAME,
    FlushPosition,
    read_flush_position,
    slots_of,
)
from headgate.ledger.format.identity import IDENTITY_NAME, Identity, look_at_log
from headgate.ledger.format.own_names import is_own, is_unfinished
from headgate.ledger.format.records import (
    OLD_FILE_SUFFIX,
    RENAMED_SUFFIX,
    SEGMENT_HEADER_BYTES,
    checkpoint_names,
    segment_name,
    segment_of_checkpoint,
    segment_of_name,
)
from headgate.ledger.index.checkpoint import Checkpoint, read_checkpoint
from headgate.ledger.recovery.batch_head import BatchHead, first_head, read_beginning
from headgate.ledger.tools.checked_segment import SegmentRole
from headgate.ledger.tools.findings import Cost, CostKind, Finding, Mend, Report
from headgate.ledger.tools.name_check import check_names
from headgate.ledger.tools.segment_check import LogCheck
from headgate.ledger.tools.unreadable import ReadAroundFs, report_unread
from headgate.ledger.tools.walk import CUT_BATCH

_FORMAT: Final = re.compile(r"headgate-log (\d+)\n")


def verify_log(
    fs: Fs,
    directory: str,
    topics: Mapping[int, str] | None,
    progress: Callable[[int, int], None] = lambda _done_bytes, _all_bytes: None,
    identity: Identity | None = None,
) -> Report:
    """Check a log that nobody has open. Blocks; changes nothing.

    ``topics`` are the names of the topics that exist, by number; None if they are unknown: then
    each topic in the checkpoint, or with records behind it, counts as one that exists. ``progress``
    is called after each segment with the bytes that are read, and those of all segments.
    ``identity`` is that of the log, if the metadata tells it. Bytes that the disk does not read
    (``EIO``) are damage. Raises :class:`OSError` if a file cannot be opened, and
    :class:`UnknownFormatError`.
    """
    report, reading = Report(), ReadAroundFs(fs)
    fs = reading.as_fs()
    names = fs.list_directory(directory)
    report.files = len(names)
    _check_format(fs, directory, names, report)
    found = _check_identity(fs, directory, names, identity, report)
    recorded = _check_flush_position(fs, directory, names, report)
    files = check_names(fs, directory, names, report)
    segments = sorted(files)
    sizes = {s: file_size(fs, f"{directory}/{name}") for s, name in files.items()}
    heads = {s: first_head(read_beginning(fs, directory, files[s]), s) for s in segments}
    checkpoint, is_complete = _check_checkpoints(fs, directory, names, heads, report)
    _check_other_files(names, report)
    check = LogCheck(report, checkpoint, topics, recorded, may_lack_segments=not is_complete)
    done_bytes, all_bytes = 0, sum(sizes.values())
    for at, segment in enumerate(segments):
        data = read_file(fs, f"{directory}/{files[segment]}")
        check.segment(data, _role(segments, at, heads, checkpoint), files[segment])
        done_bytes += len(data)
        progress(done_bytes, all_bytes)
    report.read_bytes += done_bytes
    _check_end(check, segments, recorded, found, report)
    check.finish(set(segments))
    replayed = {files[segment] for segment in segments if segment >= check.replay_from}
    report_unread(report, directory, reading.unread, replayed)
    _join_cut_ends(report)
    report.findings.sort(key=lambda found: (not found.is_damage, found.file, found.offset))
    return report


def _join_cut_ends(report: Report) -> None:
    """Join the finding that a batch is cut short to the one before it, which has its costs."""
    ends = {(f.file, f.offset + f.size_bytes): f for f in report.findings if f.size_bytes}
    kept: list[Finding] = []
    for finding in report.findings:
        before = ends.get((finding.file, finding.offset))
        if finding.what == CUT_BATCH and before is not None and not finding.costs:
            before.what += "; the file ends there, within a batch: it was cut short"
        else:
            kept.append(finding)
    report.findings = kept


def _role(
    segments: Sequence[int],
    at: int,
    heads: Mapping[int, BatchHead | None],
    checkpoint: Checkpoint | None,
) -> SegmentRole:
    """What a start takes from a segment, and what later files prove of it."""
    segment = segments[at]
    later = [(s, heads[s]) for s in segments[at + 1 :]]
    following = [head.previous for s, head in later if head is not None and s == segment + 1]
    return SegmentRole(
        segment,
        is_replayed=checkpoint is None or segment >= checkpoint.segment,
        has_later=any(head is not None for _, head in later),
        follows=following[0] if following else 0,
    )


def _check_format(fs: Fs, directory: str, names: Sequence[str], report: Report) -> None:
    if "format" not in names:
        _mend_format(report.add("format", 0, 0, "the file is missing"))
        return
    data = read_file(fs, f"{directory}/format")
    report.read_bytes += len(data)
    found = _FORMAT.fullmatch(data.decode("ascii", "replace"))
    if found is None:
        _mend_format(report.add("format", 0, len(data), "the line is damaged"))
    elif not 2 <= int(found[1]) <= FORMAT_VERSION:
        raise UnknownFormatError(
            f"{directory} has format headgate-log {found[1]}; this release reads versions 2 to "
            f"{FORMAT_VERSION}"
        )


def _mend_format(finding: Finding) -> None:
    finding.refuses_start = True
    line = f"headgate-log {FORMAT_VERSION}\n".encode()
    finding.mends = [Mend("format", "write the line of this release's format", line)]


def _check_identity(
    fs: Fs, directory: str, names: Sequence[str], known: Identity | None, report: Report
) -> Identity | None:
    """Check the identity; returns it if it is readable."""
    text = b"" if known is None else known.text()
    mends = [Mend(IDENTITY_NAME, "write it as the metadata tells it", text)] if text else []
    if IDENTITY_NAME not in names and mends:
        finding = report.add(IDENTITY_NAME, 0, 0, "the file is missing")
        finding.refuses_start, finding.mends = True, mends
        return None
    if IDENTITY_NAME not in names:
        what = "the file is missing: the log is not bound to its metadata yet, or the file is gone"
        report.add(IDENTITY_NAME, 0, 0, what, is_damage=False)
        return None
    data = read_file(fs, f"{directory}/{IDENTITY_NAME}")
    report.read_bytes += len(data)
    found = look_at_log(fs, directory)
    if found.identity is None:
        finding = report.add(IDENTITY_NAME, 0, len(data), "neither of its two lines is whole")
        finding.refuses_start, finding.mends = True, mends
        return None
    right = found.identity.text()
    if data != right:
        at = next((i for i, (a, b) in enumerate(zip(data, right, strict=False)) if a != b), 0)
        what = "one of its two lines is damaged; a start uses the other"
        finding = report.add(IDENTITY_NAME, at, 1, what)
        finding.mends = [Mend(IDENTITY_NAME, "write both lines from the sound one", right)]
    return found.identity


def _check_flush_position(
    fs: Fs, directory: str, names: Sequence[str], report: Report
) -> FlushPosition | None:
    if FLUSH_POSITION_NAME not in names:
        what = "the file is missing; a start finds the end of the log by its batches alone"
        report.add(FLUSH_POSITION_NAME, 0, 0, what, is_damage=False)
        return None
    data = read_file(fs, f"{directory}/{FLUSH_POSITION_NAME}")
    report.read_bytes += len(data)
    slots = slots_of(data)
    sound = next((slot for _, slot, position in slots if position is not None), None)
    for offset, slot, position in slots:
        if position is None and (offset == 0 or slot.strip(b"\0")):
            what = "a slot has a wrong checksum; a start uses the other, or the batches of the log"
            finding = report.add(FLUSH_POSITION_NAME, offset, len(slot), what)
            if sound is not None:
                what = "write the slot as the sound one"
                finding.mends = [Mend(FLUSH_POSITION_NAME, what, sound, offset)]
    return read_flush_position(fs, directory)


def _check_checkpoints(
    fs: Fs,
    directory: str,
    names: Sequence[str],
    heads: Mapping[int, BatchHead | None],
    report: Report,
) -> tuple[Checkpoint | None, bool]:
    """Check all checkpoint files; returns the one that a start uses, and whether every segment
    behind it must be there. Without the newest checkpoint, nothing tells which were deleted."""
    used: Checkpoint | None = None
    segments = sorted({s for s in map(segment_of_checkpoint, names) if s is not None})
    for segment in reversed(segments):
        sound: list[str] = []
        texts: dict[str, str] = {}
        for name in checkpoint_names(segment):
            if name not in names:
                continue
            if sound and _are_alike(fs, f"{directory}/{name}", f"{directory}/{sound[0]}"):
                sound.append(name)
                continue
            try:
                found = read_checkpoint(fs, directory, name)
            except (CorruptionError, struct.error, UnicodeDecodeError, KeyError) as error:
                texts[name] = str(error)
            else:
                sound.append(name)
                used = used or found
        is_newest = segment == segments[-1]
        _report_checkpoint(fs, directory, names, segment, texts, sound, report, is_newest=is_newest)
    first = next(iter(heads.values()), None)
    if segments and used is None:
        finding = report.findings[-1]
        if first is not None and first.previous == 0 and not first.is_rewritten:
            finding.what += "; the log has its first segment, so a start reads all from there"
        else:
            finding.costs = [Cost(CostKind.STATE)]
    if not segments and first is not None and first.previous > 0:
        what = "no checkpoint is there, and the log has had one"
        report.add("*.checkpoint", 0, 0, what).costs = [Cost(CostKind.STATE)]
    if used is not None:
        return used, used.segment == segments[-1]
    return None, not segments and (first is None or first.previous == 0)


def _are_alike(fs: Fs, path: str, other_path: str) -> bool:
    """Whether two files have the same content. A piece of each is in memory: checkpoints may have
    hundreds of megabytes, and their states as much."""
    with closing(fs.open(path)) as file, closing(fs.open(other_path)) as other:
        size = file.size()
        return size == other.size() and all(
            file.read_at(at, PIECE_BYTES) == other.read_at(at, PIECE_BYTES)
            for at in range(0, size, PIECE_BYTES)
        )


def _report_checkpoint(
    fs: Fs,
    directory: str,
    names: Sequence[str],
    segment: int,
    texts: Mapping[str, str],
    sound: Sequence[str],
    report: Report,
    *,
    is_newest: bool,
) -> None:
    first, copy = checkpoint_names(segment)
    present = [name for name in (first, copy) if name in names]
    report.read_bytes += sum(file_size(fs, f"{directory}/{name}") for name in present)
    if len(sound) == len(checkpoint_names(segment)):
        return
    other = read_file(fs, f"{directory}/{sound[0]}") if sound else None
    mend = "write it as the sound copy"
    for name, text in texts.items():
        at = 0
        data = read_file(fs, f"{directory}/{name}")
        if other is not None and len(other) == len(data):
            at = next(i for i, (a, b) in enumerate(zip(data, other, strict=True)) if a != b)
        rest = "no other copy is readable" if other is None else "a start uses the other copy"
        finding = report.add(name, at, len(data) - at, f"{text}; {rest}")
        if other is not None:
            finding.mends = [Mend(name, mend, other)]
    for name in (first, copy):
        if name in names:
            continue
        what = "the checkpoint is missing; a start uses its copy"
        if name == copy:
            what = "the checkpoint has no copy"
        # A crash may leave one file of an older checkpoint, whose files are removed one by one.
        finding = report.add(name, 0, 0, what, is_damage=name == first and is_newest)
        if other is not None:
            finding.mends = [Mend(name, mend, other)]


def _check_other_files(names: Sequence[str], report: Report) -> None:
    for name in names:
        is_known = is_own(name) or segment_of_name(name.removesuffix(RENAMED_SUFFIX)) is not None
        if is_unfinished(name):
            what = "left over from a crash; the next start removes it"
            report.add(name, 0, 0, what, is_damage=False)
        elif not is_known and not name.endswith(OLD_FILE_SUFFIX):
            report.add(name, 0, 0, "not a file of the log", is_damage=False)


def _check_end(
    check: LogCheck,
    segments: Sequence[int],
    recorded: FlushPosition | None,
    identity: Identity | None,
    report: Report,
) -> None:
    """Report that the log ended later than what is there."""
    finding = _check_last_file(check, segments, recorded, report)
    if identity is None or not identity.batch:
        return
    if finding is not None:
        what = "forget the last batch that was durable, so that a start does not ask for it"
        given_up = replace(identity, batch=0).text()
        finding.mends.append(Mend(IDENTITY_NAME, what, given_up))
        return
    batch = max(check.whole_batch, 0 if recorded is None else recorded.batch)
    if batch < identity.batch and not check.is_rebuilt:
        finding = report.add(
            IDENTITY_NAME,
            0,
            0,
            f"the log ends with batch {batch}, and had batch {identity.batch} when this file was "
            "written: an older log was put in its place, or its last records are gone. Put back "
            "the log that belongs to this file, or give up what it held: headgate accept-loss log",
        )
        finding.refuses_start = True
        check.note_hole(max(segments, default=0) + 1, 0, finding)


def _check_last_file(
    check: LogCheck, segments: Sequence[int], recorded: FlushPosition | None, report: Report
) -> Finding | None:
    """Report the file in which the log ended, if it is missing or empty."""
    if recorded is None or recorded.offset <= SEGMENT_HEADER_BYTES:
        return None
    if recorded.segment < check.replay_from:
        return None
    name = segment_name(recorded.segment)
    what = "the file is missing"
    if recorded.segment in segments:
        if recorded.segment not in check.empty:
            return None
        what = "the file is empty"
    finding = report.add(
        name, 0, 0, f"{what}, and it had records up to offset {recorded.offset} at least"
    )
    finding.refuses_start = True
    what = "move it away, so that a start takes the log for complete without that file"
    finding.mends = [Mend(FLUSH_POSITION_NAME, what, None)]
    check.note_hole(recorded.segment, SEGMENT_HEADER_BYTES, finding)
    return finding

"""Lists the records of a log, sound and damaged, in the order of its files."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headgate.base.ack_changes import AckChanges
from headgate.base.sequence_table import decode_rows
from headgate.fs.api import Fs
from headgate.ledger.format.directory import read_file
from headgate.ledger.format.records import (
    ACCEPT,
    CURSOR_ID,
    ENTRY,
    ENTRY_HEAD_BYTES,
    KIND_ACCEPT,
    KIND_ACKS,
    KIND_BATCH,
    KIND_CREATE,
    KIND_DELETE,
    KIND_ENTRY,
    KIND_PROPERTIES,
    KIND_RUN,
    KIND_SEQUENCES,
    KIND_TRIM,
    ORDINALS,
    RUN,
    SEQUENCES,
    TRIM,
    segment_name,
)
from headgate.ledger.index.cursors import decode_change_of_properties, decode_cursor
from headgate.ledger.recovery.file_names import segment_files
from headgate.ledger.tools.footer_check import check_footer
from headgate.ledger.tools.walk import UNREADABLE, Piece, Walk

Row = dict[str, object]
"""One record as names and values that JSON has."""

_KINDS: Final = {
    UNREADABLE: "unreadable",
    KIND_BATCH: "batch",
    KIND_RUN: "run",
    KIND_ENTRY: "entry",
    KIND_TRIM: "trim",
    KIND_CREATE: "createSubscription",
    KIND_DELETE: "deleteSubscription",
    KIND_ACKS: "acknowledgements",
    KIND_ACCEPT: "acceptDamage",
    KIND_SEQUENCES: "deduplication",
    KIND_PROPERTIES: "subscriptionProperties",
}


@dataclass(frozen=True, slots=True)
class DumpChoice:
    """Which records a dump lists."""

    topic: int | None = None
    """Only records of this topic number; None for all."""
    segment: int | None = None
    """Only this segment; None for all."""
    ordinal_min: int = 0
    """Only entries from this ordinal on."""
    with_bodies: bool = False
    """Entries with their bodies in base64."""


def dump_log(fs: Fs, directory: str, choice: DumpChoice) -> Iterator[Row]:
    """Each chosen record of a log that nobody has open, as a row. Blocks; changes nothing.

    Raises :class:`OSError` if a file cannot be read.
    """
    names = fs.list_directory(directory)
    files = segment_files(fs, directory, names)
    for file in sorted(files, key=lambda file: file.segment):
        if choice.segment in (None, file.segment):
            data = read_file(fs, f"{directory}/{file.name}")
            yield from _Segment(file.segment, data, choice).rows()


class _Segment:
    """The rows of one segment."""

    def __init__(self, segment: int, data: bytes, choice: DumpChoice) -> None:
        self._name = segment_name(segment)
        self._data = data
        self._choice = choice
        self._ledgers: dict[int, tuple[int, int]] = {}
        """Id and first ordinal of the present ledger of each topic."""
        footer = check_footer(data, segment, {})
        stop = len(data) if footer.data_end is None else footer.data_end
        self._walk = Walk(data, segment, stop, footer.index)

    def rows(self) -> Iterator[Row]:
        """All chosen records."""
        for piece in self._walk.pieces():
            row: Row = {
                "segment": self._name,
                "offset": piece.offset,
                "bytes": piece.end - piece.offset,
                "kind": _KINDS[piece.kind],
            }
            if piece.what:
                row["damage"] = piece.what
            row |= self._fields(piece)
            if self._is_chosen(row):
                yield row

    def _is_chosen(self, row: Row) -> bool:
        choice = self._choice
        if choice.topic is not None and row.get("topicNumber") != choice.topic:
            return False
        ordinal = row.get("ordinal")
        return not isinstance(ordinal, int) or ordinal >= choice.ordinal_min

    def _fields(self, piece: Piece) -> Row:
        if piece.head is not None:
            head = piece.head
            return {
                "batch": head.number,
                "isRewritten": head.is_rewritten,
                "batchBefore": head.previous,
                "records": head.records,
                "batchBytes": head.size_bytes,
                "nextLedgerId": head.next_ledger_id,
                "nextCursorId": head.next_cursor_id,
            }
        if piece.kind == KIND_ENTRY and piece.entry is not None:
            return self._entry(piece, *piece.entry)
        if piece.kind == KIND_RUN and piece.payload:
            return self._run(piece.payload)
        return _control(piece.kind, piece.payload) if piece.payload else {}

    def _entry(self, piece: Piece, number: int, ordinal: int) -> Row:
        row: Row = {"topicNumber": number, "ordinal": ordinal}
        ledger, first = self._ledgers.get(number, (0, ordinal))
        if ledger and ordinal >= first:
            row["messageId"] = f"{ledger}:{ordinal - first}"
        if piece.is_sound:
            messages, _, received, lag = ENTRY.unpack_from(self._data, piece.offset)[7:]
            row |= {"messages": messages, "receivedMs": received, "publishLagMs": lag}
            if self._choice.with_bodies:
                body = self._data[piece.offset + ENTRY_HEAD_BYTES : piece.end]
                row["body"] = base64.b64encode(body).decode()
        return row

    def _run(self, payload: bytes) -> Row:
        number, lag, ordinal, messages, size, received, ledger, first, opened = RUN.unpack(payload)
        self._ledgers[number] = (ledger, first)
        return {
            "topicNumber": number,
            "nextOrdinal": ordinal,
            "messagesBefore": messages,
            "bytesBefore": size,
            "receivedBeforeMs": received,
            "publishLagBeforeMs": lag,
            "ledgerId": ledger,
            "ledgerFirstOrdinal": first,
            "ledgerOpenedMs": opened,
        }


def _control(kind: int, payload: bytes) -> Row:
    """The fields of a record that is about a topic's or a cursor's state."""
    if kind == KIND_TRIM:
        number, _, first = TRIM.unpack(payload)
        return {"topicNumber": number, "firstOrdinalKept": first}
    if kind == KIND_CREATE:
        cursor = decode_cursor(payload)
        return {
            "topicNumber": cursor.topic_number,
            "cursorId": cursor.cursor_id,
            "subscription": cursor.name,
            "firstUnacknowledged": cursor.ack_set.mark_delete,
            "properties": dict(cursor.properties),
        }
    if kind == KIND_ACCEPT:
        number, count = ACCEPT.unpack_from(payload)
        rows = ORDINALS.iter_unpack(payload[ACCEPT.size :][: count * ORDINALS.size])
        return {"topicNumber": number, "lostOrdinals": [list(row) for row in rows]}
    if kind == KIND_SEQUENCES:
        number, is_on = SEQUENCES.unpack_from(payload)
        found = {row.name: row.last_id for row in decode_rows(payload[SEQUENCES.size :])}
        return {"topicNumber": number, "isOn": bool(is_on), "lastSequenceIds": found}
    if kind == KIND_PROPERTIES:
        cursor_id, properties = decode_change_of_properties(payload)
        return {"cursorId": cursor_id, "properties": properties}
    (cursor_id,) = CURSOR_ID.unpack_from(payload)
    if kind == KIND_DELETE:
        return {"cursorId": cursor_id}
    changes = AckChanges.from_bytes(payload[CURSOR_ID.size :])
    return {"cursorId": cursor_id, "isReset": changes.reset, "changesBytes": len(payload) - 8}

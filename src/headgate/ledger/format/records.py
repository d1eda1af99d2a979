"""The layout of segments and records.

All integers are little endian, all times those of the log (see headgate.base.log_time), in
milliseconds. A *segment* is a file ``%016x.log``::

    offset 0   8s magic "HGSEGMT\\0" | u32 version | u32 zero | u64 segment id
           24  u64 stamp: random bits of the start that made the file, kept secret
           32  u32 CRC32C of bytes 0..31 | zeros to offset 64
           64  batches, back to back, each starting with a BATCH record
           ..  zeros (preallocated room), or the footer once it is sealed (see footer.py)

A segment of version 4 is in a file that had been another segment before (see old_files.py). Where
its records end, it has at least 16 zeros, and behind them the bytes of that segment; the rest is as
in version 3.

Every record starts with the same 16 bytes::

    0   u32 CRC32C of everything after this field, payload included
    4   u32 payload size
    8   u8 kind | u8 version | u16 zero
    12  u32 number of the batch that it belongs to, low half

A record belongs to the batch of the last BATCH record before it; any other record is garbage. So
recovery cannot take these bytes for content:

* The rest of an earlier, failed write: it has another batch number.
* The blocks of another file, and what an old file had before: they have another segment id, and
  another stamp or a lower batch number.
* A BATCH record inside a message: its producer does not know the stamp. If a client publishes the
  bytes of a segment file, these have its stamp, but lower numbers than the batch of the message.

Batch numbers only grow, and no number is used twice. Payloads::

    BATCH    8s magic "HGBATCH\\0" | u64 number | u64 number of the batch before it in the log
             | u64 next ledger id | u64 next cursor id | u64 segment id | u64 stamp | u32 records
             | u32 bytes of the whole batch, this record included
    RUN      u32 topic | u32 publish lag (ms) of the entry before the next | u64 ordinal of the next
             entry | u64 messages before it | u64 bytes before it | i64 receive time (ms) of
             the entry before it | u64 ledger id | u64 first ordinal of that ledger
             | i64 ledger opened at (ms)
             Written before the first entry of a topic in each segment and of each ledger, so
             that a segment is readable without any other. Both times are 0 if the topic never
             had an entry.
    ENTRY    u32 topic | u32 messages | u64 ordinal | i64 received at (ms) | u32 publish lag
             (ms), from publish to receive time (see topic_log.py) | body
    TRIM     u32 topic | u32 zero | u64 first ordinal that is kept
    CREATE   a cursor: see cursors.py. A later one of the same cursor replaces its whole state
    DELETE   u64 cursor id
    ACKS     u64 cursor id | acknowledgement changes (see headgate.base.ack_changes)
    ACCEPT   u32 topic | u32 n | n * (u64 first ordinal, u64 one past the last): an operator accepts
             that these entries are lost, and whatever else the topic and its cursors may have lost
    SEQUENCES u32 topic | u8 is on | rows (headgate.base.sequence_table): deduplication of a topic
             begins with these producers, or ends. The entries behind it tell the rest, by the
             sequence ids in their metadata
    PROPERTIES u64 cursor id | u16 n | n * property (see cursors.py): they replace those of a cursor

The log writes batch n + 1 only when batch n is durable. So a damaged batch was durable once if a
sound one follows, or if it lies before the flush position (see flush_position.py). That is damage,
which affects its topics. A damaged batch behind the flush position with nothing after it is the
tail that a crash tore: recovery cuts the log at its last sound record. For this to hold, the writer
wipes the BATCH records of a batch that a full disk refused half-way, the last one first, before it
reports the refusal; if the disk refuses that as well, before it writes anything else.

A *rewritten* segment holds what was left of one or more neighbouring segments, and replaces the
last of them (see headgate.ledger.space.segment_copy). It has a footer and one batch, of which both
next ids are 0. Its number is not below those of the batches that it replaces, and the number of the
batch before it is that before the first of them. Its RUN records come before the entries of their
ledgers. Its ENTRY records are byte for byte those that were published, so they have the numbers of
their old batches. Records of other kinds are left out: a checkpoint has their effect.

A segment of version 2 is older than the flush position. Its stamp is the wall clock (ms) of its
start; everything else is the same.
"""

from __future__ import annotations

import struct
from typing import Final

import google_crc32c

SEGMENT_VERSION: Final = 3
SEGMENT_VERSION_REUSED: Final = 4
_SEGMENT_VERSIONS_READ = (2, SEGMENT_VERSION, SEGMENT_VERSION_REUSED)
RECORD_VERSION: Final = 2

KIND_BATCH: Final = 1
KIND_RUN: Final = 2
KIND_ENTRY: Final = 3
KIND_TRIM: Final = 4
KIND_CREATE: Final = 5
KIND_DELETE: Final = 6
KIND_ACKS: Final = 7
KIND_ACCEPT: Final = 8
KIND_SEQUENCES: Final = 9
KIND_PROPERTIES: Final = 10
KINDS: Final = range(KIND_RUN, KIND_PROPERTIES + 1)
"""The kinds of records in a batch after its BATCH record."""

SEGMENT_MAGIC: Final = b"HGSEGMT\0"
BATCH_MAGIC: Final = b"HGBATCH\0"

_CHECKPOINT_SUFFIXES = (".checkpoint", ".checkpoint_copy")
"""The suffixes of a checkpoint file and of its copy."""
OLD_FILE_SUFFIX: Final = ".old"
"""Behind the name of a deleted segment whose file is kept."""
RENAMED_SUFFIX: Final = ".renamed"
"""Behind the name of a segment whose file a repair is giving its name back."""

SEGMENT_HEADER_BYTES: Final = 64
STAMP_BYTES: Final = 8
_SEGMENT_HEAD = struct.Struct("<8sIIQQ")

CRC = struct.Struct("<I")
CRC_BYTES: Final = 4
PREFIX = struct.Struct("<IIBBHI")
PREFIX_BYTES: Final = PREFIX.size
CRC_END: Final = 4
"""Where the bytes begin that a record's checksum covers."""
_PREFIX_REST = struct.Struct("<IBBHI")

ENTRY = struct.Struct("<IIBBHIIIQqI")
"""The whole head of an ENTRY record: prefix and fixed payload, CRC32C included."""
ENTRY_REST = struct.Struct("<IBBHIIIQqI")
"""The same without the CRC32C field."""
ENTRY_HEAD_BYTES: Final = ENTRY.size
ENTRY_FIXED_BYTES: Final = ENTRY_HEAD_BYTES - PREFIX_BYTES

BATCH = struct.Struct("<8sQQQQQQII")
BATCH_RECORD_BYTES: Final = PREFIX_BYTES + BATCH.size
RUN = struct.Struct("<IIQQQqQQq")
RUN_RECORD_BYTES: Final = PREFIX_BYTES + RUN.size
TRIM = struct.Struct("<IIQ")
ACCEPT = struct.Struct("<II")
SEQUENCES = struct.Struct("<IB")
ORDINALS = struct.Struct("<QQ")
CURSOR_ID = struct.Struct("<Q")

U32_MASK: Final = 0xFFFFFFFF

crc32c = google_crc32c.value
crc32c_extend = google_crc32c.extend


def segment_name(segment: int) -> str:
    """The file name of a segment."""
    return f"{segment:016x}.log"


def segment_of_name(name: str) -> int | None:
    """The segment of a file name; None if it is no segment's."""
    stem, dot, suffix = name.partition(".")
    if dot != "." or suffix != "log" or len(stem) != 16:
        return None
    try:
        return int(stem, 16)
    except ValueError:
        return None


def segment_header(segment: int, stamp: int, *, is_reused: bool = False) -> bytes:
    """The first :data:`SEGMENT_HEADER_BYTES` of a segment file."""
    return _header(SEGMENT_VERSION_REUSED if is_reused else SEGMENT_VERSION, segment, stamp)


def has_bytes(data: bytes, at: int, stop: int | None = None) -> bool:
    """Whether a segment without a footer has anything from an offset on, up to ``stop``: bytes that
    are not zero, or in a file that was used before, where zeros end the records, at this offset.
    ``data`` begins with the segment's header."""
    is_reused = (
        len(data) >= SEGMENT_HEADER_BYTES
        and data.startswith(SEGMENT_MAGIC)
        and _SEGMENT_HEAD.unpack_from(data)[1] == SEGMENT_VERSION_REUSED
    )
    return bool(data[at : at + PREFIX_BYTES if is_reused else stop].strip(b"\0"))


def _header(version: int, segment: int, stamp: int) -> bytes:
    head = _SEGMENT_HEAD.pack(SEGMENT_MAGIC, version, 0, segment, stamp)
    return (head + CRC.pack(crc32c(head))).ljust(SEGMENT_HEADER_BYTES, b"\0")


def segment_stamp(data: bytes, segment: int) -> int | None:
    """The stamp in the header of a segment; None if the header is damaged or of another segment."""
    if len(data) < SEGMENT_HEADER_BYTES:
        return None
    _, version, _, _, stamp = _SEGMENT_HEAD.unpack_from(data)
    if version not in _SEGMENT_VERSIONS_READ:
        return None
    return stamp if data.startswith(_header(version, segment, stamp)) else None


def record(kind: int, payload: bytes, batch: int) -> bytes:
    """A record of any kind but ENTRY: staging packs those itself."""
    rest = _PREFIX_REST.pack(len(payload), kind, RECORD_VERSION, 0, batch & U32_MASK) + payload
    return CRC.pack(crc32c(rest)) + rest


def checkpoint_names(segment: int) -> tuple[str, ...]:
    """The file names of a checkpoint and its copy; replay starts at ``segment``."""
    return tuple(f"{segment:016x}{suffix}" for suffix in _CHECKPOINT_SUFFIXES)


def segment_of_checkpoint(name: str) -> int | None:
    """The segment in the file name of a checkpoint or its copy; None if it is another file."""
    stem, _, suffix = name.partition(".")
    if f".{suffix}" not in _CHECKPOINT_SUFFIXES or len(stem) != 16:
        return None
    try:
        return int(stem, 16)
    except ValueError:
        return None

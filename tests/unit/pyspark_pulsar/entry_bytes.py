"""Entries as producers send them: right ones by the broker's library, and wrong ones by hand."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from headgate.wire.entry import crc32c
from headgate.wire.messages import KeyValue, MessageMetadata, SingleMessageMetadata
from headgate.wire.varint import varint

PUBLISHED_MS = 1_764_470_000_000
BYTES_MAX = 1 << 20
CODECS = {1: "lz4_raw", 3: "zstd", 4: "snappy"}
ZLIB = 2


def sized(data: bytes) -> bytes:
    """The data behind its size of four bytes."""
    return len(data).to_bytes(4, "big") + data


def field(number: int, value: int | bytes) -> bytes:
    """A field of protobuf, with any bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def metadata(**fields: Any) -> bytes:
    """``MessageMetadata`` with the required fields and these."""
    usual = {"producer_name": "p", "sequence_id": 7, "publish_time": PUBLISHED_MS}
    return MessageMetadata(**(usual | fields)).SerializeToString()


def pairs(*found: tuple[str, str]) -> list[KeyValue]:
    """Properties."""
    return [KeyValue(key=name, value=value) for name, value in found]


def body(metadata_bytes: bytes, payload: bytes, *, checksum: bool = True) -> bytes:
    """An entry of these bytes, with a right checksum or none."""
    covered = sized(metadata_bytes) + payload
    return (b"\x0e\x01" + crc32c(covered).to_bytes(4, "big") if checksum else b"") + covered


def with_broker_metadata(entry: bytes) -> bytes:
    """The entry behind what a broker adds."""
    return b"\x0e\x02" + sized(field(1, 5)) + entry


def part(payload: bytes, more: bytes = b"", **fields: Any) -> bytes:
    """A message of a batch."""
    found = SingleMessageMetadata(**({"payload_size": len(payload)} | fields))
    return sized(found.SerializeToString() + more) + payload


def batch(parts: Iterable[bytes], claimed: int | None = None, **fields: Any) -> bytes:
    """An entry of these messages, which may claim another number of them."""
    parts = list(parts)
    count = len(parts) if claimed is None else claimed
    return body(metadata(num_messages_in_batch=count, **fields), b"".join(parts))


def compressed(payload: bytes, codec: int) -> bytes:
    """The payload by a ``CompressionType``."""
    if codec == ZLIB:
        return zlib.compress(payload)
    return bytes(pa.compress(payload, codec=CODECS[codec], asbytes=True))

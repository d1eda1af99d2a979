"""The content of a batch, for clients: a broker stores and delivers batches unopened.

The payload of an entry whose metadata has ``num_messages_in_batch``, after decompression::

    repeated:  u32 metadata_size | SingleMessageMetadata | payload_size bytes

Callers decompress and decrypt payloads first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from google.protobuf.message import DecodeError

from headgate.wire.entry import LENGTH
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.messages import SingleMessageMetadata


def pack_batch(payloads: Iterable[bytes]) -> bytes:
    """The payload of a batch of messages without keys and properties."""
    parts: list[bytes] = []
    for payload in payloads:
        metadata = SingleMessageMetadata(payload_size=len(payload)).SerializeToString()
        parts += (LENGTH.pack(len(metadata)), metadata, payload)
    return b"".join(parts)


def unpack_batch(payload: bytes, count: int) -> Iterator[tuple[SingleMessageMetadata, bytes]]:
    """The ``count`` messages of a batch, in order.

    Raises :class:`RemoteProtocolError` if the payload ends early or a size is wrong.
    """
    offset = 0
    for index in range(count):
        try:
            metadata_start = offset + LENGTH.size
            metadata_end = metadata_start + LENGTH.unpack_from(payload, offset)[0]
            metadata = SingleMessageMetadata.FromString(payload[metadata_start:metadata_end])
        except (struct.error, DecodeError) as error:
            raise RemoteProtocolError(f"message {index} of the batch is damaged") from error
        offset = metadata_end + metadata.payload_size
        if metadata.payload_size < 0 or offset > len(payload):
            raise RemoteProtocolError(f"message {index} of the batch is longer than the batch")
        yield metadata, payload[metadata_end:offset]

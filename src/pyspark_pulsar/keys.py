"""Keys as the producer gave them: the client hides whether one is text or bytes.

Java's ``keyBytes`` and separated ``KeyValue`` travel as base64 text beside a flag that
pulsar-client does not show, and an empty key looks like none. So a key that is canonical base64,
and the absence of one, are ambiguous. What they are is asked of the admin service, which shows the
flags: once for each producer and task, since an application gives its keys in one way. Keys that
are no base64 are text whoever sent them, and cost no question.

Pure but for :class:`Ask`.
"""

from __future__ import annotations

import base64
import binascii
import logging
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from pyspark_pulsar.columns import Message, MessageId
from pyspark_pulsar.errors import AdminError
from pyspark_pulsar.offsets import varint

log = logging.getLogger("pyspark_pulsar")

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}
_SIZE_BYTES = 4
_BATCH_BYTES_MAX = 128 * 1024 * 1024
"""What a producer says its batch is before compression may be anything up to 4 GiB."""

_KEY, _PAYLOAD_SIZE, _IS_ENCODED, _IS_NULL = 2, 3, 6, 10
"""Fields of SingleMessageMetadata."""


class MessagePlace(NamedTuple):
    """One message; ``batch_index`` is -1 outside of a batch."""

    ledger_id: int
    entry_id: int
    batch_index: int


class KeyKind(NamedTuple):
    """What stands behind an ambiguous key of a producer."""

    is_there: bool
    """Whether an empty key is one, or stands for none."""
    is_encoded: bool
    """Whether base64 stands for bytes, or is the key itself."""


Ask = Callable[[Collection[MessagePlace]], Mapping[MessagePlace, KeyKind | None]]
"""Tells the kind of some messages' keys; None where it cannot be told. Raises AdminError."""

TEXT = KeyKind(is_there=False, is_encoded=False)
"""What is taken for true where nobody can tell."""


class Keys:
    """The cells of ``__key`` of one task."""

    def __init__(self, topic: str, ask: Ask) -> None:
        self._topic = topic
        self._ask = ask
        self._kinds: dict[tuple[str, bool], KeyKind] = {}
        self._warned = False

    def cells(self, messages: Sequence[Message], ids: Sequence[MessageId]) -> list[bytes | None]:
        """The keys of messages, whose ids are ``ids``: None where there is none."""
        texts = [message.partition_key() for message in messages]
        unclear = [index for index, text in enumerate(texts) if not text or is_base64(text)]
        if not unclear:
            return [text.encode() for text in texts]
        producers = [(messages[index].producer_name(), bool(texts[index])) for index in unclear]
        firsts: dict[tuple[str, bool], MessageId] = {}
        for index, producer in zip(unclear, producers, strict=True):
            if producer not in self._kinds:
                firsts.setdefault(producer, ids[index])
        if firsts:
            self._learn(firsts)
        cells: list[bytes | None] = [text.encode() for text in texts]
        for index, producer in zip(unclear, producers, strict=True):
            kind = self._kinds[producer]
            if not texts[index]:
                cells[index] = b"" if kind.is_there else None
            elif kind.is_encoded:
                cells[index] = base64.b64decode(texts[index])
        return cells

    def _learn(self, firsts: Mapping[tuple[str, bool], MessageId]) -> None:
        """Ask about the first ambiguous key of each producer that is not known yet."""
        places = {
            producer: MessagePlace(at.ledger_id(), at.entry_id(), at.batch_index())
            for producer, at in firsts.items()
        }
        try:
            found = self._ask(set(places.values()))
            trouble = "the admin service does not show them"
        except AdminError as error:
            found, trouble = {}, str(error)
        for producer, place in places.items():
            kind = found.get(place)
            self._kinds[producer] = TEXT if kind is None else kind
            if kind is None and not self._warned:
                self._warned = True
                log.warning(
                    "%s: whether keys of producer %s are text or bytes cannot be told (%s): "
                    "base64 is left as it is, and an empty key is null",
                    self._topic,
                    producer[0],
                    trouble,
                )


def is_base64(text: str) -> bool:
    """Whether a key is what base64 makes of some bytes."""
    if len(text) % 4:
        return False
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode() == text
    except (binascii.Error, ValueError):
        return False


def kind_of_answer(headers: Mapping[str, str], body: bytes, batch_index: int) -> KeyKind | None:
    """The kind of a message's key from what the admin API says of its entry; None if it says
    nothing.

    ``headers`` have names in lower case. An entry that is no batch has its key in them, a batch has
    its messages' keys in its ``body``.
    """
    if "x-pulsar-num-batch-message" not in headers:
        is_null = headers.get("x-pulsar-null-partition-key") == "true"
        return KeyKind(
            is_there="x-pulsar-partition-key" in headers and not is_null,
            is_encoded=headers.get("x-pulsar-partition-key-b64-encoded") == "true",
        )
    try:
        payload = _uncompressed(headers, body)
        for index, fields in enumerate(_batch(payload)):
            if index == batch_index:
                is_there = _KEY in fields and not fields.get(_IS_NULL)
                return KeyKind(is_there=is_there, is_encoded=bool(fields.get(_IS_ENCODED)))
    except (ValueError, OSError, zlib.error):  # Arrow's errors are of the first two
        return None
    return None


def _uncompressed(headers: Mapping[str, str], body: bytes) -> bytes:
    """The batch; Apache Pulsar has taken it out of its compression already.

    Raises :class:`ValueError` or the codec's own error if it is not what ``headers`` say.
    """
    codec = headers.get("x-pulsar-compression", "NONE")
    size = int(headers.get("x-pulsar-uncompressed-size", 0))
    if codec == "NONE" or len(body) == size:
        return body
    if size > _BATCH_BYTES_MAX:
        raise ValueError(f"a batch of {size} bytes")
    if codec == "ZLIB":
        return zlib.decompressobj().decompress(body, size)
    names = {"LZ4": "lz4_raw", "ZSTD": "zstd", "SNAPPY": "snappy"}
    if codec not in names:
        raise ValueError(f"unknown compression {codec}")
    return bytes(pa.decompress(body, size, codec=names[codec], asbytes=True))


def _batch(payload: bytes) -> Iterator[dict[int, int | bytes]]:
    """The fields of each message's metadata. Raises :class:`ValueError` if cut off."""
    at = 0
    while at < len(payload):
        start = at + _SIZE_BYTES
        end = start + int.from_bytes(payload[at:start])
        fields = _fields(payload[start:end])
        size = fields.get(_PAYLOAD_SIZE, 0)
        if end > len(payload) or not isinstance(size, int):
            raise ValueError("the batch is cut off")
        yield fields
        at = end + size


def _fields(data: bytes) -> dict[int, int | bytes]:
    """A protobuf message's fields, the last of each number."""
    fields: dict[int, int | bytes] = {}
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            fields[number], at = varint(data, at)
        elif wire_type == _BYTES:
            size, at = varint(data, at)
            fields[number] = data[at : at + size]
            at += size
        elif wire_type in _FIXED_BYTES:
            at += _FIXED_BYTES[wire_type]
        else:
            raise ValueError(f"wire type {wire_type}")
    return fields

"""Message keys in the form in which the producer set them.

Java's ``keyBytes`` and the keys of a separated ``KeyValue`` are sent as base64 text with a flag
that pulsar-client does not expose. An empty key looks like no key. So a key of canonical base64 and
an empty key are ambiguous. The admin API shows the flags. A task asks it once for each producer,
because an application sets all its keys in the same way. Any other key is text and needs no
request.

Pure but for :class:`KeyKindQuery`.
"""

from __future__ import annotations

import base64
import binascii
import logging
import threading
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import pyarrow as pa

from pyspark_pulsar.columns import Message, MessageId
from pyspark_pulsar.errors import AdminError, printable
from pyspark_pulsar.offsets import varint

log = logging.getLogger("pyspark_pulsar")

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}
_SIZE_BYTES = 4
_TAG_BYTES_MAX = 5
_BATCH_BYTES_MAX = 128 * 1024 * 1024
"""Largest batch that is decompressed. A producer may declare any size up to 4 GiB."""

_FIELDS_MAX = 1_000_000
"""Most messages of a batch and fields of their metadata, together, that are gone through: some
seconds. A batch of the usual 1,000 messages has some thousands."""
_UNPACKING = threading.Lock()
"""Held while a batch is decompressed. Many threads ask about entries, and one batch is large."""

_PROPERTIES, _KEY, _PAYLOAD_SIZE, _IS_ENCODED, _IS_NULL = 1, 2, 3, 6, 10
"""Fields of SingleMessageMetadata. A property has fields of texts: 1 and 2."""


class MessageRef(NamedTuple):
    """One message; ``batch_index`` is -1 outside of a batch."""

    ledger_id: int
    entry_id: int
    batch_index: int


class KeyKind(NamedTuple):
    """The meaning of an ambiguous key."""

    is_there: bool
    """Whether an empty text is an empty key; otherwise there is no key."""
    is_encoded: bool
    """Whether base64 text encodes a key of bytes; otherwise the text is the key."""


KeyKindQuery = Callable[[Collection[MessageRef]], Mapping[MessageRef, KeyKind | None]]
"""Returns the kind of each message's key; None if unknown. Raises AdminError."""

_NO_TEXT = "\N{REPLACEMENT CHARACTER}"
"""Stands for a key that is no text. It is no base64, so nobody is asked about it."""

TEXT = KeyKind(is_there=False, is_encoded=False)
"""The kind of a key if the admin API does not know it."""


class KeyDecoder:
    """Decodes the keys of one task."""

    def __init__(self, topic: str, query: KeyKindQuery) -> None:
        self._topic = topic
        self._query = query
        self._kinds: dict[tuple[str, bool], KeyKind] = {}
        self._warned = False

    def cells(self, messages: Sequence[Message], ids: Sequence[MessageId]) -> list[bytes | None]:
        """The keys of ``messages``, which have these ``ids``; None for a message without one."""
        texts, raw = _texts(messages)
        cells: list[bytes | None] = [text.encode() for text in texts]
        for index, key in raw.items():
            cells[index] = key
        ambiguous = [index for index, text in enumerate(texts) if not text or is_base64(text)]
        if not ambiguous:
            return cells
        producers = [(_producer(messages[index]), bool(texts[index])) for index in ambiguous]
        firsts: dict[tuple[str, bool], MessageId] = {}
        for index, producer in zip(ambiguous, producers, strict=True):
            if producer not in self._kinds:
                firsts.setdefault(producer, ids[index])
        if firsts:
            self._learn(firsts)
        for index, producer in zip(ambiguous, producers, strict=True):
            kind = self._kinds[producer]
            if not texts[index]:
                cells[index] = b"" if kind.is_there else None
            elif kind.is_encoded:
                cells[index] = base64.b64decode(texts[index])
        return cells

    def _learn(self, firsts: Mapping[tuple[str, bool], MessageId]) -> None:
        """Stores the kind of each new producer's keys, found by its first ambiguous key."""
        refs = {
            producer: MessageRef(at.ledger_id(), at.entry_id(), at.batch_index())
            for producer, at in firsts.items()
        }
        try:
            found = self._query(set(refs.values()))
            problem = "the admin API does not show them"
        except AdminError as error:
            found, problem = {}, str(error)
        for producer, ref in refs.items():
            kind = found.get(ref)
            self._kinds[producer] = TEXT if kind is None else kind
            if kind is None and not self._warned:
                self._warned = True
                log.warning(
                    "%s: it is unknown whether keys of producer %s are text or bytes (%s): "
                    "__key keeps base64 as text and has null for an empty key",
                    self._topic,
                    printable(producer[0]),
                    problem,
                )


def _texts(messages: Sequence[Message]) -> tuple[list[str], dict[int, bytes]]:
    """The keys as the client gives them, and by index those that are no UTF-8, which a client in
    C++ may send. The client fails on each of these; its error has the bytes."""
    try:
        return [message.partition_key() for message in messages], {}
    except UnicodeDecodeError:
        pass
    texts, raw = [], {}
    for index, message in enumerate(messages):
        try:
            texts.append(message.partition_key())
        except UnicodeDecodeError as error:
            texts.append(_NO_TEXT)
            raw[index] = error.object
    return texts, raw


def _producer(message: Message) -> str:
    try:
        return message.producer_name()
    except UnicodeDecodeError as error:
        return error.object.decode(errors="replace")


def is_base64(text: str) -> bool:
    """Whether a key is canonical base64."""
    if len(text) % 4:
        return False
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode() == text
    except (binascii.Error, ValueError):
        return False


def key_kind_of(headers: Mapping[str, str], body: bytes, batch_index: int) -> KeyKind | None:
    """The kind of a message's key by the admin API's response about its entry; None if unknown.

    ``headers`` have names in lower case. They describe the key of an entry that is no batch; the
    ``body`` of a batch has the keys of its messages.
    """
    if "x-pulsar-num-batch-message" not in headers:
        is_null = headers.get("x-pulsar-null-partition-key") == "true"
        return KeyKind(
            is_there="x-pulsar-partition-key" in headers and not is_null,
            is_encoded=headers.get("x-pulsar-partition-key-b64-encoded") == "true",
        )
    try:
        with _UNPACKING:
            batch = _batch(_uncompressed(headers, body))
            fields = next(islice(batch, batch_index, None), None)
        if fields is not None:
            is_there = _KEY in fields and not fields.get(_IS_NULL)
            return KeyKind(is_there=is_there, is_encoded=bool(fields.get(_IS_ENCODED)))
    except (ValueError, OSError, zlib.error):  # Arrow's errors are subclasses of the first two
        return None
    return None


def is_malformed(headers: Mapping[str, str], body: bytes) -> bool:
    """Whether an entry of one or more whole messages cannot be taken apart, by the admin API's
    response about it: it cannot be decompressed, or is a batch and has not the messages that it
    claims."""
    try:
        with _UNPACKING:
            batch = _batch(_uncompressed(headers, body))
            claimed = headers.get("x-pulsar-num-batch-message")
            if claimed is None:
                return False
            return sum(1 for _ in islice(batch, int(claimed) + 1)) != int(claimed)
    except (ValueError, OSError, zlib.error):  # Arrow's errors are subclasses of the first two
        return True


def _uncompressed(headers: Mapping[str, str], body: bytes) -> bytes:
    """The decompressed batch; Apache Pulsar decompresses it already.

    Raises :class:`ValueError` or the codec's error if ``body`` does not match ``headers``.
    """
    codec = headers.get("x-pulsar-compression", "NONE")
    size = int(headers.get("x-pulsar-uncompressed-size", 0))
    if codec == "NONE" or len(body) == size:
        return body
    if not 0 <= size <= _BATCH_BYTES_MAX:
        raise ValueError(f"a batch of {size} bytes")
    if codec == "ZLIB":
        unpacking = zlib.decompressobj()
        # A bound of 0 would be none.
        payload = unpacking.decompress(body, size + 1)
        if len(payload) != size or not unpacking.eof:
            raise ValueError(f"not a batch of {size} bytes")
        return payload
    names = {"LZ4": "lz4_raw", "ZSTD": "zstd", "SNAPPY": "snappy"}
    if codec not in names:
        raise ValueError(f"unknown compression {codec}")
    payload = bytes(pa.decompress(body, size, codec=names[codec], asbytes=True))
    if size and _fits(body, size - 1, names[codec]):  # Arrow would leave the rest as it was
        raise ValueError(f"not a batch of {size} bytes")
    return payload


def _fits(body: bytes, size: int, codec: str) -> bool:
    """Whether ``body`` has at most ``size`` bytes when it is decompressed."""
    try:
        pa.decompress(body, size, codec=codec)
    except (OSError, ValueError):
        return False
    return True


def _batch(payload: bytes) -> Iterator[dict[int, int | bytes]]:
    """The metadata fields of each message.

    Raises :class:`ValueError` if the batch is truncated, or has more than :data:`_FIELDS_MAX`.
    """
    at, left = 0, _FIELDS_MAX
    while at < len(payload):
        start = at + _SIZE_BYTES
        end = start + int.from_bytes(payload[at:start])
        fields, left = _fields(payload[start:end], left - 1)
        if left < 0:
            raise ValueError(f"a batch with more than {_FIELDS_MAX:,} messages and fields")
        size = fields.get(_PAYLOAD_SIZE, 0)
        if end > len(payload) or not isinstance(size, int):
            raise ValueError("the batch is truncated")
        yield fields
        at = end + size
    if at > len(payload):
        raise ValueError("the batch is truncated")


def _fields(
    data: bytes, left: int, *, is_property: bool = False
) -> tuple[dict[int, int | bytes], int]:
    """The fields of a protobuf message, the last one of each number; and what is left of the
    number of fields that it may have, below 0 if it has more.

    Raises :class:`ValueError` for what is no message. The client's library stops there, and the
    client then goes by the fields before: they must not be others than those that are found here.
    """
    fields: dict[int, int | bytes] = {}
    at = 0
    while at < len(data) and left >= 0:
        left -= 1
        begin = at
        tag, at = varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        is_size_again = number == _PAYLOAD_SIZE and number in fields
        if not number or tag >> 32 or at - begin > _TAG_BYTES_MAX or is_size_again:
            raise ValueError("no field of a message")
        if wire_type == _VARINT:
            fields[number], at = varint(data, at)
        elif wire_type == _BYTES:
            size, at = varint(data, at)
            fields[number] = value = data[at : at + size]
            at += size
            if number == _PROPERTIES and not is_property:
                _, left = _fields(value, left, is_property=True)
        elif wire_type in _FIXED_BYTES:
            at += _FIXED_BYTES[wire_type]
        else:
            raise ValueError(f"wire type {wire_type}")
    if at > len(data):
        raise ValueError("a truncated field")
    return fields, left

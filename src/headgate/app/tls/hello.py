"""Reads a connection's first bytes: whether its client speaks TLS, for which host, and how."""

from __future__ import annotations

from typing import Final, NamedTuple

HEADER_BYTES: Final = 5
RECORD_BYTES_MAX: Final = 1 << 14
"""The longest record without encryption (RFC 8446, 5.1)."""

HELLO_BYTES_MAX: Final = HEADER_BYTES + RECORD_BYTES_MAX
"""Most bytes that the broker keeps of a connection before its handshake begins."""

_HANDSHAKE: Final = 22
_CLIENT_HELLO: Final = 1
_MAJOR_VERSION: Final = 3
_HTTP: Final = (b"GET ", b"PUT ", b"POST", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"PRI ")
_FIELD_BYTES: Final = 4
_HELLO_HEAD_BYTES: Final = 2 + 32
"""The version and the random bytes of a ClientHello."""
_SERVER_NAME: Final = 0
_HOST_NAME: Final = 0
_GROUPS: Final = 10
_VERSIONS: Final = 43
_KEYS: Final = 51
_TLS_1_3: Final = 0x0304
EXTENSIONS_MAX: Final = 100
OFFERS_MAX: Final = 64
"""Extensions of a hello, and offers in one, that are looked at: a client has a few dozen. Thousands
fit into a record, and take milliseconds."""
_CONNECT: Final = b"\x08\x02"
"""A CONNECT of the binary protocol: field 1 of BaseCommand with the type 2."""


HARMLESS_BYTES: Final = 128
"""What follows a ClientHello of a client without a certificate, at most 110 bytes in TLS 1.3. The
certificate that takes longest to decode takes 0.5 ms, if it is so short."""

HARMLESS_BYTES_OF_TLS_1_2: Final = 256
"""The same in TLS 1.2 behind a message that there is no certificate: keys of P-521 fit."""

_NO_CERTIFICATE: Final = b"\x0b\0\0\x03\0\0\0"
"""The message of TLS 1.2 with an empty list. TLS 1.3 encrypts its own."""


class NotTlsError(Exception):
    """The bytes begin no handshake; the text says what they may be."""


class NotTlsButHttpError(NotTlsError):
    """They begin a request of HTTP, whose client understands an answer without TLS."""


def hello_bytes(data: bytes | bytearray | memoryview) -> int | None:
    """The length of the first record, whose beginning is ``data``; None until that is known.

    Raises:
        NotTlsError: it is no ClientHello.
    """
    beginning = bytes(data[: 2 * _FIELD_BYTES + len(_CONNECT)])
    if not beginning:
        return None
    if beginning[0] != _HANDSHAKE or (len(beginning) > 1 and beginning[1] != _MAJOR_VERSION):
        _refuse(beginning)
        return None
    if len(beginning) <= HEADER_BYTES:
        return None
    size = int.from_bytes(beginning[3:HEADER_BYTES])
    if not 0 < size <= RECORD_BYTES_MAX or beginning[HEADER_BYTES] != _CLIENT_HELLO:
        raise NotTlsError("bytes that are no TLS handshake")
    if len(beginning) >= HEADER_BYTES + _FIELD_BYTES:
        message_bytes = int.from_bytes(beginning[HEADER_BYTES + 1 : HEADER_BYTES + _FIELD_BYTES])
        if _FIELD_BYTES + message_bytes < size:  # certificates would be decoded at once
            raise NotTlsError("a TLS handshake with more than one message in its first record")
    return HEADER_BYTES + size


def is_whole(record: bytes | bytearray | memoryview) -> bool:
    """Whether a first record, which is whole, has all of its ClientHello, which may go on in
    others."""
    message_bytes = int.from_bytes(record[HEADER_BYTES + 1 : HEADER_BYTES + _FIELD_BYTES])
    return HEADER_BYTES + _FIELD_BYTES + message_bytes == len(record)


def harmless_bytes(data: bytes | bytearray | memoryview, has_whole_hello: bool) -> int:
    """How many bytes behind the first record, which begin with ``data``, can hold no certificate
    that takes long to decode. ``has_whole_hello`` tells of :func:`is_whole`: else they are the
    rest of it, whatever they look like."""
    is_plain = has_whole_hello and data[:1] == bytes([_HANDSHAKE])
    if is_plain and data[HEADER_BYTES : HEADER_BYTES + len(_NO_CERTIFICATE)] == _NO_CERTIFICATE:
        return HARMLESS_BYTES_OF_TLS_1_2
    return HARMLESS_BYTES


def _refuse(beginning: bytes) -> None:
    """Raise what it is once enough bytes are there to tell."""
    if len(beginning) >= _FIELD_BYTES:
        if beginning.startswith(_HTTP):
            raise NotTlsButHttpError("HTTP without TLS")
        if beginning[0] == 0 and len(beginning) < 2 * _FIELD_BYTES + len(_CONNECT):
            return  # perhaps a frame, whose sizes are below 16 MiB
        if beginning[2 * _FIELD_BYTES :] == _CONNECT:
            raise NotTlsError("Pulsar's protocol without TLS")
        raise NotTlsError("bytes that are no TLS handshake")


class ClientHello(NamedTuple):
    """What a client offers in its first message. The defaults stand for one that cannot be read,
    because it goes on in another record or is damaged, which the handshake then finds."""

    server_name: str = ""
    """The host name that it asks for (SNI, RFC 6066), in lower case and without a dot at its end;
    empty for none."""
    has_tls_1_3: bool = True
    groups: tuple[int, ...] = ()
    """Groups for the exchange of keys: first those that it has sent keys of, then those that it
    supports. The first few of each."""


def read_hello(record: bytes | bytearray | memoryview) -> ClientHello:
    """What the first record says, which is whole."""
    try:
        found = _extensions(record)
        return ClientHello(
            _server_name(found[_SERVER_NAME]) if _SERVER_NAME in found else "",
            _TLS_1_3 in _numbers(found.get(_VERSIONS, b"\0"), length_bytes=1),
            (*_key_groups(found.get(_KEYS, b"\0\0")), *_numbers(found.get(_GROUPS, b"\0\0"))),
        )
    except ValueError:
        return ClientHello()


def _extensions(record: bytes | bytearray | memoryview) -> dict[int, bytes]:
    hello = _Fields(bytes(record[HEADER_BYTES:]))
    hello.number(1)
    body = _Fields(hello.block(3))
    body.take(_HELLO_HEAD_BYTES)
    for length_bytes in (1, 2, 1):  # the session's id, cipher suites, compression
        body.block(length_bytes)
    fields = _Fields(body.block(2)) if body.is_left else _Fields(b"")
    found: dict[int, bytes] = {}
    while fields.is_left:
        if len(found) == EXTENSIONS_MAX:
            raise ValueError("more extensions than any client has")
        kind = fields.number(2)
        if kind in found:
            raise ValueError("an extension comes twice")
        found[kind] = fields.block(2)
    return found


def _server_name(data: bytes) -> str:
    names = _Fields(_Fields(data).block(2))
    is_host = names.number(1) == _HOST_NAME
    return names.block(2).decode("ascii").rstrip(".").lower() if is_host else ""


def _numbers(data: bytes, *, length_bytes: int = 2) -> list[int]:
    """The first numbers of a list, of two bytes each."""
    fields, found = _Fields(_Fields(data).block(length_bytes)), list[int]()
    while fields.is_left and len(found) < OFFERS_MAX:
        found.append(fields.number(2))
    return found


def _key_groups(data: bytes) -> list[int]:
    """The groups of the first keys."""
    fields, found = _Fields(_Fields(data).block(2)), list[int]()
    while fields.is_left and len(found) < OFFERS_MAX:
        found.append(fields.number(2))
        fields.block(2)
    return found


class _Fields:
    """The fields of a message of TLS, one after the other. Each method raises ValueError beyond its
    end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_left(self) -> bool:
        return self._at < len(self._data)

    def take(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise ValueError("the message ends within a field")
        self._at += size
        return found

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def block(self, length_bytes: int) -> bytes:
        """The bytes of a field behind its length."""
        return self.take(self.number(length_bytes))

"""Tells from the first bytes of a connection whether its client speaks TLS."""

from __future__ import annotations

from typing import Final

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
_CONNECT: Final = b"\x08\x02"
"""A CONNECT of the binary protocol: field 1 of BaseCommand with the type 2."""


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
    return HEADER_BYTES + size


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

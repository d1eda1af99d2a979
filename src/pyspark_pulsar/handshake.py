"""A connection to a broker that only checks whether it accepts the credentials.

A command looks at what a query needs before it starts Spark. It opens a connection, sends CONNECT
and reads the first answer.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from pyspark_pulsar.access import Access, tls_refusal
from pyspark_pulsar.commands import CLIENT_VERSION, PROTOCOL_VERSION
from pyspark_pulsar.errors import AccessError
from pyspark_pulsar.offsets import varint, varint_bytes
from pyspark_pulsar.options import Connection

_PORT, _TLS_PORT = 6_650, 6_651
_CONNECT, _ERROR = 2, 14
"""Types of commands. Each type is also the number of the command's field."""
_SUPPORTS_AUTH_REFRESH = 1
"""A field of FeatureFlags."""
_REFUSED = {3: "AuthenticationError", 4: "AuthorizationError"}
_FRAME_BYTES_MAX = 1 << 20
_NO_COMMAND = "this is no command"

Field = tuple[int, int | bytes]
"""A protobuf field: its number, and its value as a varint or as bytes."""


def probe(connection: Connection, timeout_s: float) -> None:
    """Connect to the first host of the service URL and check that it accepts the credentials.

    Raises :class:`AccessError` if it refuses them, or if its certificate is not trusted;
    :class:`OSError` if the host cannot be reached, or does not answer in time; and
    :class:`EOFError` or :class:`ValueError` if the host is no Pulsar broker.
    """
    where = urlsplit(connection.service_url)
    first = urlsplit(f"//{where.netloc.split(',')[0]}")
    is_tls = where.scheme == "pulsar+ssl"
    try:
        address = (first.hostname or "", first.port or (_TLS_PORT if is_tls else _PORT))
        context = connection.access.ssl_context() if is_tls else None
        answer = _first_answer(address, context, connect_frame(connection.access), timeout_s)
    except OSError as error:
        refused = tls_refusal(error)
        if refused is None:
            raise
        raise AccessError(f"{connection.service_url}: no TLS connection, {refused}") from error
    why = refusal(answer)
    if why is not None:
        access = connection.access
        raise AccessError(
            f"{connection.service_url} refuses the connection ({access.scrubbed(why)}): "
            f"{access.advice()}"
        )


def connect_frame(access: Access, *, broker: str = "", answers_challenges: bool = False) -> bytes:
    """The frame that opens a connection: CONNECT with the credentials.

    A proxy connects the client to ``broker`` (HOST:PORT). A broker asks for credentials anew by
    AUTH_CHALLENGE only if ``answers_challenges``.
    """
    fields: list[Field] = [(1, CLIENT_VERSION)]
    method, data = access.presented()
    if data:
        fields.append((3, data.encode()))
    fields.append((4, PROTOCOL_VERSION))
    if method:
        fields.append((5, method.encode()))
    if broker:
        fields.append((6, broker.encode()))
    if answers_challenges:
        fields.append((10, _encoded([(_SUPPORTS_AUTH_REFRESH, 1)])))
    command = _encoded([(1, _CONNECT), (_CONNECT, _encoded(fields))])
    return _size(len(command) + 4) + _size(len(command)) + command


def refusal(command: bytes) -> str | None:
    """The reason for which the broker's first answer refuses the credentials; None if it does not.

    Raises :class:`ValueError` if ``command`` is no command of the protocol.
    """
    fields = dict(_decoded(command))
    if 1 not in fields:
        raise ValueError(_NO_COMMAND)
    body = fields.get(_ERROR)
    if fields.get(1) != _ERROR or not isinstance(body, bytes):
        return None
    error = dict(_decoded(body))
    code, message = error.get(2), error.get(3, b"")
    name = _REFUSED.get(code) if isinstance(code, int) else None
    if name is None or not isinstance(message, bytes):
        return None
    text = message.decode("utf-8", "replace").split("\n", 1)[0]
    return f"{name}: {text}" if text else name


def _first_answer(
    address: tuple[str, int], context: ssl.SSLContext | None, frame: bytes, timeout_s: float
) -> bytes:
    """The command in the first frame of the answer."""
    deadline = time.monotonic() + timeout_s
    with socket.create_connection(address, timeout_s) as plain:
        if context is None:
            return _exchange(plain, frame, deadline)
        with context.wrap_socket(plain, server_hostname=address[0]) as peer:
            return _exchange(peer, frame, deadline)


def _exchange(peer: socket.socket, frame: bytes, deadline: float) -> bytes:
    peer.sendall(frame)
    total = int.from_bytes(_exactly(peer, 4, deadline), "big")
    if not 4 <= total <= _FRAME_BYTES_MAX:
        raise ValueError("this is no frame")
    rest = _exactly(peer, total, deadline)
    return rest[4 : 4 + int.from_bytes(rest[:4], "big")]


def _exactly(peer: socket.socket, count: int, deadline: float) -> bytes:
    data = bytearray()
    while len(data) < count:
        peer.settimeout(max(0.05, deadline - time.monotonic()))
        piece = peer.recv(count - len(data))
        if not piece:
            raise EOFError("the connection ended")
        data += piece
        if time.monotonic() > deadline:
            raise TimeoutError("the answer did not end in time")
    return bytes(data)


def _size(count: int) -> bytes:
    return count.to_bytes(4, "big")


def _encoded(fields: list[Field]) -> bytes:
    """Protobuf fields, encoded in the given order."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += varint_bytes(number << 3) + varint_bytes(value)
        else:
            out += varint_bytes(number << 3 | 2) + varint_bytes(len(value)) + value
    return bytes(out)


def _decoded(data: bytes) -> Iterator[Field]:
    """The varint and bytes fields of a message. Raises :class:`ValueError` for any other field."""
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        if tag & 7 == 0:
            value, at = _number(data, at)
            yield tag >> 3, value
        elif tag & 7 == 2:
            size, at = _number(data, at)
            if at + size > len(data):
                raise ValueError(_NO_COMMAND)
            yield tag >> 3, data[at : at + size]
            at += size
        else:
            raise ValueError(_NO_COMMAND)


def _number(data: bytes, at: int) -> tuple[int, int]:
    try:
        return varint(data, at)
    except ValueError as error:
        raise ValueError(_NO_COMMAND) from error

"""A TLS handshake is told from other protocols by its first bytes, however they are cut."""

from __future__ import annotations

import random
import ssl

import pytest

from headgate.app.tls.hello import (
    HELLO_BYTES_MAX,
    NotTlsButHttpError,
    NotTlsError,
    hello_bytes,
    server_name,
)
from headgate.wire import client as frames


def client_hello(name: str | None = "broker.example") -> bytes:
    """What a client of this Python sends first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = name is not None
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def test_a_hello_is_as_long_as_its_record_says() -> None:
    hello = client_hello()
    for cut in range(6):
        assert hello_bytes(hello[:cut]) is None
    for cut in (6, 20, len(hello)):
        assert hello_bytes(hello[:cut]) == len(hello)
    assert hello_bytes(hello + b"more") == len(hello)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"GET / HTTP/1.1\r\n", "HTTP without TLS"),
        (b"PRI * HTTP/2.0", "HTTP without TLS"),
        (frames.connect(), "Pulsar's protocol without TLS"),
        (b"\x00" * 12, "bytes that are no TLS handshake"),
        (b"SSH-2.0-x", "bytes that are no TLS handshake"),
        (b"\x16\x03\x01\x00\x00\x01", "bytes that are no TLS handshake"),  # an empty record
        (b"\x16\x03\x01\xff\xff\x01", "bytes that are no TLS handshake"),  # a record too long
        (b"\x16\x03\x01\x00\x10\x02", "bytes that are no TLS handshake"),  # a server's hello
        (b"\x16\x02\x00\x00\x10\x01", "bytes that are no TLS handshake"),
        (b"\x15\x03\x01\x00\x02\x01", "bytes that are no TLS handshake"),  # an alert
    ],
)
def test_other_bytes_are_named(data: bytes, text: str) -> None:
    with pytest.raises(NotTlsError, match=f"^{text}$") as caught:
        hello_bytes(data)
    assert isinstance(caught.value, NotTlsButHttpError) == data.startswith((b"GET", b"PRI"))
    for cut in range(len(data)):  # a part of them is no handshake either
        try:
            assert hello_bytes(data[:cut]) is None
        except NotTlsError:
            break


def test_no_record_is_longer_than_the_buffer() -> None:
    assert hello_bytes(b"\x16\x03\x01\x40\x00\x01") == HELLO_BYTES_MAX


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("broker.example", "broker.example"),
        ("BROKER.Example", "broker.example"),
        ("b\u00fccher.example", "xn--bcher-kva.example"),
        ("x" * 63 + ".example", "x" * 63 + ".example"),
        (None, ""),
        ("127.0.0.1", ""),  # no client asks for an address
    ],
)
def test_the_name_that_a_client_asks_for(name: str | None, found: str) -> None:
    hello = client_hello(name)
    assert server_name(hello) == found
    assert server_name(memoryview(hello)) == found


def test_a_hello_that_is_cut_or_damaged_asks_for_no_name() -> None:
    hello = client_hello()
    for cut in range(len(hello)):
        assert server_name(hello[:cut]) in ("", "broker.example")
    assert server_name(hello[:200]) == ""
    assert server_name(hello.replace(b"broker.example", b"broker\xff.example"[:14])) == ""
    rng = random.Random(1)
    for _ in range(5_000):
        changed = bytearray(hello)
        for _ in range(rng.randint(1, 4)):
            changed[rng.randrange(5, len(changed))] = rng.randrange(256)
        assert len(server_name(changed)) < len(hello)

"""A TLS handshake is told from other protocols by its first bytes, however they are cut."""

from __future__ import annotations

import random
import ssl

import pytest

from headgate.app.tls.hello import (
    EXTENSIONS_MAX,
    HARMLESS_BYTES,
    HARMLESS_BYTES_OF_TLS_1_2,
    HELLO_BYTES_MAX,
    OFFERS_MAX,
    ClientHello,
    NotTlsButHttpError,
    NotTlsError,
    harmless_bytes,
    hello_bytes,
    is_whole,
    read_hello,
)
from headgate.wire import client as frames


def server_name(record: bytes | bytearray | memoryview) -> str:
    return read_hello(record).server_name


def client_hello(
    name: str | None = "broker.example", context: ssl.SSLContext | None = None
) -> bytes:
    """What a client of this Python sends first."""
    context = context or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
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


@pytest.mark.parametrize(("group", "number"), [("prime256v1", 23), ("secp384r1", 24), ("X448", 30)])
def test_the_groups_that_a_client_offers(group: str, number: int) -> None:
    """With TLS 1.3 it also sends a key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ecdh_curve(group)
    found = read_hello(client_hello(context=context))
    assert (found.has_tls_1_3, found.groups) == (
        True,
        (number, number),
    )
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    found = read_hello(client_hello(context=context))
    assert (found.has_tls_1_3, found.groups) == (False, (number,))


def block(size_bytes: int, data: bytes) -> bytes:
    return len(data).to_bytes(size_bytes) + data


def hello_of(*extensions: tuple[int, bytes]) -> bytes:
    body = b"\3\3" + bytes(32) + block(1, b"") + block(2, b"\x13\1") + block(1, b"\0")
    if extensions:
        body += block(2, b"".join(kind.to_bytes(2) + block(2, data) for kind, data in extensions))
    return b"\x16\3\1" + block(2, b"\1" + block(3, body))


def test_of_very_many_offers_the_first_ones_are_read() -> None:
    keys = b"".join(number.to_bytes(2) + block(2, b"") for number in range(1_000))
    groups = b"".join(number.to_bytes(2) for number in range(2_000))
    found = read_hello(hello_of((51, block(2, keys)), (10, block(2, groups))))
    assert found == ClientHello("", False, (*range(OFFERS_MAX), *range(OFFERS_MAX)))
    assert read_hello(hello_of()) == ClientHello("", False, ())
    some = [(1_000 + number, b"") for number in range(EXTENSIONS_MAX)]
    assert not read_hello(hello_of(*some)).has_tls_1_3
    for unreadable in ([*some, (1, b"")], [*some[:5], some[2]]):
        assert read_hello(hello_of(*unreadable)) == ClientHello()


def test_a_first_record_with_a_second_message_is_refused() -> None:
    """OpenSSL would go on to certificates behind the hello at once."""
    hello = client_hello()
    both = hello[5:] + b"\x0b\0\0\3\0\0\0"
    with pytest.raises(NotTlsError, match="more than one message"):
        hello_bytes(hello[:3] + len(both).to_bytes(2) + both)
    assert hello_bytes(hello) == len(hello)


def test_how_many_bytes_behind_a_hello_hold_no_long_certificate() -> None:
    key = bytes([16, 0, 0, 66]) + bytes(66)
    none, one = bytes([11, 0, 0, 3, 0, 0, 0]), bytes([11, 0, 0, 3, 0, 0, 1])
    for beginning in (none, none + key):
        plain = bytes([22, 3, 3, 0, len(beginning)]) + beginning
        assert harmless_bytes(plain, True) == HARMLESS_BYTES_OF_TLS_1_2
        assert harmless_bytes(memoryview(plain), True) == HARMLESS_BYTES_OF_TLS_1_2
        assert harmless_bytes(b"\x17" + plain[1:], True) == HARMLESS_BYTES
        assert harmless_bytes(plain[:11], True) == HARMLESS_BYTES
        assert harmless_bytes(plain, False) == HARMLESS_BYTES, "it is the rest of a hello"
    assert harmless_bytes(bytes([22, 3, 3, 0, 7]) + one, True) == HARMLESS_BYTES
    assert harmless_bytes(b"", True) == HARMLESS_BYTES


def test_a_hello_may_go_on_in_another_record() -> None:
    hello = client_hello()
    assert is_whole(hello)
    assert is_whole(memoryview(hello))
    for size in (1, 3, 4, 100, len(hello) - 6):
        first = hello[:3] + size.to_bytes(2) + hello[5 : 5 + size]
        assert not is_whole(first)

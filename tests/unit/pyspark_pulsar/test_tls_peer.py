"""Against a server of :mod:`ssl`, over a loopback socket."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from headgate.wire import replies
from pyspark_pulsar.access import Access
from pyspark_pulsar.broker_connection import Address, Dialer, TransientError
from pyspark_pulsar.errors import AccessError
from pyspark_pulsar.options import Connection
from pyspark_pulsar.tls_peer import TlsPeer
from tests.trial_certificates import Trial
from tests.unit.pyspark_pulsar.fake_broker import CONNECTED

WAIT_S = 10.0


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return Trial(tmp_path_factory.mktemp("certificates"))


@contextmanager
def serving(trial: Trial, serve: Callable[[ssl.SSLSocket], None]) -> Iterator[int]:
    """The port of a server that speaks TLS with one client; a failed handshake ends it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trial.folder / "server.cert.pem", trial.folder / "server.key.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            plain, _ = listener.accept()
            plain.settimeout(WAIT_S)
            try:
                with context.wrap_socket(plain, server_side=True) as peer:
                    serve(peer)
            except OSError:
                pass
            finally:
                plain.close()

        thread = threading.Thread(target=run)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(WAIT_S)


def connected(trial: Trial, port: int) -> TlsPeer:
    plain = socket.create_connection(("127.0.0.1", port), WAIT_S)
    peer = TlsPeer(plain, trial.context(), "localhost")
    peer.shake_hands(time.monotonic() + WAIT_S)
    peer.settimeout(WAIT_S)
    return peer


def received(peer: TlsPeer, size: int) -> bytes:
    """All until the end, by buffers of this size."""
    data, buffer = bytearray(), memoryview(bytearray(size))
    while (count := peer.recv_into(buffer)) != 0:
        if count is not None:
            data += buffer[:count]
    return bytes(data)


@pytest.mark.parametrize("size", [1, 1_000, 1 << 20])
def test_records_of_any_size_arrive_whole(trial: Trial, size: int) -> None:
    parts = [b"a", b"b" * 100, b"c" * 40_000] if size > 1 else [b"a" * 50, b"b"]

    def serve(peer: ssl.SSLSocket) -> None:
        assert peer.recv(100) == b"hello"
        for part in parts:
            peer.sendall(part)
        peer.unwrap()

    with serving(trial, serve) as port:
        peer = connected(trial, port)
        peer.sendall(b"hello")
        assert received(peer, size) == b"".join(parts)
        peer.close()


def test_a_part_of_a_record_is_nothing_whole(trial: Trial) -> None:
    ours, theirs = socket.socketpair()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trial.folder / "server.cert.pem", trial.folder / "server.key.pem")
    server = context.wrap_bio(incoming, outgoing, server_side=True)
    with ours, theirs:
        peer = TlsPeer(ours, trial.context(), "localhost")
        thread = threading.Thread(target=peer.shake_hands, args=(time.monotonic() + WAIT_S,))
        thread.start()
        while True:
            try:
                server.do_handshake()
                break
            except ssl.SSLWantReadError:
                theirs.sendall(outgoing.read())
                incoming.write(theirs.recv(65_536))
        theirs.sendall(outgoing.read())
        thread.join(WAIT_S)
        server.write(b"message")
        record = outgoing.read()
        buffer = memoryview(bytearray(100))
        theirs.sendall(record[:10])
        assert peer.recv_into(buffer) is None
        theirs.sendall(record[10:])
        assert peer.recv_into(buffer) == 7
        assert bytes(buffer[:7]) == b"message"
        peer.settimeout(0.001)
        with pytest.raises(TimeoutError):
            peer.recv_into(buffer)


def test_an_end_without_the_end_of_tls_is_an_error(trial: Trial) -> None:
    with serving(trial, lambda peer: peer.shutdown(socket.SHUT_RDWR)) as port:
        peer = connected(trial, port)
        with pytest.raises(OSError, match=r"EOF|reset"):
            received(peer, 100)
        peer.close()


def test_a_handshake_has_a_bound() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(TimeoutError):
        TlsPeer(ours, ssl.create_default_context(), "h").shake_hands(time.monotonic() + 0.01)


def dialer(trial: Trial, port: int, access: Access | None = None) -> tuple[Dialer, Address]:
    access = access or Access(trust_path=trial.ca)
    url = f"pulsar+ssl://localhost:{port}"
    dialer = Dialer(Connection(url, "http://h:2", 10_000, 1_000, access))
    return dialer, Address("127.0.0.1", port)


def test_a_connection_and_a_lookup_in_tls(trial: Trial) -> None:
    def serve(peer: ssl.SSLSocket) -> None:
        peer.recv(4_096)
        peer.sendall(CONNECTED)
        peer.recv(4_096)
        urls = {"broker_url": "pulsar://no", "broker_url_tls": f"pulsar+ssl://127.0.0.1:{port}"}
        peer.sendall(replies.lookup_connect(1, **urls))
        peer.recv(1)

    with serving(trial, serve) as port:
        using, address = dialer(trial, port)
        connection = using.to_topic("t", address)
        assert connection.address == address
        connection.close()


def test_a_certificate_that_is_not_trusted(trial: Trial) -> None:
    with serving(trial, lambda _: None) as port:
        using, address = dialer(trial, port, Access())
        with pytest.raises(AccessError, match="no TLS connection, its certificate is not trusted"):
            using.open(address, time.monotonic() + WAIT_S)


def test_a_server_that_hangs_up_may_be_starting(trial: Trial) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=lambda: listener.accept()[0].close())
        thread.start()
        using, address = dialer(trial, port)
        with pytest.raises(TransientError):
            using.open(address, time.monotonic() + WAIT_S)
        thread.join(WAIT_S)

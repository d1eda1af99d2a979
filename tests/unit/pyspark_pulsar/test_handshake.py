"""The codec of headgate.wire reads what is said here, and writes what is read."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headgate.wire import replies
from headgate.wire.codes import CommandType, ServerError
from headgate.wire.messages import BaseCommand
from pyspark_pulsar.access import NO_ACCESS, Access
from pyspark_pulsar.errors import AccessError
from pyspark_pulsar.handshake import connect_frame, probe, refusal
from pyspark_pulsar.options import Connection

NO_REQUEST = (1 << 64) - 1
CONNECTED = replies.connected(protocol_version=19, message_bytes_max=1, server_version="x")


def refused(code: ServerError, text: str) -> bytes:
    return replies.error(NO_REQUEST, code, text)


@pytest.mark.parametrize(
    ("access", "method", "data"),
    [
        (NO_ACCESS, "", b""),
        (Access(token="a.b" * 100), "token", b"a.b" * 100),
        (Access(certificate_path="/c", key_path="/k"), "tls", b""),
        (Access(token="t", certificate_path="/c", key_path="/k"), "token", b"t"),
        (Access(password='{"userId": "u", "password": "p:x"}'), "basic", b"u:p:x"),
    ],
)
def test_the_connect_command_has_the_credentials(access: Access, method: str, data: bytes) -> None:
    frame = connect_frame(access)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert int.from_bytes(frame[4:8], "big") == len(frame) - 8
    command = BaseCommand.FromString(frame[8:])
    assert command.type == CommandType.CONNECT
    assert command.connect.client_version == "pyspark-pulsar"
    assert command.connect.protocol_version == 19
    assert (command.connect.auth_method_name, command.connect.auth_data) == (method, data)
    assert not command.connect.HasField("proxy_to_broker_url")
    assert not command.connect.HasField("feature_flags")


def test_a_reader_names_the_broker_behind_a_proxy_and_answers_challenges() -> None:
    frame = connect_frame(Access(token="t"), broker="b:6650", answers_challenges=True)
    connect = BaseCommand.FromString(frame[8:]).connect
    assert connect.proxy_to_broker_url == "b:6650"
    assert connect.feature_flags.supports_auth_refresh
    assert connect.auth_data == b"t"


def test_refusals_are_recognized() -> None:
    for frame, why in (
        (CONNECTED, None),
        (refused(ServerError.AUTHENTICATION_ERROR, "bad token"), "AuthenticationError: bad token"),
        (refused(ServerError.AUTHORIZATION_ERROR, ""), "AuthorizationError"),
        (refused(ServerError.SERVICE_NOT_READY, "starting"), None),
    ):
        assert refusal(frame[8:]) == why


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 400", b"\x08", b"\x72\xff", b"\xff" * 12])
def test_invalid_commands_are_recognized(data: bytes) -> None:
    with pytest.raises(ValueError, match="no command"):
        refusal(data)


@contextmanager
def answering(reply: bytes) -> Iterator[str]:
    """The service URL of a server that sends ``reply`` to one connection and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(4_096)
                peer.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"pulsar://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(10)


def check(url: str, access: Access = NO_ACCESS) -> None:
    probe(Connection(url, "http://h:2", 1_000, 1_000, access), 5)


def test_a_refusal_does_not_show_the_token() -> None:
    reply = refused(ServerError.AUTHENTICATION_ERROR, "what is s3cret?")
    with answering(reply) as url, pytest.raises(AccessError) as caught:
        check(url, Access(token="s3cret"))
    assert str(caught.value) == (
        f"{url} refuses the connection (AuthenticationError: what is ***?): "
        "check the token in authParams and what it permits"
    )


def test_the_first_host_that_accepts_is_enough() -> None:
    with answering(CONNECTED) as url:
        check(f"{url},other:1")


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (b"", EOFError),
        (b"\x00", EOFError),
        (b"HTTP/1.1 400 Bad\r\n\r\n", ValueError),
        (CONNECTED[:-1], EOFError),
    ],
)
def test_an_address_of_another_service_is_an_error(reply: bytes, error: type[Exception]) -> None:
    with answering(reply) as url, pytest.raises(error):
        probe(Connection(url, "http://h:2", 1_000, 1_000), 5)


def test_an_unreachable_address_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        probe(Connection(f"pulsar://127.0.0.1:{port}", "http://h:2", 1_000, 1_000), 5)

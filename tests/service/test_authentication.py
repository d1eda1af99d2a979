"""Tokens and passwords with the official client, over raw sockets and over HTTP."""

from __future__ import annotations

import base64
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import bcrypt
import pulsar
import pytest

from headgate.security.token_keys import secret_key
from headgate.security.tokens import new_token
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, ServerError
from headgate.wire.frame import FrameDecoder
from headgate.wire.messages import BaseCommand
from tests.service.clients import EARLIEST, RECEIVE_MS, client_of, full
from tests.service.process import BrokerProcess, StartFailedError
from tests.service.quota_scenes import words
from tests.service.test_web_reach import raw

KEY = secret_key(b"0123456789abcdef" * 2, "k")
TOKEN_S = 4
"""How long a short token is valid."""

RUNTIME = "/admin/v2/brokers/configuration/runtime"


def token(role: str, lifetime_s: float = 600.0) -> str:
    return new_token(KEY, {"sub": role, "exp": time.time() + lifetime_s}, {})


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("broker")
    hashed = bcrypt.hashpw(b"a right password", bcrypt.gensalt(6)).decode()
    for name, data in (("secret", KEY.private), ("users", f"ann:{hashed}\n".encode())):
        path = folder / name
        assert isinstance(data, bytes)
        path.write_bytes(data)
        path.chmod(0o600)
    process = BrokerProcess(
        folder,
        words(
            authenticationEnabled="true",
            authenticationProviders="token,basic",
            tokenSecretKey=f"file://{folder}/secret",
            basicAuthConf=f"file://{folder}/users",
        ),
    )
    process.start()
    try:
        yield process
    finally:
        process.close()
    log = process.log()
    assert "Traceback" not in log
    assert "right password" not in log
    assert "eyJ" not in log, "a token"


def round_trip(client: pulsar.Client, topic: str) -> pulsar.Producer:
    producer = client.create_producer(topic)
    producer.send(b"x")
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    assert consumer.receive(RECEIVE_MS).data() == b"x"
    return producer


def created_count(broker: BrokerProcess) -> float:
    _, page = broker.get("/metrics")
    lines = page.decode().splitlines()
    (line,) = (each for each in lines if each.startswith("pulsar_connection_created_total_count"))
    return float(line.rpartition(" ")[2])


def test_the_official_client_with_a_token(broker: BrokerProcess) -> None:
    auth = pulsar.AuthenticationToken(token("ann"))
    with client_of(broker.service_url, authentication=auth) as client:
        round_trip(client, full("by-token"))


def test_its_supplier_is_asked_before_the_token_lapses(broker: BrokerProcess) -> None:
    made: list[str] = []

    def supply() -> str:
        made.append(token("ann", TOKEN_S))
        return made[-1]

    auth = pulsar.AuthenticationToken(supply)
    with client_of(broker.service_url, authentication=auth) as client:
        producer = round_trip(client, full("by-supplier"))
        connections, before = created_count(broker), len(made)
        end = time.monotonic() + 2 * TOKEN_S
        while time.monotonic() < end:
            producer.send(b"x")
            time.sleep(0.1)
        assert len(made) > before
        assert created_count(broker) == connections, "it went on on the same connection"


def test_the_official_client_with_a_password(broker: BrokerProcess) -> None:
    auth = pulsar.AuthenticationBasic("ann", "a right password")
    with client_of(broker.service_url, authentication=auth) as client:
        round_trip(client, full("by-password"))


@pytest.mark.parametrize("auth", [None, pulsar.AuthenticationToken("no.to.ken")])
def test_without_good_credentials_the_official_client_fails(
    broker: BrokerProcess, auth: pulsar.Authentication | None
) -> None:
    with (
        client_of(broker.service_url, authentication=auth, operation_timeout_seconds=2) as client,
        pytest.raises(pulsar.PulsarException),
    ):
        client.create_producer(full("by-nobody"))


# -- raw sockets -------------------------------------------------------------------------------


def dial(broker: BrokerProcess) -> socket.socket:
    where = urlsplit(broker.service_url)
    return socket.create_connection((where.hostname or "", where.port or 0), timeout=10)


def answer(client: socket.socket) -> BaseCommand | None:
    """The next command; None at the end of the connection."""
    decoder = FrameDecoder()
    while (found := decoder.next_frame()) is None:
        data = client.recv(65_536)
        if not data:
            return None
        decoder.feed(data)
    return found[0]


def login(broker: BrokerProcess, method: str, data: bytes) -> BaseCommand:
    with dial(broker) as client:
        client.sendall(frames.connect(auth_method=method, auth_data=data))
        found = answer(client)
        assert found is not None
        if found.type == CommandType.ERROR:
            assert answer(client) is None, "the connection ends"
        return found


def test_a_token_that_lapses_ends_its_connection(broker: BrokerProcess) -> None:
    with dial(broker) as client:
        data = token("ann", 2).encode()
        client.sendall(
            frames.connect(auth_method="token", auth_data=data, refreshes_credentials=True)
        )
        kinds = []
        while (command := answer(client)) is not None:
            kinds.append(command.type)
    assert kinds == [CommandType.CONNECTED, CommandType.AUTH_CHALLENGE]


def test_a_command_before_the_answer_ends_the_connection(broker: BrokerProcess) -> None:
    """The check of a password takes so long that both arrive before its end."""
    with dial(broker) as client:
        connect = frames.connect(auth_method="basic", auth_data=b"ann:not checked before")
        client.sendall(connect + frames.lookup(1, full("t")))
        assert answer(client) is None


def test_guesses_are_limited_and_good_clients_are_served(broker: BrokerProcess) -> None:
    assert login(broker, "basic", b"ann:a right password").type == CommandType.CONNECTED
    codes = []
    for number in range(30):
        found = login(broker, "basic", b"ann:guess %d" % number)
        codes.append(found.error.error)
        assert found.error.message in (
            "Failed to authenticate",
            "Credentials are not checked now: try again later",
        )
    assert codes[0] == ServerError.AUTHENTICATION_ERROR
    assert codes[-5:] == [ServerError.SERVICE_NOT_READY] * 5
    assert login(broker, "token", token("ann").encode()).type == CommandType.CONNECTED
    assert login(broker, "basic", b"ann:a right password").type == CommandType.CONNECTED
    lines = [line for line in broker.log().splitlines() if "authentication failed" in line]
    assert len([line for line in lines if "127.0.0.1" in line]) == len(lines) <= 2
    status, page = broker.get("/metrics")
    assert status == 200
    assert b'headgate_authentication_attempts_total{cluster="standalone",method="basic"' in page


# -- HTTP --------------------------------------------------------------------------------------


def http(broker: BrokerProcess, path: str, *headers: str) -> tuple[int, bytes]:
    status, _, body = raw(broker, "GET", path, b"", *headers)
    return status, body


def test_requests(broker: BrokerProcess) -> None:
    basic = base64.b64encode(b"ann:a right password").decode()
    good = f"Authorization: Bearer {token('ann')}"
    for header in (good, f"Authorization: Basic {basic}"):
        assert http(broker, "/admin/v2/clusters", header)[0] == 200
    for headers in ((), ("Authorization: Bearer x",), (good, good)):
        status, found, body = raw(broker, "GET", "/admin/v2/clusters", b"", *headers)
        assert status == 401
        assert b'"reason"' in body
        assert found["www-authenticate"].startswith(("Bearer", "Basic"))
    assert http(broker, "/admin/v2/brokers/health")[0] == 200
    assert http(broker, "/metrics")[0] == 200
    assert http(broker, "/admin/v2/clusters", "Host: evil.example", good)[0] == 421


def test_secrets_are_not_shown(broker: BrokerProcess) -> None:
    status, body = http(broker, RUNTIME, f"Authorization: Bearer {token('ann')}")
    assert status == 200
    assert base64.b64encode(b"0123456789abcdef") not in body


# -- starts ------------------------------------------------------------------------------------


def test_starts_that_are_refused(make_broker: Callable[..., BrokerProcess], tmp_path: Path) -> None:
    open_file = tmp_path / "open"
    open_file.write_bytes(b"0123456789abcdef" * 2)
    open_file.chmod(0o644)
    enabled = {"authenticationEnabled": "true"}
    by_token = {**enabled, "authenticationProviders": "token"}
    for settings, said in (
        (enabled, "needs authenticationProviders"),
        (by_token, "set tokenSecretKey or tokenPublicKey"),
        ({**by_token, "tokenSecretKey": f"file://{open_file}"}, f"chmod 600 {open_file}"),
        ({**by_token, "tokenSecretKey": "c2VjcmV0"}, "only file:///path is allowed here"),
    ):
        with pytest.raises(StartFailedError) as failure:
            make_broker(words=words(**settings)).start()
        assert said in failure.value.stderr
        assert "Traceback" not in failure.value.stderr

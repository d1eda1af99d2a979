"""What the official clients' own suites ask of a broker about tokens and passwords.

The broker is set up as these suites want it: an anonymous role with grants in one namespace, a
namespace for one role, a super user with a password.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pulsar
import pytest

from headgate.security.apr1 import apr1
from headgate.security.token_keys import secret_key
from headgate.security.tokens import new_token
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, ServerError
from tests.service.clients import EARLIEST, RECEIVE_MS, client_of
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import words
from tests.service.test_authentication import answer, dial
from tests.service.test_web_reach import raw

SECRET = secret_key(b"0123456789abcdef" * 2, "k")
TOKEN = new_token(SECRET, {"sub": "token-principal"}, {})
USER, PASSWORD = "admin", "123456"

OPEN, CLOSED = "public/default", "private/auth"
"""Namespaces: of the anonymous role, and of the role of :data:`TOKEN`."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("broker")
    assert isinstance(SECRET.private, bytes)
    hashed = apr1(PASSWORD.encode(), "saltsalt")
    for name, data in (("secret", SECRET.private), ("users", f"{USER}:{hashed}\n".encode())):
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o600)
    process = BrokerProcess(
        folder,
        words(
            authenticationEnabled="true",
            authorizationEnabled="true",
            authenticationProviders="token,basic",
            tokenSecretKey=f"file://{folder}/secret",
            basicAuthConf=f"file://{folder}/users",
            anonymousUserRole="anonymous",
            superUserRoles=USER,
        ),
    )
    process.start()
    try:
        set_up(process)
        yield process
    finally:
        process.close()


def set_up(broker: BrokerProcess) -> None:
    """What the suites send before their tests, with the super user's password."""
    actions = ["produce", "consume"]
    for method, path, body in (
        ("PUT", "tenants/private", {"adminRoles": [], "allowedClusters": ["standalone"]}),
        ("PUT", f"namespaces/{CLOSED}", {}),
        ("POST", f"namespaces/{OPEN}/permissions/anonymous", actions),
        ("POST", f"namespaces/{CLOSED}/permissions/token-principal", actions),
    ):
        status, said = ask(broker, method, path, body, basic(USER, PASSWORD))
        assert status in (200, 204), (method, path, status, said)


def basic(user: str, password: str) -> str:
    return "Authorization: Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def ask(
    broker: BrokerProcess, method: str, path: str, body: Any, *headers: str
) -> tuple[int, bytes]:
    content = () if body is None else ("Content-Type: application/json",)
    data = b"" if body is None else json.dumps(body).encode()
    status, _, said = raw(broker, method, f"/admin/v2/{path}", data, *content, *headers)
    return status, said


def round_trip(url: str, auth: pulsar.Authentication | None, namespace: str, name: str) -> None:
    """Send and receive, with a client that authenticates so."""
    topic = f"persistent://{namespace}/{name}"
    with client_of(url, authentication=auth, operation_timeout_seconds=10) as client:
        client.create_producer(topic).send(name.encode())
        consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
        assert consumer.receive(RECEIVE_MS).data() == name.encode()


@pytest.fixture(params=["binary", "http"])
def url(request: pytest.FixtureRequest, broker: BrokerProcess) -> str:
    """Where lookups go: the clients can ask over HTTP, too."""
    return broker.service_url if request.param == "binary" else broker.admin_url


def supplied() -> str:
    return TOKEN


@pytest.mark.parametrize("given", [TOKEN, supplied])
def test_a_token(url: str, given: str | Callable[[], str]) -> None:
    round_trip(url, pulsar.AuthenticationToken(given), CLOSED, f"token-{callable(given)}")


def test_a_token_in_the_general_form(url: str) -> None:
    """The name of Java's class, and its parameters as one text."""
    auth = pulsar.Authentication(
        "org.apache.pulsar.client.impl.auth.AuthenticationToken", f"token:{TOKEN}"
    )
    round_trip(url, auth, CLOSED, "general")


def test_a_supplier_that_fails(broker: BrokerProcess) -> None:
    def failing() -> str:
        raise ValueError("no token")

    auth = pulsar.AuthenticationToken(failing)
    with (
        client_of(broker.service_url, authentication=auth, operation_timeout_seconds=3) as client,
        pytest.raises(pulsar.PulsarException),
    ):
        client.create_producer(f"persistent://{CLOSED}/failing")


def test_a_password(url: str) -> None:
    round_trip(url, pulsar.AuthenticationBasic(USER, PASSWORD), CLOSED, "password")


@pytest.mark.parametrize(("user", "password"), [(USER, "wrong"), ("nobody", PASSWORD), ("", "")])
def test_a_wrong_password(url: str, user: str, password: str) -> None:
    """It is not taken for none: an anonymous client could use this namespace."""
    auth = pulsar.AuthenticationBasic(user, password)
    with (
        client_of(url, authentication=auth, operation_timeout_seconds=3) as client,
        pytest.raises(pulsar.PulsarException),
    ):
        client.create_producer(f"persistent://{OPEN}/wrong")


def test_an_unknown_method_is_anonymous(broker: BrokerProcess) -> None:
    auth = pulsar.AuthenticationBasic(USER, PASSWORD, "unknown")
    round_trip(broker.service_url, auth, OPEN, "unknown-method")
    with (
        client_of(broker.service_url, authentication=auth) as client,
        pytest.raises(pulsar.AuthorizationError),
    ):
        client.create_producer(f"persistent://{CLOSED}/unknown-method")


def test_without_credentials(url: str) -> None:
    round_trip(url, None, OPEN, "anonymous")


def test_an_anonymous_client_where_it_has_no_grant(broker: BrokerProcess) -> None:
    with client_of(broker.service_url) as client, pytest.raises(pulsar.AuthorizationError):
        client.subscribe(f"persistent://{CLOSED}/anonymous", "s")
    with dial(broker) as client:
        topic = f"persistent://{CLOSED}/anonymous"
        client.sendall(frames.connect())
        connected = answer(client)
        assert connected is not None
        assert connected.type == CommandType.CONNECTED
        client.sendall(frames.partitioned_metadata(1, topic))
        command = answer(client)
        assert command is not None
        refused = command.partitionMetadataResponse
    # The suite compares this text.
    assert refused.message == "Client is not authorized to Get Partition Metadata"
    assert refused.error == ServerError.AUTHORIZATION_ERROR
    status, body = ask(broker, "GET", f"persistent/{CLOSED}/anonymous/partitions", None)
    assert status == 401
    assert b"Unauthorized" in body


def test_a_role_without_a_grant(broker: BrokerProcess) -> None:
    other = pulsar.AuthenticationToken(new_token(SECRET, {"sub": "other"}, {}))
    with (
        client_of(broker.service_url, authentication=other) as client,
        pytest.raises(pulsar.AuthorizationError),
    ):
        client.create_producer(f"persistent://{CLOSED}/other")

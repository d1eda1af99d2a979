"""Tokens of an issuer with the official client and over HTTP, and their revocation."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pulsar
import pytest
from click.testing import CliRunner

from headgate.cli.group import main
from headgate.security.jwks import CONFIGURATION_PATH
from headgate.security.token_keys import secret_key
from headgate.security.tokens import new_token
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, ServerError
from tests.service.clients import client_of, full, wait_until
from tests.service.fake_issuer import KEYS_PATH, TOKEN_PATH, FakeIssuer, fake_issuer
from tests.service.process import BrokerProcess, StartFailedError
from tests.service.quota_scenes import words
from tests.service.test_authentication import answer, dial, login
from tests.service.test_web_reach import raw
from tests.unit.security.jwks_examples import AUDIENCE, signing_key, token

CLUSTERS = "/admin/v2/clusters"
DEAD_ISSUER = "http://127.0.0.1:1"
"""Nobody listens there."""
SECRET = secret_key(b"0123456789abcdef" * 2, "k")
ADMIN = new_token(SECRET, {"sub": "admin"}, {})
"""A token with a key of the broker's operator, beside those of the issuer."""

PROVIDERS = (
    "org.apache.pulsar.broker.authentication.oidc.AuthenticationProviderOpenID,"
    "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
)
WITHIN_S = 5.0
"""How long a revocation may take here; a second or two if the machine is not busy."""


@pytest.fixture(scope="module")
def issuer() -> Iterator[FakeIssuer]:
    with fake_issuer({"k1": signing_key()}) as found:
        found.make_token = lambda client: valid(found, client)
        yield found


@pytest.fixture(scope="module")
def revoked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of revocations."""
    path = tmp_path_factory.mktemp("revoked") / "list"
    path.write_text("# nobody\n")
    return path


@pytest.fixture(scope="module")
def broker(
    tmp_path_factory: pytest.TempPathFactory, issuer: FakeIssuer, revoked: Path
) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("broker")
    secret = folder / "secret"
    assert isinstance(SECRET.private, bytes)
    secret.write_bytes(SECRET.private)
    secret.chmod(0o600)
    process = BrokerProcess(
        folder,
        words(
            authenticationEnabled="true",
            authenticationProviders=PROVIDERS,
            tokenSecretKey=f"file://{secret}",
            openIDAllowedTokenIssuers=f"{issuer.url},{DEAD_ISSUER}",
            openIDAllowedAudiences=AUDIENCE,
            openIDRequireIssuersUseHttps="false",
            openIDKeyIdCacheMissRefreshSeconds="0",
            headgateRevocationFile=str(revoked),
        ),
    )
    process.start()
    try:
        yield process
    finally:
        process.close()
    log = process.log()
    assert "Traceback" not in log
    assert "eyJ" not in log, "a token"


def valid(issuer: FakeIssuer, role: str, key_id: str = "k1", **changed: Any) -> str:
    now_s = time.time()
    said = {"iss": issuer.url, "sub": role, "iat": now_s - 1, "exp": now_s + 600, **changed}
    return token(issuer.keys[key_id], key_id, **said)


def status(broker: BrokerProcess, text: str, method: str = "GET", path: str = CLUSTERS) -> int:
    return raw(broker, method, path, b"", f"Authorization: Bearer {text}")[0]


@contextmanager
def connected(broker: BrokerProcess, text: str) -> Iterator[socket.socket]:
    """A connection that is authenticated."""
    with dial(broker) as client:
        client.sendall(frames.connect(auth_method="token", auth_data=text.encode()))
        found = answer(client)
        assert found is not None
        assert found.type == CommandType.CONNECTED
        yield client


def is_ended(client: socket.socket) -> bool:
    """Whether the broker ends a connection in time."""
    client.settimeout(WITHIN_S)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def is_alive(client: socket.socket) -> bool:
    client.sendall(frames.ping())
    found = answer(client)
    return found is not None and found.type == CommandType.PONG


def test_the_official_client_gets_its_tokens_from_the_issuer(
    broker: BrokerProcess, issuer: FakeIssuer
) -> None:
    given = {
        "issuer_url": issuer.url, "client_id": "orders", "client_secret": issuer.client_secret,
        "audience": AUDIENCE,
    }  # fmt: skip
    auth = pulsar.AuthenticationOauth2(json.dumps(given))
    with client_of(broker.service_url, authentication=auth) as client:
        client.create_producer(full("by-oauth2")).send(b"x")
    assert {CONFIGURATION_PATH, TOKEN_PATH, KEYS_PATH} <= set(issuer.requests)


def test_tokens_of_the_issuer_and_of_the_operator(
    broker: BrokerProcess, issuer: FakeIssuer
) -> None:
    assert status(broker, valid(issuer, "app")) == 200
    assert status(broker, ADMIN) == 200
    other = token(signing_key("RS256", "another"), "k1", iss=issuer.url, exp=time.time() + 60)
    for text in (
        other, valid(issuer, "app", aud="other"), valid(issuer, "app", exp=time.time() - 1),
        valid(issuer, "app", iss=f"{issuer.url}/"), "x.y.z",
    ):  # fmt: skip
        assert status(broker, text) == 401


def test_clients_of_a_dead_issuer_are_to_try_again(
    broker: BrokerProcess, issuer: FakeIssuer
) -> None:
    text = valid(issuer, "app", iss=DEAD_ISSUER)
    for _ in range(5):
        found = login(broker, "token", text.encode())
        assert found.error.error == ServerError.SERVICE_NOT_READY
        assert status(broker, text) == 429
    assert status(broker, valid(issuer, "app")) == 200
    lines = [line for line in broker.log().splitlines() if "fetching the keys of" in line]
    assert len(lines) == 1
    assert f"{DEAD_ISSUER} fails: " in lines[0]


def test_a_new_key_works_without_a_restart(broker: BrokerProcess, issuer: FakeIssuer) -> None:
    with connected(broker, valid(issuer, "app")) as client:
        issuer.keys["k2"] = signing_key("ES256")
        assert status(broker, valid(issuer, "app", "k2")) == 200
        assert status(broker, valid(issuer, "app")) == 200
        assert is_alive(client)


def test_a_role_is_revoked_by_a_setting(broker: BrokerProcess, issuer: FakeIssuer) -> None:
    path = "/admin/v2/brokers/configuration/headgateRevokedRoles"
    bad, good = valid(issuer, "bad role"), valid(issuer, "good")
    with connected(broker, bad) as ended, connected(broker, good) as kept:
        assert status(broker, ADMIN, "POST", f"{path}/bad%20role") == 200
        assert is_ended(ended)
        assert status(broker, bad) == 401
        assert is_alive(kept)
    assert status(broker, ADMIN, "POST", f"{path}/a%20until%20tomorrow") == 412
    assert status(broker, ADMIN, "DELETE", path) == 200
    assert status(broker, bad) == 200


def test_a_token_is_revoked_by_the_file(
    broker: BrokerProcess, issuer: FakeIssuer, revoked: Path
) -> None:
    bad, good = valid(issuer, "app", jti="t1"), valid(issuer, "app", jti="t2")
    line = CliRunner().invoke(main, ["tokens", "revocation", bad]).stdout
    assert line.startswith("token t1 until ")
    with connected(broker, bad) as ended, connected(broker, good) as kept:
        new = revoked.with_suffix(".new")
        new.write_text(line)
        new.rename(revoked)
        assert is_ended(ended)
        assert status(broker, bad) == 401
        assert is_alive(kept)
    # A file that is lost leaves its entries in force.
    revoked.unlink()
    wait_until(lambda: "the revocation file fails: " in broker.log())
    assert status(broker, bad) == 401
    revoked.write_text("# nobody\n")
    wait_until(lambda: status(broker, bad) == 200)


def test_starts_that_are_refused(make_broker: Callable[..., BrokerProcess]) -> None:
    enabled = {"authenticationEnabled": "true", "authenticationProviders": "openid"}
    issuer = {"openIDAllowedTokenIssuers": "http://issuer", "openIDAllowedAudiences": "a"}
    for settings, said in (
        (enabled, "openIDAllowedTokenIssuers is empty"),
        ({**enabled, **issuer}, "https is needed (openIDRequireIssuersUseHttps)"),
        ({"headgateRevokedRoles": "a"}, "headgateRevokedRoles needs authenticationEnabled=true"),
        (
            {**enabled, **issuer, "openIDRequireIssuersUseHttps": "false",
             "headgateRevocationFile": "/no/such"},
            "headgateRevocationFile=/no/such cannot be read",
        ),
    ):  # fmt: skip
        with pytest.raises(StartFailedError) as failure:
            make_broker(words=words(**settings)).start()
        assert said in failure.value.stderr
        assert "Traceback" not in failure.value.stderr

"""Commands and the Spark source before a broker that asks for credentials in TLS: real sockets.

A proxy stands before both ports of the broker, asks for tokens and speaks TLS.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pulsar
import pytest
from click.testing import CliRunner, Result

from headgate.cli.group import main
from pyspark_pulsar.access import Access
from pyspark_pulsar.admin import http_transport
from pyspark_pulsar.entry_stream import EntryStream
from pyspark_pulsar.oauth2 import OAuth2
from pyspark_pulsar.offsets import earliest
from pyspark_pulsar.options import Connection
from pyspark_pulsar.read_settings import ReadSettings
from tests.service.process import BrokerProcess
from tests.spark.front import Certificates, Front, front_of, make_certificates

GOOD = "good.token.0123456789"
VARIABLES = ("PULSAR_CLIENT_CONF", "HEADGATE_PROFILE", "HEADGATE_TOKEN")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def run(*words: str, **environment: str) -> Result:
    clean: dict[str, str | None] = dict.fromkeys(VARIABLES)
    return CliRunner(env={**clean, **environment}).invoke(main, list(words))


def conf_of(folder: Path, **values: str) -> str:
    path = folder / "client.conf"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return str(path)


def test_a_token_in_tls(broker: BrokerProcess, certificates: Certificates, tmp_path: Path) -> None:
    """By a client.conf, for admin and explain; the token file is read by each."""
    token = tmp_path / "token"
    token.write_text("wrong.token\n")
    token.chmod(0o600)
    with front_of(
        broker.service_url, broker.admin_url, tokens={GOOD}, certificates=certificates
    ) as front:
        conf = conf_of(
            tmp_path,
            webServiceUrl=front.admin_url,
            authPlugin="org.apache.pulsar.client.impl.auth.AuthenticationToken",
            authParams=token.as_uri(),
            tlsTrustCertsFilePath=certificates.authority,
        )
        refused = run("admin", "--config", conf, "tenants", "list")
        assert refused.exit_code == 1
        assert refused.stderr.startswith(
            "a token is required\n\nReason: a token is required\n\nThe command sent the token in "
            f"{token} (authParams in {conf})."
        )
        assert "wrong.token" not in refused.stderr
        token.write_text(GOOD)
        found = run("admin", "--config", conf, "tenants", "list")
        assert (found.exit_code, found.stderr) == (0, "")
        assert "public" in found.stdout.split()
        explained = run("explain", "--json", PULSAR_CLIENT_CONF=conf)
        assert (explained.exit_code, explained.stderr) == (0, "")
        assert "subscriptions" in json.loads(explained.stdout)
        held = run("backup", "--to", str(tmp_path / "b"), "--admin-url", front.admin_url)
        assert held.exit_code == 1
        assert "certificate is not trusted" in held.stderr


def test_certificates_are_checked(broker: BrokerProcess, certificates: Certificates) -> None:
    words = ("admin", "--tls-trust-cert-path", certificates.authority)
    with front_of(broker.service_url, broker.admin_url, certificates=certificates) as front:
        untrusted = run("explain", "--admin-url", front.admin_url)
        assert untrusted.exit_code == 1
        assert "its certificate is not trusted: unable to get local issuer" in untrusted.stderr
        assert "--tls-trust-cert-path names the file of the authority" in untrusted.stderr
        by_name = ("--admin-url", front.admin_url.replace("127.0.0.1", "localhost"))
        other_host = run(*words, *by_name, "tenants", "list")
        assert other_host.exit_code == 1
        assert "certificate is not valid for 'localhost'" in other_host.stderr
        lax = run(*words, *by_name, "--tls-disable-hostname-verification", "tenants", "list")
        assert lax.exit_code == 0
        assert lax.stderr.startswith("Warning: a certificate of another host is accepted")
        anybody = run("admin", *by_name, "--tls-allow-insecure", "tenants", "list")
        assert anybody.exit_code == 0
        assert anybody.stderr.startswith("Warning: any certificate is trusted")
        plain = run("explain", "--admin-url", front.admin_url.replace("https:", "http:"))
        assert plain.exit_code == 1
    https = broker.admin_url.replace("http:", "https:")
    assert (
        "does not speak TLS; did you mean http://?" in run("explain", "--admin-url", https).stderr
    )


def test_a_client_certificate(broker: BrokerProcess, certificates: Certificates) -> None:
    with front_of(
        broker.service_url, broker.admin_url, certificates=certificates, wants_certificate=True
    ) as front:
        words = (
            "admin", "--admin-url", front.admin_url, "--tls-trust-cert-path", certificates.authority
        )  # fmt: skip
        refused = run(*words, "tenants", "list")
        assert refused.exit_code == 1
        assert "it asks for a client certificate (--auth-plugin tls)" in refused.stderr
        params = f"tlsCertFile:{certificates.client},tlsKeyFile:{certificates.client_key}"
        found = run(*words, "--auth-plugin", "tls", "--auth-params", params, "tenants", "list")
        assert (found.exit_code, found.stderr) == (0, "")


@contextmanager
def issuer(token: str) -> Iterator[HTTPServer]:
    """An issuer of OAuth 2.0 tokens for the client ``c`` with the secret ``s3cret``."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/realm/.well-known/openid-configuration"
            self._answer(200, {"token_endpoint": f"http://127.0.0.1:{server.server_port}/token"})

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            if form["client_secret"] != ["s3cret"] or form["audience"] != ["urn:broker"]:
                self._answer(401, {"error": "invalid_client"})
            else:
                self._answer(200, {"access_token": token, "expires_in": 3_600})

        def _answer(self, status: int, value: dict[str, object]) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_tokens_of_an_issuer(broker: BrokerProcess, tmp_path: Path) -> None:
    """For commands, and for both protocols of Spark's source."""
    key = tmp_path / "key.json"
    with (
        issuer(GOOD) as server,
        front_of(broker.service_url, broker.admin_url, tokens={GOOD}) as front,
    ):
        issuer_url = f"http://127.0.0.1:{server.server_port}/realm"
        params = json.dumps(
            {"issuerUrl": issuer_url, "privateKey": key.as_uri(), "audience": "urn:broker"}
        )
        words = ("explain", "--json", "--admin-url", front.admin_url, "--auth-plugin", "oauth2")
        for secret, status in (("other", 1), ("s3cret", 0)):
            key.write_text(json.dumps({"client_id": "c", "client_secret": secret}))
            key.chmod(0o600)
            found = run(*words, "--auth-params", params)
            assert found.exit_code == status, found.stderr
            assert secret not in found.stderr
        access = Access(flow=OAuth2(issuer_url, str(key), audience="urn:broker"))
        assert http_transport(access)(f"{front.admin_url}/admin/v2/tenants", 5).status == 200
        read(broker, front, access)
        assert set(front.shown) == {GOOD}


def test_a_user_and_a_password_in_connect(broker: BrokerProcess) -> None:
    """The Spark source sends it with each connection."""
    with front_of(broker.service_url, broker.admin_url, tokens={"u:p:x"}) as front:
        read(broker, front, Access(password="u:p:x"))
        assert set(front.shown) == {"u:p:x"}
        assert len(front.shown) > 1


def read(broker: BrokerProcess, front: Front, access: Access) -> None:
    """Read a message through ``front``, as a task of Spark does."""
    native = pulsar.Client(broker.service_url)
    try:
        native.create_producer("public/default/secured").send(b"m")
    finally:
        native.close()
    connection = Connection(front.service_url, front.admin_url, 5_000, 5_000, access)
    settings = ReadSettings(connection, None, None, True, None, 5_000)
    topic = "persistent://public/default/secured"
    with closing(EntryStream(topic, earliest(topic), settings)) as stream:
        assert stream.next_entry(5.0) is not None

"""Which requests the web port serves, and as whom."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from headgate.app.served_requests import TURN_EXTENSION
from headgate.app.web_authentication import CERTIFICATE_EXTENSION, WebAuthentication
from headgate.base.identity import NOBODY, Identity, identity_of, why_lapsed
from headgate.broker.authentication import Authentication
from headgate.policy.settings import Settings
from headgate.security.certificate_provider import CertificateProvider
from headgate.security.errors import CredentialsError, UncheckedCredentialsError
from headgate.security.failed_attempts import FailedAttempts
from headgate.security.provider import Credentials, Principal
from tests.unit.security.made_tokens import token_of, token_provider

CLUSTERS = "/admin/v2/clusters"
CERTIFICATE = {"subject": ((("commonName", "ann"),),)}


class Passwords:
    """``ann:secret`` is right, later."""

    method = "basic"

    def principal(self, credentials: Credentials, now_s: float) -> Awaitable[Principal]:
        return self._later(credentials.data)

    async def _later(self, data: bytes) -> Principal:
        await asyncio.sleep(0)
        if data == b"busy:x":
            raise UncheckedCredentialsError("busy")
        if data == b"bug:x":
            raise RuntimeError("a bug")
        if data != b"ann:secret":
            raise CredentialsError("there is no such name with that password")
        return Principal("ann")


class Answer:
    """What a client gets, and as whom it was served."""

    def __init__(self) -> None:
        self.served: Identity | None = None
        self.lapse = ""
        self.status = 200
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.turns = 0
        """Further ones that it took of the loop."""

    @property
    def reason(self) -> str:
        return str(json.loads(self.body)["reason"])


def ask(
    *headers: tuple[str, str],
    method: str = "GET",
    path: str = CLUSTERS,
    certificate: dict[str, Any] | None = None,
    raw_path: bytes | None = None,
    revoked: str = "",
    why_revoked: Callable[[Principal, str], str] | None = None,
    **settings: Any,
) -> Answer:
    answer = Answer()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        answer.served, answer.lapse = identity_of(scope), why_lapsed(scope)

    async def receive() -> Message:
        raise AssertionError("no body is read")

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answer.status, answer.headers = message["status"], message["headers"]
        else:
            answer.body += message["body"]

    async def turn() -> None:
        assert answer.served is None
        answer.turns += 1

    extensions: dict[str, Any] = {TURN_EXTENSION: {"call": turn}}
    if certificate:
        extensions[CERTIFICATE_EXTENSION] = certificate
    scope: dict[str, Any] = {
        "type": "http", "method": method, "path": path, "client": ("10.0.0.1", 5),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
        "extensions": extensions,
    }  # fmt: skip
    if raw_path is not None:
        scope["raw_path"] = raw_path
    whole = Settings(**settings)
    providers = (token_provider(), Passwords(), CertificateProvider())
    authentication = Authentication(whole, providers, FailedAttempts(), lambda: 1.8e9)

    def by_role(who: Principal, _: str) -> str:
        return "it is revoked" if who.role == revoked else ""

    authentication.why_revoked = why_revoked or by_role
    asyncio.run(WebAuthentication(app, authentication, whole)(scope, receive, send))
    return answer


def bearer(role: str) -> tuple[str, str]:
    return "Authorization", f"Bearer {token_of(role).decode()}"


def basic(text: str) -> tuple[str, str]:
    return "Authorization", "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "headers",
    [
        [bearer("ann")],
        [("authorization", bearer("ann")[1].replace("Bearer", "bearer  "))],
        [basic("ann:secret")],
    ],
)
def test_good_credentials_are_served_as_their_role(headers: list[tuple[str, str]]) -> None:
    assert ask(*headers).served == Identity("ann")
    assert ask(*headers, method="POST").served == Identity("ann")


def test_who_waited_for_a_check_goes_on_in_a_turn() -> None:
    """Hundreds may have waited for the same one, of one password."""
    assert ask(basic("ann:secret")).turns == 1
    assert ask(basic("ann:wrong")).turns == 0
    assert ask(bearer("ann")).turns == 0


def test_a_revoked_role_is_refused_at_its_next_request() -> None:
    answer = ask(bearer("ann"), revoked="ann")
    assert answer.status == 401
    assert answer.served is None
    assert ask(bearer("bob"), revoked="ann").served == Identity("bob")


def test_the_application_can_ask_whether_the_credentials_still_count() -> None:
    lookups: list[str] = []

    def revoked_later(who: Principal, _: str) -> str:
        lookups.append(who.role)
        return "it is revoked" if len(lookups) > 1 else ""

    assert ask(bearer("ann")).lapse == ""
    assert ask(bearer("ann"), why_revoked=revoked_later).lapse == "it is revoked"


def test_so_is_a_certificate_unless_a_header_speaks() -> None:
    assert ask(certificate=CERTIFICATE).served == Identity("ann")
    assert ask(bearer("bob"), certificate=CERTIFICATE).served == Identity("bob")
    assert ask(("Authorization", "Bearer x"), certificate=CERTIFICATE).status == 401


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Authorization", "")],
        [("Authorization", "Bearer")],
        [("Authorization", "Bearer x.y.z")],
        [("Authorization", "Basic !!!")],
        [("Authorization", "Basic YQ")],
        [("Authorization", "Digest x")],
        [("Authorization", "Bearer " + "x" * 60_000)],
        [basic("ann:guess")],
        [bearer("ann"), bearer("ann")],
        [bearer("ann"), basic("ann:secret")],
        [bearer("ann"), ("X-Original-Principal", "bob")],
        [bearer("ann"), ("X-Original-Principal", "\xff")],
        [bearer("proxy")],
        [bearer("proxy"), ("X-Original-Principal", "proxy")],
        [bearer("proxy"), ("X-Original-Principal", "a"), ("X-Original-Principal", "b")],
    ],
)
def test_others_are_refused(headers: list[tuple[str, str]]) -> None:
    answer = ask(*headers, proxyRoles="proxy")
    assert answer.served is None
    assert answer.status == 401
    assert answer.reason
    challenges = [value for name, value in answer.headers if name == b"www-authenticate"]
    assert challenges == [b'Bearer realm="headgate"', b'Basic realm="headgate"']
    for _, value in headers:
        secret = value.partition(" ")[2]
        assert len(secret) < 6 or secret not in answer.reason


def test_a_script_of_a_page_makes_the_browser_ask_for_no_password() -> None:
    answer = ask(("X-Requested-With", "headgate"))
    challenges = [value for name, value in answer.headers if name == b"www-authenticate"]
    assert answer.status == 401
    assert challenges == [b'Bearer realm="headgate"', b'xBasic realm="headgate"']


def test_a_proxy_speaks_for_its_client() -> None:
    found = ask(bearer("proxy"), ("X-Original-Principal", "ann"), proxyRoles="proxy")
    assert found.served == Identity("proxy", "ann")
    assert ask(bearer("ann"), ("X-Original-Principal", "ann")).served == Identity("ann")


def test_an_anonymous_client_has_its_role_and_a_wrong_one_has_not() -> None:
    assert ask(anonymousUserRole="anyone").served == Identity("anyone")
    assert ask(basic("ann:guess"), anonymousUserRole="anyone").status == 401


def test_what_is_not_checked_now_may_be_tried_again() -> None:
    answer = ask(basic("busy:x"))
    assert answer.status == 429
    assert (b"retry-after", b"60") in answer.headers


def test_a_bug_answers_in_json(caplog: pytest.LogCaptureFixture) -> None:
    answer = ask(basic("bug:x"))
    assert answer.status == 500
    assert "Internal error" in answer.reason
    assert "a bug" in caplog.text


def test_a_head_has_no_body() -> None:
    answer = ask(method="HEAD")
    assert (answer.status, answer.body) == (401, b"")


@pytest.mark.parametrize(
    "path", ["/admin/v2/brokers/health", "/admin/v2/brokers/ready/", "/metrics"]
)
def test_what_is_open_to_everybody(path: str) -> None:
    assert ask(path=path).served is NOBODY
    assert ask(path=path, method="HEAD").served is NOBODY
    assert ask(path=path, method="POST").status == 401


@pytest.mark.parametrize(
    "path",
    [
        "/", "", "/admin/v2/brokers/healthy", "/admin/v2/brokers", "/metricsx", "//metrics",
        "/metrics/x", "/admin/v2/brokers/health/../configuration/runtime",
    ],
)  # fmt: skip
def test_everything_else_is_not(path: str) -> None:
    assert ask(path=path).status == 401


def test_nor_is_a_path_that_only_looks_open_once_it_is_decoded() -> None:
    health = "/admin/v2/brokers/health"
    assert ask(path=health, raw_path=health.encode()).served is NOBODY
    assert ask(path=health, raw_path=b"/admin/v2/brokers%2Fhealth").status == 401
    assert ask(path="/metrics", raw_path=b"/metric%73").status == 401


def test_metrics_by_the_setting() -> None:
    assert ask(path="/metrics", authenticateMetricsEndpoint=True).status == 401
    found = ask(bearer("ann"), path="/metrics", authenticateMetricsEndpoint=True)
    assert found.served == Identity("ann")


@pytest.mark.parametrize("path", ["/admin/v2/brokers/health", "/metrics"])
def test_credentials_count_also_where_none_are_needed(path: str) -> None:
    """Else nobody could have the right that authorization asks for there."""
    assert ask(bearer("ann"), path=path).served == Identity("ann")
    assert ask(certificate=CERTIFICATE, path=path).served == Identity("ann")
    assert ask(("Authorization", "Bearer x"), path=path).status == 401
    assert ask(path=path).served is NOBODY

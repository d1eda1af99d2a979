"""Who a client is, by the rules of methods, proxies and refreshes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headgate.base.identity import Identity
from headgate.broker.authentication import (
    FAILURE,
    LINES_MAX,
    NO_CREDENTIALS,
    SUCCESS,
    UNCHECKED,
    Authentication,
    ClientCredentials,
    Session,
)
from headgate.policy.settings import Settings
from headgate.security.errors import (
    CredentialsError,
    OriginalPrincipalError,
    UncheckedCredentialsError,
)
from headgate.security.failed_attempts import PERIOD_S, FailedAttempts
from headgate.security.provider import Credentials, Principal, Provider
from tests.unit.security.made_tokens import token_of, token_provider

NOW_S = 1_800_000_000.0


class Slow:
    """A provider that needs another turn of the loop: the data is the role, ``!`` is wrong."""

    method = "slow"

    def principal(self, credentials: Credentials, now_s: float) -> Principal | Awaitable[Principal]:
        return self._later(credentials.data.decode())

    async def _later(self, role: str) -> Principal:
        await asyncio.sleep(0)
        if role == "!":
            raise CredentialsError("wrong")
        if role == "?":
            raise UncheckedCredentialsError("later")
        return Principal(role, NOW_S + 100)


class Rig:
    """An authentication whose clock a test sets."""

    def __init__(self, *providers: Provider, **settings: Any) -> None:
        self.now_s = NOW_S
        self.authentication = Authentication(
            Settings(**settings),
            providers or (token_provider(), Slow()),
            FailedAttempts(),
            lambda: self.now_s,
        )

    def session(self, own: Credentials, principal: str = "", **more: Any) -> Session:
        client = ClientCredentials(own, principal, **more)
        return asyncio.run(_ended(lambda: self.authentication.session(client)))

    def refreshed(self, session: Session, credentials: Credentials) -> Session:
        return asyncio.run(_ended(lambda: self.authentication.refreshed(session, credentials)))


async def _ended(begin: Callable[[], Session | asyncio.Task[Session]]) -> Session:
    found = begin()
    return found if isinstance(found, Session) else await found


def token(role: str, expires_s: float | None = None) -> Credentials:
    return Credentials("token", token_of(role, expires_s), address="10.0.0.1")


def slow(role: str) -> Credentials:
    return Credentials("slow", role.encode(), address="10.0.0.1")


NOTHING = Credentials(NO_CREDENTIALS, address="10.0.0.1")
PROXIES = {"proxyRoles": "proxy, other-proxy"}
CHECKED = {**PROXIES, "authenticateOriginalAuthData": True}


def test_a_token_makes_a_session_at_once() -> None:
    rig = Rig()
    found = rig.authentication.session(ClientCredentials(token("ann", NOW_S + 9)))
    assert isinstance(found, Session)
    assert found.identity == Identity("ann")
    assert (found.method, found.expires_s) == ("token", NOW_S + 9)


def test_a_session_lapses_when_it_expires_or_is_revoked() -> None:
    rig = Rig()
    found = rig.session(token("ann", NOW_S + 9))
    why_lapsed = rig.authentication.why_lapsed
    assert why_lapsed(found, "10.0.0.1") == ""
    rig.authentication.why_revoked = lambda who, _: f"{who.role} is revoked"
    assert why_lapsed(found, "10.0.0.1") == "ann is revoked"
    rig.now_s = NOW_S + 9
    assert why_lapsed(found, "10.0.0.1") == "the credentials have expired"


def test_a_provider_may_take_time() -> None:
    rig = Rig()
    assert rig.session(slow("ann")).identity == Identity("ann")
    with pytest.raises(CredentialsError, match="wrong"):
        rig.session(slow("!"))
    assert rig.authentication.counts == {("slow", SUCCESS): 1, ("slow", FAILURE): 1}


def test_an_attempt_counts_also_if_the_client_has_left() -> None:
    rig = Rig()

    async def leave() -> None:
        rig.authentication.session(ClientCredentials(slow("!")))
        await asyncio.sleep(0.01)

    asyncio.run(leave())
    assert rig.authentication.counts == {("slow", FAILURE): 1}


@pytest.mark.parametrize("method", ["", NO_CREDENTIALS, "athenz"])
def test_a_client_without_a_known_method_is_anonymous_or_refused(method: str) -> None:
    credentials = Credentials(method, b"x")
    with pytest.raises(CredentialsError, match=r"no provider|no credentials"):
        Rig().session(credentials)
    found = Rig(anonymousUserRole="anyone").session(credentials)
    assert (found.identity, found.method, found.expires_s) == (Identity("anyone"), "", None)


def test_wrong_credentials_are_not_anonymous() -> None:
    rig = Rig(anonymousUserRole="anyone")
    with pytest.raises(CredentialsError, match="three parts"):
        rig.session(Credentials("token", b"x"))


def test_several_providers_of_a_method_are_asked_in_turn() -> None:
    class Other:
        method = "token"

        def principal(self, credentials: Credentials, now_s: float) -> Principal:
            if credentials.data != b"other":
                raise CredentialsError("not the other's")
            return Principal("other")

    rig = Rig(token_provider(), Other())
    assert rig.authentication.methods == ("token",)
    assert rig.session(token("ann")).own.role == "ann"
    assert rig.session(Credentials("token", b"other")).own.role == "other"
    with pytest.raises(CredentialsError, match="three parts"):
        rig.session(Credentials("token", b"x"))


def test_one_after_a_slow_one_is_asked_too() -> None:
    class Quick:
        method = "slow"

        def principal(self, credentials: Credentials, now_s: float) -> Principal:
            return Principal("quick")

    assert Rig(Slow(), Quick()).session(slow("!")).own.role == "quick"
    assert Rig(Slow(), Quick()).session(slow("ann")).own.role == "ann"


# -- proxies -----------------------------------------------------------------------------------


def test_a_proxy_names_its_client() -> None:
    found = Rig(**PROXIES).session(token("proxy"), "ann")
    assert found.identity == Identity("proxy", "ann")


@pytest.mark.parametrize("named", ["", " ", "proxy", "other-proxy", "a\nb", "x" * 5_000])
def test_a_proxy_must_name_a_role_that_is_no_proxy(named: str) -> None:
    with pytest.raises(OriginalPrincipalError):
        Rig(**PROXIES).session(token("proxy"), named)


def test_another_role_names_itself_or_nobody() -> None:
    rig = Rig(**PROXIES)
    assert rig.session(token("ann"), "ann").identity == Identity("ann")
    assert rig.session(token("ann")).identity == Identity("ann")
    for named in ("bob", "proxy", " "):
        with pytest.raises(OriginalPrincipalError, match="only a proxy role"):
            rig.session(token("ann"), named)


def test_an_anonymous_client_speaks_for_nobody() -> None:
    rig = Rig(anonymousUserRole="anyone", **CHECKED)
    with pytest.raises(OriginalPrincipalError, match="only a proxy role"):
        rig.session(NOTHING, "ann", original=token("ann"))


def test_a_forwarded_client_without_credentials_is_anonymous_and_nobody_else() -> None:
    rig = Rig(anonymousUserRole="anyone", **CHECKED)
    assert rig.session(token("proxy"), original=NOTHING).identity == Identity("proxy", "anyone")
    with pytest.raises(OriginalPrincipalError, match="not the role of the forwarded"):
        rig.session(token("proxy"), "ann", original=NOTHING)


def test_forwarded_credentials_are_checked() -> None:
    rig = Rig(**CHECKED)
    found = rig.session(token("proxy", NOW_S + 50), "ann", original=token("ann", NOW_S + 5))
    assert found.identity == Identity("proxy", "ann")
    assert (found.method, found.expires_s) == ("token", NOW_S + 5)
    assert rig.session(token("proxy"), original=slow("ann")).identity.original_role == "ann"


@pytest.mark.parametrize(
    ("named", "original", "kind"),
    [
        ("ann", None, OriginalPrincipalError),
        ("ann", token("bob"), OriginalPrincipalError),
        ("", token("other-proxy"), OriginalPrincipalError),
        ("ann", token("ann", NOW_S - 1), CredentialsError),
        ("ann", slow("!"), CredentialsError),
        ("ann", NOTHING, CredentialsError),
    ],
)
def test_forwarded_credentials_must_be_those_of_the_named_client(
    named: str, original: Credentials | None, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        Rig(**CHECKED).session(token("proxy"), named, original=original)


def test_without_the_setting_forwarded_credentials_are_not_looked_at() -> None:
    found = Rig(**PROXIES).session(token("proxy"), "ann", original=Credentials("token", b"x"))
    assert found.identity == Identity("proxy", "ann")
    assert found.original is None


def test_over_http_no_credentials_can_be_forwarded() -> None:
    found = Rig(**CHECKED).session(token("proxy"), "ann", can_forward=False)
    assert found.identity == Identity("proxy", "ann")


# -- refreshes ---------------------------------------------------------------------------------


def test_new_credentials_of_the_same_role_extend_the_session() -> None:
    rig = Rig()
    session = rig.session(token("ann", NOW_S + 5))
    later = rig.refreshed(session, token("ann", NOW_S + 60))
    assert (later.identity, later.expires_s) == (session.identity, NOW_S + 60)


@pytest.mark.parametrize(
    ("credentials", "why"),
    [
        (token("bob", NOW_S + 60), "another role"),
        (token("ann", NOW_S - 1), "expired"),
        (slow("ann"), "of the method 'slow'"),
        (NOTHING, "of the method 'none'"),
    ],
)
def test_others_end_it(credentials: Credentials, why: str) -> None:
    rig = Rig(anonymousUserRole="ann")
    with pytest.raises(CredentialsError, match=why):
        rig.refreshed(rig.session(token("ann", NOW_S + 5)), credentials)


def test_behind_a_proxy_the_client_refreshes_its_own() -> None:
    rig = Rig(**CHECKED)
    session = rig.session(token("proxy", NOW_S + 500), original=token("ann", NOW_S + 5))
    later = rig.refreshed(session, token("ann", NOW_S + 60))
    assert later.identity == Identity("proxy", "ann")
    assert later.expires_s == NOW_S + 60
    with pytest.raises(CredentialsError, match="another role"):
        rig.refreshed(session, token("proxy", NOW_S + 60))
    much_later = rig.refreshed(session, token("ann", NOW_S + 900))
    assert much_later.expires_s == NOW_S + 500, "the proxy's own lapse before"


def test_a_certificate_is_not_replaced() -> None:
    class Certificates:
        method = "tls"

        def principal(self, credentials: Credentials, now_s: float) -> Principal:
            return Principal("ann", NOW_S + 5)

    assert Rig(Certificates()).session(Credentials("tls")).method == ""


# -- counts and log lines ----------------------------------------------------------------------


def test_attempts_are_counted_by_method_and_result() -> None:
    rig = Rig(anonymousUserRole="anyone")
    rig.session(token("ann"))
    rig.session(Credentials("athenz"))
    for credentials in (Credentials("token", b"x"), slow("?")):
        with pytest.raises(CredentialsError):
            rig.session(credentials)
    assert rig.authentication.counts == {
        ("token", SUCCESS): 1, (NO_CREDENTIALS, SUCCESS): 1, ("token", FAILURE): 1,
        ("slow", UNCHECKED): 1,
    }  # fmt: skip


def test_failures_of_an_address_are_one_line_a_period(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    secret = token_of("ann", NOW_S - 7)
    with caplog.at_level(logging.WARNING):
        for _ in range(100):
            with pytest.raises(CredentialsError):
                rig.session(Credentials("token", secret, address="10.0.0.1"))
        rig.authentication.log_ended_periods()
        assert [r.getMessage() for r in caplog.records] == [
            "10.0.0.1: authentication failed (token): the token expired 7 s ago"
        ]
        rig.now_s += PERIOD_S
        rig.authentication.log_ended_periods()
    assert [r.getMessage() for r in caplog.records[1:]] == [
        "10.0.0.1: 99 further attempts to authenticate failed"
    ]
    assert secret.decode() not in caplog.text


def test_thousands_of_addresses_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig()

    def fail(number: int) -> None:
        with pytest.raises(CredentialsError):
            rig.session(Credentials("token", b"x", address=f"10.0.{number // 250}.{number % 250}"))

    with caplog.at_level(logging.WARNING):
        for number in range(1_000):
            fail(number)
        assert len(caplog.records) == LINES_MAX
        rig.now_s += PERIOD_S
        fail(5_000)
    assert f"{1_000 - LINES_MAX} further lines" in caplog.records[LINES_MAX].getMessage()

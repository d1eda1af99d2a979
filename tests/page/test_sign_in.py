"""Signing in at an identity provider, from a broker behind a proxy with a path prefix."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.page.conftest import PHONE, WIDE
from tests.service.fake_issuer import (
    AUTHORIZATION_PATH,
    CODE,
    DENIAL,
    TOKEN_PATH,
    FakeIssuer,
    fake_issuer,
)
from tests.service.prefix_proxy import PrefixProxy, prefix_proxy
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import words
from tests.unit.security.jwks_examples import AUDIENCE, signing_key, token

CLIENT_ID = "headgate page"
CLIENT_SECRET = "m4rked/s3cret+of the client"
VIEW = "limits"
KEPT = "[localStorage.length, sessionStorage.length, document.cookie, location.href]"
LIFETIME_S = 600


@pytest.fixture(scope="module")
def issuer() -> Iterator[FakeIssuer]:
    with fake_issuer({"k1": signing_key()}) as found:
        found.client_secret = CLIENT_SECRET
        yield found


@pytest.fixture(autouse=True)
def honest(issuer: FakeIssuer) -> None:
    """The issuer begins each test with what it should answer."""
    issuer.responses.clear()
    issuer.requests.clear()
    issuer.make_tokens = lambda client, nonce: {
        "access_token": made(issuer, aud=AUDIENCE, sub="ann"),
        "id_token": made(issuer, aud=client, nonce=nonce, sub="ann"),
    }


@pytest.fixture(scope="module")
def proxy() -> Iterator[PrefixProxy]:
    with prefix_proxy() as found:
        yield found


@pytest.fixture(scope="module")
def broker(
    tmp_path_factory: pytest.TempPathFactory, issuer: FakeIssuer, proxy: PrefixProxy
) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("broker")
    secret = folder / "secret"
    secret.touch(0o600)
    secret.write_text(CLIENT_SECRET)
    process = BrokerProcess(
        folder,
        [
            *words(
                authenticationEnabled="true",
                authenticationProviders="openid",
                openIDAllowedTokenIssuers=issuer.url,
                openIDAllowedAudiences=AUDIENCE,
                openIDRequireIssuersUseHttps="false",
                headgateSignInClientId=CLIENT_ID,
                headgateSignInClientSecretFile=str(secret),
                headgateSignInRedirectUrl=f"{proxy.url}/headgate/sign-in/callback",
            ),
            "--log-level", "debug", "--audit-log", str(folder / "audit.log"),
        ],
    )  # fmt: skip
    process.start()
    proxy.show(process.admin_url)
    try:
        yield process
    finally:
        process.close()
    shown = process.log() + (folder / "audit.log").read_text()
    assert '"operation":"page.sign-in"' in shown
    assert '"role":"ann"' in shown
    for hidden in ("eyJ", CODE, "m4rked"):
        assert hidden not in shown


def made(issuer: FakeIssuer, **claims: Any) -> str:
    now_s = time.time()
    said = {"iss": issuer.url, "iat": now_s - 1, "exp": now_s + LIFETIME_S, **claims}
    return token(issuer.keys["k1"], "k1", **said)


@pytest.fixture
def context(
    browser: Browser, broker: BrokerProcess, proxy: PrefixProxy, issuer: FakeIssuer
) -> Iterator[BrowserContext]:
    """A browser that leaves the page only to go to the issuer, and in which no script fails."""
    problems: list[str] = []
    found = browser.new_context(viewport={"width": WIDE[0], "height": WIDE[1]})

    def check(request: Any) -> None:
        is_own = urlsplit(request.url).port == urlsplit(proxy.url).port
        is_inline = request.url.startswith("data:")
        if not (is_own or is_inline or request.is_navigation_request()):
            problems.append(f"another host was asked: {request.url}")
        if "eyJ" in request.url:
            problems.append(f"a token is in a URL: {request.url}")

    def watch(page: Page) -> None:
        page.on("request", check)
        page.on("pageerror", lambda error: problems.append(f"a script failed: {error}"))
        page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))

    found.on("page", watch)
    yield found
    found.close()
    assert not problems, "\n".join(problems)


def go_to_issuer(context: BrowserContext, proxy: PrefixProxy, issuer: FakeIssuer) -> Page:
    page = context.new_page()
    page.goto(f"{proxy.url}/headgate/#/{VIEW}")
    page.get_by_role("button", name=f"Sign in with {urlsplit(issuer.url).netloc}").click()
    page.get_by_role("link", name="Allow").wait_for()
    return page


def test_a_reader_signs_in_and_comes_back_to_its_view(
    context: BrowserContext, proxy: PrefixProxy, issuer: FakeIssuer
) -> None:
    page = go_to_issuer(context, proxy, issuer)
    assert page.url.startswith(issuer.url + AUTHORIZATION_PATH)
    page.get_by_role("link", name="Allow").click()
    expect(page.locator(".reader")).to_contain_text("ann")
    expect(page.get_by_role("heading", level=1)).to_have_text("Limits in force")
    # Nothing is left of the sign-in but a cookie that no script reads.
    assert page.evaluate(KEPT) == [0, 0, "", f"{proxy.url}/headgate/#/{VIEW}"]
    assert issuer.requests.count(TOKEN_PATH) == 1
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_reader_who_refuses_sees_why(
    context: BrowserContext, proxy: PrefixProxy, issuer: FakeIssuer
) -> None:
    page = go_to_issuer(context, proxy, issuer)
    page.get_by_role("link", name="Deny").click()
    expect(page.get_by_role("alert")).to_have_text(
        f"{issuer.url} refuses: access_denied: {DENIAL}. Sign in again."
    )
    assert TOKEN_PATH not in issuer.requests
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_reader_who_goes_back_may_begin_again(
    context: BrowserContext, proxy: PrefixProxy, issuer: FakeIssuer
) -> None:
    page = go_to_issuer(context, proxy, issuer)
    page.go_back()
    page.get_by_role("button", name="Sign in with 127").click()
    page.get_by_role("link", name="Allow").click()
    expect(page.locator(".reader")).to_contain_text("ann")


def test_an_attackers_answer_signs_nobody_in(
    context: BrowserContext, browser: Browser, proxy: PrefixProxy, issuer: FakeIssuer
) -> None:
    """Login CSRF: the victim follows a link with the attacker's state and code."""
    attacker = browser.new_context()
    link = go_to_issuer(attacker, proxy, issuer).get_by_role("link", name="Allow")
    url = link.get_attribute("href") or ""
    for is_signing_in in (False, True):
        page = go_to_issuer(context, proxy, issuer) if is_signing_in else context.new_page()
        page.goto(url)
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        expect(page.get_by_role("alert")).to_have_count(int(is_signing_in))
    assert TOKEN_PATH not in issuer.requests
    attacker.close()


def test_a_token_that_the_broker_does_not_accept(
    context: BrowserContext, proxy: PrefixProxy, issuer: FakeIssuer
) -> None:
    issuer.make_tokens = lambda client, nonce: {
        "access_token": made(issuer, aud=AUDIENCE, sub="mallory"),
        "id_token": made(issuer, aud=client, nonce="of another sign-in", sub="mallory"),
    }
    page = go_to_issuer(context, proxy, issuer)
    page.get_by_role("link", name="Allow").click()
    expect(page.get_by_role("alert")).to_have_text(
        f"The broker does not accept the token of {issuer.url}; its log says why. Sign in again."
    )


def test_a_token_endpoint_that_fails(
    context: BrowserContext, proxy: PrefixProxy, issuer: FakeIssuer
) -> None:
    issuer.responses[TOKEN_PATH] = lambda handler: handler.answer(b"<html>", 500)
    page = go_to_issuer(context, proxy, issuer)
    page.get_by_role("link", name="Allow").click()
    expect(page.get_by_role("alert")).to_contain_text("the broker's log says why")


def test_a_page_at_another_address_says_where_to_open_it(
    context: BrowserContext, proxy: PrefixProxy, broker: BrokerProcess
) -> None:
    page = context.new_page()
    home = proxy.url.replace("127.0.0.1", "localhost")
    page.goto(f"{home}/headgate/")
    page.get_by_role("button", name="Sign in with 127").click()
    expect(page.get_by_role("alert")).to_have_text(
        f"Open this page at {proxy.url}/headgate/ to sign in there"
    )


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_the_dialog_can_be_read(
    context: BrowserContext, proxy: PrefixProxy, artifacts: Path, size: tuple[int, int]
) -> None:
    page = context.new_page()
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(f"{proxy.url}/headgate/")
    expect(page.get_by_role("button", name="Sign in with")).to_have_count(2)
    page.screenshot(path=artifacts / f"sign-in-{size[0]}.png")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0

"""The three routes: which browser gets what, and what an attacker gets instead."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from starlette.types import Message, Receive, Scope, Send

from headgate.app.sign_in.routes import (
    BODY_BYTES_MAX,
    CALLBACK,
    COOKIES_MAX,
    METHODS,
    START,
    TOKEN,
    SignInApp,
)
from headgate.app.web_guard import WebGuard
from headgate.base.audit_entry import AuditEntry, AuditResult
from headgate.base.web_hosts import HostNames
from headgate.security.code_flow import Client
from headgate.security.failed_attempts import PASSWORDS_MAX, PERIOD_S
from headgate.security.sign_ins import SignIns
from headgate.security.tokens import claims_of
from tests.unit.app.sign_in.signing_in import CLIENT, ENDPOINTS, Scene, played
from tests.unit.security.jwks_examples import AUDIENCE, ISSUER

COOKIE = "__Host-headgate-sign-in"
ORIGIN = "https://broker.example"


class Answer:
    def __init__(self, sent: list[Message]) -> None:
        start, *rest = sent
        self.status: int = start["status"]
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}
        self.body = b"".join(message["body"] for message in rest)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Browser:
    """Keeps its cookie."""

    def __init__(self, app: Any, address: str = "192.0.2.1", scheme: str = "https") -> None:
        self.app = app
        self.scheme = scheme
        self.address = address
        self.cookie = ""
        self.set_cookie = ""

    async def ask(
        self, method: str, path: str, body: bytes = b"", query: str = "", **headers: str
    ) -> Answer:
        given = {"host": "broker.example", **headers}
        if self.cookie:
            given["cookie"] = f"a=b; {self.cookie}; c"
        if method == "POST":
            given.setdefault("content_type", "application/json")
            given["content_length"] = str(len(body))
        scope = {
            "type": "http", "method": method, "path": path, "query_string": query.encode(),
            "headers": [(name.replace("_", "-").encode(), text.encode())
                        for name, text in given.items()],
            "client": (self.address, 1), "scheme": self.scheme,
        }  # fmt: skip
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        answer = Answer(sent)
        if text := answer.headers.get("set-cookie"):
            self.set_cookie = text
            self.cookie = text.partition(";")[0]
        return answer

    async def start(self, **headers: str) -> Answer:
        return await self.ask("POST", START, b"{}", **{"origin": ORIGIN, **headers})

    async def begin(self, scene: Scene) -> str:
        """Start; returns the state, and tells the issuer the nonce."""
        found = await self.start()
        assert found.status == 200, found.body
        scene.issuer.nonce = parse_qs(urlsplit(found.json["url"]).query)["nonce"][0]
        return str(found.json["state"])

    async def come_back(self, state: str, **parameters: str) -> Answer:
        query = urlencode({"state": state, **(parameters or {"code": "c"})})
        return await self.ask("GET", CALLBACK, query=query)

    async def end(self, state: str, **headers: str) -> Answer:
        body = json.dumps({"state": state}).encode()
        return await self.ask("POST", TOKEN, body, **{"origin": ORIGIN, **headers})


async def rest(_: Scope, __: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": b"rest"})


class Site:
    """The routes of a broker behind its guard."""

    def __init__(self, scene: Scene, per_address_max: int = 5, client: Client = CLIENT) -> None:
        self.noted: list[AuditEntry] = []
        sign_ins = SignIns(random.Random(1).randbytes, 20, per_address_max)
        scene.client.client = client
        routes = SignInApp(scene.client, sign_ins, scene.loop.clock, self.noted.append, rest)
        self.app = WebGuard(routes, HostNames(["broker.example"]))

    def browser(self, address: str = "192.0.2.1") -> Browser:
        return Browser(self.app, address)


@played
async def test_a_reader_signs_in(scene: Scene) -> None:
    site = Site(scene)
    browser = site.browser()
    started = await browser.start()
    assert started.status == 200
    assert started.headers["cache-control"] == "no-store"
    url = urlsplit(started.json["url"])
    assert url._replace(query="").geturl() == ENDPOINTS.authorization_url
    query = parse_qs(url.query)
    assert query["state"] == [started.json["state"]]
    scene.issuer.nonce = query["nonce"][0]
    name, _, attributes = browser.set_cookie.partition("=")
    assert name == COOKIE
    assert attributes.partition("; ")[2].split("; ") == [
        "Max-Age=600", "Path=/", "HttpOnly", "SameSite=Lax", "Secure",
    ]  # fmt: skip
    back = await browser.come_back(started.json["state"], code="the code", iss=ISSUER)
    assert (back.status, back.headers["location"], back.body) == (303, "../", b"")
    ended = await browser.end(started.json["state"])
    assert ended.status == 200
    assert ended.headers["cache-control"] == "no-store"
    assert claims_of(ended.json["token"])["aud"] == AUDIENCE
    ((_, form, _),) = scene.issuer.posted
    assert form["code"] == ["the code"]
    assert len(form["code_verifier"][0]) == 43
    (entry,) = site.noted
    assert (entry.operation, entry.result, entry.identity.role) == (
        "page.sign-in", AuditResult.ALLOWED, "ann",
    )  # fmt: skip
    assert entry.address == "192.0.2.1:1"
    assert entry.request == "POST /headgate/sign-in/token"


@played
async def test_other_paths_and_methods(scene: Scene) -> None:
    browser = Site(scene).browser()
    for path in ("/headgate/", "/headgate/sign-in/", f"{START}/", "/admin/v2/clusters"):
        assert (await browser.ask("GET", path)).status == 418
    for path, method in METHODS.items():
        for other in {"GET", "POST", "HEAD", "PUT"} - {method}:
            found = await browser.ask(other, path, b"{}", origin=ORIGIN)
            assert (found.status, found.headers["allow"]) == (405, method)


# Attacks ------------------------------------------------------------------------------------------


@played
async def test_login_csrf_an_attackers_code_in_a_victims_browser(scene: Scene) -> None:
    """Otherwise the victim would work as the attacker, and leave there what it enters."""
    site = Site(scene)
    attacker, victim = site.browser(), site.browser()
    state = await attacker.begin(scene)
    for has_own in (False, True):
        if has_own:
            await victim.begin(scene)
        found = await victim.come_back(state, code="of the attacker")
        # The answer tells nothing either.
        assert (found.status, found.headers["location"]) == (303, "../")
        assert (await victim.end(state)).status == 400
    # Nor has the sign-in a code now.
    assert "not answered" in (await attacker.end(state)).json["reason"]
    assert scene.issuer.posted == []


@played
async def test_a_stolen_state_is_worth_nothing_in_another_browser(scene: Scene) -> None:
    site = Site(scene)
    victim, thief = site.browser(), site.browser()
    state = await victim.begin(scene)
    await victim.come_back(state)
    nonce = scene.issuer.nonce
    await thief.begin(scene)
    scene.issuer.nonce = nonce
    found = await thief.end(state)
    assert found.status == 400
    assert found.json["reason"] == "This sign-in has ended, or began in another browser"
    assert (await victim.end(state)).status == 200


@played
async def test_a_code_and_a_token_are_given_once(scene: Scene) -> None:
    browser = Site(scene).browser()
    state = await browser.begin(scene)
    await browser.come_back(state, code="first")
    await browser.come_back(state, code="second")
    found = await asyncio.gather(*(browser.end(state) for _ in range(3)))
    assert sorted(each.status for each in found) == [200, 400, 400]
    assert [form["code"] for _, form, _ in scene.issuer.posted] == [["first"]]
    await browser.come_back(state, code="third")
    assert (await browser.end(state)).status == 400


@played
async def test_a_foreign_page_begins_and_ends_nothing(scene: Scene) -> None:
    browser = Site(scene).browser()
    state = await browser.begin(scene)
    await browser.come_back(state)
    assert (await browser.start(origin="https://evil.example")).status == 403
    assert (await browser.end(state, origin="https://evil.example")).status == 403
    assert (await browser.end(state, sec_fetch_site="cross-site")).status == 403
    # A form or an image of a foreign page.
    assert (await browser.start(content_type="text/plain")).status == 415
    assert (await browser.ask("GET", START)).status == 405
    assert (await browser.end(state)).status == 200


@played
async def test_nothing_leads_the_browser_elsewhere(scene: Scene) -> None:
    """The only redirect is to the page, whatever comes back."""
    browser = Site(scene).browser()
    state = await browser.begin(scene)
    for query in (
        f"state={state}&redirect=https://evil.example", "next=//evil.example", "%0d%0aLocation:x",
        f"state={state}&state={state}&code=c", "", "error=x&state=" + "y" * 9_000,
    ):  # fmt: skip
        found = await browser.ask("GET", CALLBACK, query=query)
        assert (found.status, found.headers["location"]) == (303, "../")


@played
async def test_another_issuer_answers(scene: Scene) -> None:
    site = Site(scene)
    browser = site.browser()
    state = await browser.begin(scene)
    await browser.come_back(state, code="c", iss="https://evil.example")
    found = await browser.end(state)
    assert found.status == 400
    assert found.json["reason"] == f"Another identity provider than {ISSUER} answers"
    assert scene.issuer.posted == []
    assert [(each.result, each.status) for each in site.noted] == [(AuditResult.REFUSED, 400)]


@played
async def test_what_the_issuer_says_is_text_of_the_answer(scene: Scene) -> None:
    browser = Site(scene).browser()
    state = await browser.begin(scene)
    said = {"error": "access_denied", "error_description": "<img src=x onerror=alert(1)>"}
    back = await browser.come_back(state, **said)
    assert back.headers["location"] == "../"
    found = await browser.end(state)
    assert found.status == 400
    assert found.headers["content-type"] == "application/json"
    assert found.json["reason"] == f"{ISSUER} refuses: access_denied: <img src=x onerror=alert(1)>"


@played
async def test_two_cookies_are_none(scene: Scene) -> None:
    """One of them may be an attacker's."""
    browser = Site(scene).browser()
    state = await browser.begin(scene)
    own = browser.cookie
    browser.cookie = f"{own}; {COOKIE}={'A' * 43}"
    await browser.come_back(state)
    assert (await browser.end(state)).status == 400
    for odd in (f"x{own}", own[:-1], f"{COOKIE}="):
        browser.cookie = odd
        assert "another browser" in (await browser.end(state)).json["reason"]
    browser.cookie = own
    await browser.come_back(state)
    assert (await browser.end(state)).status == 200


@played
async def test_very_many_cookies_are_not_looked_through(scene: Scene) -> None:
    """60 KB of them took 20 ms. An address without credentials has 512 requests, and its bodies may
    end at one instant: that held the loop for six seconds."""
    browser = Site(scene).browser()
    state = await browser.begin(scene)
    own = browser.cookie
    browser.cookie = f"{own}{';' * COOKIES_MAX}"
    await browser.come_back(state)
    assert (await browser.end(state)).status == 400
    browser.cookie = f"{own}{';' * (COOKIES_MAX - 3)}"  # two more stand around it
    await browser.come_back(state)
    assert (await browser.end(state)).status == 200


@played
async def test_a_flood_of_starts_locks_nobody_out(scene: Scene) -> None:
    site = Site(scene, per_address_max=5)
    reader = site.browser("198.51.100.1")
    state = await reader.begin(scene)
    nonce = scene.issuer.nonce
    found = [await site.browser().start() for _ in range(60)]
    assert {each.status for each in found} == {200}
    await reader.come_back(state)
    assert (await reader.end(state)).status == 200
    near = site.browser()
    state = await near.begin(scene)
    assert scene.issuer.nonce != nonce
    await near.come_back(state)
    assert (await near.end(state)).status == 200
    assert scene.issuer.fetched == [ISSUER]


@played
async def test_wrong_codes_of_an_address_are_bounded(scene: Scene) -> None:
    """Anybody can send one, and the issuer is asked for each: it may lock the broker out."""
    site = Site(scene)
    scene.issuer.status, scene.issuer.document = 400, b'{"error": "invalid_grant"}'

    async def send_wrong_code(address: str) -> int:
        browser = site.browser(address)
        state = await browser.begin(scene)
        await browser.come_back(state, code="made up")
        return (await browser.end(state)).status

    tried = PASSWORDS_MAX + 5
    statuses = [await send_wrong_code("192.0.2.1") for _ in range(tried)]
    assert statuses == [400] * PASSWORDS_MAX + [429] * 5
    assert len(scene.issuer.posted) == PASSWORDS_MAX
    assert await send_wrong_code("198.51.100.1") == 400
    browser = site.browser("192.0.2.1")
    state = await browser.begin(scene)
    await browser.come_back(state)
    refused = await browser.end(state)
    assert (refused.status, refused.headers["retry-after"]) == (429, "60")
    scene.issuer.status, scene.issuer.document = 200, None
    await asyncio.sleep(PERIOD_S)
    # It did not end: its reader may try again.
    assert (await browser.end(state)).status == 200


@played
async def test_an_issuer_that_is_away_is_no_wrong_code(scene: Scene) -> None:
    site = Site(scene)
    browser = site.browser()
    await scene.client.endpoints()
    for _ in range(PASSWORDS_MAX + 2):
        state = await browser.begin(scene)
        await browser.come_back(state)
        scene.issuer.is_down = True
        assert (await browser.end(state)).status == 503
        scene.issuer.is_down = False
    state = await browser.begin(scene)
    await browser.come_back(state)
    assert (await browser.end(state)).status == 200


@played
async def test_who_planted_the_cookie_does_not_get_the_token(scene: Scene) -> None:
    """Another program of the same host may set its cookies. An attacker begins, plants his cookie
    and leads the reader to the issuer, which asks nothing if the reader is signed in there."""
    site = Site(scene)
    attacker, reader = site.browser(), site.browser()
    state = await attacker.begin(scene)
    reader.cookie = planted = attacker.cookie
    back = await reader.come_back(state)
    assert (back.status, back.headers["location"]) == (303, "../")
    assert reader.cookie != planted
    stolen = await attacker.end(state)
    assert (stolen.status, "another browser" in stolen.json["reason"]) == (400, True)
    assert (await reader.end(state)).status == 200


@played
async def test_an_answer_to_one_tab_leaves_the_sign_in_of_another(scene: Scene) -> None:
    site = Site(scene)
    browser = site.browser()
    first = await browser.begin(scene)
    nonce = scene.issuer.nonce
    second = await browser.begin(scene)
    await browser.come_back(second)
    assert (await browser.end(second)).status == 200
    scene.issuer.nonce = nonce
    await browser.come_back(first)
    assert (await browser.end(first)).status == 200


# Use ----------------------------------------------------------------------------------------------


@played
async def test_a_page_that_was_opened_elsewhere_says_where_to_open_it(scene: Scene) -> None:
    """The cookie would not come back to another host."""
    site = Site(scene)
    browser = site.browser()
    found = await browser.ask(
        "POST", START, b"{}", host="localhost:8443", origin="https://localhost:8443"
    )
    assert found.status == 400
    assert found.json["reason"] == (
        "Open this page at https://broker.example/p/headgate/ to sign in there"
    )
    assert (await site.browser().ask("POST", START, b"{}")).status == 200


@played
async def test_without_tls_the_cookie_has_another_name(scene: Scene) -> None:
    """A browser takes __Host- over TLS only."""
    plain = replace(CLIENT, redirect_url="http://broker.example/headgate/sign-in/callback")
    browser = Browser(Site(scene, client=plain).app, scheme="http")
    found = await browser.start(origin="http://broker.example")
    assert found.status == 200
    assert browser.set_cookie.startswith("headgate-sign-in=")
    assert "Secure" not in browser.set_cookie
    assert "HttpOnly; SameSite=Lax" in browser.set_cookie


@played
async def test_an_issuer_that_is_down(scene: Scene) -> None:
    scene.issuer.is_down = True
    found = await Site(scene).browser().start()
    assert found.status == 503
    assert "retry-after" in found.headers
    assert found.json["reason"].startswith(f"{ISSUER} does not answer")


@played
async def test_an_exchange_that_fails(scene: Scene) -> None:
    site = Site(scene)
    browser = site.browser()
    state = await browser.begin(scene)
    await browser.come_back(state)
    scene.issuer.is_down = True
    assert (await browser.end(state)).status == 503
    assert site.noted[-1].result is AuditResult.FAILED
    # The code may be used up: it is not sent again.
    scene.issuer.is_down = False
    assert (await browser.end(state)).status == 400


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"state": 1}', b"\xff", b"[" * 3_000])
def test_a_body_that_is_none(body: bytes) -> None:
    @played
    async def story(scene: Scene) -> None:
        found = await Site(scene).browser().ask("POST", TOKEN, body, origin=ORIGIN)
        assert (found.status, found.json) == (400, {"reason": 'The body is {"state": "..."}'})

    story()


@played
async def test_a_body_that_is_too_long_or_has_no_end(scene: Scene) -> None:
    site = Site(scene)
    found = await site.browser().ask("POST", TOKEN, b" " * (BODY_BYTES_MAX + 1), origin=ORIGIN)
    assert found.status == 400
    assert "bytes" in found.json["reason"]
    sent: list[Message] = []

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": TOKEN, "headers": [(b"host", b"localhost")]}
    await site.app(scope, gone, send)
    assert Answer(sent).status == 400


def test_a_bug_is_no_silence(caplog: pytest.LogCaptureFixture) -> None:
    @played
    async def story(scene: Scene) -> None:
        async def broken() -> Any:
            raise RuntimeError("a bug")

        scene.client.endpoints = broken  # type: ignore[method-assign]
        found = await Site(scene).browser().start()
        assert (found.status, "log" in found.json["reason"]) == (500, True)

    story()
    assert "RuntimeError: a bug" in caplog.text


def test_neither_code_nor_token_nor_state_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    @played
    async def story(scene: Scene) -> None:
        site = Site(scene)
        browser = site.browser()
        state = await browser.begin(scene)
        await site.browser().come_back(state, code="m4rked-code")
        await browser.come_back(state, code="m4rked-code")
        token = (await browser.end(state)).json["token"]
        await browser.end(state)
        shown = caplog.text + repr(site.noted)
        for hidden in (state, "m4rked", token, browser.cookie.partition("=")[2]):
            assert hidden not in shown

    story()
    assert "is of no sign-in" in caplog.text

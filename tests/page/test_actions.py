"""Signing in, what is sent, and what the page says about it before."""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from playwright.sync_api import Browser, Page, expect
from playwright.sync_api import Error as PlaywrightError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.app.web_authentication import WebAuthentication
from headgate.base.audit_entry import AuditEntry
from headgate.broker.authentication import Authentication
from headgate.policy.settings import Settings
from headgate.security.failed_attempts import FailedAttempts
from tests.page.conftest import PHONE, WIDE, OpenPage
from tests.page.scene import LIMITED, Scene, limited_backlog
from tests.page.views import subscription_view, topic_view
from tests.unit.app.test_web_authentication import Passwords
from tests.unit.cli.admin.fake_server import FakeServer, admin
from tests.unit.security.made_tokens import token_of, token_provider

TOPIC = f"persistent://public/default/{LIMITED.topic}"
BASE = f"/admin/v2/persistent/public/default/{LIMITED.topic}"
VIEW = subscription_view(LIMITED.topic, "orders")
KEPT = "[localStorage.length, sessionStorage.length, document.cookie, location.href]"
CHANGES = ("POST", "PUT", "DELETE")


def guard(app: ASGIApp) -> ASGIApp:
    settings = Settings()
    providers = (token_provider(), Passwords())
    checked = Authentication(settings, providers, FailedAttempts(), lambda: 1.8e9)
    guarded = WebAuthentication(app, checked, settings)

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_joined(message: Message) -> None:
            # The server of the scene knows one value of each header.
            headers: dict[bytes, bytes] = {}
            for name, value in message.get("headers", ()):
                headers[name] = b", ".join(filter(None, (headers.get(name), value)))
            more = {"headers": list(headers.items())} if headers else {}
            await send({**message, **more})

        await guarded(scope, receive, send_joined)

    return served


@pytest.fixture
def secured() -> Iterator[Scene]:
    """A broker that the test may change."""
    played = limited_backlog(guard)
    yield played
    played.close()


@pytest.fixture(scope="module")
def unchanged() -> Iterator[Scene]:
    """The same for tests that change nothing at it."""
    played = limited_backlog(guard)
    yield played
    assert changes(played) == []
    played.close()


def signed_in(open_page: OpenPage, scene: Scene, view: str = VIEW, **more: Any) -> Page:
    page = open_page(view, url=scene.url, **more)
    page.get_by_label("Token").fill(token_of("ann").decode())
    page.get_by_role("button", name="Sign in with the token").click()
    page.locator(".freshness.fresh", has_text="old").first.wait_for()
    return page


def changes(scene: Scene) -> list[tuple[str, str]]:
    return [each for each in scene.requests if each[0] in CHANGES]


def test_the_page_asks_for_credentials_and_forgets_them(
    open_page: OpenPage, unchanged: Scene
) -> None:
    page = open_page(VIEW, url=unchanged.url)
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_label("Token").fill("no.token.this")
    page.get_by_role("button", name="Sign in with the token").click()
    expect(page.get_by_role("alert")).to_have_text("Authentication required or failed")
    page.get_by_label("User").fill("ann")
    page.get_by_label("Password", exact=True).fill("secret")
    page.get_by_role("button", name="Sign in with the password").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("orders")
    expect(page.locator(".reader")).to_contain_text("ann")
    kept = page.evaluate(KEPT)
    assert kept == [0, 0, "", f"{unchanged.url}/headgate/#/{VIEW}"]
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_a_limit_is_raised_and_the_backlog_goes(open_page: OpenPage, secured: Scene) -> None:
    audited: list[AuditEntry] = []
    secured.world.broker.audit.listeners.append(lambda entry, _: audited.append(entry))
    page = signed_in(open_page, secured)
    page.get_by_role("button", name="Dispatch limit").click()
    box = page.get_by_role("dialog")
    box.get_by_label("Messages per period").fill("")
    expect(box.get_by_role("region", name="Effect")).to_contain_text("Nothing yet: enter messages")
    expect(box.get_by_role("button", name="Send this request")).to_be_disabled()
    box.get_by_label("Messages per period").fill("12")
    expect(box).to_contain_text("the limit lets 12 msg/s through and")
    box.get_by_label("Messages per period").fill("60")
    expect(box).to_contain_text("would shrink by about")
    expect(box.locator(".request")).to_contain_text(f"POST {BASE}/orders/dispatchRate")
    assert changes(secured) == []
    box.get_by_role("button", name="Send this request").click()
    expect(box.get_by_role("status")).to_contain_text("its audit log has it")
    assert changes(secured) == [("POST", f"{BASE}/orders/dispatchRate")]
    bearer = [(b"authorization", b"Bearer " + token_of("ann"))]
    assert secured.ask("GET", f"{BASE}/orders/dispatchRate", headers=bearer).json() == {
        "dispatchThrottlingRateInMsg": 60, "dispatchThrottlingRateInByte": -1,
        "relativeToPublishRate": False, "ratePeriodInSecond": 1,
    }  # fmt: skip
    (entry,) = audited
    assert (entry.operation, entry.resource, entry.subscription, entry.identity.role) == (
        "topic.policy.write", TOPIC, "orders", "ann",
    )  # fmt: skip
    assert [each.name for each in entry.values] == ["dispatch_rate_by_subscription"]


def test_a_refusal_is_shown_and_the_dialog_stays(open_page: OpenPage, secured: Scene) -> None:
    page = signed_in(open_page, secured)
    page.get_by_role("button", name="Delete").click()
    box = page.get_by_role("dialog")
    expect(box).to_contain_text("1 consumer is connected, so the broker will refuse it")
    box.get_by_role("button", name="Send this request").click()
    expect(box.get_by_role("alert")).to_contain_text("active connected consumers (status 412)")
    box.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Clear the backlog").click()
    page.get_by_role("button", name="Send this request").click()
    expect(page.get_by_role("dialog").get_by_role("status")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_what_a_role_may_not_do_has_no_button(open_page: OpenPage, unchanged: Scene) -> None:
    page = open_page(VIEW, url=unchanged.url)
    allowed = json.dumps({"role": "ann", "allowed": ["subscription.skip"]})
    page.route("**/permissions/own?*", lambda route: route.fulfill(body=allowed))
    page.get_by_label("Token").fill(token_of("ann").decode())
    page.get_by_role("button", name="Sign in with the token").click()
    expect(page.locator(".actions button")).to_have_text(["Skip messages…", "Clear the backlog…"])


def test_without_authentication_it_only_shows_commands(open_page: OpenPage, scene: Scene) -> None:
    page = open_page(VIEW)
    expect(page.locator(".reader")).to_have_text("read-only")
    page.get_by_role("button", name="Clear the backlog").click()
    box = page.get_by_role("dialog")
    command = f"topics clear-backlog {TOPIC} -s orders"
    expect(box).to_contain_text(f"headgate admin --admin-url {scene.url} {command}")
    expect(box).to_contain_text(f"curl -X POST {scene.url}{BASE}/subscription/orders/skip_all")
    expect(box.get_by_role("button", name="Send")).to_have_count(0)


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_dialog_can_be_read(
    open_page: OpenPage, unchanged: Scene, artifacts: Path, size: tuple[int, int], scheme: str
) -> None:
    for kind, view in (("topic", topic_view(LIMITED.topic)), ("subscription", VIEW)):
        page = signed_in(open_page, unchanged, view, size=size, scheme=scheme)
        buttons = page.locator(".actions button")
        expect(buttons).to_have_count(5)
        for number in range(5):
            buttons.nth(number).click()
            box = page.get_by_role("dialog")
            expect(box.get_by_role("button", name="Send this request")).to_be_visible()
            page.screenshot(path=artifacts / f"action-{kind}-{number}-{size[0]}-{scheme}.png")
            assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
            page.keyboard.press("Escape")
            expect(page.get_by_role("dialog")).to_have_count(0)


CALL = """async ([module, name, values]) =>
  (await import(new URL(`app/${module}`, document.baseURI)))[name](...values)"""


@pytest.fixture(scope="module")
def call(browser: Browser, scene: Scene) -> Iterator[Callable[..., Any]]:
    """``call(module, function, *arguments)`` calls a pure function of the page."""
    page = browser.new_page()
    page.goto(f"{scene.url}/headgate/")
    yield lambda module, name, *values: page.evaluate(CALL, [module, name, values])
    page.close()


ODD = {"topic": "persistent://a/b/it's <x>", "subscription": "s/1", "nowMs": 7_200_000}
PATH = "admin/v2/persistent/a/b/it's%20%3Cx%3E"


def plain(path: str) -> str:
    """A path for comparisons: without escapes, and whatever the instant."""
    return re.sub(r"\d{6,}", "TIME", unquote(path))


@pytest.mark.parametrize(
    ("name", "values", "method", "path", "body"),
    [
        ("topicDispatch", {"messages": "5", "periodS": "10", "relative": "yes"}, "POST",
         "/dispatchRate",
         {"dispatchThrottlingRateInMsg": 5, "dispatchThrottlingRateInByte": -1,
          "relativeToPublishRate": True, "ratePeriodInSecond": 10}),
        ("eachDispatch", {"change": "remove"}, "DELETE", "/subscriptionDispatchRate", None),
        ("subscriptionDispatch", {"change": "remove"}, "DELETE", "/s%2F1/dispatchRate", None),
        ("publishLimit", {"bytes": "1000"}, "POST", "/publishRate",
         {"publishThrottlingRateInMsg": -1, "publishThrottlingRateInByte": 1000}),
        ("backlogQuota", {"type": "message_age", "limit": "60", "policy": "producer_exception"},
         "POST", "/backlogQuota?backlogQuotaType=message_age",
         {"limitSize": -1, "limitTime": 60, "policy": "producer_exception"}),
        ("unload", {}, "PUT", "/unload", None),
        ("skip", {"number": "7"}, "POST", "/subscription/s%2F1/skip/7", None),
        ("clear", {}, "POST", "/subscription/s%2F1/skip_all", None),
        ("reset", {"to": "time", "minutes": "60"}, "POST",
         "/subscription/s%2F1/resetcursor/3600000", None),
        ("reset", {"to": "earliest"}, "POST", "/subscription/s%2F1/resetcursor",
         {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}),
        ("remove", {}, "DELETE", "/subscription/s%2F1?force=false", None),
    ],
)  # fmt: skip
def test_a_request_and_its_commands(
    call: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    values: dict[str, str],
    method: str,
    path: str,
    body: Any,
) -> None:
    found = call("actions/requests.js", name, {**ODD, "values": values})
    assert (found["method"], found["path"], found.get("body")) == (method, PATH + path, body)
    command = call("actions/requests.js", "commandOf", found, "http://b:1/")
    server = FakeServer()
    server.install(monkeypatch)
    assert admin(*shlex.split(command)[2:]).exit_code == 0, command
    sent_method, sent_path, sent_body = server.asked[0]
    assert (sent_method, plain(sent_path)) == (method, plain(f"/{PATH}{path}"))
    assert (body or {}).items() <= (json.loads(sent_body) if sent_body else {}).items()
    curl = shlex.split(call("actions/requests.js", "curlOf", found, "http://b:1/x?y", True))
    assert curl[:3] == ["curl", "-X", method]
    assert "Authorization: Bearer $TOKEN" in curl


def test_credentials_and_names(call: Callable[..., Any]) -> None:
    assert call("credentials.js", "bearerHeader", " Bearer a.b.c\n") == "Bearer a.b.c"
    encoded = base64.b64encode("ann:pä:ss".encode()).decode()
    assert call("credentials.js", "basicHeader", "ann", "pä:ss") == f"Basic {encoded}"
    challenges = 'Bearer realm="headgate", xBasic realm="headgate"'
    assert call("api.js", "methodsOf", challenges) == ["token", "basic"]
    assert call("api.js", "methodsOf", None) is None
    for text, place in (
        ("acme", ["browse", "acme"]), ("acme/ns ", ["browse", "acme", "ns"]),
        ("acme/ns/t", ["topic", "persistent://acme/ns/t"]), ("persistent://a/b/c", ["topic", "persistent://a/b/c"]),
    ):  # fmt: skip
        assert call("views/by_name.js", "placeOf", text) == place


TOPIC_LIMIT = "THROTTLED_TOPIC"


def report(verdict: str, **more: Any) -> dict[str, Any]:
    return {
        "subscription": "s", "verdict": verdict, "backlogMessages": 1_000, "backlogBytes": 10_000,
        "provenAckPerS": 50, "minute": {"appendedPerS": 20}, "limits": [],
        "limit": {"level": "topic", "text": "10 msg/s", "source": "topic policy"}, **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "found", "sentence"),
    [
        ({"messages": "15"}, report(TOPIC_LIMIT), "grow by about 5 msg/s"),
        ({"messages": "40"}, report(TOPIC_LIMIT), "by about 20 msg/s and be gone in 50 s"),
        ({"messages": "400", "periodS": "10"}, report(TOPIC_LIMIT), "gone in 50 s"),
        ({"bytes": "400"}, report(TOPIC_LIMIT), "gone in 50 s"),
        ({"messages": "20", "relative": "yes"}, report(TOPIC_LIMIT), "gone in 50 s"),
        ({"change": "remove"}, report(TOPIC_LIMIT), "shrink by about 30 msg/s"),
        ({"change": "remove"}, report(TOPIC_LIMIT, provenAckPerS=10), "still grow by about 10"),
        ({"change": "remove"}, report(TOPIC_LIMIT, provenAckPerS=None), "had no chance to show"),
        ({"messages": "40"}, report("CONSUMER"), "its consumers are the bottleneck"),
        ({"messages": "40"}, report("NO_CONSUMER"), "no consumer is connected"),
        ({"messages": "40"}, report("THROTTLED_BROKER"), "this one alone changes little"),
        ({"messages": "40"}, report("NONE"), "nothing holds it now"),
        ({"bytes": "40"}, report("NONE", backlogBytes=0), "the effect is not known"),
    ],
)  # fmt: skip
def test_the_effect_of_a_dispatch_limit(
    call: Callable[..., Any], values: dict[str, str], found: dict[str, Any], sentence: str
) -> None:
    about = {"values": values, "reports": [found], "causes": [TOPIC_LIMIT], "isShared": True}
    assert sentence in call("actions/effects.js", "dispatchEffect", about)[0]


def test_the_effects_of_other_actions(call: Callable[..., Any]) -> None:
    def said(name: str, about: dict[str, Any]) -> str:
        return " ".join(call("actions/effects.js", name, about))

    publishing = {"messagesPerS": 10, "bytesPerS": 2048}
    limit = {"values": {"messages": "5"}, "publishing": publishing}
    assert "because only 5 msg/s would be let through" in said("publishEffect", limit)
    # In the unit in which a limit is set, as everywhere.
    limit = {"values": {"bytes": "1500"}, "publishing": publishing}
    assert "10 msg/s and 2,048 B/s now: they would wait, because only 1,500 B/s" in said(
        "publishEffect", limit
    )
    quota = {"type": "destination_storage", "limit": "5000", "policy": "consumer_backlog_eviction"}
    one = report("NONE", oldestAgeS=7_200, consumers=0)
    about = {"values": quota, "report": {"subscriptions": [one], "quotas": []}}
    assert "removed from the backlogs at once" in said("quotaEffect", about)
    quota["limit"] = "20000"
    assert "50 % of 19.5 KiB" in said("quotaEffect", about)
    many = {"values": {"number": "9999"}, "report": one}
    assert "1,000 of 1,000 waiting" in said("skipEffect", many)
    back = {"values": {"to": "time", "minutes": "60"}, "report": one}
    assert "what is older than 1 h would not be delivered" in said("resetEffect", back)
    assert "counts for no quota any more" in said("removeEffect", {"report": one})


@pytest.mark.parametrize("name", [".", "..", "a/../..", "..\\x"])
def test_a_name_that_a_browser_resolves_is_asked_nothing_about(
    call: Callable[..., Any], scene: Scene, name: str
) -> None:
    """To delete the subscription .. would delete the topic."""
    odd = {"topic": TOPIC, "subscription": name, "values": {}}
    found = call("actions/requests.js", "remove", odd)
    before = changes(scene)
    with pytest.raises(PlaywrightError, match="A browser cannot ask about a name"):
        call("api.js", "request", found["method"], found["path"])
    assert changes(scene) == before
    url = call("api.js", "address", found["path"])
    assert url.endswith(f"/subscription/{quote(name, safe='')}?force=false")
    without_body = {"method": found["method"]}  # Playwright makes null of what is undefined
    curl = shlex.split(call("actions/requests.js", "curlOf", without_body, url, False))
    assert curl == ["curl", "--path-as-is", "-X", "DELETE", url]
    assert call("format.js", "curlWords", "http://b.x/a.b%2F.c/..c?d=/../") == ["curl"]

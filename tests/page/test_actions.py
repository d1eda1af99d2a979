"""Signing in, what is sent, and what the page says about it before."""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page, expect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.app.web_authentication import WebAuthentication
from headgate.base.audit_entry import AuditEntry
from headgate.broker.authentication import Authentication
from headgate.policy.settings import Settings
from headgate.security.failed_attempts import FailedAttempts
from tests.page.conftest import Call, OpenPage
from tests.page.files_scene import FilesScene
from tests.page.scene import LIMITED, Scene, limited_backlog
from tests.page.views import subscription_view, topic_view
from tests.page.whole import each_look
from tests.unit.app.test_web_authentication import Passwords
from tests.unit.cli.admin.fake_server import FakeServer, admin
from tests.unit.security.made_tokens import token_of, token_provider

TOPIC = f"persistent://public/default/{LIMITED.topic}"
BASE = f"/admin/v2/persistent/public/default/{LIMITED.topic}"
VIEW = subscription_view(LIMITED.topic, "orders")
KEPT = "[localStorage.length, sessionStorage.length, document.cookie, location.href]"
BELOW_ITS_FOOTER = """box => box.getBoundingClientRect().top + box.clientTop + box.clientHeight
  - box.querySelector(".buttons").getBoundingClientRect().bottom"""
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
    # What is in force, though it is not a policy of the subscription.
    expect(box.get_by_label("Messages per period")).to_have_value("10")
    box.get_by_label("Messages per period").fill("")
    expect(box.get_by_role("region", name="Effect")).to_contain_text("Nothing yet: enter messages")
    expect(box.get_by_role("button", name="Send this request")).to_be_disabled()
    expect(box.get_by_role("region", name="Request")).to_have_count(0)
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


def test_a_dialog_that_does_not_load_says_so(open_page: OpenPage, scene: Scene) -> None:
    page = open_page(VIEW, own_context=True)
    page.route("**/dialog.js", lambda route: route.abort())
    page.get_by_role("button", name="Clear the backlog").click()
    expect(page.get_by_role("alert")).to_contain_text("The dialog could not be loaded")


def test_without_authentication_it_only_shows_commands(open_page: OpenPage, scene: Scene) -> None:
    page = open_page(VIEW)
    expect(page.locator(".reader")).to_have_text("read-only")
    page.get_by_role("button", name="Clear the backlog").click()
    box = page.get_by_role("dialog")
    command = f"topics clear-backlog {TOPIC} -s orders"
    expect(box).to_contain_text(f"headgate admin --admin-url {scene.url} {command}")
    expect(box).to_contain_text(f"curl -X POST {scene.url}{BASE}/subscription/orders/skip_all")
    expect(box.get_by_role("button", name="Send")).to_have_count(0)


@pytest.mark.parametrize(
    ("kind", "view"), [("topic", topic_view(LIMITED.topic)), ("subscription", VIEW)]
)
def test_each_dialog_can_be_read(
    open_page: OpenPage, unchanged: Scene, artifacts: Path, kind: str, view: str
) -> None:
    page = signed_in(open_page, unchanged, view)
    buttons = page.locator(".actions button")
    expect(buttons).to_have_count(5)
    for number in range(5):
        buttons.nth(number).click()
        box = page.get_by_role("dialog")
        expect(box.get_by_role("button", name="Send this request")).to_be_visible()
        for look in each_look(page, f"action-{kind}-{number}"):
            page.screenshot(path=artifacts / f"{look}.png")
            assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 0, look
            assert abs(box.evaluate(BELOW_ITS_FOOTER)) < 1, look
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)


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
    call: Call,
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


def test_credentials_and_names(call: Call) -> None:
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
UNTRIED = {"provenAckPerS": None}


def in_force(level: str, messages: int, source: str = "topic policy") -> dict[str, Any]:
    text = f"{messages} msg/s"
    budget = {"dimension": "messages", "limit": messages, "periodS": 1, "text": text}
    return {"level": level, "source": source, "budgets": [budget]}


def report(verdict: str, published: float = 20, acked: float = 10, **more: Any) -> dict[str, Any]:
    return {
        "subscription": "s", "verdict": verdict, "backlogMessages": 1_000, "backlogBytes": 10_000,
        "provenAckPerS": 50, "minute": {"appendedPerS": published, "ackedPerS": acked},
        "limits": [], "consumers": 1,
        "limit": {"level": "topic", "text": "10 msg/s", "source": "topic policy"}, **more,
    }  # fmt: skip


SETTING = "broker setting dispatchThrottlingRateInMsg"
BROKER_LIMIT = {"level": "broker", "text": "24 msg/s", "source": SETTING}


@pytest.mark.parametrize(
    ("values", "found", "sentence"),
    [
        ({"messages": "15"}, report(TOPIC_LIMIT), "grow by about 5 msg/s"),
        ({"messages": "20"}, report(TOPIC_LIMIT), "stay about as it is"),
        ({"messages": "40"}, report(TOPIC_LIMIT), "by about 20 msg/s and be gone in 50 s"),
        ({"messages": "400", "periodS": "10"}, report(TOPIC_LIMIT), "gone in 50 s"),
        ({"bytes": "400"}, report(TOPIC_LIMIT), "gone in 50 s"),
        ({"messages": "20", "relative": "yes"}, report(TOPIC_LIMIT), "gone in 50 s"),
        ({"messages": "10"}, report(TOPIC_LIMIT, partitions=4), "gone in 50 s"),
        ({"change": "remove"}, report(TOPIC_LIMIT), "shown 50 msg/s and 20 msg/s come in, so the"),
        ({"change": "remove"}, report(TOPIC_LIMIT, provenAckPerS=10), "grow by about 10"),
        ({"change": "remove"}, report(TOPIC_LIMIT, **UNTRIED), "had no chance to show"),
        ({"messages": "40"}, report(TOPIC_LIMIT, **UNTRIED), "50 s, if its consumers keep up"),
        ({"messages": "40"}, report("CONSUMER"), "the consumer acknowledges 10 msg/s and 20"),
        ({"messages": "40"}, report("BROKER"), "the broker itself is slow"),
        ({"messages": "40"}, report("NO_CONSUMER"), "no consumer is connected"),
        ({"messages": "40"}, report("THROTTLED_BROKER", acked=8, limit=BROKER_LIMIT),
         f"the broker limit of 24 msg/s ({SETTING}) leaves it 8 msg/s and 20 msg/s come in"),
        ({"messages": "40"}, report("THROTTLED_SUBSCRIPTION", limits=[in_force("subscription", 9)]),
         "the subscription limit of 9 msg/s (topic policy) leaves it 9 msg/s"),
        ({"messages": "40"}, report("NONE"), "nothing holds it now"),
        ({"messages": "15"}, report("NONE"), "the limit lets 15 msg/s through and 20 msg/s come"),
        ({"bytes": "40"}, report("NONE", backlogBytes=0), "the effect is not known"),
    ],
)  # fmt: skip
def test_the_effect_of_a_dispatch_limit(
    call: Call, values: dict[str, str], found: dict[str, Any], sentence: str
) -> None:
    about = {"values": values, "reports": [found], "level": "topic"}
    assert sentence in call("actions/effects.js", "dispatchEffect", about)[0]


@pytest.mark.parametrize(
    ("total", "needs", "shares"),
    [
        (80, [100, 100], [40, 40]), (250, [500, 100, 10], [140, 100, 10]), (9, [], []),
        (300, [100, 100], [100, 100]), (30, [0, 1e9], [0, 30]),
    ],
)  # fmt: skip
def test_a_shared_limit_is_shared_by_need(
    call: Call, total: float, needs: list[float], shares: list[float]
) -> None:
    assert call("actions/effects.js", "fairShares", total, needs) == shares


def two(**search: Any) -> list[dict[str, Any]]:
    """Two subscriptions of one topic, both held by its limit of 80/s."""
    reports = report(TOPIC_LIMIT, 100, 40, subscription="reports", **UNTRIED)
    return [reports, {**reports, "subscription": "search", **search}]


@pytest.mark.parametrize(
    ("limit", "others", "ends"),
    [
        ("80", {}, ["grow by about 60 msg/s", "grow by about 60 msg/s"]),
        ("250", {}, ["shrink by about 25 msg/s and be gone in 40 s"] * 2),
        # The consumer that takes 30/s leaves the rest to the other.
        ("250", {"verdict": "CONSUMER", "minute": {"appendedPerS": 100, "ackedPerS": 30}},
         ["shrink by about 120 msg/s", "acknowledges 30 msg/s and 100 msg/s come in"]),
        ("250", {"limits": [in_force("subscription", 50)]},
         ["its share of this limit is 200 msg/s", "grow by about 50 msg/s"]),
        # Without a backlog it needs what is published; without a consumer nothing.
        ("250", {"verdict": "NONE"}, ["shrink by about 50 msg/s", "nothing holds it now"]),
        ("250", {"verdict": "NO_CONSUMER"}, ["shrink by about 150 msg/s", "no consumer"]),
        ("50", {"relative": "yes"}, ["shrink by about 25 msg/s"] * 2),
    ],
)  # fmt: skip
def test_the_effect_of_a_limit_that_subscriptions_share(
    call: Call, limit: str, others: dict[str, Any], ends: list[str]
) -> None:
    about = {
        "values": {"messages": limit, "relative": others.get("relative")}, "reports": two(**others),
        "level": "topic", "limits": [in_force("topic", 80)],
    }  # fmt: skip
    said = call("actions/effects.js", "dispatchEffect", about)
    assert [end in each for end, each in zip(ends, said, strict=False)] == [True, True], said


def test_the_effect_of_a_limit_of_each_subscription(call: Call) -> None:
    slow = report("CONSUMER", 600, 402, provenAckPerS=402, limits=[in_force("subscription", 500)])
    about = {"values": {"messages": "500"}, "reports": [slow], "level": "subscription"}
    (said,) = call("actions/effects.js", "dispatchEffect", about)
    assert said == (
        "s: the consumer acknowledges 402 msg/s and 600 msg/s come in, so the backlog would grow by"
        " about 198 msg/s."
    )
    four = {**about, "reports": [{**slow, "partitions": 4}]}
    last = call("actions/effects.js", "dispatchEffect", four)[-1]
    assert last.startswith("Each of 4 partitions has this limit for itself")
    # The topic's limit holds both, so a higher one of each changes nothing.
    about |= {"reports": two(), "limits": [in_force("topic", 80)], "only": "search"}
    (said,) = call("actions/effects.js", "dispatchEffect", about)
    assert said.startswith("search: the topic limit of 80 msg/s (topic policy) leaves it 40 msg/s")
    about["values"] = {"messages": "10"}
    (said,) = call("actions/effects.js", "dispatchEffect", about)
    assert said.startswith("search: the limit lets 10 msg/s through and 100 msg/s come in")


def test_another_limit_that_binds_is_said_before_a_number_is(call: Call) -> None:
    held = report("THROTTLED_BROKER", limit=BROKER_LIMIT)
    found = call("actions/effects.js", "boundElsewhere", {"reports": [held], "level": "topic"})
    assert found == {
        "sentence": f"The broker limit of 24 msg/s ({SETTING}) holds s, so this limit alone changes"
        " little.",
        "setting": "dispatchThrottlingRateInMsg",
    }
    about = {"reports": two(), "level": "subscription"}
    found = call("actions/effects.js", "boundElsewhere", about)
    assert (found["sentence"][:25], found.get("setting")) == ("The topic limit of 10 msg", None)
    assert call("actions/effects.js", "boundElsewhere", {**about, "level": "topic"}) is None


@pytest.mark.parametrize(
    ("cause", "values", "end"),
    [
        ("adaptive", {"messages": "200"}, "This limit changes nothing as long as that holds them."),
        ("adaptive", {"messages": "50"}, "Only 50 msg/s would be let through."),
        ("adaptive", {"change": "remove"}, "What holds them stays."),
        ("topic_rate", {"messages": "200"}, "Up to 200 msg/s would be let through."),
        ("topic_rate", {"change": "remove"}, "Without this limit they may send more, unless"),
    ],
)
def test_the_effect_of_a_publish_limit_on_producers_that_are_held(
    call: Call, cause: str, values: dict[str, str], end: str
) -> None:
    parked = {"cause": cause, "producers": 1, "minuteS": 60, "limit": {"text": "23,000 B/s"}}
    publishing = {"messagesPerS": 101, "bytesPerS": 23_000, "parked": [parked]}
    about = {"values": values, "publishing": publishing}
    (said,) = call("actions/effects.js", "publishEffect", about)
    assert said.startswith(end)
    assert call("actions/effects.js", "heldProducers", publishing)["sentence"] == (
        "Producers send 101 msg/s and 23,000 B/s now and are held"
        f" ({cause.replace('_', ' ')}, 23,000 B/s): what they would send is not known."
    )
    parked["minuteS"] = 1
    assert call("actions/effects.js", "heldProducers", publishing) is None


def test_the_effects_of_other_actions(call: Call) -> None:
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
    call: Call, files: FilesScene, name: str
) -> None:
    """To delete the subscription .. would delete the topic."""
    odd = {"topic": TOPIC, "subscription": name, "values": {}}
    found = call("actions/requests.js", "remove", odd)
    with pytest.raises(PlaywrightError, match="A browser cannot ask about a name"):
        call("api.js", "request", found["method"], found["path"])
    assert [each for each in files.requests if each[0] in CHANGES] == []
    url = call("api.js", "address", found["path"])
    assert url.endswith(f"/subscription/{quote(name, safe='')}?force=false")
    without_body = {"method": found["method"]}  # Playwright makes null of what is undefined
    curl = shlex.split(call("actions/requests.js", "curlOf", without_body, url, False))
    assert curl == ["curl", "--path-as-is", "-X", "DELETE", url]
    assert call("format.js", "curlWords", "http://b.x/a.b%2F.c/..c?d=/../") == ["curl"]

"""Numbers that no number should be, wherever a request may have one: refused, never a failure."""

from __future__ import annotations

import logging

import pytest

from headgate.admin.app import AdminApp
from headgate.admin.routing import Route
from headgate.admin.table import ROUTES
from tests.unit.admin.client import ask
from tests.unit.admin.fake_facade import FakeFacade

MANY = "9" * 5_000
NUMBERS = [
    MANY, "-" + MANY, "0" * 5_000, "0" * 5_000 + "1", "1" + "0" * 5_000, "1e999", "NaN",
    "-Infinity", "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1_000",
    "\u0663", "%2B5", "0x10", "1.5", "--1", "-",
]  # fmt: skip


def app_with_topic() -> AdminApp:
    facade = FakeFacade()
    app = AdminApp(facade, facade.clock)
    topic = "/admin/v2/persistent/public/default/t"
    assert ask(app, "PUT", topic).status == 204
    assert ask(app, "PUT", f"{topic}/subscription/s").status == 204
    return app


def path_with(route: Route, text: str) -> str:
    """The route's path with ``text`` in place of every parameter that is no name."""
    names = {"tenant": "public", "namespace": "default", "domain": "persistent", "topic": "t",
             "subscription": "s", "cluster": "standalone", "name": "maxMessageSize"}  # fmt: skip
    segments = [
        names.get(each[1:-1], text) if each.startswith("{") else each
        for each in route.path.split("/")
    ]
    return "/".join(segments)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_no_number_is_a_failure(route: Route, caplog: pytest.LogCaptureFixture) -> None:
    app = app_with_topic()
    with caplog.at_level(logging.ERROR):
        for text in NUMBERS:
            quoted = text.encode().decode("latin-1") if not text.isascii() else text
            answers = [
                ask(app, route.method, path_with(route, text if text.isascii() else "%D9%A3"))
            ]
            query = "&".join(f"{each.name}={quoted}" for each in route.query)
            answers.append(ask(app, route.method, f"{path_with(route, '1')}?count=1&{query}"))
            for body in (text, f'"{text}"', f"[{text}]"):
                raw = body.encode()
                answers.append(ask(app, route.method, path_with(route, "1"), raw))
            for answer in answers:
                assert answer.status < 500, answer.body[:200]
                if answer.status >= 400:
                    assert 0 < len(answer.reason) < 2_000
    assert not caplog.records


@pytest.mark.parametrize("text", [MANY, "0" * 5_000 + "7"])
def test_thousands_of_digits_in_a_path(text: str) -> None:
    app = app_with_topic()
    answer = ask(app, "GET", f"/admin/v2/persistent/public/default/t/ledger/{text}/entry/0")
    assert answer.status == 404
    assert "a 64-bit integer is allowed" in answer.reason
    assert len(answer.reason) < 200
    answer = ask(app, "GET", f"/admin/v2/headgate/explain?count={text}")
    assert answer.status == 400

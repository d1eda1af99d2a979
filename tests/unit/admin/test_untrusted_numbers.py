"""Numbers that no number should be, wherever a request may have one: refused, never a failure."""

from __future__ import annotations

import json
import logging

import pytest
from msgspec import Struct
from msgspec.structs import fields

from headgate.admin.app import AdminApp
from headgate.admin.routing import Route
from headgate.admin.table import ROUTES
from headgate.metadata.catalog import Catalog
from tests.unit.admin.client import ask
from tests.unit.admin.fake_facade import FakeFacade

MANY = "9" * 5_000
NUMBERS = [
    MANY, "-" + MANY, "0" * 5_000, "0" * 5_000 + "1", "1" + "0" * 5_000, "1e999", "NaN",
    "-Infinity", "inf", "9223372036854775808", "-9223372036854775809", "18446744073709551616",
    "1_000", "\u0663", "%2B5", "0x10", "1.5", "--1", "-",
]  # fmt: skip


def app_with_topic() -> tuple[FakeFacade, AdminApp]:
    facade = FakeFacade()
    app = AdminApp(facade, facade.clock)
    topic = "/admin/v2/persistent/public/default/t"
    assert ask(app, "PUT", topic).status == 204
    assert ask(app, "PUT", f"{topic}/subscription/s").status == 204
    return facade, app


def path_with(route: Route, text: str) -> str:
    """The route's path with ``text`` in place of every parameter that is no name."""
    names = {"tenant": "public", "namespace": "default", "domain": "persistent", "topic": "t",
             "subscription": "s", "cluster": "standalone", "name": "maxMessageSize"}  # fmt: skip
    segments = [
        names.get(each[1:-1], text) if each.startswith("{") else each
        for each in route.path.split("/")
    ]
    return "/".join(segments)


def objects_with(route: Route, text: str) -> list[str]:
    """Bodies of the route, each with ``text`` as the text of one member and 1 as all others."""
    if not (isinstance(route.body, type) and issubclass(route.body, Struct)):
        return []
    names = [each.encode_name for each in fields(route.body)]
    return [json.dumps(dict.fromkeys(names, 1) | {name: text}) for name in names]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_no_number_is_a_failure(route: Route, caplog: pytest.LogCaptureFixture) -> None:
    facade, app = app_with_topic()
    with caplog.at_level(logging.ERROR):
        for text in NUMBERS:
            quoted = text.encode().decode("latin-1") if not text.isascii() else text
            answers = [
                ask(app, route.method, path_with(route, text if text.isascii() else "%D9%A3"))
            ]
            query = "&".join(f"{each.name}={quoted}" for each in route.query)
            answers.append(ask(app, route.method, f"{path_with(route, '1')}?count=1&{query}"))
            for body in (text, f'"{text}"', f"[{text}]", *objects_with(route, text)):
                raw = body.encode()
                answers.append(ask(app, route.method, path_with(route, "1"), raw))
            for answer in answers:
                assert answer.status < 500, answer.body[:200]
                if answer.status >= 400:
                    assert 0 < len(answer.reason) < 2_000
            Catalog("standalone", facade.store.load())  # a later start can read what was stored
    assert not caplog.records


@pytest.mark.parametrize("text", [MANY, "0" * 5_000 + "7"])
def test_thousands_of_digits_in_a_path(text: str) -> None:
    _, app = app_with_topic()
    answer = ask(app, "GET", f"/admin/v2/persistent/public/default/t/ledger/{text}/entry/0")
    assert answer.status == 404
    assert "a 64-bit integer is allowed" in answer.reason
    assert len(answer.reason) < 200
    answer = ask(app, "GET", f"/admin/v2/headgate/explain?count={text}")
    assert answer.status == 400

"""Who asks, in the words of logs and in the scope of a request."""

from __future__ import annotations

from headgate.base.identity import (
    LAPSE_KEY,
    NOBODY,
    SCOPE_KEY,
    Identity,
    identity_of,
    why_lapsed,
)


def test_a_proxy_is_named_behind_the_role_for_which_it_asks() -> None:
    assert NOBODY.text == ""
    assert Identity("app").text == "app"
    assert Identity("proxy", "app").text == "app through proxy"


def test_a_request_without_authentication_is_nobodys() -> None:
    assert identity_of({}) is NOBODY
    known = Identity("app")
    assert identity_of({SCOPE_KEY: known}) is known


def test_credentials_lapse_only_where_some_were_asked_for() -> None:
    assert why_lapsed({}) == ""
    assert why_lapsed({LAPSE_KEY: lambda: "they have expired"}) == "they have expired"

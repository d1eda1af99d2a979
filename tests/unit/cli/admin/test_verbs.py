"""Verbs as rows of a table: their requests and their output."""

from __future__ import annotations

import http.client
from typing import Any

import pytest

from headgate.access import json_bounds
from headgate.access.admin_api import AdminApi
from headgate.access.client_config import ClientConfig
from headgate.base.names import NamespaceName, parse_topic
from headgate.cli.admin.errors import NotConnectedError, RefusedError
from headgate.cli.admin.output import as_lines
from headgate.cli.admin.verbs import (
    NAMESPACE_PATH,
    TOPIC_PATH,
    Server,
    Verb,
    argument,
    echo,
    option,
    send,
    show,
    show_text,
    switch,
    target,
)
from tests.unit.cli.admin.fake_server import FakeServer, Reply

API = AdminApi(ClientConfig("http://b:1"), {}, print)
SERVER = Server(lambda: API, 3.0)


@pytest.mark.parametrize(
    ("path", "value", "filled"),
    [
        (f"{TOPIC_PATH}/stats", "x", "/admin/v2/persistent/public/default/x/stats"),
        (TOPIC_PATH, "t/n/a b?%+é", "/admin/v2/persistent/t/n/a%20b%3F%25%2B%C3%A9"),
        (TOPIC_PATH, "t/n/\udcff", "/admin/v2/persistent/t/n/%FF"),
    ],
)
def test_topics_in_paths_are_encoded(path: str, value: str, filled: str) -> None:
    assert target(path, {"topicName": parse_topic(value)}) == filled


def test_values_in_paths_and_queries_are_encoded() -> None:
    values: dict[str, Any] = {"namespaceName": NamespaceName("t", "n"), "sub": "a/b", "on": True}
    assert target(f"{NAMESPACE_PATH}/{{sub}}", values) == "/admin/v2/namespaces/t/n/a%2Fb"
    query = ("on={on}", "sub={sub}", "fixed=1")
    assert target("/p", values, query) == "/p?on=true&sub=a%2Fb&fixed=1"
    assert target("/p", {"mode": None, "on": False}, ("mode={mode}", "on={on}")) == "/p?on=false"
    assert target("/p", {"mode": None}, ("mode={mode}",)) == "/p"


def test_showing(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.answer(["a", "b"])
    show("/list", as_lines)(SERVER, {})
    server.answer({"a": 1})
    show("/one")(SERVER, {})
    server.replies = [Reply(200)]
    show("/unset")(SERVER, {})
    server.replies = [Reply(200, b"4.0.8")]
    show_text("/version")(SERVER, {})
    assert capsys.readouterr().out == 'a\nb\n{\n  "a" : 1\n}\nnull\n4.0.8\n'
    assert [path for _, path, _ in server.asked] == ["/list", "/one", "/unset", "/version"]
    assert server.timeout_s == 3.0


def test_sending(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    send("POST", "/p/{a}", ("b={b}",), lambda values: {"c": values["b"]})(SERVER, {"a": 1, "b": 2})
    send("DELETE", "/p")(SERVER, {})
    assert server.asked == [("POST", "/p/1?b=2", '{"c":2}'), ("DELETE", "/p", "")]
    assert capsys.readouterr() == ("", "")


def test_half_of_a_surrogate_pair_of_a_foreign_cluster_is_printed(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.replies = [Reply(200, b'["a\\ud800"]')]
    show("/list", as_lines)(SERVER, {})
    assert capsys.readouterr().out == "a?\n"


def test_empty_lists_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    echo("")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(404, b'{"reason": "Namespace not found"}'), "Namespace not found"),
        (Reply(502, b"<html>", reason="Bad Gateway"), "HTTP 502 Bad Gateway"),
        (Reply(404, b"[]", reason="Not Found"), "HTTP 404 Not Found"),
        (Reply(307, b"", reason="Temporary Redirect"), "HTTP 307 Temporary Redirect"),
        (Reply(200, b"<html>"), "http://b:1 does not answer as a Pulsar admin API does"),
        (Reply(200, b"[" * 100_000), "http://b:1 does not answer as a Pulsar admin API does"),
    ],
)
def test_refusals(server: FakeServer, reply: Reply, reason: str) -> None:
    server.replies = [reply]
    with pytest.raises(RefusedError) as caught:
        SERVER.get("/p")
    assert caught.value.message == reason


@pytest.mark.parametrize(
    "reply",
    [
        Reply(409, b'{"reason": "no: Bearer s3cret"}'),
        Reply(500, b"<html>", reason="Authorization: Bearer s3cret"),
    ],
)
def test_a_secret_that_a_server_repeats_is_in_no_refusal(server: FakeServer, reply: Reply) -> None:
    server.replies = [reply]
    config = ClientConfig("http://b:1", auth_plugin="token", auth_params="token:s3cret")
    sent = AdminApi(config, {}, print)
    with pytest.raises(RefusedError, match=r"Bearer \*\*\*$"):
        Server(lambda: sent, 3.0).get("/p")


def test_an_answer_with_very_many_values_is_none(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_bounds, "SEPARATORS_MAX", 3)
    server.replies = [Reply(200, b"[[],[]]")]
    with pytest.raises(RefusedError, match="does not answer as a Pulsar admin API does"):
        SERVER.get("/p")


def test_silence(server: FakeServer) -> None:
    server.failure = TimeoutError()
    with pytest.raises(NotConnectedError) as caught:
        SERVER.get("/p")
    assert caught.value.message == (
        "http://b:1 did not answer within 3 s (--admin-url names the admin API)"
    )


def test_a_url_that_only_the_client_refuses(server: FakeServer) -> None:
    server.failure = http.client.InvalidURL("control character")
    with pytest.raises(NotConnectedError) as caught:
        SERVER.get("/p")
    assert caught.value.message == (
        "--admin-url is 'http://b:1'; use http://HOST:PORT of the admin API"
    )


def test_parameters_of_a_row() -> None:
    rate = option("--rate -r", "rate", int, "How fast.", default="1")
    verb = Verb("set", "Set it.", (argument("name", str, "a name"), rate), send("POST", "/p"))
    assert [parameter.required for parameter in verb.parameters] == [True, False]
    assert (rate.longest_name, rate.names, rate.default) == ("--rate", ("--rate", "-r"), "1")
    off = switch("--off", "on", "Leave it out.", default=True, given=False)
    assert (off.read, off.default, off.given) == (None, True, False)

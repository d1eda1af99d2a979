"""The requests, the output and the exit status of ``headgate explain``."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headgate.access.admin_api import AdminApi
from headgate.access.client_config import ADMIN_URL, ClientConfig
from headgate.base.names import parse_topic
from headgate.cli.explain import look
from headgate.cli.explain.command import EXPLAIN_PATH, fetch, topic_path
from headgate.cli.explain.errors import ExplainError
from headgate.cli.explain.look import LookRequest
from headgate.cli.group import main
from tests.unit.cli.explain.empty_report import EMPTY


class Reply:
    def __init__(self, status: int, body: bytes, location: str | None = None) -> None:
        self.status, self.body, self.location = status, body, location
        self.left = body

    def getheader(self, name: str) -> str | None:
        assert name == "location"
        return self.location

    length = 0

    def read(self, size: int) -> bytes:
        part, self.left = self.left[:size], self.left[size:]
        return part


class Server:
    """Stands where the network stands."""

    def __init__(self) -> None:
        self.reply = Reply(200, json.dumps(EMPTY).encode())
        self.failure: Exception | None = None
        self.asked: list[tuple[str, str, int | None, str]] = []
        self.headers: dict[str, str] = {}
        """Those that each request has."""
        self.open_count = 0

    def answer(self, status: int, value: Any) -> None:
        self.reply = Reply(status, json.dumps(value).encode())

    def connection(self, scheme: str) -> Callable[..., Any]:
        server = self

        class Connection:
            def __init__(self, host: str, port: int | None, timeout: float, **_tls: object) -> None:
                self.host, self.port = host, port
                server.open_count += 1
                assert 0 < timeout <= 10

            def request(self, method: str, path: str, headers: dict[str, str]) -> None:
                assert (method, headers) == ("GET", server.headers)
                server.asked.append((scheme, self.host, self.port, path))
                if server.failure is not None:
                    raise server.failure

            def getresponse(self) -> Reply:
                server.reply.left = server.reply.body
                return server.reply

            def close(self) -> None:
                server.open_count -= 1

        return Connection


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    server = Server()
    monkeypatch.setattr(http.client, "HTTPConnection", server.connection("http"))
    monkeypatch.setattr(http.client, "HTTPSConnection", server.connection("https"))
    return server


def explain(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(main, ["explain", *words])


def test_without_a_topic_the_worst_are_asked_for(server: Server) -> None:
    result = explain()
    assert result.exit_code == 0
    assert (
        result.output == "localhost:8080, 2026-11-21 18:18:35 UTC: 0 subscriptions, no backlog.\n"
    )
    assert server.asked == [("http", "127.0.0.1", 8080, f"{EXPLAIN_PATH}?count=10")]
    assert server.open_count == 0
    explain("--count", "3")
    assert server.asked[-1][3].endswith("?count=3")


@pytest.mark.parametrize(
    ("url", "scheme", "host", "port", "prefix"),
    [
        ("http://b:1", "http", "b", 1, ""),
        ("b:8080", "http", "b", 8080, ""),
        ("https://b/", "https", "b", None, ""),
        ("http://[::1]:7/proxy/", "http", "::1", 7, "/proxy"),
    ],
)
def test_urls(
    server: Server, url: str, scheme: str, host: str, port: int | None, prefix: str
) -> None:
    assert fetch(AdminApi(ClientConfig(url), {}, print), "/path") == EMPTY
    assert server.asked == [(scheme, host, port, prefix + "/path")]


@pytest.mark.parametrize("url", ["pulsar://b:6650", "http://", "http://b:99999", "http://b:0", ""])
def test_a_url_that_cannot_be_is_not_asked(server: Server, url: str) -> None:
    result = explain("--admin-url", url)
    assert result.exit_code == 2
    assert f"--admin-url is {url!r}; use http://HOST:PORT of the admin API" in result.stderr
    assert server.asked == []


def test_topics_by_short_and_full_name(server: Server) -> None:
    for name, path in {
        "orders": "persistent/public/default/orders",
        "t/n/orders": "persistent/t/n/orders",
        "persistent://t/n/a b?%c": "persistent/t/n/a%20b%3F%25c",
        "non-persistent://t/n/x": "non-persistent/t/n/x",
        "parts-partition-2": "persistent/public/default/parts-partition-2",
    }.items():
        assert topic_path(parse_topic(name), per_partition=False) == f"{EXPLAIN_PATH}/{path}"
        explain(name, "--per-partition", "--json")
        assert server.asked[-1][3] == f"{EXPLAIN_PATH}/{path}?perPartition=true"


def test_a_cluster_of_an_agent_is_named(server: Server) -> None:
    explain("orders", "--per-partition", "--cluster", "a&b", "--json")
    assert server.asked[-1][3].endswith("/orders?perPartition=true&cluster=a%26b")
    explain("orders", "--cluster", "prod", "--json")
    assert server.asked[-1][3].endswith("/orders?cluster=prod")


def test_json_is_the_answer_as_it_came(server: Server) -> None:
    server.answer(200, EMPTY | {"new": ["field"]})
    result = explain("--json")
    assert json.loads(result.stdout) == EMPTY | {"new": ["field"]}
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["a/b"], "Invalid topic name 'a/b'"),
        (["--per-partition"], "--per-partition needs a TOPIC."),
        (["--count", "0"], "0 is not in the range"),
    ],
)
def test_a_question_that_cannot_be_is_not_asked(
    server: Server, words: list[str], text: str
) -> None:
    result = explain(*words)
    assert result.exit_code == 2
    assert text in result.stderr
    assert server.asked == []


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (ConnectionRefusedError(111, "refused"), "refuses the connection: is the broker running"),
        (TimeoutError("timed out"), "did not answer within 10 s"),
        (socket.gaierror(-2, "Name or service not known"), "reached: Name or service not known"),
        (ConnectionResetError(104, "reset by peer"), "cannot be reached: reset by peer"),
        (http.client.BadStatusLine("?"), "does not speak HTTP (BadStatusLine)"),
        (http.client.RemoteDisconnected("gone"), "is that the port of the binary protocol?"),
    ],
)
def test_nobody_answers(server: Server, failure: Exception, text: str) -> None:
    server.failure = failure
    result = explain()
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: {ADMIN_URL} ")
    assert text in result.stderr
    assert result.stderr.count("\n") == 1
    assert server.open_count == 0


def test_the_broker_refuses(server: Server) -> None:
    server.answer(404, {"reason": "Topic persistent://public/default/x not found"})
    result = explain("x")
    assert result.exit_code == 2
    assert result.stderr == "Error: Topic persistent://public/default/x not found (status 404)\n"
    server.answer(503, {"reason": "the broker is closing"})
    assert explain("x").exit_code == 1


@pytest.mark.parametrize("words", [["--storage"], ["x", "--per-partition"]])
def test_a_pulsar_is_no_headgate(server: Server, words: list[str]) -> None:
    server.answer(404, {"reason": "HTTP 404 Not Found"})
    result = explain(*words)
    assert result.exit_code == 1
    assert result.stderr == (
        f"Error: {ADMIN_URL} is no Headgate broker: this needs Headgate's own account (--admin-url "
        "names the admin API)\n"
    )


@pytest.mark.parametrize(
    ("body", "words"), [(b'{"reason": "HTTP 404 Not Found"}', ["x"]), (b"<html>", []), (b"{}", [])]
)
def test_what_is_no_headgate_is_looked_at(
    server: Server, monkeypatch: pytest.MonkeyPatch, body: bytes, words: list[str]
) -> None:
    asked: list[LookRequest] = []

    def looked_at(_api: AdminApi, request: LookRequest, _show: object) -> dict[str, Any]:
        asked.append(request)
        return dict(EMPTY)

    monkeypatch.setattr(look, "answer_of_cluster", looked_at)
    server.reply = Reply(404, body)
    result = explain(*words, "--for", "2m", "--namespace", "acme/shop", "--count", "3")
    assert (result.exit_code, result.stderr) == (0, "")
    topic = "persistent://public/default/x" if words else ""
    assert asked == [LookRequest(topic, ("acme/shop",), 3, 120.0)]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--for", "2s"], "is no time such as 30s or 5m, from 3s to 1h"),
        (["--for", "2h"], "is no time such as 30s or 5m"),
        (["--for", "long"], "is no time such as 30s or 5m"),
        (["--namespace", "acme"], "Invalid namespace 'acme'"),
        (["--hash-names"], "--hash-names needs --record FILE"),
        (["--replay", "f", "--storage"], "--replay goes with TOPIC, --count and --json alone"),
        (["--replay", "f", "--record", "g"], "--replay goes with TOPIC"),
        (["--replay", "/no/such"], "/no/such cannot be read: No such file or directory"),
    ],
)
def test_options_that_are_not_allowed(server: Server, words: list[str], text: str) -> None:
    result = explain(*words)
    assert result.exit_code == 2
    assert text in " ".join(result.stderr.replace("│", " ").split())
    assert server.asked == []


def test_a_topic_that_is_not_persistent_has_no_backlog(server: Server) -> None:
    server.answer(404, {"reason": "HTTP 404 Not Found"})
    result = explain("non-persistent://a/b/c")
    assert (result.exit_code, "it has no backlog" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    "reason",
    [
        "Topic partitions were not yet created",
        "Partitioned Topic not found: persistent://a/b/c-partition-1 has zero partitions",
    ],
)
def test_other_words_for_a_topic_that_is_not_there(server: Server, reason: str) -> None:
    server.answer(404, {"reason": reason})
    result = explain("a/b/c-partition-1")
    assert (result.exit_code, result.stderr) == (2, f"Error: {reason} (status 404)\n")


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, b"ok"), (200, b'["standalone"]'), (200, b'{"a": 1}')],
)
def test_somebody_else_answers(server: Server, status: int, body: bytes) -> None:
    server.reply = Reply(status, body)
    result = explain()
    assert result.exit_code == 1
    assert f"answers as neither Headgate nor Apache Pulsar does (status {status})" in result.stderr


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_fails_is_not_said_to_be_another(server: Server, status: int) -> None:
    server.reply = Reply(status, b"busy")
    result = explain()
    assert result.exit_code == 1
    assert f"http://127.0.0.1:8080 answers with status {status} (--admin-url" in result.stderr


def test_a_redirect_says_where_it_leads(server: Server) -> None:
    server.reply = Reply(301, b"<html>", "https://pulsar.example.com/")
    result = explain()
    assert result.exit_code == 1
    assert "sends the request on to 'https://pulsar.example.com/', where no cred" in result.stderr


@pytest.mark.parametrize(
    ("status", "answer", "location"),
    [(409, {"reason": "no: Bearer s3cret"}, ""), (302, {}, "http://elsewhere/?token=s3cret")],
)
def test_a_secret_that_a_server_repeats_is_in_no_error(
    server: Server, status: int, answer: Any, location: str
) -> None:
    server.reply = Reply(status, json.dumps(answer).encode(), location)
    config = ClientConfig("http://b:1", auth_plugin="token", auth_params="token:s3cret")
    server.headers = {"Authorization": "Bearer s3cret"}
    with pytest.raises(ExplainError, match=r"\*\*\*") as caught:
        fetch(AdminApi(config, {}, print), "/path")
    assert "s3cret" not in str(caught.value)


def test_a_page_of_a_proxy_is_named(server: Server) -> None:
    server.reply = Reply(200, b"\n<html>")
    result = explain()
    assert result.exit_code == 1
    assert "answers with a web page, as a proxy or another server does (--admin-url" in (
        result.stderr
    )


def test_an_older_broker_is_named(server: Server) -> None:
    server.reply = Reply(200, b'{"subscriptions": [], "broker": "b", "subscriptionsTotal": 0}')
    result = explain()
    assert result.exit_code == 1
    assert "http://127.0.0.1:8080 runs an older release of Headgate" in result.stderr
    assert "whose answer has no 'at'" in result.stderr


@pytest.mark.parametrize("value", [None, 1.5, "x", [], {"a": 1}, [None], 10**400])
def test_values_of_another_type_have_a_sentence(server: Server, value: Any) -> None:
    for field in EMPTY:
        server.answer(200, EMPTY | {field: value})
        result = explain()
        assert result.exception is None or isinstance(result.exception, SystemExit), field
    server.answer(200, EMPTY | {"subscriptions": value})
    assert (explain().exit_code == 0) == (value == [])


def test_an_answer_that_is_too_deep_has_a_sentence(server: Server) -> None:
    server.reply = Reply(200, b"[" * 100_000)
    result = explain()
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: http://127.0.0.1:8080 ")


def test_it_loads_little() -> None:
    """An answer within 0.3 s leaves no time for libraries of tables, HTTP or the broker."""
    heavy = ("rich", "urllib3", "asyncio", "msgspec", "google", "headgate.broker", "headgate.flow")
    loaded = f"[name for name in {heavy} if name in sys.modules]"
    program = f"import sys, headgate.cli.explain.command\nprint({loaded})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=60
    )
    assert done.stdout == "[]\n"


def test_colours_are_for_terminals_that_want_them(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first(**environment: str) -> str:
        runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": None, "TERM": None, **environment})
        return runner.invoke(main, ["explain"], color=True).output

    assert first().startswith("localhost")
    monkeypatch.setattr("headgate.cli.terminal.is_terminal", lambda: True)
    assert first().startswith("\x1b[1mlocalhost")
    assert first(NO_COLOR="1").startswith("localhost")
    assert first(TERM="dumb").startswith("localhost")

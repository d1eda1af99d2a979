"""No secret is in any output: everything runs with marked ones, and every output is searched."""

from __future__ import annotations

import base64
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pulsar
import pytest

from headgate.admin.table import ROUTES
from headgate.cli.group import main
from headgate.security.token_keys import secret_key
from headgate.security.tokens import new_token
from headgate.wire import client as frames
from headgate.wire.codes import CommandType
from headgate.wire.frame import encode_frame
from headgate.wire.messages import BaseCommand
from tests.service.clients import EARLIEST, client_of, full, wait_until
from tests.service.process import BrokerProcess, StartFailedError
from tests.service.secret_places import (
    SETTINGS_WITH_SECRETS,
    TOOLS,
    Marks,
    Tool,
    command_lines,
    commands_with_secrets,
    run_tool,
    secret_settings,
)

Make = Callable[..., BrokerProcess]

TELEMETRY = "persistent://headgate/telemetry/samples"
NAMES = {"tenant": "public", "namespace": "default", "topic": "shown", "subscription": "s",
         "domain": "persistent", "cluster": "standalone"}  # fmt: skip


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks(tmp_path)


def test_the_search_finds_a_secret_in_each_encoding(marks: Marks) -> None:
    secret = marks.text("one")
    marks.text("other")
    pair = base64.b64encode(f"user:{secret}".encode())
    for shown in (secret, f"a={secret}&", pair, pair.decode(), secret.encode().hex()):
        assert marks.found_in(shown) == ["one"]
    for lead in range(5):
        url_safe = base64.urlsafe_b64encode(b"x" * lead + secret.encode() + b"tail")
        assert marks.found_in(url_safe) == ["one"]
    assert marks.found_in("m4rked") == []


def test_each_setting_with_a_secret_is_in_the_list() -> None:
    assert sorted(secret_settings()) == sorted(SETTINGS_WITH_SECRETS)


def test_each_command_with_a_secret_is_in_the_list(marks: Marks) -> None:
    played = [tuple(tool.words(marks)) for tool in TOOLS]
    commands = commands_with_secrets(main)
    assert ("admin",) in commands
    assert len(commands) > 8
    missing = [
        " ".join(command)
        for command in commands
        if not any(words[: len(command)] == command for words in played)
    ]
    assert not missing, "a row in TOOLS is needed"


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_no_command_shows_a_secret(tool: Tool, marks: Marks) -> None:
    shown = run_tool(tool, marks)
    for where, text in shown.items():
        assert not set(marks.found_in(text)) - set(tool.may_show), (where, shown)
    assert shown["stdout"] + shown["stderr"], "it says what is wrong, or what it made"


def test_a_running_broker_shows_no_secret(
    marks: Marks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the level debug, in all that can be asked for, at its end and in its crash."""
    broker = _broker(marks, tmp_path, monkeypatch)
    broker.start()
    try:
        _use(broker, marks)
        outputs = _asked(broker, marks)
        outputs["telemetry"] = _telemetry(broker)
        outputs["command lines"] = command_lines(broker.pid).encode()
        os.kill(broker.pid, signal.SIGABRT)  # with faulthandler: the stacks of all threads
        wait_until(lambda: "Fatal Python error" in broker.log())
    finally:
        broker.kill()
    outputs["log"] = broker.log().encode()
    outputs["audit log"] = (tmp_path / "audit.log").read_bytes()
    for path in broker.data_path.rglob("*"):
        if path.is_file():
            outputs[str(path)] = path.read_bytes()
    for where, output in outputs.items():
        assert not marks.found_in(output), (where, marks.found_in(output))
    assert b"DEBUG" in outputs["log"]
    assert b'"operation"' in outputs["audit log"]


def test_a_broker_that_authenticates_shows_no_secret(
    make_broker: Make, marks: Marks, tmp_path: Path
) -> None:
    """Neither the credentials that it accepts, nor those that it refuses, nor its keys."""
    config = [f"{name}={value(marks)}" for name, value in SETTINGS_WITH_SECRETS.items()]
    config += ["authenticationEnabled=true", "authenticationProviders=token,basic"]
    path = marks.file("broker.conf", "\n".join(config))
    audit = tmp_path / "audit.log"
    broker = make_broker(
        words=["--config", path, "--log-level", "debug", "--audit-log", str(audit)]
    ).start()
    key = secret_key(base64.b64decode(marks.key("token secret")), "k")
    tokens = {
        what: new_token(key, {"sub": "ann", "exp": time.time() + lifetime_s}, {})
        for what, lifetime_s in (("good token", 600), ("lapsed token", -600))
    }
    for what, token in tokens.items():
        marks.note(what, token)
        _say(broker.service_url, frames.connect(auth_method="token", auth_data=token.encode()))
    pairs = [f"ann:{marks.text(what)}".encode() for what in ("password", "wrong password")]
    for pair in pairs:
        _say(broker.service_url, frames.connect(auth_method="basic", auth_data=pair))
    heads = [f"Bearer {token}" for token in tokens.values()]
    heads += [f"Basic {base64.b64encode(pair).decode()}" for pair in pairs]
    outputs = {}
    for head in heads:
        for what in ("/admin/v2/brokers/configuration/runtime", "/admin/v2/tenants", "/metrics"):
            request = f"GET {what} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            data = f"{request}Authorization: {head}\r\n\r\n".encode()
            outputs[f"{what} {len(outputs)}"] = _say(broker.admin_url, data)
    statuses = [output.split()[1] for output in outputs.values()]
    # Wrong credentials are refused also where none are needed.
    assert statuses == [b"200"] * 3 + [b"401"] * 3 + [b"200"] * 3 + [b"401"] * 3
    outputs |= {"log": broker.log().encode(), "audit log": audit.read_bytes()}
    for where, output in outputs.items():
        assert not marks.found_in(output), (where, marks.found_in(output))
    assert b"authentication failed" in outputs["log"]
    assert outputs["audit log"].count(b'"operation":"connection.open"') >= 6


def _broker(marks: Marks, folder: Path, monkeypatch: pytest.MonkeyPatch) -> BrokerProcess:
    config = [f"{name}={value(marks)}" for name, value in SETTINGS_WITH_SECRETS.items()]
    config += [
        "headgateTelemetryNames=hash",
        f"headgateTelemetryNamesKeyFile={marks.file('names key')}",
        "headgateTelemetryIntervalMs=1000",
    ]
    path = marks.file("broker.conf", "\n".join(config))
    monkeypatch.setenv("PYTHONFAULTHANDLER", "1")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "false")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "200")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"api-key={marks.text('OTLP header')}")
    words = ["--config", path, "--log-level", "debug", "--audit-log", str(folder / "audit.log")]
    return BrokerProcess(folder, words)


def _use(broker: BrokerProcess, marks: Marks) -> None:
    """As clients do that send their credentials, also where nobody asks for them."""
    token = marks.text("token of a client")
    with client_of(broker.service_url, authentication=pulsar.AuthenticationToken(token)) as client:
        consumer = client.subscribe(full("shown"), "s")
        client.create_producer(full("shown")).send(b"x")
        consumer.acknowledge(consumer.receive(10_000))
    command = BaseCommand(type=CommandType.CONNECT)
    command.connect.client_version = "x"
    command.connect.auth_method_name = "basic"
    command.connect.auth_data = marks.text("password of a client").encode()
    broken = bytearray(encode_frame(command))
    broken[12] ^= 0xFF
    for frame in (encode_frame(command), bytes(broken), encode_frame(command) + frames.connect()):
        _say(broker.service_url, frame)


def _asked(broker: BrokerProcess, marks: Marks) -> dict[str, bytes]:
    """Every route that reads, with credentials, and some that refuse."""
    secret = marks.text("token of a request")
    basic = base64.b64encode(f"u:{marks.text('password of a request')}".encode()).decode()
    heads = (f"Authorization: Bearer {secret}", f"Authorization: Basic {basic}",
             f"Cookie: token={secret}")  # fmt: skip
    requests = [("GET", "/metrics"), ("GET", f"/x?token={secret}"), ("BREW", "/"), ("PUT", "/%")]
    for route in ROUTES:
        path = route.path
        for name, value in NAMES.items():
            path = path.replace(f"{{{name}}}", value)
        if route.method == "GET":
            requests.append(("GET", path))
    requests += [("POST", "/admin/v2/namespaces/public/default/dispatchRate"),
                 ("DELETE", "/admin/v2/tenants/none")]  # fmt: skip
    found = {}
    for number, (method, path) in enumerate(requests):
        head = heads[number % len(heads)]
        request = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n"
        found[f"{method} {path[:60]}"] = _say(broker.admin_url, f"{request}\r\n".encode())
    return found


def _say(url: str, data: bytes) -> bytes:
    where = urlsplit(url)
    with socket.create_connection((where.hostname or "", where.port or 0), 10) as client:
        client.sendall(data)
        if where.scheme == "pulsar":
            client.settimeout(0.5)
        found = b""
        try:
            while piece := client.recv(65_536):
                found += piece
        except OSError:
            pass
        return found


def _telemetry(broker: BrokerProcess) -> bytes:
    with client_of(broker.service_url) as client:
        time.sleep(1.2)  # a window
        consumer = client.subscribe(TELEMETRY, "reads", initial_position=EARLIEST)
        message = consumer.receive(10_000)
        found = message.data() + repr(message.properties()).encode()
        while True:
            try:
                found += consumer.receive(300).data()
            except pulsar.Timeout:
                return found


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_EXPORTER_OTLP_HEADERS", "{}"),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "a=b,{}"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://u:{}@host"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "u:{}@host"),
    ],
)
def test_a_refused_start_shows_no_secret(
    make_broker: Make, marks: Marks, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "false")
    monkeypatch.setenv(variable, value.format(marks.text("value").replace("/", "_")))
    broker = make_broker()
    with pytest.raises(StartFailedError) as failure:
        broker.start()
    assert variable in failure.value.stderr
    assert not marks.found_in(failure.value.stderr)
    assert "q7zJ" not in failure.value.stderr

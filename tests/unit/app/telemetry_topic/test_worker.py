"""The program that publishes, with a client library in this process."""

from __future__ import annotations

import os
import resource
import signal

import msgspec
import pytest

from headgate.access.client_config import ClientConfig
from headgate.app.pipe_frames import read_frame, write_frame
from headgate.app.telemetry_topic import worker
from headgate.app.telemetry_topic.pipe import Begin, Outcome
from headgate.app.telemetry_topic.worker import CALL_S_MAX, limit_process, serve
from tests.unit.agent.client_library import ClientLibrary, stand_in


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> ClientLibrary:
    return stand_in(monkeypatch)


@pytest.fixture
def alarms(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(signal, "alarm", found.append)
    return found


def played(config: ClientConfig, *messages: tuple[dict[str, str], bytes]) -> list[Outcome]:
    requests, asks = os.pipe()
    hears, replies = os.pipe()
    write_frame(asks, msgspec.json.encode(Begin(config, "persistent://a/b/c")))
    for properties, data in messages:
        write_frame(asks, msgspec.json.encode(properties))
        write_frame(asks, data)
    os.close(asks)
    serve(requests, replies, {"TOKEN": "abc"})
    os.close(replies)
    outcomes = []
    while frame := read_frame(hears):
        outcomes.append(msgspec.json.decode(frame, type=Outcome))
    for fd in (requests, hears):
        os.close(fd)
    return outcomes


def test_messages_are_published_and_answered(library: ClientLibrary, alarms: list[int]) -> None:
    config = ClientConfig(broker_url="pulsar://b:1", auth_plugin="token", auth_params="env:TOKEN")
    outcomes = played(config, ({"seq": "1"}, b"one"), ({}, b"bad"), ({"seq": "2"}, b"two"))
    assert [each.problem for each in outcomes] == ["", "", "too bad", ""]
    assert library.stored == [(b"one", {"seq": "1"}), (b"two", {"seq": "2"})]
    assert (library.options["url"], library.options["topic"]) == (
        "pulsar://b:1",
        "persistent://a/b/c",
    )
    (token,) = library.options["authentication"]
    assert token() == "abc"
    assert library.closed == 1
    # Each call of the library has its alarm, which ends the process, and none is left.
    assert alarms.count(CALL_S_MAX) == 4
    assert alarms[-1] == 0


@pytest.mark.usefixtures("alarms")
def test_a_cluster_that_refuses_is_told(library: ClientLibrary) -> None:
    library.refuses = True
    (outcome,) = played(ClientConfig(broker_url="pulsar://b:1"), ({}, b"x"))
    assert outcome.problem == "pulsar://b:1: not allowed"


@pytest.mark.usefixtures("alarms", "library")
def test_credentials_that_cannot_be_used_are_told() -> None:
    config = ClientConfig(broker_url="pulsar://b:1", auth_plugin="token", auth_params="env:NONE")
    (outcome,) = played(config)
    assert "NONE" in outcome.problem


@pytest.mark.usefixtures("library")
def test_without_a_word_it_ends() -> None:
    requests, asks = os.pipe()
    hears, replies = os.pipe()
    os.close(asks)
    serve(requests, replies, {})
    os.close(replies)
    assert os.read(hears, 1) == b""
    for fd in (requests, hears):
        os.close(fd)


def test_the_process_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: dict[int, tuple[int, int]] = {}
    ignored: set[int] = set()
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)
    monkeypatch.setattr(signal, "signal", lambda each, _: ignored.add(each))
    limit_process()
    most = worker.MEMORY_BYTES_MAX
    assert limits == {resource.RLIMIT_AS: (most, most), resource.RLIMIT_CORE: (0, 0)}
    assert ignored == {signal.SIGINT, signal.SIGTERM}

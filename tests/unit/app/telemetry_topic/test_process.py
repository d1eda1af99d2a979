"""A producer in a process of its own, which may end at any time."""

from __future__ import annotations

import importlib.util
import os
import sys
import time

import pytest

from headgate.access.client_config import ClientConfig
from headgate.agent.record_topic import TopicError
from headgate.app.telemetry_topic import process
from headgate.app.telemetry_topic.process import TopicProcess, check_installed
from headgate.base.errors import InputError

CONFIG = ClientConfig(broker_url="pulsar://b:1", auth_params="token:s3cret")
PROGRAM = """
import os, signal, sys, time
from headgate.app.pipe_frames import read_frame, write_frame
from headgate.app.telemetry_topic.pipe import Outcome
import msgspec
def reply(problem="", *said):
    write_frame(1, msgspec.json.encode(Outcome(problem, list(said))))
first = read_frame(0)
assert b"s3cret" in first and "s3cret" not in " ".join(sys.argv)
reply("", "a warning", os.environ["EXTRA"])
while read_frame(0):
    data = read_frame(0)
    if data == b"bad": reply("too bad")
    elif data == b"abort": os.abort()
    elif data == b"late": os.kill(os.getpid(), signal.SIGALRM)
    elif data == b"end": sys.exit(3)
    elif data == b"mute": os.close(1); time.sleep(100)
    else: reply()
if data == b"stay": time.sleep(100)
"""


def started(said: list[str] | None = None) -> TopicProcess:
    say = [].append if said is None else said.append
    command = (sys.executable, "-P", "-c", PROGRAM)
    return TopicProcess(CONFIG, "t", {"EXTRA": "e"}, say, command)


def test_messages_are_stored_or_refused() -> None:
    said: list[str] = []
    producer = started(said)
    assert said == ["a warning", "e"]
    producer.send(b"x" * 1_000_000, {"seq": "1"})
    with pytest.raises(TopicError, match=r"^too bad$"):
        producer.send(b"bad", {})
    producer.send(b"y", {})
    producer.close()
    producer.close()
    with pytest.raises(TopicError, match="the process that publishes ended with status 0"):
        producer.send(b"z", {})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"abort", "ended with signal 6: pulsar-client does not survive what the broker answered"),
        (b"late", "ended because pulsar-client did not return from a call"),
        (b"end", "ended with status 3"),
        (b"mute", "ended with signal 9"),
    ],
)
def test_a_process_that_ends_is_an_error_of_the_topic(
    monkeypatch: pytest.MonkeyPatch, data: bytes, reason: str
) -> None:
    monkeypatch.setattr(process, "END_S", 0.2 if data == b"mute" else 10)
    producer = started()
    with pytest.raises(TopicError, match=reason):
        producer.send(data, {})
    producer.close()


def test_a_process_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "END_S", 0.2)
    producer = started()
    producer.send(b"stay", {})
    began = time.monotonic()
    producer.close()
    assert time.monotonic() - began < 5


def test_a_process_that_cannot_be_started_is_an_error_of_the_topic() -> None:
    with pytest.raises(TopicError, match="no process for it can be started: No such file"):
        TopicProcess(CONFIG, "t", {}, print, ("/no/such/program",))


def test_pulsar_client_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    check_installed()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="needs the package pulsar-client"):
        check_installed()


def test_the_environment_of_the_agent_is_not_changed() -> None:
    before = dict(os.environ)
    started().close()
    assert dict(os.environ) == before

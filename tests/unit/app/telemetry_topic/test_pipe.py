"""Frames between the agent and the process that publishes."""

from __future__ import annotations

import io

import msgspec
import pytest

from headgate.access.client_config import ClientConfig
from headgate.app.telemetry_topic.pipe import Begin, Outcome, read_frame, write_frame


def test_frames_come_as_they_were_sent() -> None:
    pipe = io.BytesIO()
    for data in (b"one", b"x" * 100_000):
        write_frame(pipe, data)
    pipe.seek(0)
    assert [read_frame(pipe) for _ in range(3)] == [b"one", b"x" * 100_000, b""]


@pytest.mark.parametrize("sent", [b"\0", b"\0\0\0", b"\0\0\0\x02a"])
def test_an_end_amid_a_frame_is_an_error(sent: bytes) -> None:
    with pytest.raises(EOFError, match="the other process has ended"):
        read_frame(io.BytesIO(sent))


def test_what_is_told_is_understood() -> None:
    begin = Begin(ClientConfig(broker_url="pulsar://b:1", auth_params="token:x"), "t")
    assert msgspec.json.decode(msgspec.json.encode(begin), type=Begin) == begin
    outcome = Outcome("no", ["a warning"])
    assert msgspec.json.decode(msgspec.json.encode(outcome), type=Outcome) == outcome

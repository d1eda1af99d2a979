"""What the agent and the process that publishes tell each other."""

from __future__ import annotations

import msgspec

from headgate.access.client_config import ClientConfig
from headgate.app.telemetry_topic.pipe import Begin, Outcome


def test_what_is_told_is_understood() -> None:
    begin = Begin(ClientConfig(broker_url="pulsar://b:1", auth_params="token:x"), "t")
    assert msgspec.json.decode(msgspec.json.encode(begin), type=Begin) == begin
    outcome = Outcome("no", ["a warning"])
    assert msgspec.json.decode(msgspec.json.encode(outcome), type=Outcome) == outcome

"""A producer of the client library, with a library in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.access.client_config import ClientConfig
from headgate.agent.pulsar_producer import PulsarProducer
from headgate.agent.record_topic import TopicError


class PulsarError(Exception):
    """Of the library."""


class Client:
    """Its client and its producer in one."""

    made: Client
    create_fails = False

    def __init__(self, url: str, **options: Any) -> None:
        if url == "bad":
            raise ValueError("no URL")
        type(self).made = self
        self.url, self.options = url, options
        self.stored: list[tuple[bytes, dict[str, str]]] = []
        self.closed = 0

    def create_producer(self, topic: str, **options: Any) -> Client:
        if self.create_fails:
            raise PulsarError("not allowed")
        self.options |= {"topic": topic, **options}
        return self

    def send(self, data: bytes, properties: dict[str, str]) -> None:
        if data == b"bad":
            raise PulsarError("too bad")
        self.stored.append((data, properties))

    def close(self) -> None:
        self.closed += 1
        raise PulsarError("already closed")


def pair(*values: Any) -> tuple[Any, ...]:
    return values


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(
        PulsarException=PulsarError,
        LoggerLevel=SimpleNamespace(Error=4),
        ConsoleLogger=pair,
        AuthenticationToken=pair,
        AuthenticationBasic=pair,
        AuthenticationTLS=pair,
        Client=Client,
    )
    monkeypatch.setitem(sys.modules, "pulsar", module)  # type: ignore[arg-type]


def producer(**config: Any) -> PulsarProducer:
    return PulsarProducer(ClientConfig(broker_url="pulsar://b:1", **config), "t", {}, print)


def test_a_message_is_stored_or_refused() -> None:
    made = producer()
    made.send(b"x", {"a": "b"})
    with pytest.raises(TopicError, match="too bad"):
        made.send(b"bad", {})
    made.close()
    assert (Client.made.stored, Client.made.closed) == ([(b"x", {"a": "b"})], 1)
    assert Client.made.options["authentication"] is None


def test_who_may_not_produce_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Client, "create_fails", True)
    monkeypatch.setattr(Client, "close", lambda _: None)
    with pytest.raises(TopicError, match="pulsar://b:1: not allowed"):
        producer()
    with pytest.raises(TopicError, match="bad: no URL"):
        PulsarProducer(ClientConfig(broker_url="bad"), "t", {}, print)


def test_a_token_is_read_again_for_each_connection(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    path.chmod(0o600)
    producer(auth_plugin="token", auth_params=f"file://{path}")
    supply: Callable[[], str] = Client.made.options["authentication"][0]
    assert supply() == "one"
    path.write_text("two")
    assert supply() == "two"


def test_a_password_and_a_certificate_are_handed_on() -> None:
    producer(auth_plugin="basic", auth_params="anna:s3cret")
    assert Client.made.options["authentication"] == ("anna", "s3cret")
    producer(certificate_path="/c.pem", key_path="/k.pem")
    assert Client.made.options["authentication"] == ("/c.pem", "/k.pem")

"""A producer of the client library, with a library in this process."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.access.client_config import ClientConfig
from headgate.agent.pulsar_producer import PulsarProducer
from headgate.agent.record_topic import TopicError
from tests.unit.agent.client_library import ClientLibrary, stand_in


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> ClientLibrary:
    return stand_in(monkeypatch)


def producer(**config: Any) -> PulsarProducer:
    return PulsarProducer(ClientConfig(broker_url="pulsar://b:1", **config), "t", {}, print)


def test_a_message_is_stored_or_refused(library: ClientLibrary) -> None:
    library.close_fails = True
    made = producer()
    made.send(b"x", {"a": "b"})
    with pytest.raises(TopicError, match="too bad"):
        made.send(b"bad", {})
    made.close()
    assert (library.stored, library.closed) == ([(b"x", {"a": "b"})], 1)
    assert library.options["authentication"] is None


def test_who_may_not_produce_is_told(library: ClientLibrary) -> None:
    library.refuses = library.close_fails = True
    with pytest.raises(TopicError, match="pulsar://b:1: not allowed"):
        producer()
    assert library.closed == 1
    with pytest.raises(TopicError, match="bad: no URL"):
        PulsarProducer(ClientConfig(broker_url="bad"), "t", {}, print)


def test_a_token_is_read_again_for_each_connection(tmp_path: Path, library: ClientLibrary) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    path.chmod(0o600)
    producer(auth_plugin="token", auth_params=f"file://{path}")
    supply: Callable[[], str] = library.options["authentication"][0]
    assert supply() == "one"
    path.write_text("two")
    assert supply() == "two"


def test_a_password_and_a_certificate_are_handed_on(library: ClientLibrary) -> None:
    producer(auth_plugin="basic", auth_params="anna:s3cret")
    assert library.options["authentication"] == ("anna", "s3cret")
    producer(certificate_path="/c.pem", key_path="/k.pem")
    assert library.options["authentication"] == ("/c.pem", "/k.pem")


def test_what_a_broker_says_is_in_no_log_unless_one_looks_for_a_fault(
    library: ClientLibrary, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "headgate.agent"):
        producer()
    assert library.options["logger"] == (4, os.devnull)
    with caplog.at_level(logging.DEBUG, "headgate.agent"):
        producer()
    assert library.options["logger"] == (4,)

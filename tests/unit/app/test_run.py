"""Settings of a start, its ready line and its signals."""

from __future__ import annotations

import logging
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate import __version__
from headgate.app.node import Node
from headgate.app.options import StandaloneOptions
from headgate.app.ports import Urls
from headgate.app.run import StopSignals, process_age_s, ready_line, settings_of
from headgate.base.errors import InputError


def test_unsupported_keys_are_named_in_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("numIOThreads=8\nwebServicePort=0\nfunctionsWorkerEnabled=true\n")
    with caplog.at_level(logging.WARNING):
        settings = settings_of(StandaloneOptions("d", str(path), ["brokerServicePort=0"]))
    assert (settings.webServicePort, settings.brokerServicePort) == (0, 0)
    (record,) = caplog.records
    assert record.getMessage().endswith(
        "broker.conf: 2 keys are not supported and have no effect: "
        "numIOThreads, functionsWorkerEnabled"
    )


def test_no_warning_without_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    settings_of(StandaloneOptions())
    assert caplog.records == []


def test_bad_values_stop_the_start() -> None:
    with pytest.raises(InputError, match="brokerServicePort='-2' is not allowed"):
        settings_of(StandaloneOptions(assignments=["brokerServicePort=-2"]))


def test_the_ready_line_has_every_address() -> None:
    urls = Urls("pulsar://127.0.0.1:6650", "http://127.0.0.1:8080")
    node = cast(Node, cast(Any, SimpleNamespace(urls=urls, data_path="/data")))
    assert ready_line(node, 0.618) == (
        f"Headgate {__version__} ready in 0.62 s: pulsar://127.0.0.1:6650  "
        "http://127.0.0.1:8080  data in /data"
    )
    assert " ready: pulsar" in ready_line(node, None)


def test_the_age_of_this_process_is_known_or_not() -> None:
    age_s = process_age_s()
    assert age_s is None or age_s > 0


def test_only_a_later_signal_ends_at_once() -> None:
    times_s = iter([10.0, 10.9, 11.0])
    ended: list[int] = []
    stop = StopSignals(lambda: next(times_s), ended.append)
    stop.receive(signal.SIGTERM)
    assert stop.received.is_set()
    stop.receive(signal.SIGTERM)  # as timeout(1) does: to the child, then to its group
    assert ended == []
    stop.receive(signal.SIGINT)
    assert ended == [128 + signal.SIGINT]


def test_an_administrator_may_end_the_broker(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[int] = []
    times_s = iter([0.0, 2.0])
    stop = StopSignals(lambda: next(times_s), ended.append)
    with caplog.at_level(logging.INFO):
        stop.request()
        stop.request()
    assert stop.received.is_set()
    assert len(caplog.records) == 1
    stop.receive(signal.SIGTERM)  # it does not end fast enough
    assert ended == [128 + signal.SIGTERM]

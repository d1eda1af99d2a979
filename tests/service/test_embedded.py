"""Brokers inside this process: two at once, and starts that fail."""

from __future__ import annotations

import sys
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from headgate.app.embedded import EmbeddedBroker
from headgate.app.node import Node
from headgate.app.run import SWITCH_INTERVAL_S
from headgate.base.errors import InputError, InvariantError
from headgate.ledger.errors import DirectoryInUseError


@pytest.fixture(autouse=True)
def _keep_the_switch_interval() -> Iterator[None]:
    interval_s = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval_s)


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as reply:
        body: bytes = reply.read()
    return body


def _threads() -> list[str]:
    return sorted(t.name for t in threading.enumerate() if t.name.startswith("headgate"))


def test_two_brokers_of_different_clusters(tmp_path: Path) -> None:
    with (
        EmbeddedBroker(str(tmp_path / "a")) as first,
        EmbeddedBroker(str(tmp_path / "b"), {"clusterName": "wide"}) as second,
    ):
        assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
        assert first.urls.broker.startswith("pulsar://127.0.0.1:")
        assert first.urls != second.urls
        assert _get(first.urls.web + "/admin/v2/clusters") == b'["standalone"]'
        assert _get(second.urls.web + "/admin/v2/clusters") == b'["wide"]'
    assert _threads() == []


def test_it_starts_again_on_the_same_directory(tmp_path: Path) -> None:
    for _ in range(2):
        broker = EmbeddedBroker(str(tmp_path))
        assert broker.start() == broker.urls
        broker.stop()
        broker.stop()


def test_a_start_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    with EmbeddedBroker(str(tmp_path)):
        before = _threads()
        with pytest.raises(DirectoryInUseError):
            EmbeddedBroker(str(tmp_path)).start()
        assert _threads() == before


class _Interrupted(Future[Node]):
    """Ctrl-C while somebody waits for it."""

    def result(self, timeout: float | None = None) -> Node:
        if timeout is None:
            raise KeyboardInterrupt
        return super().result(timeout)


def test_a_start_that_is_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    broker = EmbeddedBroker(str(tmp_path))
    broker._node = _Interrupted()
    with pytest.raises(KeyboardInterrupt):
        broker.start()
    assert _threads() == []
    with EmbeddedBroker(str(tmp_path)):
        pass  # nobody holds the directory


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"colour": "red"}, "there is no setting 'colour'"),
        ({"webServicePort": "high"}, "webServicePort='high' is not allowed"),
    ],
)
def test_bad_settings(tmp_path: Path, settings: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        EmbeddedBroker(str(tmp_path), settings)
    assert list(tmp_path.iterdir()) == []


def test_it_starts_once(tmp_path: Path) -> None:
    with EmbeddedBroker(str(tmp_path)) as broker, pytest.raises(InvariantError):
        broker.start()

"""``./dev soak faults``: faults of a real system under a real broker. Not part of ``./dev test``.

The tests compile a layer with gcc and take minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.preload.lying import LyingSystem, compiled
from tests.service.conftest import make_broker
from tests.service.process import BrokerProcess

__all__ = ["make_broker"]

LOG = "/data/log/"
"""Where a broker has the files of its main log."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option of ``./dev soak faults``."""
    parser.addoption("--seconds", type=int, default=60, help="how long a fault lasts")


@pytest.fixture
def seconds(request: pytest.FixtureRequest) -> int:
    """How long a fault lasts."""
    found: int = request.config.getoption("--seconds")
    return found


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled layer."""
    return compiled(tmp_path_factory.mktemp("preload"))


@pytest.fixture
def system(library: Path, tmp_path: Path) -> Iterator[LyingSystem]:
    """The layer of one test's broker; its delays and errors concern the main log."""
    made = LyingSystem(library, tmp_path, LOG)
    yield made
    made.order(sync_delay_ms=0, sync_errors=0, write_error=0)
    made.close()


@pytest.fixture
def make_deceived(
    make_broker: Callable[..., BrokerProcess], system: LyingSystem
) -> Callable[..., BrokerProcess]:
    """Makes a broker that runs behind the layer, not yet started."""

    def make(**more: object) -> BrokerProcess:
        broker = make_broker(**more)
        broker.wrapper = system.wrapper
        return broker

    return make

"""Brokers for the service tests: real processes, real sockets, real disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.service.measuring import Rest
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import RETAINED, words

CLIENTS = 300


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the lane; given where one of its files is named."""
    parser.addoption("--clients", type=int, default=CLIENTS, help="clients of a crowd: a soak")
    parser.addoption("--fuzz-seed", type=int, default=1, help="what the fuzzer plays: a soak")
    parser.addoption("--fuzz-minutes", type=float, default=0, help="how long it plays: a soak")
    parser.addoption("--rounds", type=int, default=2, help="kills under load: a soak")


@pytest.fixture
def clients(request: pytest.FixtureRequest) -> int:
    """How many clients a crowd has."""
    count: int = request.config.getoption("--clients", default=CLIENTS)
    return count


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A running broker that the tests of one module share: ``service_url``, ``admin_url``.

    It retains what was acknowledged, so that a test can read all that it sent once more.
    """
    process = BrokerProcess(tmp_path_factory.mktemp("broker"), words(**RETAINED))
    process.start()
    try:
        yield process
    finally:
        process.close()


@pytest.fixture(scope="module")
def rest(broker: BrokerProcess) -> Iterator[Rest]:
    """The admin API of the module's broker."""
    made = Rest(broker.admin_url)
    yield made
    made.close()


@pytest.fixture
def namespace(rest: Rest, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    name = "public/" + re.sub(r"\W+", "-", request.node.name)
    rest.ask("PUT", f"/admin/v2/namespaces/{name}")
    return name


@pytest.fixture
def make_broker(tmp_path: Path) -> Iterator[Callable[..., BrokerProcess]]:
    """Makes brokers of one test's own, not yet started; they are ended after it."""
    made: list[BrokerProcess] = []

    def make(name: str = "broker", words: Sequence[str] = ()) -> BrokerProcess:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        made.append(BrokerProcess(folder, words))
        return made[-1]

    yield make
    for process in made:
        process.close()

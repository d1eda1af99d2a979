"""Shared by all lanes: hypothesis repeats its examples, the longest files start first, one process
may have a part of the files, and the simulations and faults take other seeds from the command line.
"""

from __future__ import annotations

import atexit
import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.order import ordered, part_of

hypothesis.settings.register_profile(
    "headgate",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("headgate")


COLLECTIONS = (10_000, 10, 50)
"""New objects before a collection, collections before one of the second generation, and those
before one of the third: with Python's 700, 10 and 10 they take 2.5 % more of all processor time."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So a shell starts what runs in the background, and processes that tests start inherit it:
    # Ctrl-C would not end them.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of lanes in parts, of the simulations and of the faults."""
    parser.addoption(
        "--part",
        metavar="NUMBER/PARTS",
        help="take this part of the test files only; ./dev test runs the parts at the same time",
    )
    parser.addoption(
        "--simulation-seeds",
        metavar="FIRST:COUNT",
        help="play these seeds of a simulation instead of the usual few: a soak",
    )
    parser.addoption(
        "--flip-stride",
        type=int,
        help="damage one of so many bytes of each file instead of the usual few: a soak",
    )


@pytest.fixture
def flip_stride(pytestconfig: pytest.Config) -> int | None:
    """One of so many bytes of a file is to be damaged; None for what the test does by itself."""
    found: int | None = pytestconfig.getoption("--flip-stride")
    return found


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file of another part."""
    part = config.getoption("--part")
    if part is None or not collection_path.match("test_*.py"):
        return None
    number, _, parts = part.partition("/")
    name = collection_path.relative_to(config.rootpath).as_posix()
    return part_of(name, int(parts)) != int(number) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Search no imported module for garbage: neither amid the imports, which takes a fifth of their
    time, nor later amid the tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(*COLLECTIONS)
        gc.enable()


# Lets the end of the process, and not pytest's collections before it, find what the imports hold.
atexit.register(gc.unfreeze)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of the longest files first, for the processes of ``./dev test``."""
    items[:] = [items[index] for index in ordered(item.location[0] for item in items)]

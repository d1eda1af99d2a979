"""One request at a time, whose outcome is taken once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import click
import pytest

from headgate.base.errors import InputError
from headgate.cli.live.poller import Outcome, Poller


def taken(poller: Poller) -> Outcome:
    """The outcome, which a thread brings."""
    waiter = threading.Event()
    for _ in range(1_000):
        outcome = poller.take()
        if outcome is not None:
            return outcome
        waiter.wait(0.005)
    raise TimeoutError


def failing(error: Exception) -> Callable[[str], Any]:
    def fetch(_path: str) -> Any:
        raise error

    return fetch


def test_an_answer() -> None:
    poller = Poller(lambda path: {"path": path})
    assert poller.take() is None
    assert poller.begin("/a")
    assert taken(poller) == Outcome("/a", {"path": "/a"})
    assert poller.take() is None
    assert poller.begin("/b")
    assert taken(poller).path == "/b"


def test_a_slow_broker_is_asked_once() -> None:
    released = threading.Event()
    asked: list[str] = []

    def fetch(path: str) -> Any:
        asked.append(path)
        released.wait(5)
        return {}

    poller = Poller(fetch)
    assert poller.begin("/a")
    assert not poller.begin("/b")
    released.set()
    assert taken(poller).path == "/a"
    assert asked == ["/a"]


@pytest.mark.parametrize(
    "error", [click.ClickException("it refuses"), InputError("it refuses")], ids=["click", "own"]
)
def test_a_failure_is_a_sentence(error: Exception) -> None:
    poller = Poller(failing(error))
    poller.begin("/a")
    assert taken(poller) == Outcome("/a", None, "it refuses")
    assert poller.begin("/a")


def test_an_error_that_is_not_expected_is_raised() -> None:
    poller = Poller(failing(ZeroDivisionError("bug")))
    poller.begin("/a")
    with pytest.raises(ZeroDivisionError, match="bug"):
        taken(poller)


def test_credentials_may_warn_by_the_command() -> None:
    """A thread has no click context of its own."""
    found: list[click.Context] = []

    def fetch(_path: str) -> Any:
        found.append(click.get_current_context())
        return {}

    with click.Context(click.Command("top")) as context:
        poller = Poller(fetch)
        poller.begin("/a")
        taken(poller)
    assert found == [context]

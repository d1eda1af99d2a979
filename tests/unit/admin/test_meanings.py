"""The texts under fields reach the schema, those of a parent class and in camel case, too."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
import pytest

from headgate.admin.meanings import add_meanings


class Queue(msgspec.Struct, rename="camel"):
    """What waits."""

    name: str
    waiting_entries: int
    """Not yet ``sent``; of all
    consumers together."""


class Lane(Queue, rename="camel"):
    """One that has a limit."""

    limit: int
    """In entries."""


def _components() -> dict[str, Any]:
    _, components = msgspec.json.schema_components([Lane, Queue])
    return dict(components)


def test_texts_under_fields_become_descriptions() -> None:
    components = _components()
    add_meanings([Lane], components)
    waiting = {
        "type": "integer",
        "description": "Not yet sent; of all\nconsumers together.",
    }
    assert components["Queue"]["properties"] == {
        "name": {"type": "string"},
        "waitingEntries": waiting,
    }
    lane = components["Lane"]["properties"]
    assert lane["waitingEntries"] == waiting
    assert lane["limit"] == {"type": "integer", "description": "In entries."}


def test_without_sources_the_schema_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_source(_: object) -> str:
        raise OSError("could not get source code")

    monkeypatch.setattr(inspect, "getsource", no_source)
    components = _components()
    add_meanings([Lane], components)
    assert components == _components()


def test_each_module_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was once for each class and type: the first request for the description took seconds."""
    read: list[object] = []
    source = inspect.getsource

    def counted(module: Any) -> str:
        read.append(module)
        return source(module)

    monkeypatch.setattr(inspect, "getsource", counted)
    add_meanings([Lane, Queue, Lane], _components())
    assert read == [inspect.getmodule(Lane)]

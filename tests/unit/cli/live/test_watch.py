"""The view gets the terminal of the process, and gives it back."""

from __future__ import annotations

from types import TracebackType

import pytest
from rich.console import Console

from headgate.cli.live import watch as module
from headgate.cli.live.text_view import TextView
from tests.unit.cli.live.fakes import FakeTerminal


def test_it_ends_with_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[bool] = []

    class Terminal(FakeTerminal):
        def __init__(self, console: Console) -> None:
            assert console.no_color
            super().__init__([["q"]])

        def __enter__(self) -> Terminal:
            return self

        def __exit__(
            self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
        ) -> None:
            ended.append(kind is None)

    monkeypatch.setattr(module, "LiveTerminal", Terminal)
    view = TextView("/a", {}, lambda _answer, _width: "text")
    module.watch(view, lambda _path: {}, 2.0)
    assert ended == [True]

"""The bar while explain looks: on a terminal alone."""

from __future__ import annotations

import io
import sys

import pytest

from headgate.cli.explain.progress import bar_text, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_a_terminal_alone_sees_it(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    with progress(30.0) as show:
        show(0.5, lambda: "a sentence")
    assert ("a sentence" in stream.getvalue()) is stream.isatty()


def test_the_bar_says_what_is_left() -> None:
    assert bar_text(0.25, 40.0, "words").startswith("[#####---------------] 30 s left; Ctrl-C")
    assert bar_text(2.0, 40.0, "words").startswith("[####################] 0 s left")
    assert bar_text(0.0, 40.0, "words").endswith("\nwords")

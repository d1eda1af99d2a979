"""The bar that ``headgate explain`` shows while it looks, on a terminal alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from headgate.base.texts import about_text

_BAR_CHARACTERS: Final = 20


@contextmanager
def progress(seconds: float) -> Iterator[Callable[[float, Callable[[], str]], None]]:
    """Gives what shows the share of ``seconds`` that has passed, and a sentence that is found when
    it is shown.

    It goes to the standard error, and disappears at the end; nothing is shown where that is no
    terminal.
    """
    if not sys.stderr.isatty():
        yield lambda _share, _sentence: None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(stderr=True), transient=True, refresh_per_second=4) as live:

        def show(share: float, sentence: Callable[[], str]) -> None:
            live.update(Text(bar_text(share, seconds, sentence())))

        yield show


def bar_text(share: float, seconds: float, sentence: str) -> str:
    """The bar, the time that is left, and what the looks say so far."""
    share = min(1.0, max(0.0, share))
    done = round(share * _BAR_CHARACTERS)
    bar = "#" * done + "-" * (_BAR_CHARACTERS - done)
    left = about_text((1.0 - share) * seconds)
    return f"[{bar}] {left} left; Ctrl-C ends it with the answer so far\n{sentence}"

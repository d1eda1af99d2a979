"""Progress of a job on the terminal, with one line for each stage.

On a terminal a running stage has a moving line, with a bar if its total is known. When the stage
ends, the line is the same as in a file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

OnProgress = Callable[[int, int], None]
"""Called with the amount done and the total."""


def no_progress(_done: int, _total: int) -> None:
    """Ignore the progress: there is no bar."""


@dataclass(slots=True)
class Stage:
    """A running stage."""

    result: str = ""
    """Text after its name when it ends."""
    on_progress: OnProgress = no_progress
    """Moves the bar."""


class Progress:
    """Writes ``Starting Spark ... 6.2 s`` in two steps, so that the running stage is seen."""

    def __init__(self, err: TextIO, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._err = err
        self._monotonic = monotonic
        self._console = Console(file=err, highlight=False, markup=False)

    @contextmanager
    def stage(self, text: str) -> Iterator[Stage]:
        """Write a stage's name, and at its end its result and its seconds."""
        begin_s = self._monotonic()
        moves = self._console.is_terminal and not self._console.is_dumb_terminal
        try:
            with self._moving(text) if moves else self._still(text) as stage:
                yield stage
        except BaseException:
            self._write(f"{text} ... \n" if moves else "\n")
            raise
        result = f"{stage.result} " * bool(stage.result)
        begin = f"{text} ... " * moves
        self._write(f"{begin}{result}({self._monotonic() - begin_s:.1f} s)\n")

    def say(self, text: str) -> None:
        """Write a line."""
        self._write(f"{text}\n")

    @contextmanager
    def _still(self, text: str) -> Iterator[Stage]:
        self._write(f"{text} ... ")
        yield Stage()

    @contextmanager
    def _moving(self, text: str) -> Iterator[Stage]:
        bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        with bars:
            task = bars.add_task(text, total=None)

            def move(done: int, total: int) -> None:
                bars.update(task, completed=done, total=total)

            yield Stage(on_progress=move)

    def _write(self, text: str) -> None:
        self._err.write(text)
        self._err.flush()

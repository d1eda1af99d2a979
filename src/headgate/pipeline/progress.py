"""What a job says while it works: a line for each stage, begun when the stage begins."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO


@dataclass(slots=True)
class Stage:
    """A stage that runs."""

    result: str = ""
    """What came of it, to be shown at its end."""


class Progress:
    """Writes ``Starting Spark ... 6.2 s`` in two steps, so that one sees what is going on."""

    def __init__(self, err: TextIO, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._err = err
        self._monotonic = monotonic

    @contextmanager
    def stage(self, text: str) -> Iterator[Stage]:
        """Name a stage; at its end add its result and the seconds that it took."""
        begin_s = self._monotonic()
        self._write(f"{text} ... ")
        stage = Stage()
        try:
            yield stage
        except BaseException:
            self._write("\n")
            raise
        result = f"{stage.result} " * bool(stage.result)
        self._write(f"{result}({self._monotonic() - begin_s:.1f} s)\n")

    def say(self, text: str) -> None:
        """Write a line of its own."""
        self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        self._err.write(text)
        self._err.flush()

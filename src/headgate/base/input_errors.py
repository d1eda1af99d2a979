"""Reports all errors of an input at once, with the probably intended names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from headgate.base.errors import InputError

SIMILARITY_MIN: Final = 0.6
"""Least similarity, 0 to 1, at which a name counts as a typing error for another."""


class InputErrors:
    """Collects the errors of an input until all of it is checked."""

    def __init__(self) -> None:
        self._found: list[str] = []

    def add(self, text: str) -> None:
        """Collect an error by its text."""
        self._found.append(text)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Collect an :class:`InputError` that the block raises, and continue after the block."""
        try:
            yield
        except InputError as error:
            self._found.append(str(error))

    def raise_any(self) -> None:
        """Raise one :class:`InputError` with a line for each collected error, if there is any."""
        if self._found:
            raise InputError("\n".join(dict.fromkeys(self._found)))


def closest_match(
    name: str, known: Iterable[str], similarity: float = SIMILARITY_MIN
) -> str | None:
    """The known name most similar to ``name``; None if no similarity is high enough."""
    return next(iter(difflib.get_close_matches(name, list(known), 1, similarity)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A suffix for an error about ``name``: ``; did you mean x?``, or nothing."""
    close = closest_match(name, known)
    return f"; did you mean {close}?" if close else ""

"""Reports all that is wrong with an input at once, with the names that were probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from headgate.base.errors import InputError

SIMILARITY_MIN: Final = 0.6
"""How alike two names are, 0 to 1, for one to be taken for a mistyped form of the other."""


class InputErrors:
    """Collects refusals until all of an input is checked."""

    def __init__(self) -> None:
        self._found: list[str] = []

    def add(self, text: str) -> None:
        """Note a refusal, as the text of an :class:`InputError`."""
        self._found.append(text)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Note an :class:`InputError` that the block raises, and continue after the block."""
        try:
            yield
        except InputError as error:
            self._found.append(str(error))

    def raise_any(self) -> None:
        """Raise one :class:`InputError` with a line for each refusal, if there is any."""
        if self._found:
            raise InputError("\n".join(dict.fromkeys(self._found)))


def closest_match(
    name: str, known: Iterable[str], similarity: float = SIMILARITY_MIN
) -> str | None:
    """The known name that is most like ``name``; None if none is at least so similar."""
    return next(iter(difflib.get_close_matches(name, list(known), 1, similarity)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that refuses ``name``: ``; did you mean x?``, or nothing."""
    close = closest_match(name, known)
    return f"; did you mean {close}?" if close else ""

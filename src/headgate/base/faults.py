"""All that is wrong with an input, told at once: who mends one fault should not meet the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headgate.base.errors import InputError


class Faults:
    """Collects refusals until all of an input has been looked at."""

    def __init__(self) -> None:
        self._found: list[str] = []

    def add(self, text: str) -> None:
        """Note a fault, as the text of an :class:`InputError`."""
        self._found.append(text)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Note an :class:`InputError` of what is done inside, and go on after it."""
        try:
            yield
        except InputError as error:
            self._found.append(str(error))

    def raise_any(self) -> None:
        """Raise one :class:`InputError` with a line for each fault, if there is any."""
        if self._found:
            raise InputError("\n".join(dict.fromkeys(self._found)))

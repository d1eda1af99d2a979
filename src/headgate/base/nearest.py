"""What somebody may have meant who mistyped a name. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

SLIP_RATIO: Final = 0.6
"""How alike two names are, 0 to 1, of which one may be meant by the other."""


def nearest(name: str, known: Iterable[str], ratio: float = SLIP_RATIO) -> str | None:
    """The known name that is most like ``name``; None where none is as alike as ``ratio``."""
    return next(iter(difflib.get_close_matches(name, list(known), 1, ratio)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """What goes on a sentence that refuses ``name``: ``; did you mean x?``, or nothing."""
    close = nearest(name, known)
    return f"; did you mean {close}?" if close else ""

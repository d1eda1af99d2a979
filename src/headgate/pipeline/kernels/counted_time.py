"""The time over which the amounts of a minute were counted: the base of its shares and rates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

COUNTED_INPUT: Final = ("from_ns", "to_ns", "covered_ns", "gaps")
"""Columns of ``intervals`` that :func:`counted_ns` needs."""


def counted_ns(minute: Mapping[str, Any]) -> int:
    """The counted time of a minute that has :data:`COUNTED_INPUT`.

    Brokers send running totals. So after lost rows (``gaps``) the next row includes their amounts,
    although ``covered_ns`` leaves their time out. Other uncovered time was not counted at all: the
    broker was down, or its clock was set.
    """
    length_ns: int = minute["to_ns"] - minute["from_ns"]
    return length_ns if minute["gaps"] else min(minute["covered_ns"], length_ns)

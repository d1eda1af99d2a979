"""The time that the amounts and seconds of a minute are of: what their shares and rates are parts
of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

COUNTED_INPUT: Final = ("from_ns", "to_ns", "covered_ns", "gaps")
"""Columns of ``intervals`` that are needed."""


def counted_ns(minute: Mapping[str, Any]) -> int:
    """How long was counted in a minute, with :data:`COUNTED_INPUT`.

    What is counted is sent as totals, so where rows were lost (``gaps``) the next one tells of
    them, too, although ``covered_ns`` leaves their time out. Otherwise what is not covered was
    counted by nobody: the broker was down, or its clock was set.
    """
    length_ns: int = minute["to_ns"] - minute["from_ns"]
    return length_ns if minute["gaps"] else min(minute["covered_ns"], length_ns)

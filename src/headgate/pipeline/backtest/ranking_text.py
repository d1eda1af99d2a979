"""The texts beside a table of ranked settings, for the terminal and the report. Pure."""

from __future__ import annotations

from typing import Final

from headgate.base.texts import number, percent
from headgate.pipeline.backtest.ranking import CENSORED_SHARE_MAX

TIE_TEXT: Final = "=: settings with equal scores share a rank."

_HELD: Final = (
    "in which a limit or quota held producers without a break in the recording. How much they "
    "wanted to send then is unknown, so a setting that admits more may look better than it is"
)

CENSORED_TEXT: Final = f"part of the replayed time {_HELD}"

FRONT_TEXT: Final = (
    "front: no other setting is at least as good in over, lost, parked and jitter, and better in "
    "one."
)

IS_CENSORED_TEXT: Final = (
    f"censored: more than {percent(CENSORED_SHARE_MAX)} of the replayed time was time {_HELD}."
)

_SHARE_SHOWN_MIN: Final = 0.001


def rank_text(rank: int, is_tie: bool) -> str:
    """A rank as text: ``2``, or ``=2`` if others share it."""
    return f"={rank}" if is_tie else str(rank)


def share_text(share: float) -> str:
    """A share as ``12 %``, ``1.2 %`` or ``< 0.1 %``."""
    if 0 < share < _SHARE_SHOWN_MIN:
        return f"< {100 * _SHARE_SHOWN_MIN:g} %"
    return f"{number(round(100 * share, 1))} %"


def settings_count(count: int) -> str:
    """``1 setting``, ``2 settings``."""
    return "1 setting" if count == 1 else f"{count:,} settings"

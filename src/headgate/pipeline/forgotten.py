"""Which subscriptions nobody uses any more. Pure.

Their backlogs grow as fast as their topics are published to and for as long, so that by growth and
by time they come before all that somebody waits for. Who lists or sums up backlogs tells of them
apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

NO_CONSUMER_SHARE_MIN: Final = 0.99
"""The broker takes a little of the time also where there is no consumer."""


def forgotten(
    no_consumer_share: npt.NDArray[np.float64],
    acked: npt.NDArray[np.float64],
    proven_rate_per_s: npt.NDArray[np.float64],
) -> npt.NDArray[np.bool_]:
    """Of subscriptions over a range: without a consumer throughout, with nothing acknowledged, and
    without a rate that a consumer has proven in the day before.

    What is not known is not a number. Where a consumer left before the range began, its proven rate
    tells that it was there: that subscription is not forgotten.
    """
    lacking = np.nan_to_num(no_consumer_share) >= NO_CONSUMER_SHARE_MIN
    return np.asarray(lacking & (np.nan_to_num(acked) == 0) & np.isnan(proven_rate_per_s))


def is_forgotten(row: Mapping[str, Any]) -> bool:
    """:func:`forgotten` of one judgement of a range."""
    names = ("share_no_consumer", "acked", "proven_rate_per_s")
    facts = (np.array([np.nan if row[name] is None else float(row[name])]) for name in names)
    return bool(forgotten(*facts)[0])

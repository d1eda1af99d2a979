"""Number of subscriptions that waited for a topic's limit, for the sentence of each of them.

A subscription waited in a minute if the topic's limit throttled its hungry consumers for a
noticeable part of it. Its verdict depends on its own account only, so this module counts
separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.flow.account.account import LABELS
from headgate.flow.account.verdict import CLOSE_SHARE
from headgate.flow.limits.rate_limit import Level
from headgate.pipeline.kernels.account_windows import cells_of
from headgate.pipeline.tables.columns import LONG, TableColumn
from headgate.record.fields import STATE_FIELD_NAMES

WAITERS: Final = TableColumn(
    "topic_waiters", LONG, "Subscriptions that waited for the topic's limit; null if fewer than 2."
)
"""Column that the caller joins to the input of a verdict."""

TOPIC_KEY: Final = ("cluster", "topic", "partition")
"""Identity of a limit; each partition has its own."""

WAITING_SHARE_MIN: Final = CLOSE_SHARE
"""Least share of a minute for which a subscription that waited was throttled."""

HUNGRY_FIELDS: Final = tuple(
    name
    for name, labels in zip(STATE_FIELD_NAMES, LABELS, strict=True)
    if labels.level is Level.TOPIC and labels.consumer == "hungry"
)

INPUT_COLUMNS: Final = (*TOPIC_KEY, "subscription", *STATE_FIELD_NAMES)


def waiters(minutes: pa.Table, place: Sequence[str] = TOPIC_KEY) -> pa.Table:
    """The columns ``place`` and :data:`WAITERS`, for each place with at least two waiters.

    ``minutes`` have :data:`INPUT_COLUMNS` and the columns ``place``.
    """
    cells_ns = cells_of(minutes)
    hungry = [STATE_FIELD_NAMES.index(name) for name in HUNGRY_FIELDS]
    held_ns, total_ns = cells_ns[hungry].sum(axis=0), cells_ns.sum(axis=0)
    waited = (held_ns > 0) & (held_ns >= WAITING_SHARE_MIN * total_ns)
    names = minutes.select([*place, "subscription"]).filter(pa.array(np.asarray(waited)))
    each = names.group_by([*place, "subscription"]).aggregate([])
    counted = each.group_by([*place]).aggregate([([], "count_all")])
    counted = counted.rename_columns([*place, WAITERS.name])
    return counted.filter(pc.greater(counted[WAITERS.name], 1))

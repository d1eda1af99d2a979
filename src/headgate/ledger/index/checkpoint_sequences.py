"""Collects the producers of topics with deduplication for a checkpoint, slice by slice."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from headgate.ledger.index.checkpoint import CheckpointBuilder
from headgate.ledger.index.state import LogState

_TOPICS_PER_ITEM: Final = 16
"""Topics without deduplication that take as long as a topic's item."""


def add_sequences(builder: CheckpointBuilder, state: LogState, slice_items: int) -> Iterator[None]:
    """Add the producers of all topics that have deduplication; yields after every ``slice_items``
    of them. Call it when all entries before the segment of the checkpoint are durable.

    An entry that is durable counts, whether or not its receipt was sent: ``rows`` knows it by its
    ordinal. Entries behind the segment are replayed, so it does not matter if they count, too.
    """
    for at, topic in enumerate([*state.topics.values()], 1):
        if at % (_TOPICS_PER_ITEM * slice_items) == 0:
            yield
        if topic.sequences is None:
            continue
        rows = topic.sequences.rows(topic.end)
        builder.add_sequences(topic.number, islice(rows, slice_items))
        yield
        while some := [*islice(rows, slice_items)]:
            builder.add_sequences(topic.number, some)
            yield

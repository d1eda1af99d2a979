"""Log lines about what a start found: a torn tail, corrected bits, damage."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headgate.ledger.format.records import SEGMENT_HEADER_BYTES, segment_name
from headgate.ledger.index.state import LogState
from headgate.ledger.recovery.replay import Replay
from headgate.ledger.recovery.segment_load import TornTail

logger = logging.getLogger("headgate.ledger")

_PLACES_MAX = 5
"""Places that one line names."""


def log_findings(
    directory: str, tails: Sequence[TornTail], replay: Replay, state: LogState
) -> None:
    """One line for a torn tail, one for corrected bits and one for damage."""
    _log_torn_tail(directory, tails, state)
    if replay.corrected:
        logger.warning(
            "%s: corrected one flipped bit in each of %d places: %s",
            directory,
            len(replay.corrected),
            _some(replay.corrected),
        )
    if replay.damaged_places:
        logger.error(
            "%s is damaged in %d places: %s. Topics that lost something, or may have, refuse "
            "until an operator accepts that; all others go on",
            directory,
            len(replay.damaged_places),
            _some(replay.damaged_places),
        )


def _some(places: list[str]) -> str:
    more = len(places) - _PLACES_MAX
    return ", ".join(places[:_PLACES_MAX]) + (f" and {more} more" if more > 0 else "")


def _log_torn_tail(directory: str, tails: Sequence[TornTail], state: LogState) -> None:
    """Log the last torn tail, unless later segments have records: then the bytes are an unfinished
    footer, and nothing is lost."""
    tail = tails[-1] if tails else None
    if tail is None or any(
        info.segment > tail.segment and info.data_end > SEGMENT_HEADER_BYTES
        for info in state.segments.values()
    ):
        return
    batch = tail.batch
    whose = "a batch" if batch is None else f"batch {batch.number} with {batch.records} records"
    logger.warning(
        "%s/%s: cut %d bytes behind offset %d, left over from %s that was being written when the "
        "broker or the machine went down: it may have held messages without a receipt, and "
        "acknowledgements and subscriptions that were not confirmed",
        directory,
        segment_name(tail.segment),
        tail.size_bytes,
        tail.offset,
        whose,
    )

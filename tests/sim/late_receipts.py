"""Receipts that come late, as behind those of a crowd: so the next commits end while they wait."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from headgate.base.errors import StorageError
from headgate.engine.topic import Topic
from headgate.ledger import TopicLog
from headgate.storage import committer as committer_module
from headgate.storage import receipt_turns
from headgate.storage.committer import Committer
from headgate.storage.receipt_turns import ReceiptTurns

LATE_S_MAX: Final = 0.05
"""From one part of the receipts to the next."""
PART_UNITS: Final = (1, 2, 6)


@contextmanager
def late_receipts(chance: random.Random) -> Iterator[Counter[str]]:
    """Send receipts in small parts within it, each some time after the last. Yields how often they
    met other work."""
    seen: Counter[str] = Counter()
    resolve, add, answered = Committer._resolve_rest, ReceiptTurns.add, Committer.when_answered

    def later(committer: Committer, steps: Iterator[int]) -> None:
        seen["ends that wait for receipts"] += committer._ended is not None
        late_s = chance.uniform(0.0, LATE_S_MAX)
        committer._loop.call_later(late_s, resolve, committer, steps)

    def join(
        turns: ReceiptTurns, touched: list[TopicLog], waiting: list[object], storage_ns: int
    ) -> None:
        seen["commits whose receipts join"] += len(turns._lines) > 0
        add(turns, touched, waiting, storage_ns)  # type: ignore[arg-type]

    async def when_answered(committer: Committer, topic: Topic) -> None:
        stored, staged = topic.log.end, topic.log.staged_end
        try:
            await answered(committer, topic)
        except StorageError:
            check(committer, topic, stored)
            raise
        check(committer, topic, staged)

    def check(committer: Committer, topic: Topic, end: int) -> None:
        seen["waits for receipts of a topic"] += 1
        end = min(end, topic.log.end)  # what found no room waits elsewhere
        if topic.is_live and topic.publishing.visible < end:
            error = AssertionError(f"{topic.name}: told before receipts up to {end}")
            committer._loop.fail(error)  # type: ignore[attr-defined]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(committer_module, "COMMIT_UNITS", chance.choice(PART_UNITS))
        patch.setattr(receipt_turns, "ENTRIES_A_STEP", chance.choice((1, 3)))
        patch.setattr(receipt_turns, "TOLD_A_STEP", 1)
        patch.setattr(Committer, "_resolve_rest", later)
        patch.setattr(ReceiptTurns, "add", join)
        patch.setattr(Committer, "when_answered", when_answered)
        yield seen

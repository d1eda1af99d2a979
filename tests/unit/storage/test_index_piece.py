"""What one job of a lane reads of the index."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.base.units import NS_PER_MS, NS_PER_US
from headgate.ledger import BlockKey, CommitLog
from headgate.ledger.index.block_cache import BlockCache
from headgate.storage.index_piece import PIECE_BLOCKS, fetch_piece
from headgate.testing import ManualClock


@pytest.mark.parametrize(
    ("read_ns", "count"),
    [(10 * NS_PER_MS, 1), (2 * NS_PER_MS, 3), (100 * NS_PER_US, 50), (0, PIECE_BLOCKS)],
)
def test_a_job_reads_for_some_time_and_one_block_at_least(
    monkeypatch: pytest.MonkeyPatch, read_ns: int, count: int
) -> None:
    clock = ManualClock()

    def read(_: BlockCache, key: Any) -> Any:
        clock.advance(read_ns)
        return key

    monkeypatch.setattr(BlockCache, "_fetch", read)
    fetch: Callable[..., Any] = BlockCache(cast("Any", None), 0).fetch
    log = cast("CommitLog", SimpleNamespace(fetch_index=fetch))
    keys = cast("list[BlockKey]", list(range(2 * PIECE_BLOCKS)))
    assert fetch_piece(log, keys, clock) == keys[:count]
    assert fetch_piece(log, keys[:1], clock) == keys[:1]

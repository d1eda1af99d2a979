"""A batch tells the commit thread all it needs."""

from __future__ import annotations

from headgate.fs import MemFs
from tests.unit.ledger.support import open_log


def test_chunks_are_contiguous_and_sized() -> None:
    log = open_log(MemFs())
    topic = log.topic(1)
    for at in range(5):
        log.stage_entry(topic, 1, 1, 0, b"x" * 3000 + b"%d" % at)
    batch = log.seal_batch()
    assert batch is not None
    assert [chunk.segment for chunk in batch.chunks] == [1, 2, 3]
    assert [chunk.start for chunk in batch.chunks] == [64, 64, 64]
    for chunk in batch.chunks:
        assert sum(map(len, chunk.parts)) == chunk.end - chunk.start
    assert batch.records == 5 + 3
    assert batch.size_bytes == sum(chunk.end - chunk.start for chunk in batch.chunks)
    assert batch.ends == ((topic, 5),)
    numbers = [chunk.number for chunk in batch.chunks]
    assert numbers == sorted(set(numbers))

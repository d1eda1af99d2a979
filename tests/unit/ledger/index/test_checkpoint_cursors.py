"""A cursor with very many partly acknowledged entries is collected in pieces."""

from __future__ import annotations

from headgate.base.ack_set import AckSet
from headgate.fs import MemFs
from headgate.ledger import CommitLog
from headgate.ledger.index.checkpoint_cursors import PIECE_PARTS
from headgate.ledger.space.maintenance import Job
from tests.unit.ledger.support import append, commit, open_log


def run(log: CommitLog, job: Job | None) -> None:
    if job is not None:
        job.run()
        log.finish_job(job)


def test_a_checkpoint_collects_partly_acknowledged_batches_in_pieces() -> None:
    """A cursor may have a quarter of a million, whose encoding would hold the loop for 0.4 s. What
    changes between two pieces is replayed."""
    fs = MemFs()
    log = open_log(fs)
    entries = 10 * PIECE_PARTS
    for _ in range(entries // 100 + 2):
        append(log, 1, *[b""] * 100)
        while log.maintenance_due():
            run(log, log.maintenance_step())
    sets = [AckSet() for _ in range(3)]
    cursors = [log.create_cursor(1, f"s{at}", acks, {}) for at, acks in enumerate(sets)]
    for acks in sets:
        for ordinal in range(1, entries + 1):
            acks.ack_messages(ordinal, 1, 2)
    for cursor in cursors:
        log.stage_acks(cursor)
    commit(log)
    steps = 0
    job = None
    while job is None or job.name != "checkpoint":
        steps += 1
        if 0 < steps % 4 < 3:
            sets[0].ack(steps)
            sets[0].ack_messages(entries - steps, 2, 2)
            sets[0].ack_messages(entries + steps, 1, 2)
            sets[1].ack_through(100 * steps)
        if steps == 20:
            sets[2].reset(50)
            sets[2].ack_messages(60, 2, 2)
        for cursor in cursors:
            log.stage_acks(cursor)
        if log.staged_records:
            commit(log)
        job = log._maintenance.step(force_checkpoint=True)
        run(log, job)
    assert steps >= 2 * entries / PIECE_PARTS
    again = open_log(fs.crash_clone())
    found = {cursor.name: cursor.ack_set.to_bytes() for cursor in again.cursors_of(1)}
    assert found == {f"s{at}": acks.to_bytes() for at, acks in enumerate(sets)}

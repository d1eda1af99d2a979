"""Closing while a job of maintenance was handed out and nobody told how it ended."""

from __future__ import annotations

import pytest

from headgate.fs import MemFs
from headgate.ledger import CommitLog, LedgerSettings

SETTINGS = LedgerSettings(segment_bytes=4096, checkpoint_records=1000)


@pytest.mark.parametrize("was_run", [True, False])
def test_closing_does_not_wait_for_a_job_that_nobody_finishes(was_run: bool) -> None:
    fs = MemFs()
    log = CommitLog.open(fs, "/data", topic_numbers=[1], entropy=bytes, settings=SETTINGS)
    names = []
    for _ in range(6):
        log.stage_entry(log.topic(1), 1, 1, 0, bytes(1500))
        batch = log.seal_batch()
        assert batch is not None
        log.commit(batch)
        while log.maintenance_due() and "seal" not in names:
            job = log.maintenance_step()
            if job is None:
                continue
            names.append(job.name)
            if was_run or job.name != "seal":
                job.run()
            if job.name != "seal":
                log.finish_job(job)
    assert names[-1] == "seal"
    log.close()
    again = CommitLog.open(fs, "/data", topic_numbers=[1], entropy=bytes, settings=SETTINGS)
    assert again.topic(1).end == 6
    assert again.statistics().replayed_records == 0
    again.close()

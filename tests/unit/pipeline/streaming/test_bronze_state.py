"""Whether a batch is in the bronze tables."""

from __future__ import annotations

from pathlib import Path

from headgate.pipeline.store.delta_log import AppTransaction, commit_append, ensure_table
from headgate.pipeline.streaming.bronze_state import BatchState, batch_state, has_batches
from headgate.pipeline.tables.bronze import BRONZE_EVENTS, BRONZE_QUARANTINE, BRONZE_SAMPLES
from headgate.pipeline.tables.columns import Table


def write(out: Path, table: Table, number: int, app_id: str = "q") -> None:
    """Commit a batch of a query to one of the tables."""
    ensure_table(str(out), table)
    commit_append(str(out), table, [], AppTransaction(app_id, number))


def test_a_batch_is_written_when_the_last_table_has_it(tmp_path: Path) -> None:
    out = str(tmp_path)
    assert not has_batches(out, "q")
    assert batch_state(out, "q", 0) is BatchState.ABSENT
    write(tmp_path, BRONZE_EVENTS, 4)
    assert batch_state(out, "q", 4) is BatchState.PARTIAL
    write(tmp_path, BRONZE_QUARANTINE, 4)
    assert batch_state(out, "q", 4) is BatchState.PARTIAL
    write(tmp_path, BRONZE_SAMPLES, 4)
    assert batch_state(out, "q", 4) is BatchState.WRITTEN
    assert batch_state(out, "q", 5) is BatchState.ABSENT
    assert batch_state(out, "another", 4) is BatchState.ABSENT
    assert (has_batches(out, "q"), has_batches(out, "another")) == (True, False)

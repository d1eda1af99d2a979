"""A query whose Python process starts too late. Starts no Spark."""

from __future__ import annotations

import pytest
from pyspark.errors import StreamingQueryException

from headgate.pipeline.streaming.late_workers import LATE_TEXT, STARTS_MAX, repeat_if_late

LATE = (
    "[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: Python worker failed to "
    "connect back. SQLSTATE: XXKST"
)


class Query:
    """Fails with some errors, one at each start, and then runs."""

    def __init__(self, *errors: str) -> None:
        self._errors = list(errors)
        self.starts = 0

    def run(self) -> None:
        """Run once."""
        self.starts += 1
        if self._errors:
            raise StreamingQueryException(self._errors.pop(0))


def test_a_query_that_runs_is_started_once() -> None:
    query, said = Query(), list[str]()
    repeat_if_late(query.run, said.append)
    assert (query.starts, said) == (1, [])


def test_a_late_process_is_told_and_started_again() -> None:
    query, said = Query(LATE, LATE), list[str]()
    repeat_if_late(query.run, said.append)
    assert (query.starts, said) == (3, [LATE_TEXT, LATE_TEXT])


def test_another_failure_ends_the_job_at_once() -> None:
    query, said = Query(LATE, "[STREAM_FAILED] the topic is gone", LATE), list[str]()
    with pytest.raises(StreamingQueryException, match="the topic is gone"):
        repeat_if_late(query.run, said.append)
    assert (query.starts, said) == (2, [LATE_TEXT])


def test_a_process_that_is_always_late_ends_the_job() -> None:
    query, said = Query(*[LATE] * (STARTS_MAX + 1)), list[str]()
    with pytest.raises(StreamingQueryException, match="connect back"):
        repeat_if_late(query.run, said.append)
    assert query.starts == STARTS_MAX == len(said) + 1

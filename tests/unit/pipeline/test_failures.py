"""One sentence out of a page of stack traces."""

from __future__ import annotations

from headgate.pipeline.failures import reason_of

REPORT = """[STREAM_FAILED] Query [id = 1] terminated with exception: [PYTHON_ERROR] Failed:
Traceback (most recent call last):
  File "source.py", line 190, in latestOffset
    self._refresh()
pyspark_pulsar.errors.AdminError: http://host:1/admin/v2 cannot be reached (tried for 30 s)
 SQLSTATE: 38000
org.apache.spark.SparkException: [PYTHON_ERROR] Failed
\tat org.apache.spark.Some.method(Some.scala:10)
"""


def test_the_innermost_error_of_ours_is_told() -> None:
    assert reason_of(REPORT) == (
        "AdminError: http://host:1/admin/v2 cannot be reached (tried for 30 s)"
    )


def test_otherwise_the_first_line() -> None:
    assert reason_of("\n[TABLE_NOT_FOUND] x\nmore") == "[TABLE_NOT_FOUND] x"
    assert reason_of("") == "the engine gave no reason"

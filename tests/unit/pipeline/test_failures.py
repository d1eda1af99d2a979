"""One sentence out of a page of stack traces."""

from __future__ import annotations

from headgate.pipeline.failures import reason_of, start_failure

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
    assert reason_of(REPORT) == "http://host:1/admin/v2 cannot be reached (tried for 30 s)"
    assert reason_of(REPORT.replace("pyspark_pulsar.errors.AdminError", "OSError")) == (
        "OSError: http://host:1/admin/v2 cannot be reached (tried for 30 s)"
    )


def test_why_java_did_not_start() -> None:
    old = "Exception in thread main java.lang.UnsupportedClassVersionError: org/apache/spark/X"
    assert start_failure(old) == (
        "Spark needs Java 17 or newer, and the Java that was found is older"
    )
    said = "WARNING: x\nError: Could not create the Java Virtual Machine.\nError: A fatal exception"
    assert start_failure(said) == (
        "Spark's Java process did not start: Error: Could not create the Java Virtual Machine."
    )
    assert start_failure("killed\n") == "Spark's Java process did not start: killed"
    assert start_failure("") == "Spark's Java process did not start: it said nothing"


def test_otherwise_the_first_line() -> None:
    assert reason_of("\n[TABLE_NOT_FOUND] x\nmore") == "[TABLE_NOT_FOUND] x"
    assert reason_of("") == "the engine gave no reason"

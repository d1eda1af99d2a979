"""The reason of a failure, out of a page of stack traces."""

from __future__ import annotations

from headgate.pipeline.spark_failures import reason_of, start_failure
from pyspark_pulsar.errors import DATA_LOSS_ADVICE

REPORT = """[STREAM_FAILED] Query [id = 1] terminated with exception: [PYTHON_ERROR] Failed:
Traceback (most recent call last):
  File "source.py", line 190, in latestOffset
    self._refresh()
pyspark_pulsar.errors.AdminError: http://host:1/admin/v2 cannot be reached (tried for 30 s)
 SQLSTATE: 38000
org.apache.spark.SparkException: [PYTHON_ERROR] Failed
\tat org.apache.spark.Some.method(Some.scala:10)
"""

PROXY_REPORT = """[STREAM_FAILED] Query [id = 1] terminated with exception: An exception was \
raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "reading.py", line 117, in open_reader
    return shared_client(settings.connection).create_reader(
_pulsar.Timeout: Pulsar error: TimeOut
 SQLSTATE: 39000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 1]
Current State: ACTIVE

Logical Plan:
~WriteToMicroBatchDataSourceV1 ForeachBatchSink, 1, [checkpointLocation=/t], Append
+- ~Project [value#0]
   +- ~StreamingDataSourceV2ScanRelation[value#0] pulsar
"""


def test_the_reason_is_the_last_error_of_an_embedded_traceback() -> None:
    """Not every error class has a name that ends in Error."""
    said = reason_of(PROXY_REPORT)
    assert said == "a topic cannot be read from its broker: Pulsar error: TimeOut"
    other = PROXY_REPORT.replace("_pulsar.Timeout: Pulsar error: TimeOut", "app.Gone: no such file")
    assert reason_of(other) == "Gone: no such file"


def test_the_reason_is_the_innermost_error_of_this_project() -> None:
    assert reason_of(REPORT) == "http://host:1/admin/v2 cannot be reached (tried for 30 s)"
    assert reason_of(REPORT.replace("pyspark_pulsar.errors.AdminError", "OSError")) == (
        "OSError: http://host:1/admin/v2 cannot be reached (tried for 30 s)"
    )


def test_the_reason_why_java_did_not_start() -> None:
    old = "Exception in thread main java.lang.UnsupportedClassVersionError: org/apache/spark/X"
    assert start_failure(old) == (
        "Spark needs Java 17 or newer, and the Java that was found is older"
    )
    said = "WARNING: x\nError: Could not create the Java Virtual Machine.\nError: A fatal exception"
    assert start_failure(said) == (
        "Spark's Java process did not start: Error: Could not create the Java Virtual Machine."
    )
    assert start_failure("killed\n") == "Spark's Java process did not start: killed"
    assert start_failure("") == "Spark's Java process did not start: its output is empty"


def test_the_reason_is_otherwise_the_first_line() -> None:
    assert reason_of("\n[TABLE_NOT_FOUND] x\nmore") == "[TABLE_NOT_FOUND] x"
    assert reason_of("") == "Spark gave no reason"


def test_the_reason_has_all_causes_of_a_storage_error() -> None:
    page = (
        "Generic S3 error\n"
        "          \x1b[31m↳\x1b[0m Error performing list request\n"
        "           \x1b[31m↳\x1b[0m 404 Not Found\n"
        '            \x1b[31m↳\x1b[0m <?xml version="1.0" encoding="utf-8"?>\n'
        "<Error><Code>NoSuchBucket</Code><Message>The bucket is not there</Message>"
        "<RequestId>x7</RequestId></Error>\n"
    )
    said = "Generic S3 error: Error performing list request: 404 Not Found: The bucket is not there"
    assert reason_of(page) == said
    assert reason_of(f"[FAILED] it failed\n  File x, line 1\n    at\nOSError: {page}") == (
        f"OSError: {said}"
    )


def test_the_advice_about_lost_data_names_the_command_line_option() -> None:
    lost = f"pyspark_pulsar.errors.DataLossError: t was read up to 3:2. {DATA_LOSS_ADVICE}"
    report = REPORT.replace(REPORT.splitlines()[4], lost)
    assert reason_of(report) == (
        "t was read up to 3:2. Without --fail-on-data-loss the job goes on without them"
    )


def test_the_reason_is_the_source_error_behind_text_of_spark() -> None:
    text = (
        "pyspark.errors.exceptions.captured.StreamingQueryException: [STREAM_FAILED] Query [id = 2]"
        " terminated with exception: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when"
        " Python streaming data source perform planPartitions: pyspark_pulsar.errors.DataLossError:"
        f" t was read up to 28:19. {DATA_LOSS_ADVICE}\n SQLSTATE: 38000"
    )
    assert reason_of(text) == (
        "t was read up to 28:19. Without --fail-on-data-loss the job goes on without them"
    )

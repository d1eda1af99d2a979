"""Spark prints the source's own errors without a traceback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark_pulsar.errors import PulsarSourceError

HIDE_TRACEBACK: Final = "SPARK_HIDE_TRACEBACK"
"""Environment variable that makes Spark's Python workers send an error without its traceback. Spark
sets it if ``spark.sql.execution.pyspark.udf.hideTraceback.enabled`` is true."""


@contextmanager
def without_traceback() -> Iterator[None]:
    """Make Spark print an error of the source without its traceback; also a decorator.

    Spark prints the traceback that a worker sends before the message: the name of a misspelt option
    would be in line 30. The variable ends with the worker, which the error ends. All other errors
    keep their traceback.
    """
    try:
        yield
    except PulsarSourceError:
        os.environ[HIDE_TRACEBACK] = "1"
        raise

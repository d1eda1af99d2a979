"""How Spark prints the source's own errors: the sentence, without the way that led to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark_pulsar.errors import PulsarSourceError

HIDE_TRACEBACK: Final = "SPARK_HIDE_TRACEBACK"
"""Variable by which Spark's Python workers know whether to send an error with its traceback. Spark
sets it for them where ``spark.sql.execution.pyspark.udf.hideTraceback.enabled`` is true."""


@contextmanager
def sentence_first() -> Iterator[None]:
    """Have Spark print an error of the source as its sentence; also a decorator.

    Spark puts the text that a worker sends behind its own words, and that begins with the frames
    of the traceback: a misspelt option was told in line 30. The worker ends with the error, and
    the variable with it. Errors that are not the source's own keep their traceback.
    """
    try:
        yield
    except PulsarSourceError:
        os.environ[HIDE_TRACEBACK] = "1"
        raise

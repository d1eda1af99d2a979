"""Spark prints the data source's own errors without a traceback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from headgate.base.errors import HeadgateError

_HIDE_TRACEBACK: Final = "SPARK_HIDE_TRACEBACK"
"""Variable that makes Spark's Python workers send an error without its traceback."""


@contextmanager
def without_traceback() -> Iterator[None]:
    """Make Spark print an error of this project without its traceback; also a decorator.

    The variable ends with the worker, which the error ends.
    """
    try:
        yield
    except HeadgateError:
        os.environ[_HIDE_TRACEBACK] = "1"
        raise

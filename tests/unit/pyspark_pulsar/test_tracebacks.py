from __future__ import annotations

import io
import os

import pytest
from pyspark.util import handle_worker_exception

from pyspark_pulsar.errors import OptionsError
from pyspark_pulsar.source import DefaultSource
from pyspark_pulsar.tracebacks import HIDE_TRACEBACK, without_traceback

HEAD_BYTES = 8
"""What the worker says before the text: that it is an error, and how long."""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test sets is gone after it."""
    monkeypatch.setenv(HIDE_TRACEBACK, "")


def sent(error: BaseException) -> str:
    """What a worker of Spark sends of an error."""
    out = io.BytesIO()
    handle_worker_exception(error, out)
    return out.getvalue()[HEAD_BYTES:].decode()


def test_an_error_of_the_source_has_no_traceback() -> None:
    source = DefaultSource({"topick": "t"})
    try:
        source.schema()
    except OptionsError as error:
        text = sent(error)
    assert text.startswith("pyspark_pulsar.errors.OptionsError: ")
    assert "did you mean topic?" in text.splitlines()[0]


def test_an_unexpected_error_keeps_its_traceback() -> None:
    try:
        with without_traceback():
            raise KeyError("a bug")
    except KeyError as error:
        text = sent(error)
    assert text.startswith("Traceback")
    assert os.environ[HIDE_TRACEBACK] == ""

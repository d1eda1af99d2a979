"""Spark's workers hide the traceback of this project's own errors, and of no others."""

from __future__ import annotations

import os

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.source.plain_errors import without_traceback

VARIABLE = "SPARK_HIDE_TRACEBACK"


@pytest.mark.parametrize(("error", "hides"), [(InputError("no"), True), (KeyError("x"), False)])
def test_only_own_errors_are_short(
    monkeypatch: pytest.MonkeyPatch, error: Exception, hides: bool
) -> None:
    monkeypatch.setenv(VARIABLE, "")

    @without_traceback()
    def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        fail()
    assert (os.environ[VARIABLE] == "1") is hides

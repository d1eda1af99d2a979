"""Calls that run at once."""

from __future__ import annotations

import pytest

from headgate.testing.fake_cluster import InlineExecutor


def test_a_call_is_done_when_it_was_submitted() -> None:
    future = InlineExecutor().submit(divmod, 7, 2)
    assert (future.done(), future.result()) == (True, (3, 1))


def test_an_error_is_the_callers() -> None:
    future = InlineExecutor().submit(divmod, 7, 0)
    with pytest.raises(ZeroDivisionError):
        future.result()

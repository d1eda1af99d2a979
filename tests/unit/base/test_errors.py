"""The roots of all errors keep apart what must never mix."""

from __future__ import annotations

import pytest

from headgate.base.errors import (
    CorruptionError,
    HeadgateError,
    InputError,
    InvariantError,
    StorageError,
    broken,
    invariant,
)


def test_an_invariant_that_holds_is_silent() -> None:
    invariant(1 == 1, "arithmetic")


@pytest.mark.parametrize("condition", [False, 0, "", None, []])
def test_an_invariant_that_does_not_hold_names_itself(condition: object) -> None:
    with pytest.raises(InvariantError, match="permits went below zero"):
        invariant(condition, "permits went below zero")


def test_our_bugs_are_no_expected_failures() -> None:
    """Whoever catches HeadgateError must not catch a broken promise."""
    assert not issubclass(InvariantError, HeadgateError)
    assert issubclass(InvariantError, AssertionError)


def test_bad_input_is_also_a_value_error() -> None:
    assert issubclass(InputError, HeadgateError)
    assert issubclass(InputError, ValueError)


def test_corruption_is_not_bad_input() -> None:
    assert issubclass(CorruptionError, HeadgateError)
    assert not issubclass(CorruptionError, ValueError)


@pytest.mark.parametrize("retryable", [True, False])
def test_a_storage_error_says_whether_a_later_try_can_succeed(retryable: bool) -> None:
    error = StorageError("no space left on segment 3", retryable=retryable)
    assert error.retryable is retryable
    assert str(error) == "no space left on segment 3"


def test_what_nobody_expected_becomes_a_broken_invariant() -> None:
    found = broken("a commit", KeyError("x"))
    assert str(found) == "a commit failed with an internal error: KeyError: 'x'"
    already = InvariantError("two owners")
    assert broken("a commit", already) is already

"""Errors of explain have a sentence and an exit status each."""

from __future__ import annotations

import pytest

from headgate.cli.explain.errors import (
    EXIT_NOT_ANSWERED,
    EXIT_REFUSED,
    ExplainError,
    NotHeadgateError,
)


@pytest.mark.parametrize("kind", [ExplainError, NotHeadgateError])
def test_each_error_has_its_own_status(kind: type[ExplainError]) -> None:
    errors = [kind("a sentence", status) for status in (EXIT_NOT_ANSWERED, EXIT_REFUSED)]
    assert [error.exit_code for error in errors] == [1, 2]
    assert errors[0].format_message() == "a sentence"

"""Refusals carry their status and text."""

from __future__ import annotations

from headgate.metadata.errors import RefusalError, conflict, not_allowed, not_found


def test_each_kind_has_its_status() -> None:
    made = [not_found("a"), conflict("b"), not_allowed("c"), RefusalError(406, "d")]
    assert [(error.status, error.reason, str(error)) for error in made] == [
        (404, "a", "a"),
        (409, "b", "b"),
        (412, "c", "c"),
        (406, "d", "d"),
    ]

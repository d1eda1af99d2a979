"""JSON of a server that may be any."""

from __future__ import annotations

import pytest

from headgate.access import json_bounds
from headgate.access.json_bounds import decoded
from tests.bounded_json import check_depth, check_number_of_values, check_values_are_decoded


def test_an_answer_is_decoded() -> None:
    check_values_are_decoded(decoded)
    assert decoded(bytearray(b"1")) == 1


def test_an_answer_with_very_many_values_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    check_number_of_values(json_bounds, monkeypatch)


def test_a_deep_answer_is_none() -> None:
    check_depth(decoded)

"""What an admin API answers is bounded."""

from __future__ import annotations

import pytest

from pyspark_pulsar import body_bounds
from pyspark_pulsar.body_bounds import decoded, is_plain, reason_in
from tests.bounded_json import check_depth, check_number_of_values, check_values_are_decoded


def test_an_answer_is_decoded() -> None:
    check_values_are_decoded(decoded)


def test_an_answer_with_very_many_values_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    check_number_of_values(body_bounds, monkeypatch)


def test_a_deep_answer_is_none() -> None:
    check_depth(decoded)


def test_compressed_answers_are_recognized() -> None:
    assert is_plain({})
    assert is_plain({"content-encoding": " Identity"})
    assert not is_plain({"content-encoding": "gzip, gzip"})


def test_a_long_answer_has_no_reason_but_its_begin() -> None:
    assert reason_in(b'{"reason": "no"}', str) == "no"
    assert reason_in(b"<html>", str) == "<html>"
    assert reason_in(b"[" * 60_000, str) == "[" * 200
    assert reason_in(b'{"reason": "' + b"x" * 70_000 + b'"}', str).startswith('{"reason": "xxx')

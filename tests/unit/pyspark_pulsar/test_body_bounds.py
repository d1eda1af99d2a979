"""What an admin API answers is bounded."""

from __future__ import annotations

import pytest

from pyspark_pulsar import body_bounds
from pyspark_pulsar.body_bounds import decoded, is_plain, reason_in


def test_an_answer_is_decoded() -> None:
    assert decoded(b'{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}


def test_an_answer_with_very_many_values_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_bounds, "SEPARATORS_MAX", 6)
    assert decoded(b"[[],[],[]]") == [[], [], []]
    for body in (b"[[],[],[],[]]", b"[0,0,0,0,0,0,0]", b'{"a":{"a":{"a":{"a":{}}}}}'):
        with pytest.raises(ValueError, match="more than 6 values"):
            decoded(body)


def test_a_deep_answer_is_none() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        decoded(b"[" * 100_000 + b"]" * 100_000)


def test_compressed_answers_are_recognized() -> None:
    assert is_plain({})
    assert is_plain({"content-encoding": " Identity"})
    assert not is_plain({"content-encoding": "gzip, gzip"})


def test_a_long_answer_has_no_reason_but_its_begin() -> None:
    assert reason_in(b'{"reason": "no"}') == "no"
    assert reason_in(b"<html>") == "<html>"
    assert reason_in(b"[" * 60_000) == "[" * 200
    assert reason_in(b'{"reason": "' + b"x" * 70_000 + b'"}').startswith('{"reason": "xxx')

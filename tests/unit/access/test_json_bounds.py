"""JSON of a server that may be any."""

from __future__ import annotations

import pytest

from headgate.access import json_bounds
from headgate.access.json_bounds import decoded


def test_an_answer_is_decoded() -> None:
    assert decoded(b'{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}
    assert decoded(bytearray(b"1")) == 1


def test_an_answer_with_very_many_values_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_bounds, "SEPARATORS_MAX", 6)
    assert decoded(b"[[],[],[]]") == [[], [], []]
    for body in (b"[[],[],[],[]]", b"[0,0,0,0,0,0,0]", b'{"a":{"a":{"a":{"a":{}}}}}'):
        with pytest.raises(ValueError, match="more than 6 values"):
            decoded(body)


def test_a_deep_answer_is_none() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        decoded(b"[" * 100_000 + b"]" * 100_000)

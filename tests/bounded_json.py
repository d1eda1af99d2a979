"""What a decoder of JSON must do whose input comes from any server.

Headgate and pyspark-pulsar have one each, because the latter imports nothing of the former.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest


def check_values_are_decoded(decoded: Callable[[bytes], Any]) -> None:
    """What has a usual size and depth is decoded."""
    assert decoded(b'{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}


def check_number_of_values(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer with more values than ``SEPARATORS_MAX`` allows is refused."""
    monkeypatch.setattr(module, "SEPARATORS_MAX", 6)
    assert module.decoded(b"[[],[],[]]") == [[], [], []]
    for body in (b"[[],[],[],[]]", b"[0,0,0,0,0,0,0]", b'{"a":{"a":{"a":{"a":{}}}}}'):
        with pytest.raises(ValueError, match="more than 6 values"):
            module.decoded(body)


def check_depth(decoded: Callable[[bytes], Any]) -> None:
    """An answer that is nested too deeply is refused."""
    with pytest.raises(ValueError, match="nested too deeply"):
        decoded(b"[" * 100_000 + b"]" * 100_000)

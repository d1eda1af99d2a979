"""The settings of a replayed policy as readable text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

AS_RECORDED: Final = "as recorded"
"""The text for a policy that keeps all settings."""


def readable_settings(text: str | None) -> str:
    """The column ``settings`` as readable text, without the name:
    ``publish: none; adaptive: law drain, drain_horizon_ms 5,000``."""
    found = json.loads(text or "{}")
    settings = found if isinstance(found, dict) else {"settings": found}
    return "; ".join(_words(*item) for item in settings.items() if item[0] != "name") or AS_RECORDED


def _words(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{name}: " + ", ".join(f"{key} {_value(inner)}" for key, inner in value.items())
    return f"{name}: {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,}" if isinstance(value, int) else str(value)

"""Fakes of the pipeline's modules that the commands load."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest


def loads(monkeypatch: pytest.MonkeyPatch, command: str, **functions: Any) -> list[str]:
    """Have a command's module load these functions; the names of modules that it asks for."""
    asked: list[str] = []

    def load(module: str) -> Any:
        asked.append(module)
        return SimpleNamespace(**functions)

    monkeypatch.setattr(f"headgate.cli.pipeline.{command}.load", load)
    return asked

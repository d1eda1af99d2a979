"""Options of ``./dev soak`` for simulations."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Given where one of these files is named."""
    parser.addoption("--lifetimes", type=int, default=300, help="so many segments: a soak")

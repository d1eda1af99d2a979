"""The faults by name: one file for each, F1 to F20, on a simulated disk or a real process.

``docs/promises.md`` says what must hold after each fault and which test shows it.
"""

from __future__ import annotations

import pytest

from tests.service.conftest import make_broker

__all__ = ["make_broker"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of ``./dev soak``; given where one of these files is named."""
    parser.addoption("--topics", type=int, default=2_000, help="so many topics: a soak")

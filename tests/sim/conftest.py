"""Options of the simulations."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--simulation-seeds",
        metavar="FIRST:COUNT",
        help="play these seeds of the broker simulation instead of the usual few: a soak",
    )

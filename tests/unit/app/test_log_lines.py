"""One format for every line of the log."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest

from headgate.app.log_lines import start_logging


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root, web = logging.getLogger(), logging.getLogger("uvicorn")
    saved = root.handlers[:], root.level, web.level
    yield
    root.handlers[:] = saved[0]
    root.setLevel(saved[1])
    web.setLevel(saved[2])


def test_lines_go_to_the_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("info")
    logging.getLogger("headgate.app").info("closing %s", "down")
    logging.getLogger("headgate.app").debug("unheard")
    logging.getLogger("uvicorn.error").info("unheard")
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d [\d:]{8}\.\d{3} INFO    headgate.app: closing down\n", err
    )


def test_a_higher_level_says_less(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("error")
    logging.getLogger("headgate.app").warning("unheard")
    logging.getLogger("uvicorn.error").warning("unheard")
    assert capsys.readouterr().err == ""

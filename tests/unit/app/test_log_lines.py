"""One format for every line of the log."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.app.log_lines import start_logging
from headgate.base.errors import InputError


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    web, clients = logging.getLogger("uvicorn"), logging.getLogger("urllib3")
    audit = logging.getLogger("headgate.audit")
    saved = root.handlers[:], root.level, web.level, clients.level
    yield
    for handler in root.handlers:
        with contextlib.suppress(OSError):  # of the full disk
            handler.close()
    for handler in audit.handlers:
        with contextlib.suppress(OSError):
            handler.close()
    audit.handlers.clear()
    audit.propagate = True
    audit.setLevel(logging.NOTSET)
    root.handlers[:] = saved[0]
    root.setLevel(saved[1])
    web.setLevel(saved[2])
    clients.setLevel(saved[3])


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


@pytest.mark.parametrize("level", ["debug", "info"])
def test_a_library_that_logs_whole_urls_is_unheard(
    capsys: pytest.CaptureFixture[str], level: str
) -> None:
    start_logging(level)
    logging.getLogger("urllib3.connection").warning("Failed to parse headers (url=http://a/?key=b)")
    logging.getLogger("urllib3.connectionpool").debug("POST /?key=b")
    assert capsys.readouterr().err == ""


def test_a_higher_level_says_less(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("error")
    logging.getLogger("headgate.app").warning("unheard")
    logging.getLogger("uvicorn.error").warning("unheard")
    assert capsys.readouterr().err == ""


def test_lines_are_added_to_a_file_as_well(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "broker.log"
    path.write_text("of an earlier run\n")
    start_logging("info", str(path))
    logging.getLogger("headgate.app").info("closing %s", "caf\u00e9")
    logging.getLogger("headgate.app").debug("unheard")
    said = capsys.readouterr().err
    assert said.endswith(" INFO    headgate.app: closing caf\u00e9\n")
    assert path.read_text("utf-8") == f"of an earlier run\n{said}"


@pytest.mark.usefixtures("capfd")
def test_a_name_that_is_no_text_is_written_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "broker.log"
    start_logging("info", str(path))
    logging.getLogger("headgate.app").info("%s", "\udcff")
    assert path.read_text("utf-8").endswith(" INFO    headgate.app: \\udcff\n")


def test_a_file_that_is_moved_away_is_made_anew(tmp_path: Path) -> None:
    path, moved = tmp_path / "broker.log", tmp_path / "broker.log.1"
    start_logging("info", str(path))
    logger = logging.getLogger("headgate.app")
    logger.info("first")
    path.rename(moved)
    logger.info("second")
    assert [moved.read_text()[-6:], path.read_text()[-7:]] == ["first\n", "second\n"]


@pytest.mark.parametrize(
    ("name", "problem"), [("", "Is a directory"), ("none/a.log", "No such file or directory")]
)
def test_a_file_that_cannot_be_written_to(tmp_path: Path, name: str, problem: str) -> None:
    handlers = logging.getLogger().handlers[:]
    path = tmp_path / name
    with pytest.raises(InputError, match=rf"^--log-file {path} cannot be written to: {problem}$"):
        start_logging("info", str(path))
    assert logging.getLogger().handlers == handlers


def test_a_file_that_takes_nothing_any_more_harms_nobody(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    path = folder / "broker.log"
    start_logging("info", str(path))
    logger = logging.getLogger("headgate.app")
    path.unlink()
    folder.rmdir()
    for word in ("first", "second"):
        logger.info(word)
    folder.mkdir()
    logger.info("third")
    assert path.read_text().endswith(" third\n")
    path.unlink()
    folder.rmdir()
    logger.info("fourth")
    said = [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines()]
    failed = f"log file {path} cannot be written; see standard error"
    assert said == ["first", failed, "second", "third", "fourth", failed]


def test_a_full_disk(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("info", "/dev/full")
    logging.getLogger("headgate.app").info("heard")
    heard, failed = capsys.readouterr().err.splitlines()
    assert heard.endswith(" heard")
    assert failed.endswith(" log file /dev/full cannot be written; see standard error")


AUDIT = logging.getLogger("headgate.audit")


def test_the_audit_log_is_part_of_the_log_unless_it_has_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    start_logging("info")
    AUDIT.info("%s", "{}")
    assert capsys.readouterr().err.endswith(" INFO    headgate.audit: {}\n")
    path = tmp_path / "audit.log"
    start_logging("error", None, str(path))
    AUDIT.info("%s", '{"a":1}')
    AUDIT.debug("unheard")
    assert capsys.readouterr().err == ""
    assert path.read_text() == '{"a":1}\n'
    start_logging("info")
    AUDIT.info("%s", "{}")
    assert "{}" in capsys.readouterr().err
    assert path.read_text() == '{"a":1}\n'


def test_the_audit_log_may_be_moved_away_and_has_details_at_debug(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    start_logging("debug", None, str(path))
    AUDIT.info("1")
    path.rename(tmp_path / "audit.log.1")
    AUDIT.debug("2")
    assert (tmp_path / "audit.log.1").read_text() == "1\n"
    assert path.read_text() == "2\n"


def test_an_audit_log_that_cannot_be_written_goes_to_the_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    start_logging("info", None, "/dev/full")
    AUDIT.info("who did what")
    AUDIT.info("and again")
    said = capsys.readouterr().err
    assert said.count("log file /dev/full cannot be written") == 1
    assert "who did what" in said
    assert "and again" in said
    with pytest.raises(InputError, match=r"--audit-log .* cannot be written to"):
        start_logging("info", None, "/nowhere/audit.log")


def test_a_name_does_not_write_to_the_terminal_or_begin_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Names of topics may have control characters beyond ASCII, and text that runs backwards."""
    start_logging("info")
    logging.getLogger("headgate.app").info("topic %s", "a\x9b31mb\x85c\u202ed\x1be")
    logging.getLogger("headgate.app").info("two lines:\n%s", "the second")
    _, err = capsys.readouterr()
    first, *others = err.split("\n")
    assert first.endswith(r"topic a\x9b31mb\x85c\u202ed\x1be")
    assert others[0].endswith("two lines:")
    assert others[1:] == ["    the second", ""]


def test_no_text_of_a_client_looks_like_another_line(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging("info")
    forged = "2026-11-29 00:00:00.000 ERROR headgate.app: gone"
    logging.getLogger("headgate.app").info("refused: %s", f"a\n{forged}\u2028{forged}")
    begin, further = capsys.readouterr().err.splitlines()
    assert begin.endswith("headgate.app: refused: a")
    assert further == f"    {forged}\\u2028{forged}"

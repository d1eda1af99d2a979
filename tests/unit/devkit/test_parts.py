"""Each part is played whatever becomes of the others, and the summary names how each ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from devkit import parts
from devkit.console import DevError, LeftOutError
from devkit.parts import Part, play_parts
from devkit.processes import TimedOutError

PYTHON = Path("/some/python")


def of(name: str, error: Exception | None = None) -> Part:
    """A part whose command is its name, or that cannot be built."""

    def command(python: Path) -> Sequence[str]:
        assert python == PYTHON
        if error is not None:
            raise error
        return [name]

    return Part(name, f"the {name}", command, limit_s=7)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    def shown(command: Sequence[str], limit_s: float, _folder: Path) -> int:
        assert limit_s == 7
        (name,) = command
        found.append(name)
        if name == "hangs":
            raise TimedOutError("hangs timed out after 7 s")
        if name == "gone":
            raise FileNotFoundError(2, "No such file or directory", "unshare")
        return 3 if name == "bad" else 0

    monkeypatch.setattr(parts, "shown", shown)
    return found


def test_all_are_played_and_one_failure_is_enough(
    played: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = [
        of("hangs"), of("broken", DevError("mvn failed:\nlong")), of("bad"),
        of("away", LeftOutError("no checkout")), of("gone"), of("good"),
    ]  # fmt: skip
    assert play_parts("All", PYTHON, chosen) == 1
    assert played == ["hangs", "bad", "gone", "good"]
    printed = capsys.readouterr()
    assert printed.out.split("All:\n")[1].splitlines() == [
        "  hangs   failed: the hangs: hangs timed out after 7 s",
        "  broken  failed: the broken: mvn failed:",
        "  bad     failed: the bad, 0 s, status 3",
        "  away    left out: the away: no checkout",
        "  gone    failed: the gone: [Errno 2] No such file or directory: 'unshare'",
        "  good    passed: the good, 0 s",
        "1 passed, 4 failed, 1 left out",
    ]
    assert "long" in printed.err


def test_what_is_left_out_is_no_failure(played: list[str]) -> None:
    assert play_parts("All", PYTHON, [of("away", LeftOutError("no")), of("good")]) == 0
    assert played == ["good"]

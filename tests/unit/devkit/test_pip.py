"""What pip prints becomes one line that says what it is at."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from devkit import pip
from devkit.console import DevError
from devkit.pip import PipOutput, run_pip

TRANSCRIPT = [
    ("Collecting uvloop==0.23.0 (from -r locks/dev.txt (line 9))", "collecting 1 of 2, uvloop"),
    (
        "  Using cached uvloop-0.23.0-cp311-cp311-manylinux_x86_64.whl (4.0 MB)",
        "package 1 of 2, uvloop, 4.0 MB",
    ),
    ("Collecting pyspark==4.3.0 (from -r locks/dev.txt (line 7))", "collecting 2 of 2, pyspark"),
    ("  Downloading pyspark-4.3.0.tar.gz (455.9 MB)", "package 2 of 2, pyspark, 455.9 MB"),
    ("Progress 91180000 of 455900000", "package 2 of 2, pyspark, 455.9 MB, 20 %"),
    ("Building wheels for collected packages: pyspark", "package 2 of 2, pyspark, 455.9 MB, 20 %"),
    ("  Building wheel for pyspark (pyproject.toml): started", "building pyspark"),
    ("  Building wheel for pyspark (pyproject.toml): finished with status 'done'",
     "building pyspark"),
    ("Installing collected packages: uvloop, pyspark", "installing 2 packages"),
]  # fmt: skip


def test_each_stage_is_named() -> None:
    output = PipOutput(total=2)
    for line, detail in TRANSCRIPT:
        assert not output.installing
        output.feed(line)
        assert output.detail == detail
    assert output.installing


def test_small_downloads_show_no_percentage() -> None:
    output = PipOutput(total=1)
    output.feed("Collecting rich==15.0.0")
    output.feed("Downloading rich-15.0.0-py3-none-any.whl (310 kB)")
    output.feed("Progress 100000 of 310000")
    assert output.detail == "package 1 of 1, rich, 310 kB"


def test_a_failure_shows_what_pip_said(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho Collecting rich\necho 'ERROR: no network'\nexit 1\n")
    python.chmod(0o755)
    with pytest.raises(DevError, match=r"(?s)ERROR: no network.*run the same command again"):
        run_pip(python, [], title="packages", total=1, on_install=lambda: None)


def test_the_moment_it_changes_the_environment_is_reported_once(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho Installing collected packages: a, b\nprintf 'the end'\n")
    python.chmod(0o755)
    told: list[bool] = []
    run_pip(python, [], title="packages", total=1, on_install=lambda: told.append(True))
    assert told == [True]


def test_the_real_pip_knows_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = ["--dry-run", "--no-index", "pip"]
    run_pip(Path(sys.executable), nothing, title="packages", total=1, on_install=lambda: None)
    assert "packages ..." in capsys.readouterr().err


def test_a_pip_that_says_nothing_any_more_is_timed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pip, "SILENCE_S", 0.3)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho Collecting rich\nexec sleep 600\n")
    python.chmod(0o755)
    with pytest.raises(DevError, match=r"pip printed nothing for 0\.3 s"):
        run_pip(python, [], title="packages", total=1, on_install=lambda: None)

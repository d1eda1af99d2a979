"""What hangs is given up, in words, and leaves nothing running."""

from __future__ import annotations

import ast
import os
import sys
import threading
import time
from pathlib import Path

import pytest
from devkit.paths import ROOT
from devkit.processes import CancelledError, TimedOutError, captured, ended, shown

WAITS = "import threading; threading.Event().wait()"
"""A program that never ends."""


def test_what_a_program_says_is_kept(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd()); sys.exit(f'{sys.stdin.read()!r}')"
    done = captured([sys.executable, "-c", code], 60, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (1, f"{tmp_path}\n", "''\n")


def test_a_program_that_hangs_is_timed_out() -> None:
    with pytest.raises(TimedOutError, match=r"^python\S* -c import .* timed out after 0\.2 s"):
        captured([sys.executable, "-c", WAITS], 0.2)


def test_a_shown_program_speaks_for_itself(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = "import os, sys; print(os.getcwd()); sys.exit(3)"
    assert shown([sys.executable, "-c", code], 60, tmp_path) == 3
    assert capfd.readouterr().out == f"{tmp_path}\n"


def test_a_program_is_measured_with_its_children(tmp_path: Path) -> None:
    spin = "import time; end = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {spin!r}]); print('out')"
    with (tmp_path / "output").open("wb") as output:
        done = ended([sys.executable, "-c", code], 60, tmp_path, output=output)
    assert done.status == 0
    assert 0.2 <= done.processor_s < 60
    assert (tmp_path / "output").read_text() == "out\n"


def test_a_program_may_give_way_to_all_others(tmp_path: Path) -> None:
    code = "import os, sys; sys.exit(os.sched_getscheduler(0) != os.SCHED_IDLE)"
    waits = f"import time; time.sleep(0.2); import subprocess, sys; {code}"
    assert ended([sys.executable, "-c", waits], 60, tmp_path, gives_way=True).status == 0


def test_the_session_of_what_gives_way_weighs_least(tmp_path: Path) -> None:
    group = Path("/proc/self/autogroup")  # not on every system
    code = f"import sys; sys.exit(open('{group}').read().split()[2] != '19')"
    waits = f"import time; time.sleep(0.5); {code}" if group.exists() else ""
    assert ended([sys.executable, "-c", waits], 60, tmp_path, gives_way=True).status == 0


def test_a_program_is_ended_when_it_is_cancelled(tmp_path: Path) -> None:
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(CancelledError):
        ended([sys.executable, "-c", WAITS], 60, tmp_path, cancelled=cancelled)


def test_nothing_of_a_shown_program_is_left(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {WAITS!r}])\n"
        "pathlib.Path('ids').write_text(f'{os.getpgid(child.pid)}')\n"
        "child.wait()\n"
    )
    with pytest.raises(TimedOutError, match="timed out after 2 s"):
        shown([sys.executable, "-c", code], 2, tmp_path)
    group = int((tmp_path / "ids").read_text())
    assert group != os.getpgid(0)
    # Who is killed dies a moment later, and may then wait to be reaped by whoever inherited it.
    deadline_s = time.monotonic() + 20
    while not _states(group) <= {"Z"}:
        assert time.monotonic() < deadline_s, _states(group)
        os.sched_yield()


def _states(group: int) -> set[str]:
    """What the processes of a group do."""
    found = (_state(path) for path in Path("/proc").iterdir() if path.name.isdecimal())
    return {state for of, state in found if of == group}


def _state(process: Path) -> tuple[int, str]:
    """Its process group and what it does; 0 if it has just ended."""
    try:
        words = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0, ""
    return int(words[2]), words[0]


def test_every_program_of_the_kit_has_a_limit() -> None:
    without = [
        f"{path.name}:{call.lineno}"
        for path in sorted((ROOT / "tools" / "devkit").glob("*.py"))
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        and ast.unparse(call.func) == "subprocess.run"
        and "timeout" not in {keyword.arg for keyword in call.keywords}
    ]
    assert without == []


def test_children_keep_their_bytecode_whatever_the_image_sets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    code = "import os, sys; print(sys.dont_write_bytecode, os.environ.get('PYTHONPATH'))"
    assert captured([sys.executable, "-c", code], 60).stdout == "False None\n"

"""Processes of the demo: told by lines, ended with what they started, and heard when they fail."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from headgate.demo.children import Child, ChildFailedError

_LIMIT_S = 30.0

_ECHO = """
import os, sys
print("in", os.environ.get("COLOUR", ""), flush=True)
for line in sys.stdin:
    print("heard", line.strip(), flush=True)
"""
_DEAF = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""
_LOUD = "import sys; sys.exit('x' * 1_500 + '\\n' + 'the last line ' * 100)"
_FAILING = "import sys; print('started', flush=True); sys.exit('the disk is full')"


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules to run."""
    for name, text in {"echo": _ECHO, "deaf": _DEAF, "failing": _FAILING, "loud": _LOUD}.items():
        (tmp_path / f"{name}_child.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def test_much_output_of_a_child_is_shown_from_the_start_of_a_line(modules: Path) -> None:
    with Child("loud", ["loud_child"], modules) as child:
        with pytest.raises(ChildFailedError) as failed:
            child.next_line(_LIMIT_S)
        assert str(failed.value).startswith("loud: it has ended:\nthe last line the last line")


def test_a_child_gets_and_answers_lines(modules: Path) -> None:
    with Child("echo", ["echo_child"], modules) as child:
        assert child.next_line(_LIMIT_S) == "in "
        child.send("one")
        child.send("two")
        assert [child.next_line(_LIMIT_S) for _ in range(2)] == ["heard one", "heard two"]
        child.check()
    with pytest.raises(ChildFailedError, match="echo: it ended with status 0"):
        child.check()
    child.end()


def test_it_imports_nothing_from_the_folder_in_which_the_demo_was_started(
    modules: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as ``/tmp``, where other users can put modules that stand for others."""
    folder = tmp_path_factory.mktemp("of-others")
    (folder / "echo_child.py").write_text("print('foreign', flush=True)")
    monkeypatch.chdir(folder)
    with Child("echo", ["echo_child"], modules) as child:
        assert child.next_line(_LIMIT_S) == "in "


def test_it_gives_way_but_never_comes_first(modules: Path) -> None:
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    for nice, found in ((None, ours), (ours - 1, ours), (ours + 3, ours + 3)):
        with Child("deaf", ["deaf_child"], modules, nice=nice) as child:
            assert os.getpriority(os.PRIO_PROCESS, child.pid) == found


def test_its_surroundings_are_the_demos_and_what_is_added(modules: Path) -> None:
    with Child("echo", ["echo_child"], modules, environment={"COLOUR": "red"}) as child:
        assert child.next_line(_LIMIT_S) == "in red"


def test_a_deaf_one_is_ended_with_what_it_started(modules: Path) -> None:
    with Child("deaf", ["deaf_child"], modules) as child:
        grandchild = int(child.next_line(_LIMIT_S))
        begin_s = time.monotonic()
    assert time.monotonic() - begin_s < 10
    assert _is_gone(grandchild)


def test_a_second_end_reaches_no_process_that_has_its_number_now(
    modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    with Child("echo", ["echo_child"], modules) as child:
        child.end()
        monkeypatch.setattr(os, "killpg", lambda group, _: killed.append(group))
    assert killed == []


def _is_gone(pid: int) -> bool:
    """Whether a process ends within the limit; one that nobody waits for counts as gone."""
    end_s = time.monotonic() + _LIMIT_S
    while time.monotonic() < end_s:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False


def test_a_failure_says_why(modules: Path) -> None:
    with Child("failing", ["failing_child"], modules) as child:
        assert child.next_line(_LIMIT_S) == "started"
        with pytest.raises(ChildFailedError, match=r"failing: it has ended:\nthe disk is full"):
            child.next_line(_LIMIT_S)


def test_one_that_says_nothing_is_not_waited_for(modules: Path) -> None:
    with Child("deaf", ["deaf_child"], modules) as child:
        child.next_line(_LIMIT_S)
        with pytest.raises(ChildFailedError, match="deaf: no answer within 0 s"):
            child.next_line(0.01)

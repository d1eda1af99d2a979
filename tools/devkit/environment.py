"""The environment: made once, completed when a lock changes, and never in the way.

One virtual environment holds nested lanes: ``broker`` < ``lint`` < ``dev`` (with Spark). A stamp
in it says for which locks it is complete, so an unchanged checkout costs one hash of a few
files. An environment that somebody else made in ``.venv`` is completed, not replaced; one that
cannot be used (an older Python, a broken link) is left alone and ``.venv-headgate`` made beside
it. Two set-ups at once take turns; one that was interrupted goes on at the next command.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import sys
import time
import tomllib
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Final

from devkit.console import DevError, Stage, say
from devkit.paths import CACHE, LOCKS, ROOT
from devkit.pip import run_pip
from devkit.processes import TimedOutError, captured
from devkit.system import ensure_packages, has_java, missing_sentence

_FORMAT: Final = "1"
"""Part of every stamp: raise it when the set-up itself has to be done again."""

_LIMIT_S: Final = 300
"""Of one step with Python alone; on a slow disk a virtual environment takes its time."""

_STAMP: Final = "headgate-setup"
_MADE_HERE: Final = "headgate-made-here"
_INSTALLING: Final = "headgate-installing"


class Lane(IntEnum):
    """What is installed. A higher lane contains the lower ones."""

    BROKER = 1
    LINT = 2
    DEV = 3

    @property
    def lock(self) -> Path:
        """The file with every package of this lane, by version and hash."""
        return LOCKS / f"{self.name.lower()}.txt"


def ensure(lane: Lane, *, java: bool = False) -> Path:
    """Make the environment complete for ``lane`` and return its Python.

    With ``java``, a Java for Spark has to be there too, and is installed where that is possible.

    Raises:
        DevError: something is missing that cannot be installed from here.
    """
    environment = choose_environment()
    if is_current(environment, lane) and (has_java() or not java):
        return python_of(environment)
    with _one_at_a_time():
        ensure_packages(venv=False, java=java)
        environment = choose_environment()
        if not is_current(environment, lane):
            _set_up(environment, lane)
    return python_of(environment)


def python_of(environment: Path) -> Path:
    """The interpreter of an environment."""
    return environment / "bin" / "python"


def choose_environment() -> Path:
    """The folder to use: ``.venv``, unless what is there cannot be used and is not ours."""
    ours, other = ROOT / ".venv", ROOT / ".venv-headgate"
    if other.exists():
        return other
    if not ours.exists() or (ours / _MADE_HERE).exists() or _works(python_of(ours)):
        return ours
    return other


def is_current(environment: Path, lane: Lane) -> bool:
    """Whether the stamp says that ``lane`` or more is installed from today's locks."""
    try:
        stamps = (environment / _STAMP).read_text().split()
    except OSError:
        return False
    return any(digest_of(other, environment) in stamps for other in Lane if other >= lane)


def digest_of(lane: Lane, environment: Path) -> str:
    """What the installation of ``lane`` depends on, as one hash.

    The path is part of it because an editable install and its scripts hold it; the target of the
    interpreter's link because packages are built for one Python.
    """
    digest = hashlib.sha256()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    interpreter = os.path.realpath(python_of(environment))
    for part in (_FORMAT, lane.name, str(ROOT), interpreter, repr(project)):
        digest.update(part.encode() + b"\0")
    for path in (LOCKS / "build.txt", lane.lock):
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def _set_up(environment: Path, lane: Lane) -> None:
    started_s = time.monotonic()
    if environment.name != ".venv":
        say(f".venv was not made by ./dev and has no working Python 3.11: using {environment.name}")
    say(f"Setting up {environment.name} for the {lane.name.lower()} lane; later runs skip this.")
    (environment / _STAMP).unlink(missing_ok=True)
    _make(environment)
    python = python_of(environment)
    mark = environment / _INSTALLING
    again = ["--force-reinstall"] if mark.exists() else []
    hashed = ["--require-hashes", "--no-deps", "--no-build-isolation", *again]
    steps = (
        ("build tools", [*hashed, "-r", str(LOCKS / "build.txt")], "off"),
        ("packages", [*hashed, "-r", str(lane.lock)], "raw"),
        ("headgate itself", ["--no-deps", "--no-build-isolation", "-e", str(ROOT)], "raw"),
    )
    for title, arguments, progress in steps:
        run_pip(
            python,
            arguments,
            title=title,
            total=_packages_of(arguments),
            on_install=mark.touch,
            progress=progress,
        )
    mark.unlink(missing_ok=True)
    pending = environment / f"{_STAMP}.new"
    pending.write_text(digest_of(lane, environment) + "\n")
    pending.replace(environment / _STAMP)
    say(f"Set up in {time.monotonic() - started_s:.0f} s.")


def _packages_of(arguments: list[str]) -> int:
    """How many packages a pip command wants: the entries of its lock, or one."""
    if "-r" not in arguments:
        return 1
    lines = Path(arguments[-1]).read_text().splitlines()
    return sum(line[:1] not in " #" for line in lines if line)


def _make(environment: Path) -> None:
    """Create the environment, or mend it when an earlier set-up was cut short."""
    python = python_of(environment)
    made_here = (environment / _MADE_HERE).exists()
    interrupted = (environment / _INSTALLING).exists()
    if _works(python) and not (interrupted and made_here):
        if not _has_pip(python) and not _add_pip(python):
            raise DevError(
                f"{environment.name} has no pip and ensurepip could not add one: remove that "
                "folder and run the same command again."
            )
        return
    ensure_packages(venv=True, java=False)
    stage = Stage(f"virtual environment with Python {sys.version.split()[0]}")
    if environment.exists():
        shutil.rmtree(environment)
    environment.mkdir(parents=True)
    (environment / _MADE_HERE).write_text("Made by ./dev, which may make it again.\n")
    base = getattr(sys, "_base_executable", None) or sys.executable
    result = captured([base, "-m", "venv", str(environment)], _LIMIT_S)
    if result.returncode != 0 or not _has_pip(python):
        stage.leave()
        raise DevError(f"{result.stdout}{result.stderr}\n{missing_sentence()}")
    stage.done()


def _works(python: Path) -> bool:
    program = "import sys; sys.exit(sys.version_info < (3, 11))"
    return _runs([str(python), "-c", program])


def _has_pip(python: Path) -> bool:
    return _runs([str(python), "-c", "import pip"])


def _add_pip(python: Path) -> bool:
    return _runs([str(python), "-m", "ensurepip", "--default-pip"]) and _has_pip(python)


def _runs(command: list[str]) -> bool:
    try:
        return captured(command, _LIMIT_S).returncode == 0
    except (OSError, TimedOutError):
        return False


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Hold the set-up's lock; the system lets go of it when this process ends, however."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "setup.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            stage = Stage("waiting for another ./dev that is setting up")
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    stage.update("still waiting")
                    time.sleep(0.2)
            stage.done()
        yield

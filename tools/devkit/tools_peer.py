"""``./dev test-tools``: the examples under Airflow and Dagster, data sources under Spark Connect.

It is no part of ``./dev test``: the schedulers bring some 200 packages each, which are in no lock
and have environments of their own in the cache.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from devkit.console import DevError, Stage
from devkit.paths import CACHE, ROOT
from devkit.processes import captured, shown

TOOLS: Final = {
    "airflow": ("apache-airflow>=3.2,<4",),
    "dagster": ("dagster>=1.12,<2",),
}
"""Schedulers, each with what is installed for it."""

CONNECT: Final = ("grpcio-status>=1.76", "zstandard>=0.25")
"""What Spark Connect needs besides the packages of the tests."""

INSTALL_LIMIT_S: Final = 1_200
RUN_LIMIT_S: Final = 1_800


def play_tools(python: Path) -> int:
    """Install the tools, run the examples and the data sources, and return 0 if all was right.

    Raises:
        DevError: a package could not be installed; the text is what pip said.
        TimedOutError: something hangs.
    """
    environments = [_environment(python, name) for name in TOOLS]
    connect = _connect_packages(python)
    command = [
        str(python), "-m", "tests.peer.tools", *map(str, environments), str(connect),
    ]  # fmt: skip
    return shown(command, RUN_LIMIT_S, ROOT)


def _environment(python: Path, name: str) -> Path:
    """The Python of a tool's environment, which is made if it is not complete."""
    folder = CACHE / "tools" / name
    own, stamp = folder / "bin" / "python", folder / "complete"
    wanted = "\n".join(TOOLS[name])
    if stamp.is_file() and stamp.read_text() == wanted:
        return own
    _run([str(python), "-m", "venv", "--clear", str(folder)], f"making {folder}")
    _run([str(own), "-m", "pip", "install", "--quiet", *TOOLS[name]], f"installing {name}")
    stamp.write_text(wanted)
    return own


def _connect_packages(python: Path) -> Path:
    """A folder with the packages that only Spark Connect needs."""
    folder = CACHE / "tools" / "connect"
    if not (folder / "grpc_status").is_dir():
        command = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
        _run([*command, str(folder), *CONNECT], "installing packages for Spark Connect")
    return folder


def _run(command: list[str], title: str) -> None:
    CACHE.mkdir(exist_ok=True)
    stage = Stage(title)
    result = captured(command, INSTALL_LIMIT_S, folder=ROOT)
    if result.returncode != 0:
        stage.done("failed")
        raise DevError(f"{title} failed:\n{result.stdout}{result.stderr}")
    stage.done()

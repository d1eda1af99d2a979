"""Prometheus' ``promtool``, which the tests of the alert rules play them with.

One that is on the PATH is used. Otherwise it is taken out of the distribution's package into the
cache: installing the package would also start a Prometheus.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from devkit.console import DevError, Stage
from devkit.paths import CACHE
from devkit.processes import TimedOutError, captured
from devkit.system import refresh_package_lists

PACKAGE: Final = "prometheus"
CACHED: Final = CACHE / "promtool"
_LIMIT_S: Final = 300


def known_promtool() -> Path | None:
    """Where it is; None before :func:`ensure_promtool`, unless it is installed."""
    found = shutil.which("promtool")
    if found is not None:
        return Path(found)
    return CACHED if CACHED.exists() else None


def ensure_promtool() -> Path:
    """Where it is, fetched if need be.

    Raises:
        DevError: it is not there, and apt cannot provide it; the text names the package.
    """
    present = known_promtool()
    if present is not None:
        return present
    stage = Stage(f"taking promtool out of the package {PACKAGE}")
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        fetched = _fetch(Path(folder)) or (refresh_package_lists() and _fetch(Path(folder)))
        if not fetched:
            stage.done("failed")
            raise DevError(
                f"The tests of the alert rules need promtool, of the package {PACKAGE}, and could "
                f"not get it: install the package or put promtool on the PATH, and try again."
            )
        stage.done()
    return CACHED


def _fetch(folder: Path) -> bool:
    """Download and unpack the package; whether the program is in the cache then."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return False
    if not _run(["apt-get", "download", PACKAGE], folder):
        return False
    packages = sorted(folder.glob("*.deb"))
    if not packages or not _run(["dpkg-deb", "-x", packages[0].name, "unpacked"], folder):
        return False
    program = folder / "unpacked/usr/bin/promtool"
    if not program.exists():
        return False
    program.rename(CACHED)
    return True


def _run(command: list[str], folder: Path) -> bool:
    try:
        return captured(command, _LIMIT_S, folder=folder).returncode == 0
    except TimedOutError:
        return False

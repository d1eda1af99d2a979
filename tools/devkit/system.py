"""What the set-up needs from the machine itself: a Python with venv, for Spark a Java, for tests of
the page a browser, and for the peer test a Maven with a compiler.

All come through apt where that is there and may be used; otherwise one sentence names what
to install, and nothing is changed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from devkit.browser import OTHER_PACKAGE as OTHER_BROWSER_PACKAGE
from devkit.browser import PACKAGE as BROWSER_PACKAGE
from devkit.browser import known_browser
from devkit.console import DevError, Stage, say
from devkit.paths import environment_variables
from devkit.processes import captured

VENV_PACKAGE: Final = "python3-venv"
JAVA_PACKAGES: Final = ("openjdk-17-jre-headless", "default-jre-headless")
"""In order of preference: releases that dropped Java 17 have a newer default."""
MAVEN_PACKAGES: Final = ("maven", "openjdk-17-jdk-headless")
_INSTEAD: Final = {
    JAVA_PACKAGES[0]: JAVA_PACKAGES[1],
    MAVEN_PACKAGES[1]: "default-jdk-headless",
    BROWSER_PACKAGE: OTHER_BROWSER_PACKAGE,
}
"""What another release has instead of a package."""

_ASK_LIMIT_S: Final = 30
_APT_LIMIT_S: Final = 1_800
_TIMED_OUT: Final = 124
"""What ``timeout`` ends with when it ended the program."""


def has_venv() -> bool:
    """Whether this Python can make a virtual environment with pip in it.

    Debian ships ``venv`` without ``ensurepip`` until python3-venv is installed.
    """
    return importlib.util.find_spec("ensurepip") is not None


def has_java() -> bool:
    """Whether Spark will find a Java: in JAVA_HOME or on the PATH."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return True
    return shutil.which("java") is not None


def has_maven() -> bool:
    """Whether Java can be compiled and its libraries fetched: ``mvn``, and a ``javac`` that it
    finds."""
    home = os.environ.get("JAVA_HOME")
    compiler = shutil.which("javac", path=f"{home}/bin") if home else shutil.which("javac")
    return compiler is not None and shutil.which("mvn") is not None


def ensure_packages(
    *, venv: bool = False, java: bool = False, maven: bool = False, browser: bool = False
) -> None:
    """Install what is missing through apt.

    Raises:
        DevError: it is missing and apt cannot or may not be used; the text names the packages.
    """
    missing = []
    if venv and not has_venv():
        missing.append(VENV_PACKAGE)
    if java and not has_java():
        missing.append(JAVA_PACKAGES[0])
    if maven and not has_maven():
        missing += MAVEN_PACKAGES
    if browser and known_browser() is None:
        missing.append(BROWSER_PACKAGE)
    if not missing:
        return
    prefix = _privileged_prefix()
    if prefix is None or not _apt_install(prefix, missing):
        raise DevError(
            missing_browser_sentence()
            if browser
            else missing_peer_sentence()
            if maven
            else missing_sentence()
        )
    if venv and not has_venv():
        version = f"python3.{sys.version_info.minor}-venv"
        if not _apt_install(prefix, [version]):
            raise DevError(missing_sentence())


def refresh_package_lists() -> bool:
    """Have apt look what packages there are; whether that worked."""
    prefix = _privileged_prefix()
    return prefix is not None and _apt(prefix, "update", [])


def missing_sentence() -> str:
    """The one sentence for people who have to install the packages themselves."""
    return (
        f"Headgate's set-up needs the packages {VENV_PACKAGE} and, for Spark, "
        f"{JAVA_PACKAGES[0]} (Java 17 or newer), and could not install what is missing: "
        f"run 'apt-get install {VENV_PACKAGE} {JAVA_PACKAGES[0]}' as root, or the equivalent on "
        "your system, and try again."
    )


def missing_peer_sentence() -> str:
    """The same for the peer test."""
    names = " ".join(MAVEN_PACKAGES)
    return (
        f"The peer test needs the packages {' and '.join(MAVEN_PACKAGES)} (Java 17 or newer), and "
        f"could not install what is missing: run 'apt-get install {names}' as root, or the "
        "equivalent on your system, and try again."
    )


def missing_browser_sentence() -> str:
    """The same for the tests of the page."""
    return (
        f"The tests of the page need the package {BROWSER_PACKAGE}, or a Chrome on the PATH, and "
        f"could not install it: run 'apt-get install {BROWSER_PACKAGE}' as root, or the "
        "equivalent on your system, and try again."
    )


def _privileged_prefix() -> list[str] | None:
    """What to put before apt-get so that it may install, or None when it may not."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None:
        return None
    if captured(["sudo", "-n", "true"], _ASK_LIMIT_S).returncode == 0:
        return ["sudo", "-n"]
    return ["sudo"] if sys.stdin.isatty() and sys.stderr.isatty() else None


def _apt_install(prefix: list[str], packages: list[str]) -> bool:
    """Install ``packages``, refreshing apt's lists and trying a newer Java if need be."""
    say(f"Installing {' and '.join(packages)} through apt")
    others = [_INSTEAD.get(name, name) for name in packages]
    if _apt(prefix, "install", packages):
        return True
    _apt(prefix, "update", [])
    return _apt(prefix, "install", packages) or (
        others != packages and _apt(prefix, "install", others)
    )


def _apt(prefix: list[str], verb: str, packages: list[str]) -> bool:
    # By a program of its own: under sudo we may not end it.
    limited = ["timeout", str(_APT_LIMIT_S), "apt-get", "-y", verb]
    command = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", *limited]
    if verb == "install":
        command += ["--no-install-recommends", *packages]
    stage = Stage(f"apt-get {verb} {' '.join(packages)}".rstrip())
    process = subprocess.Popen(
        command,
        stdin=None if prefix == ["sudo"] else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment_variables(),
    )
    last = ""
    with process:
        for line in process.stdout or ():
            last = line.strip() or last
            stage.update(last)
    succeeded = process.returncode == 0
    if process.returncode == _TIMED_OUT:
        last = f"timed out after {_APT_LIMIT_S} s"
    stage.done("" if succeeded else f"failed: {last}")
    return succeeded

"""The Node.js client of ``./dev test-peer``, from npm.

The package holds no program: its installer downloads one, or compiles its sources against the C++
client. The wheel of the Python client has that as a shared library. No registry has its headers: a
variable names a checkout of it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from devkit.console import DevError, LeftOutError, Stage
from devkit.paths import CACHE, ROOT
from devkit.processes import captured

PROJECT: Final = ROOT / "tests" / "peer" / "node"
CHECKOUT_VARIABLE: Final = "HEADGATE_PULSAR_CLIENT_CPP"
PACKAGE: Final = "pulsar-client"
FILES: Final = ("package.json", "package-lock.json")
INSTALL_LIMIT_S: Final = 300
BUILD_LIMIT_S: Final = 1_200
_STAMP: Final = "complete"


def ensure_node_client(python: Path) -> Path:
    """Install the client, unless it is there for today's lock, and return its ``node_modules``.

    ``python`` has the Python client, with whose library it is linked.

    Raises:
        LeftOutError: it needs a checkout of the C++ client.
        DevError: npm or the compiler failed; the text is what it said.
    """
    folder = CACHE / "peer-node"
    stamp, digest = folder / _STAMP, _digest(python)
    if stamp.is_file() and stamp.read_text() == digest:
        return folder / "node_modules"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in FILES:
        shutil.copyfile(PROJECT / name, folder / name)
    words = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    if problem := _failure(words, {}, folder, INSTALL_LIMIT_S, "installing the Node.js client"):
        raise DevError(problem)
    checkout = os.environ.get(CHECKOUT_VARIABLE)
    if checkout:
        _compile(folder, python, Path(checkout))
    else:
        _download(folder)
    stamp.write_text(digest)
    return folder / "node_modules"


def _digest(python: Path) -> str:
    """What the installed client depends on."""
    lock = (PROJECT / FILES[1]).read_bytes()
    return hashlib.sha256(lock + str(_library(python)).encode()).hexdigest()


def _download(folder: Path) -> None:
    """Have the package's own installer look for a program."""
    title = "downloading the Node.js client's program"
    if _failure(["npm", "rebuild", PACKAGE], {}, folder, BUILD_LIMIT_S, title):
        raise LeftOutError(
            "npm has no program of this client, its installer could not download one, and "
            f"{CHECKOUT_VARIABLE} names no checkout of the C++ client to compile it with"
        )


def _compile(folder: Path, python: Path, checkout: Path) -> None:
    """Compile the package's sources, with the headers of a checkout and the library of a wheel."""
    wanted = re.search(
        r"CPP_CLIENT_VERSION=(\S+)",
        (folder / "node_modules" / PACKAGE / "pulsar-client-cpp.txt").read_text(),
    )
    found = (checkout / "version.txt").read_text().strip()
    if wanted is None or found != wanted[1]:
        raise DevError(
            f"{checkout} is version {found} of the C++ client, and the Node.js client is made for "
            f"{wanted and wanted[1]}"
        )
    library = _library(python)
    if library is None:
        raise DevError(f"{python} has no Python client to link with")
    (folder / "lib").mkdir()
    (folder / "lib" / "libpulsar.so").symlink_to(library)
    variables = {
        "CXXFLAGS": f"-I{checkout / 'include'}",
        "LDFLAGS": f"-L{folder / 'lib'} -Wl,-rpath,{library.parent}",
        "npm_config_build_from_source": "true",
    }
    node = shutil.which("node")
    if node and (headers := Path(node).resolve().parents[1] / "include" / "node").is_dir():
        variables["npm_config_nodedir"] = str(headers.parents[1])  # else npm downloads them
    title = f"compiling the Node.js client with the C++ client {found}"
    words = ["npm", "rebuild", PACKAGE, "--foreground-scripts"]
    if problem := _failure(words, variables, folder, BUILD_LIMIT_S, title):
        raise DevError(problem)


def _library(python: Path) -> Path | None:
    """The C++ client that the Python client brought."""
    pattern = "lib/python*/site-packages/pulsar_client.libs/libpulsar-*.so"
    return next(iter(python.parent.parent.glob(pattern)), None)


def _failure(
    words: Sequence[str], variables: Mapping[str, str], folder: Path, limit_s: float, title: str
) -> str:
    """What a failed command said; empty if it did not fail."""
    stage = Stage(title)
    settings = [f"{name}={value}" for name, value in variables.items()]
    try:
        result = captured(["env", *settings, *words], limit_s, folder=folder)
    finally:
        stage.leave()
    if result.returncode == 0:
        stage.done()
        return ""
    return f"{title} failed:\n{result.stdout}{result.stderr}"

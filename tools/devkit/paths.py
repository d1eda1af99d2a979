"""Where things are in a checkout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
LOCKS: Final = ROOT / "locks"
CACHE: Final = ROOT / ".cache"
DIST: Final = ROOT / "dist"
PYSPARK_PULSAR: Final = ROOT / "distributions" / "pyspark-pulsar"


def environment_variables() -> dict[str, str]:
    """The variables of child processes: those of this process, without the ones that mislead.

    A child would silently obey a PYTHONPATH that names another checkout, or a pip setting that
    installs for the user. Under PYTHONDONTWRITEBYTECODE, which container images set, each broker
    that a test starts compiles all of Headgate, and each lane rewrites every assertion again. The
    output of children is unbuffered, so that progress shows.
    """
    dropped = (
        "PYTHONHOME", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE",
        "PIP_USER", "PIP_TARGET", "PIP_PREFIX",
    )  # fmt: skip
    variables = {name: text for name, text in os.environ.items() if name not in dropped}
    return {**variables, "PYTHONUNBUFFERED": "1"}

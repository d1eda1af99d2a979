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
    """The variables for child processes: ours, without what would bend them.

    Another checkout on PYTHONPATH or a pip that installs for the user would both be obeyed
    silently. Output is not held back, so that progress shows.
    """
    dropped = ("PYTHONHOME", "PYTHONPATH", "PIP_USER", "PIP_TARGET", "PIP_PREFIX")
    variables = {name: text for name, text in os.environ.items() if name not in dropped}
    return {**variables, "PYTHONUNBUFFERED": "1"}

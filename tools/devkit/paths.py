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
    """The variables for child processes: ours, with output that is not held back."""
    variables = dict(os.environ)
    variables.pop("PYTHONHOME", None)
    variables["PYTHONUNBUFFERED"] = "1"
    return variables

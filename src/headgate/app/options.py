"""The command line of ``headgate standalone`` as a value, in a module that is cheap to import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DATA_DIRECTORY = "headgate-data"
"""The default data directory, below the current one."""

LOG_LEVELS = ("debug", "info", "warning", "error")
"""The values of ``--log-level``, most verbose first."""


@dataclass(frozen=True, slots=True)
class StandaloneOptions:
    """How to run one broker."""

    data_path: str = DATA_DIRECTORY
    config_path: str | None = None
    assignments: Sequence[str] = ()
    """``key=value`` each; they override the file."""
    is_insecure_allowed: bool = False
    """Whether other machines may reach a broker without authentication."""

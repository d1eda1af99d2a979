"""What the command line of ``headgate standalone`` says; costs nothing to import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DATA_DIRECTORY = "headgate-data"
"""The data directory when none is named, in the current directory."""

LOG_LEVELS = ("debug", "info", "warning", "error")
"""What ``--log-level`` takes, most talkative first."""


@dataclass(frozen=True, slots=True)
class StandaloneOptions:
    """How to run one broker."""

    data_path: str = DATA_DIRECTORY
    config_path: str | None = None
    assignments: Sequence[str] = ()
    """``key=value`` each; they override the file."""

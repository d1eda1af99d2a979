"""Facts about this machine, from the operating system."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

BOOT_ID_PATH: Final = "/proc/sys/kernel/random/boot_id"

_CHARACTERS_MAX: Final = 64


def boot_id(path: str = BOOT_ID_PATH) -> str:
    """A text that differs after each boot; running times are comparable within one boot only.

    Empty where the system has none.
    """
    return (read_text(path) or "").strip()[:_CHARACTERS_MAX]


def physical_memory_bytes() -> int:
    """Memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def read_text(path: str) -> str | None:
    """The content of one of the kernel's small files; None where it cannot be read."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return None

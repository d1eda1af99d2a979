"""Which boot of the machine this is: its running time is only comparable within one."""

from __future__ import annotations

from typing import Final

from headgate.app.memory_limit import read_text

BOOT_ID_PATH: Final = "/proc/sys/kernel/random/boot_id"

_CHARACTERS_MAX: Final = 64


def machine_boot(path: str = BOOT_ID_PATH) -> str:
    """A text that differs after each boot of the machine; empty where the system tells none."""
    return (read_text(path) or "").strip()[:_CHARACTERS_MAX]

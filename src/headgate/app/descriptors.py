"""The limit of file descriptors of this process."""

from __future__ import annotations

import contextlib
import resource


def descriptors_max() -> int | None:
    """The limit in force (``ulimit -n``); None without one."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def raise_descriptors_max() -> None:
    """Raise the limit as far as this user may: each client takes a descriptor."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

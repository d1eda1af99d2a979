"""How many file descriptors this process may have."""

from __future__ import annotations

import resource


def descriptors_max() -> int | None:
    """The limit in force (``ulimit -n``); None without one."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft

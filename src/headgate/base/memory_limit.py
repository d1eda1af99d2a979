"""The memory that the broker may use, by setting, control group or machine.

A process is in one control group of each hierarchy, and every group above limits it too. The
directory of that group is in ``/proc/self/mountinfo``: a container often sees only its own part of
the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from headgate.base.units import MIB

ReadText = Callable[[str], str | None]
"""The content of a file; None where it cannot be read."""

_LIMIT_FILES = {"cgroup2": "memory.max", "cgroup": "memory.limit_in_bytes"}
"""The file that holds a group's limit, by the hierarchy's file system type."""


def memory_limit_bytes(setting_mb: int, physical_bytes: int, read_text: ReadText) -> int:
    """``headgateMemoryLimitMB`` if it is set, else the tightest limit on the process.

    ``physical_bytes`` is the memory of the machine.
    """
    if setting_mb > 0:
        return setting_mb * MIB
    return min([physical_bytes, *_group_limits(read_text)])


class _Mount(NamedTuple):
    """A hierarchy of control groups that accounts for memory, as it is mounted."""

    root: str
    """Which of its groups is seen at ``point``."""
    point: str
    type: str


def _group_limits(read_text: ReadText) -> Iterator[int]:
    """Limits of the process's memory groups and of all above them that can be seen."""
    groups = dict(_groups(read_text("/proc/self/cgroup") or ""))
    for mount in _mounts(read_text("/proc/self/mountinfo") or ""):
        root, group = _names(mount.root), _names(groups.get(mount.type, "/"))
        below = group[len(root) :] if group[: len(root)] == root else []
        for depth in range(len(below), -1, -1):
            directory = "/".join((mount.point, *below[:depth]))
            text = read_text(f"{directory}/{_LIMIT_FILES[mount.type]}")
            if text is not None and text.strip().isdecimal() and int(text) > 0:
                yield int(text)


def _names(path: str) -> list[str]:
    """The names in a path of groups."""
    return [name for name in path.split("/") if name]


def _groups(text: str) -> Iterator[tuple[str, str]]:
    """The process's group in each hierarchy that may limit memory, by file system type."""
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "memory" in controllers.split(","):
            yield "cgroup", path
        elif not controllers:
            yield "cgroup2", path


def _mounts(text: str) -> Iterator[_Mount]:
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, ends = before.split(), after.split()
        if len(fields) < 5 or len(ends) < 3 or ends[0] not in _LIMIT_FILES:
            continue
        if ends[0] == "cgroup2" or "memory" in ends[2].split(","):
            yield _Mount(root=fields[3], point=fields[4], type=ends[0])

"""The tightest limit of setting, control groups and machine."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headgate.app.machine import physical_memory_bytes, read_text
from headgate.base.memory_limit import memory_limit_bytes
from headgate.base.units import GIB, MIB

PHYSICAL_BYTES = 64 * GIB

V2_MOUNT = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
V1_MOUNTS = (
    "30 23 0:27 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
    "34 31 0:31 {root} /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 {root} /sys/fs/cgroup/memory rw shared:11 - cgroup cgroup rw,memory\n"
)
UNLIMITED_V1 = "9223372036854771712\n"


def limit_of(files: Mapping[str, str], setting_mb: int = 0) -> int:
    return memory_limit_bytes(setting_mb, PHYSICAL_BYTES, files.get)


def test_the_setting_wins() -> None:
    files = {
        "/proc/self/mountinfo": V2_MOUNT,
        "/proc/self/cgroup": "0::/\n",
        "/sys/fs/cgroup/memory.max": str(GIB),
    }
    assert limit_of(files) == GIB
    assert limit_of(files, 3) == 3 * MIB
    assert limit_of(files, 1 << 20) == 1 << 40


def test_without_control_groups_it_is_the_machine() -> None:
    assert limit_of({}) == PHYSICAL_BYTES


@pytest.mark.parametrize(
    ("leaf", "middle", "top", "limit_bytes"),
    [
        ("1073741824\n", "max\n", "max\n", GIB),
        ("max\n", "2147483648\n", "max\n", 2 * GIB),
        ("3221225472\n", "2147483648\n", "1073741824\n", GIB),
        ("max\n", "max\n", None, PHYSICAL_BYTES),
        (str(100 * GIB), "max\n", None, PHYSICAL_BYTES),
    ],
)
def test_version_2_and_its_ancestors(
    leaf: str, middle: str, top: str | None, limit_bytes: int
) -> None:
    files = {
        "/proc/self/mountinfo": V2_MOUNT,
        "/proc/self/cgroup": "0::/system.slice/headgate.service\n",
        "/sys/fs/cgroup/system.slice/headgate.service/memory.max": leaf,
        "/sys/fs/cgroup/system.slice/memory.max": middle,
        "/memory.max": "1\n",
    }
    if top is not None:
        files["/sys/fs/cgroup/memory.max"] = top
    assert limit_of(files) == limit_bytes


def test_version_1_and_its_ancestors() -> None:
    files = {
        "/proc/self/mountinfo": V1_MOUNTS.format(root="/"),
        "/proc/self/cgroup": "4:memory:/jobs/a\n3:cpu,cpuacct:/other\n0::/\n",
        "/sys/fs/cgroup/memory/jobs/a/memory.limit_in_bytes": UNLIMITED_V1,
        "/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes": str(2 * GIB),
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": UNLIMITED_V1,
        "/sys/fs/cgroup/cpu,cpuacct/jobs/a/memory.limit_in_bytes": "1\n",
    }
    assert limit_of(files) == 2 * GIB
    del files["/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes"]
    assert limit_of(files) == PHYSICAL_BYTES


@pytest.mark.parametrize("seen_as", ["/docker/1f", "/", "/../../2e"])
def test_a_container_that_sees_only_its_own_groups(seen_as: str) -> None:
    """Its group is at the mount's root, whatever path it goes by outside."""
    files = {
        "/proc/self/mountinfo": V1_MOUNTS.format(root="/docker/1f"),
        "/proc/self/cgroup": f"4:memory:{seen_as}\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": str(GIB),
        "/sys/fs/cgroup/memory/docker/1f/memory.limit_in_bytes": "1\n",
    }
    assert limit_of(files) == GIB


def test_both_versions_side_by_side() -> None:
    files = {
        "/proc/self/mountinfo": V1_MOUNTS.format(root="/")
        + V2_MOUNT.replace("/sys/fs/cgroup ", "/sys/fs/cgroup/unified "),
        "/proc/self/cgroup": "4:memory:/a\n0::/b\n",
        "/sys/fs/cgroup/memory/a/memory.limit_in_bytes": str(3 * GIB),
        "/sys/fs/cgroup/unified/b/memory.max": str(2 * GIB),
    }
    assert limit_of(files) == 2 * GIB


def test_what_makes_no_sense_limits_nothing() -> None:
    files = {
        "/proc/self/mountinfo": "\n- - -\nshort - cgroup2\n" + V2_MOUNT,
        "/proc/self/cgroup": "\nnonsense\n0::/\n",
        "/sys/fs/cgroup/memory.max": "0\n",
    }
    assert limit_of(files) == PHYSICAL_BYTES


def test_this_machine() -> None:
    assert 0 < memory_limit_bytes(0, physical_memory_bytes(), read_text) <= physical_memory_bytes()

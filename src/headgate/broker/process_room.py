"""The part of their bounds that clients have while the process nears its memory limit.

What clients are charged with is an estimate of what they make the process take: an allocator, a
library or a kind of holding that nobody counts may take more. So the memory of the process is
measured, too. While it leaves room, the estimate alone counts. Near the limit clients get a part of
their bounds, and what they hold beyond it ends as if the bounds were so small: the broker slows
some of its clients before the system ends it, and all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from headgate.base.units import MIB
from headgate.control.memory import MemorySource

logger = logging.getLogger("headgate.connection")

FULL_SHARE: Final = 0.8
"""Up to this share of the limit clients have all of their bounds."""

LEAST_SHARE: Final = 0.95
"""From this share of the limit on they have :data:`PART_MIN` of them."""

PART_MIN: Final = 1 / 16
"""The least part. With none the broker would serve nobody where something else than clients takes
the memory, such as very many topics; and nobody could drain or delete these."""

NEAR_SHARE: Final = 0.6
"""From this share on the process is measured more often: clients can fill the rest in a second."""

CALM_SHARE: Final = 0.75
"""Below this share of the limit the next shortage is logged again."""


def room_part(used_bytes: int, limit_bytes: int) -> float:
    """The part of their bounds that clients have: 1 up to :data:`FULL_SHARE` of the limit, then
    less in a straight line, and :data:`PART_MIN` from :data:`LEAST_SHARE` on."""
    part = (LEAST_SHARE - used_bytes / limit_bytes) / (LEAST_SHARE - FULL_SHARE)
    return min(max(part, PART_MIN), 1.0)


class ProcessRoom:
    """The memory of the broker's process, and what of their bounds it leaves to clients."""

    def __init__(self, memory: MemorySource | None = None) -> None:
        """Without ``memory`` clients always have all of their bounds."""
        self._memory = memory
        self.part = 1.0
        """The part of their bounds that clients have, as of the last measurement."""
        self.is_near = False
        """Whether the process takes :data:`NEAR_SHARE` of its limit."""
        self._has_warned = False
        self.tell: Callable[[float, int], None] = lambda _part, _limit_bytes: None
        """Called with the part and the limit at each measurement."""

    @property
    def is_short(self) -> bool:
        """Whether clients have less than all of their bounds."""
        return self.part < 1

    @property
    def is_least(self) -> bool:
        """Whether clients have the least part of their bounds: the process nearly has its limit."""
        return self.part <= PART_MIN

    def of(self, bytes_max: int, fixed_bytes: int = 0) -> int:
        """The bound in force of one of ``bytes_max``, of which ``fixed_bytes`` stay, because those
        who hold them cannot hold less."""
        return fixed_bytes + int(self.part * max(0, bytes_max - fixed_bytes))

    def measure(self) -> None:
        """Measure the process, and log when room begins to be short and when it no longer is."""
        if self._memory is None:
            return
        used_bytes, limit_bytes = self._memory.used_bytes(), self._memory.limit_bytes
        self.part = room_part(used_bytes, limit_bytes)
        self.is_near = used_bytes >= NEAR_SHARE * limit_bytes
        self.tell(self.part, limit_bytes)
        if self.part < 1 and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "the process takes %s MiB of the %s that it may (headgateMemoryLimitMB, or the "
                "limit of its control group): from %d to %d %% clients get less and less of "
                "headgateClientMemoryMB and headgateHttpMemoryMB, at last a %dth",
                f"{used_bytes // MIB:,}",
                f"{limit_bytes // MIB:,}",
                round(100 * FULL_SHARE),
                round(100 * LEAST_SHARE),
                round(1 / PART_MIN),
            )
        elif self._has_warned and used_bytes < CALM_SHARE * limit_bytes:
            self._has_warned = False
            logger.warning(
                "the process takes %s MiB of the %s that it may: clients have all of theirs again",
                f"{used_bytes // MIB:,}",
                f"{limit_bytes // MIB:,}",
            )

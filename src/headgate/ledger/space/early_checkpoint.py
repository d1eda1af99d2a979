"""When a checkpoint is worth its bytes because files can be freed behind it."""

from __future__ import annotations

from typing import Final

from headgate.base.units import NS_PER_S

CHECKPOINTS_WORTH: Final = 4
"""A checkpoint is written early if it frees so many times its size. So the checkpoints of a log
whose segments die as fast as they are written add at most a quarter to what is written."""

WAIT_NS_MAX: Final = 20 * NS_PER_S
"""How long smaller gains wait. With the half minute until the broker trims, and with the deletion
after it, disk is free within a minute."""


class EarlyCheckpoint:
    """Decides whether to write a checkpoint before one is due for the length of the replay."""

    def __init__(self, segment_bytes: int) -> None:
        self._segment_bytes = segment_bytes
        self._since_ns: int | None = None
        """Since when something waits for a checkpoint; None if nothing does."""

    def is_wanted(
        self, freeable_bytes: int, checkpoint_bytes: int, now_ns: int, *, is_full: bool
    ) -> bool:
        """Whether to begin a checkpoint now, behind which ``freeable_bytes`` can be freed.

        ``checkpoint_bytes`` is the size of the last checkpoint with its copy. On a full disk every
        byte counts.
        """
        if not freeable_bytes:
            self._since_ns = None
            return False
        if self._since_ns is None:
            self._since_ns = now_ns
        worth_bytes = max(self._segment_bytes // 2, CHECKPOINTS_WORTH * checkpoint_bytes)
        is_overdue = now_ns - self._since_ns >= WAIT_NS_MAX
        return is_full or freeable_bytes >= worth_bytes or is_overdue

    def begun(self) -> None:
        """A checkpoint begins: what dies from now on waits for the next one."""
        self._since_ns = None

"""What the memory of the process leaves to those who have stored much already."""

from __future__ import annotations

from typing import Final, Protocol

NEAR_LIMIT: Final = ", because the broker is near the limit on its memory"
"""Why a bound is lower than usual, at the end of a sentence."""


def why_lower(part: float) -> str:
    """Why ``part`` of a bound is there, at the end of a sentence; empty if all of it is."""
    return NEAR_LIMIT if part < 1 else ""


class MemoryRoom(Protocol):
    """The room, as of the last measurement."""

    @property
    def part(self) -> float:
        """The part of its bounds that a tenant has: 1, and less near the limit."""

    def may_keep_more(self, tenant: str) -> bool:
        """Whether a tenant may have more topics and durable subscriptions."""


class NoMemoryLimit:
    """The room of a process whose memory nobody measures."""

    part: Final = 1.0

    def may_keep_more(self, tenant: str) -> bool:  # noqa: ARG002
        """It may."""
        return True

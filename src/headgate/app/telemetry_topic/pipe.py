"""What the agent and the process that publishes its telemetry tell each other over pipes."""

from __future__ import annotations

import msgspec

from headgate.access.client_config import ClientConfig


class Begin(msgspec.Struct, frozen=True):
    """The first frame to the process."""

    config: ClientConfig
    topic: str


class Outcome(msgspec.Struct, frozen=True):
    """The answer to the first frame, and to the two of each message: properties and data."""

    problem: str
    """Why it is not done; empty if it is."""
    said: list[str]
    """Warnings about files of credentials."""

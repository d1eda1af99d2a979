"""What a topic asks of the messages that it takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SendRules:
    """The rules for the SENDs of one topic; a topic without any has none of these objects."""

    encrypted: bool = False
    """Whether messages must be encrypted by their producers."""
    message_bytes_max: int = 0
    """Largest entry in bytes, metadata and payload, but for chunks; 0 is no limit."""

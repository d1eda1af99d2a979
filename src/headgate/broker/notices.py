"""What one client asks for and does not get, told to whoever reads the log: each thing once."""

from __future__ import annotations

import logging
from typing import Final

from headgate.wire.codes import CommandType, ServerError

NOTICES_MAX: Final = 8
"""Lines for one connection: a client that goes on asking must not fill the log."""

logger = logging.getLogger("headgate.connection")


class Notices:
    """The lines about one connection."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def refused(self, address: str, kind: int, code: ServerError, text: str) -> None:
        """Tell that a command of type ``kind`` was answered with ``code`` and ``text``, if it is
        one that can never succeed: whoever asked for it expects another broker."""
        if code in (ServerError.NOT_ALLOWED_ERROR, ServerError.INCOMPATIBLE_SCHEMA):
            self._tell(logging.INFO, f"{address}: {CommandType(kind).name} refused: {text}")

    def delay_ignored(self, address: str, producer_name: str, topic_name: object) -> None:
        """Tell that a producer's messages ask for a delay that they do not get."""
        self._tell(
            logging.WARNING,
            f"{address}: producer {producer_name[:80]!r} of {topic_name} asks for delayed "
            "delivery, which is not supported: its messages are delivered at once",
        )

    def _tell(self, level: int, text: str) -> None:
        if text not in self._told and len(self._told) < NOTICES_MAX:
            self._told.add(text)
            logger.log(level, "%s", text)

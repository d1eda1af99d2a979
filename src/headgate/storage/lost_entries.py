"""One line in the log for all lost entries of a topic that subscriptions skip."""

from __future__ import annotations

import logging

from headgate.engine.topic import Topic

logger = logging.getLogger("headgate.reads")


class LostEntriesLogger:
    """Logs that accepted losses are skipped: once for a topic, and again if more is lost later."""

    def __init__(self) -> None:
        self._logged: set[int] = set()
        """The numbers of the topics that were logged."""

    def damage_found(self, number: int) -> None:
        """An entry of a topic was found damaged: its loss may be accepted later."""
        self._logged.discard(number)

    def skipped(self, topic: Topic) -> None:
        """A subscription of the topic skips lost entries."""
        log = topic.log
        if log.number in self._logged:
            return
        self._logged.add(log.number)
        ranges = log.lost_ranges()
        logger.warning(
            "%s: %d lost entries between %s and %s are skipped, because their loss was accepted",
            topic.name,
            sum(stop - first for first, stop in ranges),
            log.position(ranges[0][0]),
            log.position(ranges[-1][1] - 1),
        )

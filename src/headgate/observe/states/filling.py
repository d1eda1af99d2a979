"""Whether the disk fills up, in explain's answers."""

from __future__ import annotations

from headgate.flow.sentences.disk_forecast import TOPICS_SHOWN_MAX, FillingFacts
from headgate.flow.topic_growth import TopicGrowths
from headgate.storage.disk_monitor import DiskMonitor


def filling_facts(
    disk: DiskMonitor, growths: TopicGrowths | None, count: int = TOPICS_SHOWN_MAX
) -> FillingFacts:
    """The forecast of the disk now, with the ``count`` topics that grow most; with none of them
    without ``growths``."""
    return FillingFacts(
        forecast=disk.forecast(),
        full_in_s=disk.full_in_s(),
        topics=() if growths is None else growths.fastest(count),
        is_held_for_backup=disk.growth.is_held_for_backup,
        full_s=disk.facts().full_s,
    )

"""Files of a folder of scrapes (``timed_folders``), and the tasks that read the new ones."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Final

from headgate.base.units import NS_PER_MS
from headgate.pipeline.tables.intervals import INTERVALS_LOOK_BACK_NS
from headgate.pipeline.timed_folders import TimedFolder, time_of, timed_folders

SUFFIX: Final = ".prom"

GAP_MS_MAX: Final = INTERVALS_LOOK_BACK_NS // NS_PER_MS
"""Longest time between two scrapes that give rows, which is the look-back of minutes."""

BrokerFolder = TimedFolder
"""The scrapes of one broker."""


@dataclass(frozen=True, slots=True)
class ScrapeTask:
    """Consecutive scrapes that one Spark task reads; sent as JSON."""

    label: str
    path: str
    times_ms: Sequence[int]
    earlier_ms: Sequence[int]
    """Scrapes within the gap bound before the first; the last readable one is its predecessor."""
    refused: Sequence[tuple[str, str]] = ()
    """Files that are not read, with the reasons."""
    quarantined: Sequence[str] = ()
    """Names of unreadable lines that a killed run has already quarantined."""

    def to_json(self) -> str:
        """The task as a value of a DataFrame's column."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ScrapeTask:
        """The task from :meth:`to_json`."""
        return cls(**json.loads(text))


def file_name(time_ms: int) -> str:
    """The file name of the scrape of an instant."""
    return f"{time_ms}{SUFFIX}"


def bad_lines_name(time_ms: int) -> str:
    """The name under which unreadable lines of that scrape are quarantined."""
    return f"{file_name(time_ms)}#lines"


def broker_folders(folder: str) -> list[BrokerFolder]:
    """The brokers whose scrapes a folder holds.

    Raises:
        InputError: it is no folder, cannot be read or holds no scrape, or two brokers in it have
            the same name.
    """
    return timed_folders(folder, SUFFIX, "scrapes", "broker")


def scrape_tasks(
    broker: BrokerFolder, read_upto_ms: int | None, known: Collection[str], count: int
) -> list[ScrapeTask]:
    """The new scrapes of a broker in at most ``count`` tasks; none if there is nothing new.

    Scrapes after ``read_upto_ms`` are new. ``known`` has the names that were read or refused. An
    unknown scrape between the first known one and ``read_upto_ms`` came late and is refused. If all
    new files are refused, there is one task without ``times_ms``.
    """
    upto_ms = -1 if read_upto_ms is None else read_upto_ms
    new = [ms for ms in broker.times_ms if ms > upto_ms and file_name(ms) not in known]
    refused = [
        (name, f"the name is not <milliseconds since 1970>{SUFFIX}") for name in broker.wrong_names
    ]
    known_ms = (time_of(name, SUFFIX) for name in known)
    first_ms = min((ms for ms in known_ms if ms is not None), default=0)
    late = (file_name(ms) for ms in broker.times_ms if first_ms <= ms <= upto_ms)
    refused += [(name, "it arrived after a later scrape had been read") for name in late]
    unknown = [each for each in refused if each[0] not in known]
    if not new:
        latest = broker.times_ms[-1:]
        return [ScrapeTask(broker.label, broker.path, (), latest, unknown)] if unknown else []
    size = -(-len(new) // max(1, count))
    parts = [new[first : first + size] for first in range(0, len(new), size)]
    return [
        ScrapeTask(
            broker.label,
            broker.path,
            part,
            [ms for ms in broker.times_ms if part[0] - GAP_MS_MAX <= ms < part[0]],
            () if place else unknown,
            [name for ms in part if (name := bad_lines_name(ms)) in known],
        )
        for place, part in enumerate(parts)
    ]


def scrape_gaps(broker: BrokerFolder) -> Iterator[tuple[int, int]]:
    """Neighbouring scrapes that are too far apart."""
    return (
        (before, after)
        for before, after in pairwise(broker.times_ms)
        if after - before > GAP_MS_MAX
    )

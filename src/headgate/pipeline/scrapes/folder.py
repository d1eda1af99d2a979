"""Files of a folder of scrapes, and the tasks that read the new ones.

``FOLDER/<epoch ms>.prom`` is a scrape of the only broker, which has the folder's name.
``FOLDER/BROKER/<epoch ms>.prom`` is a scrape of one of several. Names that begin with a dot are
ignored: a writer renames a file when it is complete.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from headgate.base.errors import InputError
from headgate.base.units import NS_PER_MS
from headgate.pipeline.tables.intervals import INTERVALS_LOOK_BACK_NS

SUFFIX: Final = ".prom"

GAP_MS_MAX: Final = INTERVALS_LOOK_BACK_NS // NS_PER_MS
"""Longest time between two scrapes that give rows, which is the look-back of minutes."""

_NAME: Final = re.compile(r"(?P<ms>[1-3]\d{12})" + re.escape(SUFFIX))
"""A name with a time from 2001 to 2096."""


@dataclass(frozen=True, slots=True)
class BrokerFolder:
    """The scrapes of one broker."""

    label: str
    path: str
    times_ms: tuple[int, ...]
    """Sorted times of the files with a valid name."""
    wrong_names: tuple[str, ...]
    """Names of the other files."""


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
    root = Path(folder)
    try:
        inside = sorted(entry for entry in root.iterdir() if not entry.name.startswith("."))
        own = _broker_folder(root.resolve().name, root, [e.name for e in inside if e.is_file()])
        found = [
            _broker_folder(entry.name, entry, [e.name for e in entry.iterdir() if e.is_file()])
            for entry in inside
            if entry.is_dir()
        ]
    except OSError as error:
        raise InputError(f"folder {folder} of scrapes cannot be read: {error.strerror}") from error
    brokers = [broker for broker in (own, *found) if broker.times_ms]
    if not brokers:
        raise InputError(
            f"folder {folder} holds no scrapes: store them as <milliseconds since 1970>{SUFFIX}, "
            "in this folder or in one folder for each broker"
        )
    labels = [broker.label for broker in brokers]
    if len(set(labels)) < len(labels):
        raise InputError(f"folder {folder} and one in it are both called {own.label!r}: rename one")
    return brokers


def _broker_folder(label: str, path: Path, names: Sequence[str]) -> BrokerFolder:
    visible = sorted(name for name in names if not name.startswith("."))
    matches = {name: _NAME.fullmatch(name) for name in visible}
    times = tuple(int(match["ms"]) for match in matches.values() if match is not None)
    wrong = tuple(name for name, match in matches.items() if match is None)
    return BrokerFolder(label, os.fspath(path.resolve()), times, wrong)


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
    first_ms = min((int(match["ms"]) for match in map(_NAME.fullmatch, known) if match), default=0)
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

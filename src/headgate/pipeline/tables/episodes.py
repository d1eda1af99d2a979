"""The table ``episodes``: each backlog from its begin to its end, one row an hour."""

from __future__ import annotations

from typing import Final

from headgate.base.units import NS_PER_S
from headgate.pipeline.tables.attribution import ATTRIBUTION, ATTRIBUTION_KEY, BLAMES
from headgate.pipeline.tables.columns import (
    DOUBLE,
    LONG,
    PARTITION,
    STRING,
    ColumnType,
    Table,
    TableColumn,
)

QUIET_MINUTES_MAX: Final = 2
"""So many minutes without a backlog, or without telemetry, do not end an episode.

A consumer that polls, or works in batches, catches up for a moment in each round; without a bridge
one slow consumer would be many episodes. One minute is no pause at all: a round that straddles it
leaves two. Longer bridges would glue what an operator sees as two incidents.
"""

EPISODE_MINUTES_MIN: Final = 3
"""So many minutes with a backlog are an episode in any case, one after the other or bridged.

Of fewer one has to be *substantial*: in it a backlog quota evicted something, or the oldest message
waited for ``SUBSTANTIAL_NS``, or at its end as much waited as is acknowledged, at the minute's
rate, in that time. A healthy subscription that falls two seconds behind in its busiest minute has
no incident that anybody has to know of.
"""

SUBSTANTIAL_NS: Final = 10 * NS_PER_S

EDGE_MINUTES: Final = (EPISODE_MINUTES_MIN - 1) * (QUIET_MINUTES_MAX + 1)
"""So far into the hours beside it an hour's episodes depend on minutes: who goes on for longer has
enough of them to be one."""

BLAME_COLUMNS: Final = tuple(f"blame_{blame.lower()}_ns" for blame in BLAMES)

_TIMESTAMP, _BOOLEAN = ColumnType.TIMESTAMP, ColumnType.BOOLEAN

_KEY_COLUMNS: Final = tuple(c for c in ATTRIBUTION.columns if c.name in ATTRIBUTION_KEY)

_EDGES: Final = (
    TableColumn("continues_before", _BOOLEAN, "The episode was there in the hour before."),
    TableColumn("continues_after", _BOOLEAN, "The episode goes on in the hour after."),
    TableColumn(
        "is_open",
        _BOOLEAN,
        "It was still going on at the end of its cluster's newest telemetry; false where"
        " continues_after.",
    ),
    TableColumn(
        "ending",
        STRING,
        "continues (after the hour), open, skipped (somebody skipped, cleared or sought past all"
        " that waited), unseen (its telemetry ends while that of others goes on) or over.",
    ),
)

_FIGURES: Final = (
    TableColumn("minutes", LONG, "Minutes with a backlog: whose verdict is not NONE."),
    TableColumn("peak_backlog_messages", LONG, "Largest backlog at the end of a minute."),
    TableColumn("peak_minute", _TIMESTAMP, "Start of the first minute with that backlog."),
    TableColumn("growth_messages", LONG, "Backlog at the end less backlog at the start."),
    TableColumn("oldest_age_max_ns", LONG, "Largest age of the oldest deliverable message."),
    *(
        TableColumn(
            name,
            LONG,
            "Time without a backlog, in pauses and within minutes. [ns]"
            if blame == "NONE"
            else f"Time that is blamed on {blame}. [ns]",
        )
        for name, blame in zip(BLAME_COLUMNS, BLAMES, strict=True)
    ),
    TableColumn("cause", STRING, "Who is to blame for most of the time; null: nobody."),
    TableColumn(
        "second_cause",
        STRING,
        "Who is to blame for most of the rest, if that is a twentieth of all blame; or null.",
    ),
    TableColumn("completeness", DOUBLE, "How much of the time was sampled, 0 to 1."),
    TableColumn("evidence", STRING, "measured, or inferred if any of it is from counters alone."),
    TableColumn("sentence", STRING, "Since when, how high, whose fault, and whether it is over."),
)

EPISODES: Final = Table(
    "episodes",
    (
        *PARTITION,
        *_KEY_COLUMNS,
        TableColumn(
            "segment_start_ns", LONG, "Where it begins; the hour's start where continues_before."
        ),
        TableColumn("segment_end_ns", LONG, "Where it ends; the hour's end where continues_after."),
        *_EDGES,
        *_FIGURES,
    ),
    ("date", "hour"),
    ("segment_start_ns",),
)
"""Columns of a segment: the part of an episode in one hour."""

EPISODE_COLUMNS: Final = (
    *_KEY_COLUMNS,
    TableColumn("episode_start_ns", LONG, "Where it begins."),
    TableColumn("episode_end_ns", LONG, "Where it ends; null while it is open."),
    *_EDGES,
    *_FIGURES,
)
"""Columns of the view ``backlog_episodes``: whole episodes.

``continues_before`` and ``continues_after`` say that a row in the hour before or after is not among
those that the view was given.
"""

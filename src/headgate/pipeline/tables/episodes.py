"""The table ``episodes``: each backlog from its begin to its end, one row an hour."""

from __future__ import annotations

from typing import Final

from headgate.base.units import NS_PER_S
from headgate.pipeline.tables.attribution import ATTRIBUTION, ATTRIBUTION_KEY, BLAMES
from headgate.pipeline.tables.bronze import EVIDENCE_VALUES
from headgate.pipeline.tables.columns import (
    DOUBLE,
    EPOCH_NS,
    LONG,
    NS,
    PARTITION,
    SHARE,
    STRING,
    ColumnType,
    Sum,
    Table,
    TableColumn,
    required,
)
from headgate.pipeline.tables.intervals import EVICTED_BY, EXPIRED_BY, INTERVALS

QUIET_MINUTES_MAX: Final = 2
"""Longest pause without a backlog, or without telemetry, that an episode bridges.

A consumer that polls, or works in batches, catches up for a moment in each round. Without bridges
one slow consumer would give many episodes. One minute is too short, because a round across a
minute's edge leaves a pause of two. Longer bridges would join what an operator sees as two
incidents.
"""

EPISODE_MINUTES_MIN: Final = 3
"""Fewest minutes with a backlog, consecutive or bridged, that always are an episode.

Fewer minutes are an episode only if one of them is *substantial*: a backlog quota evicted messages
in it, or a TTL or a request expired some, or the oldest message waited for ``SUBSTANTIAL_NS``, or
the backlog at its end needs that time at the minute's acknowledgement rate. A healthy subscription
that falls two seconds behind in its busiest minute is no incident.
"""

SUBSTANTIAL_NS: Final = 10 * NS_PER_S

EDGE_MINUTES: Final = (EPISODE_MINUTES_MIN - 1) * (QUIET_MINUTES_MAX + 1)
"""How many minutes of the hours beside it an hour's episodes depend on. A backlog that continues
for longer has enough minutes to be an episode."""

BLAME_COLUMNS: Final = tuple(f"blame_{blame.lower()}_ns" for blame in BLAMES)

STUCK_COLUMN: Final = "stuck_ns"

_TIMESTAMP, _BOOLEAN = ColumnType.TIMESTAMP, ColumnType.BOOLEAN

_KEY_COLUMNS: Final = tuple(c for c in ATTRIBUTION.columns if c.name in ATTRIBUTION_KEY)

_EDGES: Final = (
    TableColumn("continues_before", _BOOLEAN, "Whether the episode began in an earlier hour."),
    TableColumn("continues_after", _BOOLEAN, "Whether the episode continues in the next hour."),
    TableColumn(
        "is_open",
        _BOOLEAN,
        "Whether the episode lasted to the end of its cluster's newest telemetry; false if"
        " continues_after.",
    ),
    TableColumn(
        "ending",
        STRING,
        "continues (in the next hour), open, skipped (a client skipped, cleared or sought past the"
        " whole backlog), unseen (its telemetry ends before that of others) or over.",
        is_required=True,
        values=("continues", "open", "skipped", "unseen", "over"),
    ),
)

_FIGURES: Final = (
    TableColumn("minutes", LONG, "Minutes with a backlog, whose verdict is not NONE.", least=0),
    TableColumn(
        "peak_backlog_messages",
        LONG,
        "Largest backlog at the end of a minute.",
        "messages",
        least=0,
    ),
    TableColumn("peak_minute", _TIMESTAMP, "Start of the first minute with that backlog."),
    TableColumn(
        "growth_messages", LONG, "Backlog at the end less backlog at the start.", "messages"
    ),
    TableColumn(
        "oldest_age_max_ns", LONG, "Largest age of the oldest deliverable message.", NS, least=0
    ),
    *(
        TableColumn(
            name,
            LONG,
            "Time without a backlog, in pauses and within minutes."
            if blame == "NONE"
            else f"Time with {blame} to blame.",
            NS,
            is_required=True,
            least=0,
        )
        for name, blame in zip(BLAME_COLUMNS, BLAMES, strict=True)
    ),
    TableColumn(
        STUCK_COLUMN,
        LONG,
        "Time in which the broker's dispatcher was stuck, which blames the broker.",
        NS,
        least=0,
    ),
    TableColumn(
        "cause", STRING, "Cause of most of the time; null if there is none.", values=BLAMES
    ),
    TableColumn(
        "second_cause",
        STRING,
        "Cause of most of the rest, if it has at least a twentieth of all blame; or null.",
        values=BLAMES,
    ),
    TableColumn(
        "evicted",
        LONG,
        "Messages that backlog quotas evicted before they were acknowledged.",
        "messages",
        least=0,
    ),
    *(INTERVALS.column(name) for name in EVICTED_BY),
    TableColumn(
        "expired",
        LONG,
        "Messages that expired by their age before they were acknowledged.",
        "messages",
        least=0,
    ),
    *(INTERVALS.column(name) for name in EXPIRED_BY),
    TableColumn(
        "completeness", DOUBLE, "Share of the time that was sampled.", SHARE, least=0, most=1
    ),
    TableColumn(
        "evidence",
        STRING,
        "measured, or inferred if any of its minutes was inferred from counters.",
        values=EVIDENCE_VALUES,
    ),
    TableColumn(
        "sentence",
        STRING,
        "The episode in words: since when, how large, the cause, what was lost, and whether it is"
        " over.",
    ),
)

EPISODES: Final = Table(
    "episodes",
    (
        *PARTITION,
        *_KEY_COLUMNS,
        *required(
            TableColumn(
                "segment_start_ns", LONG, "Start; that of the hour if continues_before.", EPOCH_NS
            ),
            TableColumn(
                "segment_end_ns", LONG, "End; that of the hour if continues_after.", EPOCH_NS
            ),
        ),
        *_EDGES,
        *_FIGURES,
    ),
    ("date", "hour"),
    ("segment_start_ns",),
    meaning="One row for each backlog and hour: the part of the backlog in that hour.",
    key=(*ATTRIBUTION_KEY, "segment_start_ns"),
    follows_from=(ATTRIBUTION.name, INTERVALS.name),
    sums=(Sum("start_before_end", ("segment_start_ns",), "segment_end_ns", is_at_most=True),),
)
"""Columns of a segment: the part of an episode in one hour."""

SEGMENT_COLUMNS: Final = tuple(n for n in EPISODES.column_names() if n not in EPISODES.partition_by)
"""All of them but those of the partition, which repeat the time."""

EPISODE_COLUMNS: Final = (
    *_KEY_COLUMNS,
    TableColumn("episode_start_ns", LONG, "Start.", EPOCH_NS),
    TableColumn("episode_end_ns", LONG, "End; null while it is open.", EPOCH_NS),
    *_EDGES,
    *_FIGURES,
)
"""Columns of the view ``backlog_episodes``: whole episodes.

``continues_before`` and ``continues_after`` mean that the input of the view lacks the segment of
the hour before or after.
"""

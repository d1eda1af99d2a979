"""The page's sections: what was found, in sentences, charts and tables. Plain values out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.base.units import NS_PER_S
from headgate.flow.sentences.backlog import number, percent
from headgate.flow.sentences.quota import about_text, size_text, time_text
from headgate.pipeline.output.attribution import messages_text, subscriptions_text
from headgate.pipeline.report import figures
from headgate.pipeline.report.backlogs import Backlogs, Offender
from headgate.pipeline.report.colors import BLAME_COLORS, PARK_NAMES, QUOTA_COLOR, SLATE
from headgate.pipeline.report.grid import Grid
from headgate.pipeline.report.publishing import HeldTopic, Limiter
from headgate.pipeline.report.quality import Quality
from headgate.pipeline.report.quota_states import APPROACHED, REACHED
from headgate.pipeline.report.quotas import Breach, Eviction, QuotaTopic, breach_time_ns
from headgate.pipeline.tables.quotas import BROKER_METHOD, THEIL_SEN_METHOD
from headgate.pipeline.time_span import instant, minute_text

SCORE_NAMES: Final = ("topic", "quota")
"""The columns of a score that are no figures; they stand first."""

ROWS_SHOWN: Final = 20
"""Rows of a table on the page."""

_METHODS: Final = {
    THEIL_SEN_METHOD: "from the hour before",
    BROKER_METHOD: "by the broker, from its present rate",
}


@dataclass(frozen=True, slots=True)
class Block:
    """Something with a name, a sentence and a chart."""

    title: str
    text: str
    chart: str
    """Id of its chart."""
    alt: str
    """What the chart shows."""
    tag: str = ""
    """The verdict in a word."""
    color: str = ""
    facts: str = ""
    """Its figures in a line."""


@dataclass(frozen=True, slots=True)
class TableView:
    """Cells as text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    """Columns of numbers, by place."""

    @property
    def shown(self) -> TableView:
        """Without the columns in which every cell is empty."""
        kept = [i for i in range(len(self.columns)) if any(row[i] for row in self.rows)]
        return TableView(
            tuple(self.columns[i] for i in kept),
            tuple(tuple(row[i] for i in kept) for row in self.rows),
            frozenset(place for place, i in enumerate(kept) if i in self.numeric),
        )


@dataclass(slots=True)
class Section:
    """A part of the page."""

    anchor: str
    title: str
    lead: str
    """What there is, or that there is nothing."""
    blocks: list[Block] = field(default_factory=list)
    table: TableView | None = None
    note: str = ""
    """What the table's words mean."""


class Charts:
    """The page's charts by their ids."""

    def __init__(self) -> None:
        self.by_id: dict[str, Any] = {}

    def add(self, figure: Any) -> str:
        """Keep a figure; returns its id."""
        name = f"chart-{len(self.by_id) + 1}"
        self.by_id[name] = figure
        return name


def missing(anchor: str, title: str, table: str) -> Section:
    """A section whose table is not in the folder."""
    return Section(
        anchor, title,
        f"The folder has no table {table}; headgate pipeline run makes what this version knows.",
    )  # fmt: skip


def backlog_section(found: Backlogs, grid: Grid, charts: Charts) -> Section:
    """The worst backlogs, with their causes."""
    if not found.offenders:
        text = (
            f"No backlog that somebody is to blame for: {subscriptions_text(found.subscriptions)}"
        )
        return Section("backlogs", "Backlogs", f"{text} had telemetry in this range.")
    section = Section(
        "backlogs",
        "Backlogs",
        "The fastest growing and the largest. Above, messages not acknowledged; below, whom each "
        "minute is blamed on."
        + " Those that had no consumer throughout stand last."
        * _some_are_unused(found),
    )
    for place, offender in enumerate(found.offenders, start=1):
        section.blocks.append(
            Block(
                f"{place}. {name_text(offender)}",
                said_text(offender),
                charts.add(figures.backlog_figure(offender, grid)),
                f"Backlog of {name_text(offender)} over time, above the causes of its minutes",
                offender.verdict,
                BLAME_COLORS.get(offender.verdict, ""),
                f"{growth_text(offender)}; peak {offender.peak_messages:,}; "
                f"confidence {offender.confidence:.2f}, "
                f"completeness {100 * offender.completeness:.0f} %",
            )
        )
    return section


def _some_are_unused(found: Backlogs) -> bool:
    """Where there are also others."""
    return len({offender.is_unused for offender in found.offenders}) > 1


def name_text(offender: Offender) -> str:
    """Topic and subscription, without the scheme."""
    return subscription_text(offender.topic, offender.subscription)


def subscription_text(topic: str, subscription: str) -> str:
    """A subscription by its topic and name, without the scheme."""
    return f"{short(topic)} / {subscription}"


def short(topic: str) -> str:
    """A topic without its scheme."""
    return topic.removeprefix("persistent://")


def said_text(offender: Offender) -> str:
    """Its sentence without the verdict before it."""
    return _capital(offender.sentence.removeprefix(f"{offender.verdict}: "))


def _capital(said: str) -> str:
    return said[:1].upper() + said[1:]


def _of_minute(minute_ns: int, said: str, which: str = "") -> str:
    """A sentence about one minute, which says which one that is."""
    if not said:
        return ""
    when = f"{which}, {minute_text(minute_ns)}" if which else minute_text(minute_ns)
    return f"{when}: {said}"


def growth_text(offender: Offender) -> str:
    """``grew by 1,200 to 1,996 messages (30/s)``."""
    growth = offender.growth_messages
    if growth == 0:
        return f"as large as before: {offender.backlog_messages:,} messages"
    verb = "grew" if growth > 0 else "shrank"
    per_s = abs(offender.growth_per_s)
    rate = f"{per_s:,.0f}" if per_s >= 10 else f"{per_s:.2g}"
    return f"{verb} by {abs(growth):,} to {offender.backlog_messages:,} messages ({rate}/s)"


def quota_section(found: Sequence[QuotaTopic], grid: Grid, charts: Charts) -> Section:
    """How full quotas are, and when they will be."""
    if not found:
        return Section(
            "quotas", "Backlog quotas", "No topic with telemetry in this range has a backlog quota."
        )
    section = Section(
        "quotas",
        "Backlog quotas",
        "Those that are reached, those that will be soonest, then the fullest. The band spans the "
        "earliest and latest times at which the forecast expects the limit.",
    )
    for topic in found:
        facts = "" if topic.peak_use is None else f"at most {100 * topic.peak_use:,.0f} % used; "
        facts += f"policy {topic.policy or 'unknown'}"
        section.blocks.append(
            Block(
                short(topic.topic),
                _of_minute(topic.sentence_ns, topic.sentence, "In its last minute"),
                charts.add(figures.quota_figure(topic, grid)),
                f"Use of the backlog quotas of {short(topic.topic)} over time",
                topic.state,
                QUOTA_COLOR if topic.state == REACHED else SLATE,
                "; ".join((facts, *quota_acts(topic))),
            )
        )
    listed = [topic for topic in found if topic.state][:ROWS_SHOWN]
    if listed:
        section.table = TableView(
            (
                "topic", "quota", "stands", "held producers", "messages evicted",
                "likely at (UTC)", "in", "earliest", "latest", "forecast",
            ),
            tuple(_quota_row(topic) for topic in listed),
            frozenset({3, 4, 5, 6, 7, 8}),
        )  # fmt: skip
        section.note = (
            "Reached: in one of the newest ten minutes it held or refused producers, evicted, or "
            "was full. "
        )
        if any(topic.state == APPROACHED for topic in listed):
            section.note += (
                "Times run from the end of what is known of a topic, as those of its sentence do; "
                "one breach in ten comes before the earliest, and one in ten after the latest."
            )
    return section


def quota_acts(topic: QuotaTopic) -> list[str]:
    """What quotas did over the range: ``held producers for 37 min (62 % of the range)``."""
    said = []
    if topic.held_s > 0:
        share = percent(topic.held_share)
        said.append(f"held producers for {time_text(topic.held_s)} ({share} of the range)")
    if topic.evicted_messages:
        said.append(f"evicted {messages_text(topic.evicted_messages)}")
    return said


def _quota_row(topic: QuotaTopic) -> tuple[str, ...]:
    breach = topic.breach if topic.state == APPROACHED else None
    return (
        short(topic.topic),
        topic.reached_quota if breach is None else breach.quota,
        topic.state,
        f"{time_text(topic.held_s)} ({percent(topic.held_share)})" if topic.held_s > 0 else "",
        f"{topic.evicted_messages:,}" if topic.evicted_messages else "",
        *(("",) * 5 if breach is None else _breach_cells(breach)),
    )


def _breach_cells(breach: Breach) -> tuple[str, ...]:
    earliest = "not known" if breach.earliest_s is None else about_text(breach.earliest_s)
    latest = "beyond a day" if breach.method == THEIL_SEN_METHOD else "not known"
    if breach.latest_s is not None:
        latest = about_text(breach.latest_s)
    return (
        instant(breach_time_ns(breach)).removesuffix(" UTC"),
        about_text(breach.likely_s),
        earliest,
        latest,
        _METHODS.get(breach.method, breach.method),
    )


def producer_section(found: Sequence[HeldTopic], grid: Grid, charts: Charts) -> Section:
    """Who was held before publishing."""
    if not found:
        return Section("producers", "Producers", "No producer was held in this range.")
    section = Section(
        "producers",
        "Producers",
        "Topics whose sends waited before they were stored, by how long the main cause held "
        "them, with the part of the range that this is; causes may overlap.",
        table=TableView(
            ("topic", "held", "longest by", "the worst minute"),
            tuple(
                (
                    short(t.topic),
                    _held_text(t),
                    main_cause(t),
                    _of_minute(t.sentence_ns, t.sentence),
                )
                for t in found[:ROWS_SHOWN]
            ),
            frozenset({1}),
        ),
    )
    for topic in found:
        parts = sorted(topic.seconds.items(), key=lambda item: -item[1])
        section.blocks.append(
            Block(
                short(topic.topic),
                ", ".join(f"{PARK_NAMES[c]} {time_text(s)}" for c, s in parts if s > 0),
                charts.add(figures.held_figure(topic, grid)),
                f"Part of the time in which producers of {short(topic.topic)} were held, by cause",
            )
        )
    return section


def _held_text(topic: HeldTopic) -> str:
    """``37 min (62 %)``: by the main cause, and which part of the range that is."""
    return f"{time_text(topic.longest_s)} ({percent(topic.held_share)})"


def main_cause(topic: HeldTopic) -> str:
    """What held its producers longest."""
    return PARK_NAMES[max(topic.seconds, key=lambda cause: topic.seconds[cause])]


def limiter_section(found: Sequence[Limiter], grid: Grid, charts: Charts) -> Section:
    """What limits let through."""
    if not found:
        return Section("limits", "Limits", "Nobody waited for a limit in this range.")
    section = Section(
        "limits", "Limits", "Limits that somebody waited for, by how long; the rest passed."
    )
    for limiter in found:
        subject = short(limiter.subject).replace("|", " / ")
        section.blocks.append(
            Block(
                f"{limiter.level.replace('_', ' ')} limit of {subject}, {limiter.dimension}",
                _of_minute(limiter.sentence_ns, limiter.sentence, "In its worst minute"),
                charts.add(figures.limiter_figure(limiter, grid)),
                f"Limit of {subject} with what was offered and granted, over time",
                facts=f"somebody waited for {percent(limiter.waiting_share)} of the counted time",
            )
        )
    return section


def eviction_section(found: Sequence[Eviction], grid: Grid, charts: Charts) -> Section:
    """What quotas took."""
    if not found:
        return Section("evictions", "Evictions", "No message was evicted in this range.")
    return Section(
        "evictions",
        "Evictions",
        "Messages that a backlog quota took from subscriptions that had not acknowledged them.",
        [
            Block(
                "Messages lost",
                "Of the topics above.",
                charts.add(figures.eviction_figure(found, grid)),
                "Messages evicted over time, by quota",
            )
        ],
        TableView(
            ("topic", "quota", "messages", "size", "acts", "from (UTC)", "to (UTC)", "lost most"),
            tuple(
                (
                    short(e.topic), e.quota, f"{e.messages:,}", size_text(e.bytes),
                    f"{e.acts:,}", instant(e.first_ns).removesuffix(" UTC"),
                    instant(e.last_ns).removesuffix(" UTC"),
                    ", ".join(f"{name} {count:,}" for name, count in e.losers),
                )
                for e in found[:ROWS_SHOWN]
            ),
            frozenset({2, 3, 4, 5, 6}),
        ),
    )  # fmt: skip


def score_section(scores: Sequence[Mapping[str, Any]] | None) -> Section:
    """How right the forecasts of the range were."""
    title = "Were the forecasts right?"
    if not scores:
        return Section(
            "forecasts", title,
            "No forecast of this range has come due yet, so none can be judged.",
        )  # fmt: skip
    columns = tuple(scores[0])
    return Section(
        "forecasts",
        title,
        "Each forecast against what came after it: the breach, and the level 15 and 30 minutes "
        "later. A band is meant to hold eight of ten. The loss is the pinball loss of the middle, "
        "half of what it was off.",
        table=TableView(
            columns,
            tuple(tuple(_cell(row[name]) for name in columns) for row in scores[:ROWS_SHOWN]),
            frozenset(range(len(SCORE_NAMES), len(columns))),
        ),
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return number(value) if abs(value) >= 1 else f"{value:.2g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def quality_section(found: Quality, grid: Grid, charts: Charts) -> Section:
    """How much is known."""
    counts = found.counts
    lead = (
        f"{_counted(found.rows, 'account', 'accounts')} of a minute; "
        f"{_counted(counts['gaps'], 'gap', 'gaps')}, "
        f"{_counted(counts['restarts'], 'restart', 'restarts')} of counting, "
        f"{_counted(counts['resets'], 'counter', 'counters')} that fell, "
        f"{_counted(counts['clock_steps'], 'step', 'steps')} of a clock. "
    )
    lead += (
        f"There is a quarantine of {messages_text(found.quarantined)}."
        if found.quarantined
        else "No message is in quarantine."
    )
    section = Section(
        "quality",
        "How much is known",
        lead,
        [
            Block(
                "Completeness",
                "Part of the time that telemetry covers.",
                charts.add(figures.quality_figure(found, grid)),
                "Part of the time that telemetry covers, and gaps, over time",
            )
        ],
    )
    if found.reasons:
        section.table = TableView(
            ("why messages are in quarantine", "messages"),
            tuple((reason, f"{count:,}") for reason, count in found.reasons),
            frozenset({1}),
        )
    return section


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def range_text(grid: Grid) -> str:
    """From when to when, and how long that is."""
    begin_ns, end_ns = grid.known_from_ns, grid.known_to_ns
    length = time_text((end_ns - begin_ns) / NS_PER_S)
    return f"{instant(begin_ns)} to {instant(end_ns)} ({length})"

"""The sections of the page, as plain values for the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.base.texts import about_text, number, percent, size_text, time_text
from headgate.base.units import NS_PER_S
from headgate.pipeline.output.attribution import messages_text, subscriptions_text
from headgate.pipeline.report import figures
from headgate.pipeline.report.backlogs import Backlogs, WorstBacklog
from headgate.pipeline.report.grid import Grid
from headgate.pipeline.report.legend import BLAME_COLORS, PARK_NAMES, QUOTA_COLOR, SLATE
from headgate.pipeline.report.publishing import Limiter, ParkedTopic
from headgate.pipeline.report.quality import Quality
from headgate.pipeline.report.quota_states import APPROACHED, REACHED
from headgate.pipeline.report.quotas import Breach, Eviction, QuotaTopic, breach_time_ns
from headgate.pipeline.tables.quotas import BROKER_METHOD, THEIL_SEN_METHOD
from headgate.pipeline.time_span import instant, minute_text

SCORE_NAMES: Final = ("topic", "quota")
"""The columns of a score that hold names; they come first."""

ROWS_SHOWN: Final = 20
"""Most rows of a table on the page."""

_METHODS: Final = {
    THEIL_SEN_METHOD: "trend of the last hour",
    BROKER_METHOD: "broker, at the current rate",
}


@dataclass(frozen=True, slots=True)
class Block:
    """One subject of a section: a title, a sentence and a chart."""

    title: str
    text: str
    chart: str
    """Id of its chart."""
    alt: str
    """The chart in words, for screen readers."""
    tag: str = ""
    """The verdict or state."""
    color: str = ""
    facts: str = ""
    """Its figures in one line."""


@dataclass(frozen=True, slots=True)
class TableView:
    """A table whose cells are text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    """Indexes of the columns that hold numbers."""

    @property
    def shown(self) -> TableView:
        """The table without its empty columns."""
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
    """What the section shows, or that there is nothing to show."""
    blocks: list[Block] = field(default_factory=list)
    table: TableView | None = None
    note: str = ""
    """The meaning of terms in the table."""


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
    """The section for a table that the folder does not have."""
    return Section(
        anchor, title,
        f"This folder has no table {table} yet. The next headgate pipeline run creates it.",
    )  # fmt: skip


def backlog_section(found: Backlogs, grid: Grid, charts: Charts) -> Section:
    """The worst backlogs, with their causes."""
    if not found.worst:
        text = (
            f"No backlog with a cause. {capitalized(subscriptions_text(found.subscriptions))} had "
            "telemetry in this range."
        )
        return Section("backlogs", "Backlogs", text)
    section = Section(
        "backlogs",
        "Backlogs",
        "The fastest growing and the largest backlogs. The upper chart shows unacknowledged "
        "messages, the lower chart the cause of each minute."
        + " Subscriptions without any consumer come last."
        * _some_are_unused(found),
    )
    for place, backlog in enumerate(found.worst, start=1):
        section.blocks.append(
            Block(
                f"{place}. {name_text(backlog)}",
                sentence_text(backlog),
                charts.add(figures.backlog_figure(backlog, grid)),
                f"Backlog of {name_text(backlog)} over time, above the causes of its minutes",
                backlog.verdict,
                BLAME_COLORS.get(backlog.verdict, ""),
                f"{growth_text(backlog)}; peak {backlog.peak_messages:,}; "
                f"confidence {backlog.confidence:.2f}, "
                f"completeness {100 * backlog.completeness:.0f} %",
            )
        )
    return section


def _some_are_unused(found: Backlogs) -> bool:
    """Whether the list has both unused and other subscriptions."""
    return len({backlog.is_unused for backlog in found.worst}) > 1


def name_text(backlog: WorstBacklog) -> str:
    """The backlog's topic and subscription, without the scheme."""
    return subscription_text(backlog.topic, backlog.subscription)


def subscription_text(topic: str, subscription: str) -> str:
    """A topic and subscription, without the scheme."""
    return f"{short(topic)} / {subscription}"


def short(topic: str) -> str:
    """A topic without its scheme."""
    return topic.removeprefix("persistent://")


def sentence_text(backlog: WorstBacklog) -> str:
    """The backlog's sentence without the verdict in front."""
    return capitalized(backlog.sentence.removeprefix(f"{backlog.verdict}: "))


def capitalized(text: str) -> str:
    """``text`` with a capital first letter."""
    return text[:1].upper() + text[1:]


def _with_minute(minute_ns: int, sentence: str, which: str = "") -> str:
    """A sentence about one minute, with that minute in front."""
    if not sentence:
        return ""
    when = f"{which}, {minute_text(minute_ns)}" if which else minute_text(minute_ns)
    return f"{when}: {sentence}"


def growth_text(backlog: WorstBacklog) -> str:
    """``grew by 1,200 to 1,996 messages (30/s)``."""
    growth = backlog.growth_messages
    if growth == 0:
        return f"unchanged at {backlog.backlog_messages:,} messages"
    verb = "grew" if growth > 0 else "shrank"
    per_s = abs(backlog.growth_per_s)
    rate = f"{per_s:,.0f}" if per_s >= 10 else f"{per_s:.2g}"
    return f"{verb} by {abs(growth):,} to {backlog.backlog_messages:,} messages ({rate}/s)"


def quota_section(found: Sequence[QuotaTopic], grid: Grid, charts: Charts) -> Section:
    """The backlog quotas, with their forecasts."""
    if not found:
        return Section(
            "quotas", "Backlog quotas", "No topic with telemetry in this range has a backlog quota."
        )
    section = Section(
        "quotas",
        "Backlog quotas",
        "Quotas that are reached come first, then those with the soonest breach, then the fullest. "
        "The band spans the earliest to the latest time at which the forecast expects the breach.",
    )
    for topic in found:
        facts = "" if topic.peak_use is None else f"peak use {100 * topic.peak_use:,.0f} %; "
        facts += f"policy {topic.policy or 'unknown'}"
        section.blocks.append(
            Block(
                short(topic.topic),
                _with_minute(topic.sentence_ns, topic.sentence, "In its last minute"),
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
                "topic", "quota", "state", "producers held", "messages evicted",
                "likely at (UTC)", "likely in", "earliest", "latest", "forecast",
            ),
            tuple(_quota_row(topic) for topic in listed),
            frozenset({3, 4, 5, 6, 7, 8}),
        )  # fmt: skip
        section.note = (
            "Reached: the quota held or refused producers, evicted, or was full in one of the "
            "newest ten minutes. "
        )
        if any(topic.state == APPROACHED for topic in listed):
            section.note += (
                "Times count from the newest telemetry of the topic. One breach in ten comes "
                "before the earliest time, and one in ten after the latest."
            )
    return section


def quota_acts(topic: QuotaTopic) -> list[str]:
    """Effects of the quotas over the range: ``held producers for 37 min (62 % of the range)``."""
    parts = []
    if topic.held_s > 0:
        share = percent(topic.held_share)
        parts.append(f"held producers for {time_text(topic.held_s)} ({share} of the range)")
    if topic.evicted_messages:
        parts.append(f"evicted {messages_text(topic.evicted_messages)}")
    return parts


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
    earliest = "unknown" if breach.earliest_s is None else about_text(breach.earliest_s)
    latest = "more than a day" if breach.method == THEIL_SEN_METHOD else "unknown"
    if breach.latest_s is not None:
        latest = about_text(breach.latest_s)
    return (
        instant(breach_time_ns(breach)).removesuffix(" UTC"),
        about_text(breach.likely_s),
        earliest,
        latest,
        _METHODS.get(breach.method, breach.method),
    )


def producer_section(found: Sequence[ParkedTopic], grid: Grid, charts: Charts) -> Section:
    """The topics whose producers were held."""
    if not found:
        return Section("producers", "Producers", "No producer was held in this range.")
    section = Section(
        "producers",
        "Producers",
        "Topics whose messages waited before the broker stored them. The time and share are those "
        "of the main cause; causes may overlap.",
        table=TableView(
            ("topic", "held", "main cause", "worst minute"),
            tuple(
                (
                    short(t.topic),
                    _parked_text(t),
                    main_cause(t),
                    _with_minute(t.sentence_ns, t.sentence),
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
                charts.add(figures.parked_figure(topic, grid)),
                f"Share of the time in which producers of {short(topic.topic)} were held, by cause",
            )
        )
    return section


def _parked_text(topic: ParkedTopic) -> str:
    """``37 min (62 %)``: the time of the main cause, with its share of the range."""
    return f"{time_text(topic.longest_s)} ({percent(topic.held_share)})"


def main_cause(topic: ParkedTopic) -> str:
    """The cause that held its producers longest."""
    return PARK_NAMES[max(topic.seconds, key=lambda cause: topic.seconds[cause])]


def limiter_section(found: Sequence[Limiter], grid: Grid, charts: Charts) -> Section:
    """The limits and their traffic."""
    if not found:
        return Section(
            "limits", "Limits", "No subscription or producer waited for a limit in this range."
        )
    section = Section(
        "limits",
        "Limits",
        "Limits that delayed subscriptions or producers, ordered by waiting time.",
    )
    for limiter in found:
        subject = short(limiter.subject).replace("|", " / ")
        section.blocks.append(
            Block(
                f"{limiter.level.replace('_', ' ')} limit of {subject}, {limiter.dimension}",
                _with_minute(limiter.sentence_ns, limiter.sentence, "In its worst minute"),
                charts.add(figures.limiter_figure(limiter, grid)),
                f"Limit of {subject} with the offered and granted rates over time",
                facts=(
                    f"{percent(limiter.waiting_share)} of the time with a waiting subscription or "
                    "producer"
                ),
            )
        )
    return section


def eviction_section(found: Sequence[Eviction], grid: Grid, charts: Charts) -> Section:
    """The messages that quotas evicted."""
    if not found:
        return Section("evictions", "Evictions", "No message was evicted in this range.")
    return Section(
        "evictions",
        "Evictions",
        "Messages that a backlog quota evicted before their subscriptions acknowledged them.",
        [
            Block(
                "Messages evicted",
                "Sum over the topics above.",
                charts.add(figures.eviction_figure(found, grid)),
                "Messages evicted over time, by quota",
            )
        ],
        TableView(
            (
                "topic", "quota", "messages", "size", "evictions", "first (UTC)", "last (UTC)",
                "most affected subscriptions",
            ),
            tuple(
                (
                    short(e.topic), e.quota, f"{e.messages:,}", size_text(e.bytes),
                    f"{e.acts:,}", instant(e.first_ns).removesuffix(" UTC"),
                    instant(e.last_ns).removesuffix(" UTC"),
                    ", ".join(f"{name} {count:,}" for name, count in e.affected),
                )
                for e in found[:ROWS_SHOWN]
            ),
            frozenset({2, 3, 4, 5, 6}),
        ),
    )  # fmt: skip


def score_section(scores: Sequence[Mapping[str, Any]] | None) -> Section:
    """The accuracy of the forecasts of the range."""
    title = "Forecast accuracy"
    if not scores:
        return Section(
            "forecasts", title,
            "No forecast of this range is due yet, so there is nothing to compare.",
        )  # fmt: skip
    columns = tuple(scores[0])
    return Section(
        "forecasts",
        title,
        "Each forecast is compared with what followed: the breach, and the level 15 and 30 minutes "
        "later. A band should contain eight of ten. The pinball loss of the likely value is half "
        "of its error.",
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
    """How much of the range the telemetry covers."""
    counts = found.counts
    lead = (
        f"{_counted(found.rows, 'account', 'accounts')} of one minute; "
        f"{_counted(counts['gaps'], 'gap', 'gaps')}, "
        f"{_counted(counts['restarts'], 'restart', 'restarts')}, "
        f"{_counted(counts['resets'], 'counter reset', 'counter resets')}, "
        f"{_counted(counts['clock_steps'], 'clock step', 'clock steps')}. "
    )
    lead += (
        f"In quarantine: {messages_text(found.quarantined)}."
        if found.quarantined
        else "No message is in quarantine."
    )
    section = Section(
        "quality",
        "Telemetry coverage",
        lead,
        [
            Block(
                "Completeness",
                "Share of the time that telemetry covers.",
                charts.add(figures.quality_figure(found, grid)),
                "Share of the time that telemetry covers, with gaps, over time",
            )
        ],
    )
    if found.reasons:
        section.table = TableView(
            ("reason for quarantine", "messages"),
            tuple((reason, f"{count:,}") for reason, count in found.reasons),
            frozenset({1}),
        )
    return section


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def range_text(grid: Grid) -> str:
    """Begin, end and length of the known range."""
    begin_ns, end_ns = grid.known_from_ns, grid.known_to_ns
    length = time_text((end_ns - begin_ns) / NS_PER_S)
    return f"{instant(begin_ns)} to {instant(end_ns)} ({length})"

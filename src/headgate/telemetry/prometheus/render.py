"""Renders ``GET /metrics`` in slices, so that the page never holds the loop for long.

All samples of a name stand together, so the topics are walked once and a page is built name by
name. After each slice its lines are joined to the text of their names, whole blocks of that are
compressed, and other work has its turn.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from headgate.base.names import PARTITION_SUFFIX, TopicName
from headgate.base.sliced import Sliced, at_once
from headgate.base.texts import label_value
from headgate.base.units import NS_PER_S, safe_sum
from headgate.base.work_units import SLICE_UNITS
from headgate.broker.damage import damage_counts
from headgate.broker.slices import AdminTurns, in_slices
from headgate.flow.account.account import LABELS
from headgate.flow.limits.precedence import EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension, Level
from headgate.flow.quota.backlog_quota import QuotaType
from headgate.policy.current_limits import PUBLISH_BROKER, PUBLISH_TOPIC
from headgate.telemetry.adaptive_figures import broker_figures, topic_figures
from headgate.telemetry.prometheus.compressed import Compressed
from headgate.telemetry.prometheus.left_out_evictions import Acts, LeftOutEvictions
from headgate.telemetry.prometheus.namespace_sums import NamespaceSums
from headgate.telemetry.prometheus.page import Page, number
from headgate.telemetry.prometheus.parked_lines import ParkedLines
from headgate.telemetry.prometheus.quota_lines import QuotaLines
from headgate.telemetry.prometheus.schema_lines import SchemaLines
from headgate.telemetry.prometheus.series.adaptive import ADAPTIVE_SERIES, ADAPTIVE_TOPIC_SERIES
from headgate.telemetry.prometheus.series.authentication import AUTHENTICATION_SERIES
from headgate.telemetry.prometheus.series.broker import (
    BROKER_SERIES,
    DAMAGE_SERIES,
    TURN_SERIES,
)
from headgate.telemetry.prometheus.series.catalogue import SERIES
from headgate.telemetry.prometheus.series.client_memory import (
    CLIENT_MEMORY_BYTES_SERIES,
    CLIENT_MEMORY_SERIES,
)
from headgate.telemetry.prometheus.series.definition import BROKER_LABELS, Series
from headgate.telemetry.prometheus.series.limits import (
    HELD_BACK_SERIES,
    LIMIT_SERIES,
    THROTTLED_SERIES,
)
from headgate.telemetry.prometheus.series.namespaces import NAMESPACE_SERIES
from headgate.telemetry.prometheus.series.subscriptions import (
    BACKLOG_AGE_SERIES,
    STATE_SERIES,
    SUBSCRIPTION_SERIES,
)
from headgate.telemetry.prometheus.series.topics import (
    LEFT_OUT_SERIES,
    TOPIC_DUPLICATES_SERIES,
    TOPIC_SERIES,
)
from headgate.telemetry.prometheus.series.writes import WRITE_SERIES
from headgate.telemetry.prometheus.shown_topics import Shown, TopicChoice
from headgate.telemetry.prometheus.storage_lines import StorageLines
from headgate.telemetry.prometheus.tls_lines import TlsLines
from headgate.telemetry.prometheus.values import (
    Number,
    Totals,
    backlog_age_s,
    broker_values,
    subscription_values,
    topic_values,
    write_values,
)
from headgate.telemetry.property_labels import PropertyLabels
from headgate.telemetry.records.subjects import cells_of

if TYPE_CHECKING:
    from headgate.broker.service import Broker
    from headgate.engine.subscription import Subscription
    from headgate.engine.topic import Topic

T = TypeVar("T")

SLICE_SUBJECTS: Final = 32
"""Topics and subscriptions rendered before other work has its turn: about a millisecond."""

SLICE_BLOCKS: Final = 4
"""Blocks compressed before other work has its turn."""

_STATE_LABELS: Final = tuple(
    f',state="{cell.state.value}",dimension="{cell.dimension}",consumer="{cell.consumer}"}} '
    for cell in LABELS
)
_REASONS: Final = tuple(f',reason="{level.name.lower()}"}} ' for level in Level)
_FLAGS: Final = ("false", "true")
_DIMENSIONS: Final = tuple(dimension.name.lower() for dimension in Dimension)


async def render(broker: Broker, choice: TopicChoice | None = None) -> Compressed:
    """The page of ``GET /metrics``. A million samples are hundreds of megabytes of text, so it is
    compressed while it is made. ``choice`` knows the topics of the page before."""
    shown, choice = None, choice or TopicChoice()
    if broker.settings.exposeTopicLevelMetricsInPrometheus:
        shown = await choice.choose(broker)
    renderer = _Renderer(broker, shown, choice.evictions)
    await renderer.walk()
    return await renderer.page()


class _Renderer:
    """Walks the topics of one broker once."""

    def __init__(self, broker: Broker, shown: Shown | None, evictions: LeftOutEvictions) -> None:
        """``shown`` has what has series of its own; None: no topic has. ``evictions`` counts those
        of the others."""
        self._broker = broker
        self._turns = AdminTurns(broker)
        self._shown = shown
        self._left_out = [0, 0]
        """Topics and subscriptions without series of their own that would have them without the
        bound."""
        self._evictions = evictions
        self._shown_evictions: defaultdict[str, dict[str, Acts]] = defaultdict(dict)
        """Evictions of topics with series of their own, by namespace and name."""
        self._page = Page()
        self._totals = Totals()
        self._cluster = f'{{cluster="{label_value(broker.settings.clusterName)}"'
        self._splits_partitions = broker.settings.splitTopicAndPartitionLabelInPrometheus
        self._property_labels = PropertyLabels(broker.settings, broker.catalog)
        lines_of = self._page.lines_of
        self._topic_lines = [(s.name, lines_of(s)) for s in (*TOPIC_SERIES, *WRITE_SERIES)]
        self._subscription_lines = [(s.name, lines_of(s)) for s in SUBSCRIPTION_SERIES]
        self._throttled_lines = [(s.name, lines_of(s)) for s in THROTTLED_SERIES]
        self._held_back_lines = [(s.name, lines_of(s)) for s in HELD_BACK_SERIES]
        self._age_lines = lines_of(BACKLOG_AGE_SERIES)
        self._with_ages = broker.settings.exposeSubscriptionBacklogAgeInPrometheus
        self._state_lines = lines_of(STATE_SERIES)
        self._limit_lines = lines_of(LIMIT_SERIES)
        self._quotas = QuotaLines(broker.policies.shown_quotas, lines_of)
        self._parked = ParkedLines(lines_of)
        self._sums = NamespaceSums()

    async def walk(self) -> None:
        """Render every topic that is live when its turn comes."""
        self._broker.begin_turn()
        self._limit(self._cluster, "broker", self._broker.current_dispatch_limits.of_broker())
        self._limit(self._cluster, PUBLISH_BROKER, self._broker.current_publish_limits.of_broker())
        done = 0
        for topic in self._broker.engine.live_topics():
            values = await self._in_slices(topic, topic_values(topic, self._totals))
            is_shown = self._shown is not None and self._shown.has(topic)
            labels = self._topic(topic, values, is_shown=is_shown)
            if not is_shown:
                await self._in_slices(topic, self._sums.add(topic, values))
            done += 1
            for subscription in list(topic.subscriptions.values()) if is_shown else ():
                if not subscription.removed:
                    done += self._subscription_if_shown(subscription, labels)
                if done >= SLICE_SUBJECTS:
                    done = 0
                    await self._give_way()
            if done >= SLICE_SUBJECTS:
                done = 0
                await self._give_way()

    async def _in_slices(self, topic: Topic, work: Sliced[T]) -> T:
        """Do ``work`` at once, unless the topic has many subscriptions."""
        if len(topic.subscriptions) <= SLICE_SUBJECTS:
            return at_once(work)
        return await in_slices(self._turns, work)

    def _subscription_if_shown(self, subscription: Subscription, labels: str) -> int:
        """Add a subscription of a topic with series of its own; returns 1 if it was rendered."""
        if self._shown is not None and self._shown.has_subscription(subscription):
            self._subscription(subscription, labels)
            return 1
        self._left_out[1] += 1
        return 0

    async def _give_way(self) -> None:
        self._page.end_slice()
        await self._turns.give_way(SLICE_UNITS)
        while self._page.compress_one():
            for _ in range(SLICE_BLOCKS - 1):
                self._page.compress_one()
            await self._turns.give_way(SLICE_UNITS)
        self._broker.begin_turn()

    async def page(self) -> Compressed:
        """What :meth:`walk` rendered, with the sums."""
        self._add_sums()
        await self._give_way()
        page = Compressed()
        for place, block in enumerate(self._page.blocks(SERIES)):
            page.add(block)
            if place % SLICE_BLOCKS == 0:
                await asyncio.sleep(0)
        return page

    def _add_sums(self) -> None:
        self._broker_samples()
        evictions: Mapping[str, Sequence[int]] = self._broker.engine.quotas.evictions_by_namespace
        if self._shown is not None:
            self._figures(LEFT_OUT_SERIES, (*self._left_out,), self._cluster)
            lines = self._page.lines_of(NAMESPACE_SERIES[0])
            for namespace, count in self._totals.topics_by_namespace.items():
                label = f"{self._namespace_labels(namespace)}}} {count}"
                lines.append(NAMESPACE_SERIES[0].name + label)
            if not self._shown.is_bounded:
                return
            evictions = self._evictions.rest(evictions, self._shown_evictions)
        is_rest = self._shown is not None
        for name, line in self._sums.samples(
            evictions, self._namespace_labels, number, is_rest=is_rest
        ):
            self._page.lines_named(name).append(line)

    def _namespace_labels(self, namespace: str) -> str:
        return f'{self._cluster},namespace="{label_value(namespace)}"'

    def _topic_labels(self, name: TopicName) -> str:
        labels = self._property_labels.of(name).items()
        own = "".join(f',{label}="{label_value(value)}"' for label, value in labels)
        if not self._splits_partitions:
            return f',topic="{label_value(name.full)}"{own}'
        topic = name.full if name.partition < 0 else name.full.rpartition(PARTITION_SUFFIX)[0]
        return f',topic="{label_value(topic)}",partition="{name.partition}"{own}'

    def _broker_samples(self) -> None:
        broker, engine, cluster = self._broker, self._broker.engine, self._cluster
        self._quotas.add_broker(cluster, engine.quotas, broker.quota_sweep.durations)
        turns = broker.turns.longest()[0] / NS_PER_S, broker.turns.long_count
        self._figures(TURN_SERIES, turns, cluster)
        self._figures(DAMAGE_SERIES, damage_counts(engine), cluster)
        storage = StorageLines(
            broker.disk,
            broker.committer.latency,
            broker.connection_admission,
            broker.logs.by_name(),
            broker.trimming,
            self._page.lines_of,
        )
        storage.add_broker(cluster, engine.now_ns)
        storage.add_tenants(cluster, engine.tenant_storage)
        TlsLines(broker.tls, self._page.lines_of).add_broker(cluster)
        SchemaLines(broker.schemas.figures, self._page.lines_of).add(self._namespace_labels)
        for kind, size_bytes in broker.client_memory.by_kind().items():
            labels = f'{cluster},kind="{kind}"'
            self._figures((CLIENT_MEMORY_BYTES_SERIES,), (size_bytes,), labels)
        self._figures(CLIENT_MEMORY_SERIES, broker.client_memory.figures(), cluster)
        if broker.authentication is not None:
            for (method, result), count in broker.authentication.counts.items():
                labels = f'{cluster},method="{label_value(method)}",result="{result}"'
                self._figures((AUTHENTICATION_SERIES,), (count,), labels)
        if broker.adaptive is not None:
            self._figures(ADAPTIVE_SERIES, broker_figures(broker.adaptive), cluster)
        totals, info = self._totals, broker.info
        version = f',version="{label_value(info.version)}",commit=""'
        host = label_value(info.broker_id.rpartition(":")[0])
        connections = f',broker="{host}",metric="broker_connection"'
        own_labels: dict[str, tuple[str, ...]] = {
            "version": (version,),
            "system_topic": tuple(f',system_topic="{flag}"' for flag in _FLAGS),
            "system_subscription": tuple(f',system_subscription="{flag}"' for flag in _FLAGS),
            "broker": (connections,),
        }
        figures = broker_values(
            broker.counts,
            broker.connections,
            broker.counts.lookups_pending,
            engine,
            totals,
        )
        for series, values in zip(BROKER_SERIES, figures, strict=True):
            own = series.labels[len(BROKER_LABELS) :]
            all_labels = own_labels[own[0]] if own else ("",)
            lines = self._page.lines_of(series)
            for labels, value in zip(all_labels, values, strict=True):
                lines.append(f"{series.name}{cluster}{labels}}} {number(value)}")

    def _figures(
        self, all_series: tuple[Series, ...], figures: tuple[Number, ...], labels: str
    ) -> None:
        for series, figure in zip(all_series, figures, strict=True):
            line = f"{series.name}{labels}}} {number(figure)}"
            self._page.lines_of(series).append(line)

    def _topic(self, topic: Topic, values: tuple[Number, ...], *, is_shown: bool) -> str:
        """Add a topic to the counts, and to the page if it ``is_shown``; return its labels, still
        open."""
        name = topic.name
        namespace = str(name.namespace)
        self._totals.topics_by_namespace[namespace] += 1
        labels = f"{self._namespace_labels(namespace)}{self._topic_labels(name)}"
        if is_shown:
            end = labels + "} "
            values = (*values, *write_values(topic))
            for (series, lines), value in zip(self._topic_lines, values, strict=True):
                lines.append(series + end + number(value))
            if (dropped := topic.publishing.duplicates_if_any) is not None:
                self._figures((TOPIC_DUPLICATES_SERIES,), (dropped,), labels)
            self._limit(labels, "topic", self._broker.current_dispatch_limits.of_topic(topic))
            self._limit(labels, PUBLISH_TOPIC, self._broker.current_publish_limits.of_topic(topic))
            self._quotas.add_topic(topic, labels)
            self._parked.add_topic(topic, labels)
            if (figures := topic_figures(self._broker.settings, topic)) is not None:
                self._figures(ADAPTIVE_TOPIC_SERIES, figures, labels)
            if topic.quota is not None:
                acts = tuple(topic.quota.evictions(kind)[0] for kind in QuotaType)
                self._shown_evictions[namespace][name.full] = acts
        elif self._shown is not None:
            self._left_out[0] += 1
            self._left_out[1] += len(topic.subscriptions)
        return labels

    def _subscription(self, subscription: Subscription, topic_labels: str) -> None:
        now_ns = self._broker.engine.now_ns
        labels = f'{topic_labels},subscription="{label_value(subscription.name)}"'
        end = labels + "} "
        values = subscription_values(subscription)
        for (series, lines), value in zip(self._subscription_lines, values, strict=True):
            lines.append(series + end + number(value))
        if self._with_ages and (age_s := backlog_age_s(subscription)) is not None:
            self._age_lines.append(BACKLOG_AGE_SERIES.name + end + number(age_s))
        subscription.count_throttling()
        events = subscription.gate.throttled_events
        tenant = f',tenant="{label_value(subscription.topic.name.tenant)}"}} '
        held_back = subscription.throttled_dispatch.counts
        for dimension, (series, lines) in enumerate(self._held_back_lines):
            amount = safe_sum(*(level[dimension] for level in held_back))
            lines.append(f"{series}{labels}{tenant}{amount}")
        for dimension, (series, lines) in enumerate(self._throttled_lines):
            for level, reason in enumerate(_REASONS):
                lines.append(f"{series}{labels}{reason}{events[level][dimension]}")
        prefix = STATE_SERIES.name + labels
        for cell, spent_ns in enumerate(cells_of(subscription.account, now_ns)):
            if spent_ns:
                seconds = number(spent_ns / NS_PER_S)
                self._state_lines.append(f"{prefix}{_STATE_LABELS[cell]}{seconds}")
        limit = self._broker.current_dispatch_limits.of_subscription(subscription)
        self._limit(labels, "subscription", limit)

    def _limit(self, labels: str, limiter: str, effective: EffectiveLimit) -> None:
        if effective.limit is None:
            return
        for dimension in Dimension:
            rate = effective.limit.per_second(dimension)
            if rate is not None:
                self._limit_lines.append(
                    f'{LIMIT_SERIES.name}{labels},limiter="{limiter}"'
                    f',dimension="{_DIMENSIONS[dimension]}"'
                    f',source="{label_value(effective.source_of(dimension))}"}} {number(rate)}'
                )

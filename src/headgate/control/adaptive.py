"""The controller of adaptive publish throttling.

Every interval the controller evaluates the topics that published or were limited since the last
cycle, in slices between which the loop serves others, and enforces the limits that
:mod:`headgate.flow.adaptive.cycle` decides. A failure does not end it: the controller counts and
logs the failure, and the next cycle starts on time. Limits do not outlive a controller that keeps
failing (law 5.2): after ten intervals, and half a minute, without a complete cycle it lifts them.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Final, NamedTuple

from headgate.base.clock import Clock
from headgate.base.errors import InvariantError
from headgate.base.park_cause import ParkCause
from headgate.base.units import NS_PER_S
from headgate.control.adaptive_inputs import adaptive_settings, stopping_quota, topic_signals
from headgate.control.adaptive_logger import AdaptiveLogger, applying_text, set_limit_text
from headgate.control.memory import MemorySource
from headgate.engine.engine import Engine
from headgate.engine.topic import Topic
from headgate.flow.adaptive.cycle import (
    AdaptiveSettings,
    Cycle,
    Decision,
    DecisionKind,
    must_drop_limits,
)
from headgate.flow.adaptive.memory_share import MemoryAttribution
from headgate.flow.adaptive.pressure import memory_pressure
from headgate.flow.adaptive.topic import TopicControl
from headgate.flow.limits.rate_limit import RateLimit
from headgate.policy.current_limits import CurrentPublishLimits
from headgate.policy.settings import Settings

SLICE_EVALUATIONS: Final = 400
"""Topics in one slice of a cycle that makes no decision: a millisecond or two."""

PRODUCERS_AT_ONCE: Final = 64
"""Producers of a topic that get another kind of limit without a pause: about 0.2 ms."""

DECISION_EVALUATIONS: Final = 10
"""A decision takes as long as this many evaluations: it is enforced, recorded and logged."""


INDEX_ENTRY_BYTES: Final = 32
"""Memory that the log's index takes for one entry, about."""

NEAR_PART: Final = 0.25
"""From this share of its quota on (or from the low watermark if that is lower) a backlog is
evaluated in every cycle, so that the controller knows how fast it drains when pressure begins."""

DECISIONS_MAX: Final = 8
"""Decisions that ``explain`` shows of a topic: the latest ones."""
TOPICS_MAX: Final = 10_000
"""Topics whose decisions are kept: those with the latest decisions."""


class _NoMemorySignal:
    limit_bytes = 1

    def used_bytes(self) -> int:
        return 0


NO_MEMORY_SIGNAL: Final[MemorySource] = _NoMemorySignal()
"""Without a memory source there is no memory pressure."""


class DecisionRecord(NamedTuple):
    """A decision with its time (wall clock)."""

    at_ms: int
    decision: Decision


@dataclass(slots=True)
class AdaptiveStatus:
    """The controller's own state, for metrics."""

    memory_used_bytes: int = 0
    """As of the last cycle, without the entry cache."""
    memory_pressure: float = 0.0
    activations: int = 0
    """Limits that the controller began since the start; none in observe-only mode."""
    last_evaluation_ms: int = 0
    """When the last cycle without a failure ended (wall clock); 0 before the first."""
    evaluation_ns: int = 0
    """Duration of the last cycle's slices together, without the pauses between them."""
    failures: int = 0
    """Cycles with a failure."""


class AdaptiveThrottle:
    """The controller of one broker. A broker without adaptive throttling has no such object."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        publish_limits: CurrentPublishLimits,
        memory: MemorySource | None,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        begin_turn: Callable[[], None],
        run_in_slices: Callable[[Iterator[None]], object],
    ) -> None:
        """Without ``memory``, backlogs alone cause pressure. A slice begins with ``begin_turn``.
        ``run_in_slices`` runs the steps of a limit that very many producers get."""
        self._engine = engine
        self._broker_settings = settings
        self._publish_limits = publish_limits
        self._memory = memory or NO_MEMORY_SIGNAL
        self._loop = loop
        self._clock = clock
        self._begin_turn = begin_turn
        self._run_in_slices = run_in_slices
        self._attribution = MemoryAttribution()
        self._log = AdaptiveLogger()
        self._settings = adaptive_settings(settings)
        self._followed: dict[Topic, None] = {}
        """Topics that the next cycle evaluates even if they publish nothing: those with a limit (in
        observe-only mode, one that would apply), and those whose rates would become stale."""
        self._active: dict[Topic, None] = {}
        """The topics among them whose adaptive limit is enforced."""
        self._logged_limits: dict[Topic, tuple[str, str]] = {}
        """For topics with an adaptive limit beside one that is set: the texts of the set limit, and
        of the source that applies in each dimension."""
        self._records: dict[Topic, deque[DecisionRecord]] = {}
        self.status = AdaptiveStatus()
        self.listeners: list[Callable[[Topic, Decision, int], object]] = []
        """Called with each decision and its time (wall clock)."""
        self._timer: asyncio.TimerHandle | None = None
        self._began_ns = 0
        self._last_success_ns = 0
        """When the last cycle without a failure ended, or when the controller lifted all limits
        because there was none."""
        self._cycle: Cycle | None = None
        self._topics_left: Iterator[Topic] = iter(())
        self._is_failed = False

    # -- life ------------------------------------------------------------------------------

    def start(self) -> None:
        """Schedule the first cycle, an interval from now, with the stored settings."""
        engine = self._engine
        self._settings = adaptive_settings(self._broker_settings)
        self._log.enabled(self._settings, self._memory.limit_bytes)
        engine.published = {}
        self._began_ns = self._last_success_ns = engine.now_ns
        self._arm()

    def stop(self) -> None:
        """End all cycles and lift all limits: the broker closes."""
        self._engine.published = None
        self._topics_left = iter(())
        if self._timer is not None:
            self._timer.cancel()
        self._release()

    @property
    def memory_limit_bytes(self) -> int:
        """Memory that the broker may use."""
        return self._memory.limit_bytes

    @property
    def settings(self) -> AdaptiveSettings:
        """The controller's settings in force."""
        return self._settings

    def settings_changed(self) -> None:
        """Apply changed dynamic settings: observe-only lifts all limits at once, and a new interval
        counts from the last cycle on."""
        before, self._settings = self._settings, adaptive_settings(self._broker_settings)
        if self._settings != before:
            self._log.settings_changed(self._settings)
        if self._settings.observe_only is not before.observe_only:
            self._log.begin_minute()
        if self._cycle is not None:  # the rest of its topics follow the new settings
            self._cycle = replace(self._cycle, settings=self._settings)
        if self._settings.observe_only and not before.observe_only:
            self._release()
        if self._settings.interval_ns != before.interval_ns and self._cycle is None:
            self._arm()

    def check_health(self) -> None:
        """Lift all limits if the controller has failed for too long; drop the decisions of unloaded
        topics. A sweep that does not depend on the cycles calls this about once a second."""
        for topic in [topic for topic in self._records if not topic.is_live]:
            del self._records[topic]
        now_ns, settings = self._engine.now_ns, self._settings
        if self._active and must_drop_limits(self._last_success_ns, now_ns, settings.interval_ns):
            self._log.begin_minute()
            count = self._release()
            if count:
                self._log.limits_outlived(count, (now_ns - self._last_success_ns) / NS_PER_S)
            self._last_success_ns = now_ns  # limits that begin now get the same time

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        due_ns = self._began_ns + self._settings.interval_ns - self._engine.now_ns
        self._timer = self._loop.call_later(max(due_ns, 0) / NS_PER_S, self._begin)

    # -- a cycle ---------------------------------------------------------------------------

    def _begin(self) -> None:
        self._begin_turn()
        engine = self._engine
        now_ns, before_ns = engine.now_ns, self._began_ns
        self._began_ns = now_ns
        self._is_failed = False
        self.status.evaluation_ns = 0
        self._topics_left = iter(())
        try:
            self._cycle = Cycle(self._settings, now_ns, max(now_ns - before_ns, 1))
            published, engine.published = engine.published or {}, {}
            limited = list(self._followed)
            self._topics_left = chain(
                published, (topic for topic in limited if topic not in published)
            )
            self.status.memory_pressure = self._pressure()
        except InvariantError:
            raise
        except Exception as error:
            self._failed(error)
        self._attribute(now_ns)
        self._slice()

    def _attribute(self, now_ns: int) -> None:
        """Choose the topics that memory pressure limits: those that fill the memory, or all."""
        status, limit_bytes = self.status, self._memory.limit_bytes
        new_rule = self._attribution.begin_cycle(
            status.memory_pressure,
            status.memory_used_bytes / limit_bytes,
            now_ns,
            is_enforced=not self._settings.observe_only,
        )
        if new_rule is not None:
            used_bytes = status.memory_used_bytes
            self._log.rule_changed(new_rule, self._settings, used_bytes, limit_bytes, now_ns)

    def _pressure(self) -> float:
        self.status.memory_used_bytes = used_bytes = self._memory.used_bytes()
        return memory_pressure(used_bytes, self._memory.limit_bytes, self._settings)

    def _slice(self) -> None:
        """Evaluate some of the cycle's topics; schedule the next slice if there are more."""
        self._begin_turn()
        began_ns = self._clock.monotonic_ns()
        left = SLICE_EVALUATIONS
        for topic in self._topics_left:
            left -= 1
            try:
                if self._evaluate(topic):
                    left -= DECISION_EVALUATIONS
            except InvariantError:
                raise
            except Exception as error:
                self._failed(error)
            if left <= 0:
                break
        self.status.evaluation_ns += self._clock.monotonic_ns() - began_ns
        if left <= 0:
            self._loop.call_soon(self._slice)
        else:
            self._end()

    def _end(self) -> None:
        engine = self._engine
        self._cycle = None
        if not self._is_failed:
            self._last_success_ns = engine.now_ns
            self.status.last_evaluation_ms = engine.now_ms
        self._log.cycle_ended(engine.now_ns)
        if engine.published is not None:
            self._arm()

    def _failed(self, error: Exception) -> None:
        if not self._is_failed:
            self._is_failed = True
            self.status.failures += 1
            self._log.failed(error, self._engine.now_ns)

    def _evaluate(self, topic: Topic) -> bool:
        """Evaluate one topic in this cycle; returns whether that makes a decision."""
        cycle, log = self._cycle, topic.log
        if cycle is None or not topic.is_live:
            for topics in (self._followed, self._active, self._records, self._logged_limits):
                topics.pop(topic, None)
            return False
        control = topic.publishing.control
        if control is None:
            control = topic.publishing.control = TopicControl()
        end, parking = log.end, topic.publishing.parking
        entries = end - max(log.first, log.memory_first)  # the index of older ones is on the disk
        held_bytes = (
            topic.publishing.staged_bytes - log.bytes_before(end) + entries * INDEX_ENTRY_BYTES
        )
        waited_for: set[ParkCause] = set()
        if parking is not None:
            held_bytes += parking.bytes
            waited_for = parking.take_causes()
        pressure = self._attribution.pressure_on(control.memory_baseline, held_bytes)
        messages, size_bytes = log.messages_before(end), log.bytes_before(end)
        if not pressure:
            room_bytes = self._room_bytes(topic)
            if room_bytes > 0 and control.learn_rate(messages, size_bytes, bool(waited_for), cycle):
                horizon_s = cycle.settings.drain_horizon_ns / NS_PER_S
                if control.natural.published_bytes * horizon_s <= room_bytes:
                    return False
        signals = topic_signals(topic, messages, size_bytes, waited_for)
        rule = self._attribution.rule_on(pressure)
        decision = control.evaluate(signals, cycle, pressure, rule)
        if decision is not None:
            self._carry_out(topic, decision)
        if topic.publishing.adaptive_limit is not None and topic.publishing.limit is not None:
            self._log_both_limits(topic)
        else:
            self._logged_limits.pop(topic, None)
        if control.needs_evaluation:
            self._followed[topic] = None
        else:
            self._followed.pop(topic, None)
        return decision is not None

    def _room_bytes(self, topic: Topic) -> float:
        """The bytes that the topic may receive before a law could act on its quotas, from the marks
        that appending keeps; 0 if only the topic's subscriptions show that."""
        quota = topic.quota
        if quota is None:
            return math.inf
        size, time = stopping_quota(quota.quotas.size), stopping_quota(quota.quotas.time)
        if time is not None or quota.safe_below < 0:
            return 0.0
        if size is None:
            return math.inf
        # Acknowledgements since the mark was set make the backlog smaller, never larger.
        backlog_bytes_max = topic.publishing.staged_bytes - quota.safe_below + size.limit
        settings = self._settings
        if backlog_bytes_max > min(NEAR_PART, settings.backlog_low) * size.limit:
            return 0.0
        return settings.drain_set_point * size.limit - backlog_bytes_max

    # -- decisions -------------------------------------------------------------------------

    def _carry_out(self, topic: Topic, decision: Decision) -> None:
        engine = self._engine
        if not decision.observe_only:
            limit = decision.new
            topic.publishing.adaptive_limit = limit and RateLimit(
                limit.messages_per_s, limit.bytes_per_s
            )
            # A limit that rises step by step forgives no debt (D1 in docs/guide/adaptive-laws.md).
            steps = engine.admission.limit_in_steps(topic, forgives=limit is None)
            if sum(1 for _ in islice(steps, PRODUCERS_AT_ONCE)) == PRODUCERS_AT_ONCE:
                self._run_in_slices(steps)
            if limit is None:
                self._active.pop(topic, None)
            else:
                self._active[topic] = None
            self.status.activations += decision.kind is DecisionKind.ACTIVATED
        records = self._records.pop(topic, None) or deque(maxlen=DECISIONS_MAX)
        if len(self._records) >= TOPICS_MAX:
            del self._records[next(iter(self._records))]
        self._records[topic] = records
        records.append(DecisionRecord(engine.now_ms, decision))
        engine.observer.decided(topic, decision)
        for listener in self.listeners:
            listener(topic, decision, engine.now_ms)
        self._log.decided(topic, decision, engine.now_ns)

    def _log_both_limits(self, topic: Topic) -> None:
        """If a topic has a set and an adaptive publish limit, log which one applies in each
        dimension; again when that changes."""
        control = topic.publishing.control
        if control is None or control.limit is None:
            return
        set_limit = set_limit_text(self._publish_limits.effective_of_topic(topic))
        applying = applying_text(self._publish_limits.of_topic(topic))
        if self._logged_limits.get(topic) != (set_limit, applying):
            self._logged_limits[topic] = set_limit, applying
            self._log.both_limits(topic, set_limit, control.limit, applying, self._engine.now_ns)

    def _release(self) -> int:
        """Lift all limits at once; return how many there were."""
        count = 0
        for topic in list(self._followed):
            control = topic.publishing.control
            if control is None or not topic.is_live:
                continue  # the gate may belong to the topic's next load already
            decision = control.end_now(self._settings)
            if decision is not None:
                count += not decision.observe_only
                self._carry_out(topic, decision)
        return count

    # -- for explain and metrics -----------------------------------------------------------

    @property
    def active_count(self) -> int:
        """Topics with an adaptive limit now; none in observe-only mode."""
        return len(self._active)

    def decisions(self, topic: Topic) -> list[DecisionRecord]:
        """The latest decisions about one topic, oldest first."""
        return list(self._records.get(topic, ()))

    def latest_decisions(self, count: int) -> list[tuple[Topic, DecisionRecord]]:
        """The latest ``count`` decisions about any topics, the latest first."""
        # The topics are in the order of their last decisions.
        topics = islice(reversed(self._records), count)
        found = [(topic, record) for topic in topics for record in self._records[topic]]
        found.sort(key=lambda each: -each[1].at_ms)
        return found[:count]

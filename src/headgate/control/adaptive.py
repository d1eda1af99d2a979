"""The controller of adaptive publish throttling: it looks, asks the law, and has limits enforced.

Every interval it looks at the topics that published or were limited since the last time, in slices
between which the loop serves others, and puts in force what :mod:`headgate.flow.adaptive.cycle`
decides. Nothing ends it: what fails is counted and told, and the next cycle comes. Limits do not
outlive a controller that fails for good (law 5.2): after ten intervals without a whole cycle, and
half a minute, they are lifted. A broker in which it is not enabled has no such object.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from headgate.base.errors import InvariantError
from headgate.base.park_cause import ParkCause
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.control.adaptive_log import AdaptiveLog, holding_text, set_limit_text
from headgate.control.memory import MemorySource
from headgate.engine.topic import Topic
from headgate.flow.adaptive.cycle import (
    AdaptiveSettings,
    Cycle,
    Decision,
    DecisionKind,
    Law,
    TopicSignals,
    outlived,
)
from headgate.flow.adaptive.memory_share import MemoryAttribution
from headgate.flow.adaptive.pressure import memory_pressure
from headgate.flow.adaptive.topic import TopicControl
from headgate.flow.limits.rate_limit import RateLimit
from headgate.flow.quota.backlog_quota import Quota
from headgate.policy.settings import Settings

if TYPE_CHECKING:
    from headgate.broker.service import Broker

SLICE_EVALUATIONS: Final = 400
"""Topics evaluated in one slice of a cycle, if none is decided about: a millisecond or two."""

DECISION_EVALUATIONS: Final = 10
"""A decision takes as long as so many more evaluations: it is enforced, recorded and logged."""

INFINITE: Final = float("inf")

INDEX_ENTRY_BYTES: Final = 32
"""What the log's index keeps in memory of one entry, about."""

NEAR_PART: Final = 0.25
"""From this part of its quota on a backlog is looked at, from the low watermark if that is less: so
its drain is known when it begins to press."""

DECISIONS_MAX: Final = 8
"""Kept of each topic, for ``explain``."""
TOPICS_MAX: Final = 10_000
"""Topics of which any are kept: those that were decided about last."""


class _NoMemorySignal:
    limit_bytes = 1

    def used_bytes(self) -> int:
        return 0


NO_MEMORY_SIGNAL: Final[MemorySource] = _NoMemorySignal()
"""Where nobody tells of the memory there is no pressure of it."""


class DecisionRecord(NamedTuple):
    """A decision, and when it was made."""

    at_ms: int
    decision: Decision


@dataclass(slots=True)
class AdaptiveStatus:
    """How the controller is, as its metrics tell it."""

    memory_used_bytes: int = 0
    """As of the last cycle, without what could be given up at once."""
    memory_pressure: float = 0.0
    activations: int = 0
    """Limits that began since the start; none in observe-only."""
    last_evaluation_ms: int = 0
    """When the last cycle ended in which nothing failed; 0 before the first."""
    evaluation_ns: int = 0
    """CPU and waiting of the last cycle's slices, without what lay between them."""
    failures: int = 0
    """Cycles in which anything failed."""


class AdaptiveThrottle:
    """See the module."""

    def __init__(self, broker: Broker, memory: MemorySource) -> None:
        self._broker = broker
        self._memory = memory
        self._attribution = MemoryAttribution()
        self._log = AdaptiveLog()
        self._settings = adaptive_settings(broker.settings)
        self._followed: dict[Topic, None] = {}
        """Topics that the next cycle looks at also if they publish nothing: with a limit, in
        observe-only with one that would be, or with figures that would grow old."""
        self._active: dict[Topic, None] = {}
        """Of them those whose limit is in force."""
        self._both: dict[Topic, tuple[str, str]] = {}
        """Topics with a set limit beside the controller's: which, and what of each holds."""
        self._records: dict[Topic, deque[DecisionRecord]] = {}
        self.status = AdaptiveStatus()
        self._timer: asyncio.TimerHandle | None = None
        self._began_ns = 0
        self._last_success_ns = 0
        """When the last cycle ended in which nothing failed, or limits were lifted for lack of
        one."""
        self._cycle: Cycle | None = None
        self._work: Iterator[Topic] = iter(())
        self._is_failed = False

    # -- life ------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin with the first cycle an interval from now, under the settings as they are now:
        stored ones were not known when this was made."""
        engine = self._broker.engine
        self._settings = adaptive_settings(self._broker.settings)
        self._log.enabled(self._settings, self._memory.limit_bytes)
        engine.published = {}
        self._began_ns = self._last_success_ns = engine.now_ns
        self._arm()

    def stop(self) -> None:
        """The broker closes: no more cycles, no more limits."""
        self._broker.engine.published = None
        self._work = iter(())
        if self._timer is not None:
            self._timer.cancel()
        self._release()

    @property
    def memory_limit_bytes(self) -> int:
        """How much memory the broker may use."""
        return self._memory.limit_bytes

    @property
    def settings(self) -> AdaptiveSettings:
        """Those in force."""
        return self._settings

    def settings_changed(self) -> None:
        """Dynamic settings were set: observe-only releases everything at once, another interval
        counts from the last cycle on."""
        before, self._settings = self._settings, adaptive_settings(self._broker.settings)
        if self._settings != before:
            self._log.settings_changed(self._settings)
        if self._settings.observe_only is not before.observe_only:
            self._log.begin_anew()
        if self._cycle is not None:  # the topics that it has still to look at are decided by these
            self._cycle = replace(self._cycle, settings=self._settings)
        if self._settings.observe_only and not before.observe_only:
            self._release()
        if self._settings.interval_ns != before.interval_ns and self._cycle is None:
            self._arm()

    def watch(self) -> None:
        """Lift all limits if the controller has failed for too long, and forget what was decided
        about topics that are gone. Called by a sweep of its own, which goes on whatever becomes of
        the cycles."""
        for topic in [topic for topic in self._records if not topic.is_live]:
            del self._records[topic]
        now_ns, settings = self._broker.engine.now_ns, self._settings
        if self._active and outlived(self._last_success_ns, now_ns, settings.interval_ns):
            self._log.begin_anew()
            count = self._release()
            if count:
                self._log.outlived(count, (now_ns - self._last_success_ns) / NS_PER_S)
            self._last_success_ns = now_ns  # what begins from now on may last as long again

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        due_ns = self._began_ns + self._settings.interval_ns - self._broker.engine.now_ns
        self._timer = self._broker.loop.call_later(max(due_ns, 0) / NS_PER_S, self._begin)

    # -- a cycle ---------------------------------------------------------------------------

    def _begin(self) -> None:
        broker = self._broker
        broker.begin_turn()
        engine = broker.engine
        now_ns, before_ns = engine.now_ns, self._began_ns
        self._began_ns = now_ns
        self._is_failed = False
        self.status.evaluation_ns = 0
        self._work = iter(())
        try:
            self._cycle = Cycle(self._settings, now_ns, max(now_ns - before_ns, 1))
            published, engine.published = engine.published or {}, {}
            limited = list(self._followed)
            self._work = chain(published, (topic for topic in limited if topic not in published))
            self.status.memory_pressure = self._pressure()
        except InvariantError:
            raise
        except Exception as error:
            self._failed(error)
        self._attribute(now_ns)
        self._slice()

    def _attribute(self, now_ns: int) -> None:
        """Whom memory asks: those who take it, or everybody."""
        status, limit_bytes = self.status, self._memory.limit_bytes
        turned = self._attribution.begin(
            status.memory_pressure,
            status.memory_used_bytes / limit_bytes,
            now_ns,
            is_enforced=not self._settings.observe_only,
        )
        if turned is not None:
            used_bytes = status.memory_used_bytes
            self._log.everybody(turned, self._settings, used_bytes, limit_bytes, now_ns)

    def _pressure(self) -> float:
        self.status.memory_used_bytes = used_bytes = self._memory.used_bytes()
        return memory_pressure(used_bytes, self._memory.limit_bytes, self._settings)

    def _slice(self) -> None:
        """Look at some of the topics, and go on after others had their turn."""
        broker = self._broker
        broker.begin_turn()
        began_ns = broker.clock.monotonic_ns()
        left = SLICE_EVALUATIONS
        for topic in self._work:
            left -= 1
            try:
                if self._look(topic):
                    left -= DECISION_EVALUATIONS
            except InvariantError:
                raise
            except Exception as error:
                self._failed(error)
            if left <= 0:
                break
        self.status.evaluation_ns += broker.clock.monotonic_ns() - began_ns
        if left <= 0:
            broker.loop.call_soon(self._slice)
        else:
            self._end()

    def _end(self) -> None:
        engine = self._broker.engine
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
            self._log.failed(error, self._broker.engine.now_ns)

    def _look(self, topic: Topic) -> bool:
        """One topic in this cycle; whether anything was decided about it."""
        cycle, log = self._cycle, topic.log
        if cycle is None or not topic.is_live:
            for known in (self._followed, self._active, self._records, self._both):
                known.pop(topic, None)
            return False
        control = topic.control
        if control is None:
            control = topic.control = TopicControl()
        end, parking = log.end, topic.parking
        entries = end - log.first
        held_bytes = topic.staged_bytes - log.bytes_before(end) + entries * INDEX_ENTRY_BYTES
        waited_for: set[ParkCause] = set()
        if parking is not None:
            held_bytes += parking.bytes
            waited_for = parking.take_seen()
        pressure = self._attribution.pressure_on(control.held, held_bytes)
        messages, size_bytes = log.messages_before(end), log.bytes_before(end)
        if not pressure:
            room_bytes = self._room_bytes(topic)
            if room_bytes > 0 and control.calm(messages, size_bytes, bool(waited_for), cycle):
                horizon_s = cycle.settings.drain_horizon_ns / NS_PER_S
                if control.natural.published_bytes * horizon_s <= room_bytes:
                    return False
        signals = _signals(topic, messages, size_bytes, waited_for)
        rule = self._attribution.rule_on(pressure)
        decision = control.evaluate(signals, cycle, pressure, rule)
        if decision is not None:
            self._carry_out(topic, decision)
        if topic.adaptive_limit is not None and topic.publish_limit is not None:
            self._tell_both(topic)
        else:
            self._both.pop(topic, None)
        if control.needs_look:
            self._followed[topic] = None
        else:
            self._followed.pop(topic, None)
        return decision is not None

    def _room_bytes(self, topic: Topic) -> float:
        """How much may come until a law could have something to say about the topic's quotas, from
        what the append knows of them; 0 where that needs a look at its subscriptions."""
        quota = topic.quota
        if quota is None:
            return INFINITE
        size, time = _stopping(quota.quotas.size), _stopping(quota.quotas.time)
        if time is not None or quota.mark < 0:
            return 0.0
        if size is None:
            return INFINITE
        # What is acknowledged since the mark was set makes the backlog smaller, never larger.
        backlog_bytes_max = topic.staged_bytes - quota.mark + size.limit
        settings = self._settings
        if backlog_bytes_max > min(NEAR_PART, settings.backlog_low) * size.limit:
            return 0.0
        return settings.drain_set_point * size.limit - backlog_bytes_max

    # -- what was decided ------------------------------------------------------------------

    def _carry_out(self, topic: Topic, decision: Decision) -> None:
        broker = self._broker
        if not decision.observe_only:
            limit = decision.new
            topic.adaptive_limit = limit and RateLimit(limit.messages_per_s, limit.bytes_per_s)
            # Not with the steps of the way up: what an entry owes stays owed (D1).
            broker.engine.admission.put_in_force(topic, forgives=limit is None)
            if limit is None:
                self._active.pop(topic, None)
            else:
                self._active[topic] = None
            self.status.activations += decision.kind is DecisionKind.ACTIVATED
        if topic not in self._records and len(self._records) >= TOPICS_MAX:
            del self._records[next(iter(self._records))]
        records = self._records.setdefault(topic, deque(maxlen=DECISIONS_MAX))
        records.append(DecisionRecord(broker.engine.now_ms, decision))
        broker.engine.observer.decided(topic, decision)
        self._log.decided(topic, decision, broker.engine.now_ns)

    def _tell_both(self, topic: Topic) -> None:
        """A publish limit that is set and the controller's meet: tell which holds in what, when
        either begins and when that changes."""
        broker, control = self._broker, topic.control
        if control is None or control.limit is None:
            return
        told = set_limit_text(broker.policies.publish_limits.of_topic(topic.name))
        holds = holding_text(broker.publish_in_force.of_topic(topic))
        if self._both.get(topic) != (told, holds):
            self._both[topic] = told, holds
            self._log.both(topic, told, control.limit, holds, broker.engine.now_ns)

    def _release(self) -> int:
        """Let all limits go at once; return how many there were."""
        count = 0
        for topic in list(self._followed):
            control = topic.control
            if control is None or not topic.is_live:
                continue  # its gate may be that of the topic that was loaded again
            decision = control.let_go(self._settings)
            if decision is not None:
                count += not decision.observe_only
                self._carry_out(topic, decision)
        return count

    # -- what others ask -------------------------------------------------------------------

    @property
    def active_count(self) -> int:
        """Topics with a limit now; none in observe-only."""
        return len(self._active)

    def decisions(self, topic: Topic) -> list[DecisionRecord]:
        """The last few about one topic, oldest first."""
        return list(self._records.get(topic, ()))


def adaptive_throttle(broker: Broker, memory: MemorySource | None) -> AdaptiveThrottle | None:
    """The controller of a broker; None where ``adaptivePublisherThrottlingEnabled`` is false."""
    if not broker.settings.adaptivePublisherThrottlingEnabled:
        return None
    return AdaptiveThrottle(broker, memory or NO_MEMORY_SIGNAL)


def adaptive_settings(settings: Settings) -> AdaptiveSettings:
    """The controller's settings, as the broker's say."""
    return AdaptiveSettings(
        observe_only=settings.adaptivePublisherThrottlingObserveOnly,
        interval_ns=settings.adaptivePublisherThrottlingIntervalMs * NS_PER_MS,
        memory_low=settings.adaptivePublisherThrottlingMemoryLowWatermarkPct,
        memory_high=settings.adaptivePublisherThrottlingMemoryHighWatermarkPct,
        backlog_low=settings.adaptivePublisherThrottlingBacklogLowWatermarkPct,
        backlog_high=settings.adaptivePublisherThrottlingBacklogHighWatermarkPct,
        min_rate_factor=settings.adaptivePublisherThrottlingMinRateFactor,
        max_rate_change_factor=settings.adaptivePublisherThrottlingMaxRateChangeFactor,
        law=Law(settings.adaptivePublisherThrottlingLaw),
        drain_set_point=settings.adaptivePublisherThrottlingDrainSetPointPct,
        drain_horizon_ns=settings.adaptivePublisherThrottlingDrainHorizonMs * NS_PER_MS,
    )


def _signals(
    topic: Topic, messages: int, size_bytes: int, waited_for: set[ParkCause]
) -> TopicSignals:
    """What the law looks at. A quota that evicts stops nobody, so it slows nobody (D11)."""
    quota = topic.quota
    size = time = None
    backlog_bytes = done_bytes = 0
    age_ms = -1
    if quota is not None:
        size, time = _stopping(quota.quotas.size), _stopping(quota.quotas.time)
        slowest = quota.slowest()
        done_bytes = topic.staged_bytes if slowest is None else slowest.done_bytes
        backlog_bytes = topic.staged_bytes - done_bytes
        age_ms = quota.age_ms()
    return TopicSignals(
        messages=messages,
        bytes=size_bytes,
        was_parked=bool(waited_for),
        was_slowed=ParkCause.ADAPTIVE in waited_for,
        backlog_bytes=backlog_bytes,
        size_limit=None if size is None else size.limit,
        age_ms=age_ms,
        age_limit_ms=None if time is None else time.limit,
        done_bytes=done_bytes,
    )


def _stopping(quota: Quota | None) -> Quota | None:
    return quota if quota is not None and quota.policy.stops_producers else None

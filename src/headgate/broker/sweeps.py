"""What a broker does by itself now and then: rates, retention, inactive topics, upkeep.

Each sweep walks topics in slices, so that the loop is never held for long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from headgate.base.errors import HeadgateError, InvariantError
from headgate.base.units import NS_PER_S
from headgate.broker.quota_sweep import QuotaSweep
from headgate.broker.slices import live_topics
from headgate.broker.trimming import release
from headgate.engine.rate_meter import SAMPLE_PERIOD_NS
from headgate.engine.topic import Topic
from headgate.metadata.policies import Retention
from headgate.storage.repeated_failures import RepeatedFailureLog

if TYPE_CHECKING:
    from headgate.broker.service import Broker

logger = logging.getLogger("headgate.sweeps")

SLICE_RETAINED = 20
"""Of topics of which something may go: these take longer."""

UPKEEP_PERIOD_S = 1.0
"""How often the log is asked whether it has something to do."""

FULL_ROUNDS = 10
"""After so many rounds of upkeep on a full disk what nobody acknowledged goes too, where nobody
has a claim to it."""

GROWN_SEGMENTS = 2
GROWN_PERIOD_NS = 5 * NS_PER_S
"""After so many new segments, and so long, it is looked what may go though no check is due."""

NAP_S = 1.0
"""Within this a changed period of a sweep counts."""

HISTORY_PERIOD_S = 1.0
"""Between two looks at what subscriptions did: explain settles within a few of them."""


class TopicObserver(Protocol):
    """Notes what topics did, in rounds."""

    def begin_round(self) -> bool:
        """Whether a round is due. Called every :data:`HISTORY_PERIOD_S`."""

    def observe(self, topic: Topic) -> None:
        """Note a live topic: once in each round."""


class Sweeps:
    """The periodic work of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.observer: TopicObserver | None = None
        """Notes what topics and subscriptions did, if there is one."""
        self.quotas = QuotaSweep(broker)
        self._tasks: list[asyncio.Task[None]] = []
        self._full_rounds = 0
        self._retained_ns = 0
        self._retained_segment = 0
        """When, and in which segment, retention was last looked at."""
        self._troubles: dict[str, RepeatedFailureLog] = {}
        """Of each sweep."""
        self._stopped = False

    def start(self) -> None:
        """Begin all sweeps."""
        settings = self._broker.settings
        sweeps: tuple[tuple[Callable[[], Awaitable[None]], Callable[[], float]], ...] = (
            (self.upkeep, lambda: UPKEEP_PERIOD_S),
            (self.keep_log_time, lambda: UPKEEP_PERIOD_S),
            (self.remember, lambda: HISTORY_PERIOD_S),
            (self.watch_adaptive, lambda: HISTORY_PERIOD_S),
            (self.quotas.look, lambda: HISTORY_PERIOD_S),
            (self.quotas.check, lambda: settings.backlogQuotaCheckIntervalInSeconds),
            (self.sample_rates, lambda: SAMPLE_PERIOD_NS / NS_PER_S),
            (self.retain, lambda: settings.retentionCheckIntervalInSeconds),
            (self.delete_inactive, lambda: settings.brokerDeleteInactiveTopicsFrequencySeconds),
        )
        for sweep, period_s in sweeps:
            task = self._broker.loop.create_task(self._repeat(sweep, period_s))
            task.add_done_callback(self._ended)
            self._tasks.append(task)

    def stop(self) -> None:
        """End all sweeps; a job of a log that runs is the last one."""
        self._stopped = True
        for managed in self._broker.logs:
            managed.maintenance.stop()
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()

    def bugs(self) -> list[str]:
        """What fails by an error of ours just now, though it is tried again and again."""
        own = [trouble.bug for trouble in self._troubles.values() if trouble.bug]
        return own + [bug for managed in self._broker.logs for bug in managed.maintenance.bugs()]

    def _trouble(self, what: str) -> RepeatedFailureLog:
        return self._troubles.setdefault(what, RepeatedFailureLog(logger, what))

    async def _repeat(
        self, sweep: Callable[[], Awaitable[None]], period_s: Callable[[], float]
    ) -> None:
        loop, engine = self._broker.loop, self._broker.engine
        trouble = self._trouble(getattr(sweep, "__name__", str(sweep)))
        while True:
            began_s = loop.time()
            # In short naps, so that a period that is changed meanwhile counts at once.
            while (rest_s := began_s + period_s() - loop.time()) > 0:
                await asyncio.sleep(min(rest_s, NAP_S))
            try:
                await sweep()
                trouble.succeeded(engine.now_ns)
            except InvariantError:
                raise
            except Exception as error:
                trouble.failed(error, engine.now_ns)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Nobody waits for a sweep: what ended it is told to whoever watches the loop. That is a
        broken invariant, since all else is tried again."""
        error: BaseException | None = None
        if not task.cancelled():
            error = task.exception()
        elif not self._stopped:
            error = InvariantError("a sweep was cancelled by what it waited for")
        if error is not None:
            self._broker.loop.call_exception_handler(
                {"message": "a sweep ended", "exception": error, "task": task}
            )

    def _topics(self) -> AsyncIterator[Topic]:
        self._broker.begin_turn()
        return live_topics(self._broker.engine, self._broker)

    # -- the sweeps ------------------------------------------------------------------------

    async def upkeep(self) -> None:
        """Follow the clocks; let the log seal segments, write checkpoints, give up files. While the
        disk is full, acknowledged entries go at once."""
        self._broker.follow_clocks()
        self._broker.begin_turn()
        self._broker.identity_writer.look(self._broker.engine.now_ns)
        logs = self._broker.logs
        if logs.telemetry is not None:
            logs.telemetry.log.leave_room(leave=logs.main.log.full)
        if logs.main.log.full:
            self._full_rounds += 1
            await self.retain()
        else:
            self._full_rounds = 0
            if self._has_grown():
                await self.retain()
        self.log_upkeep()
        for watched in (self._broker.disk, self._broker.committer.latency, self._broker.door):
            watched.watch()

    def _has_grown(self) -> bool:
        """Whether so much was published since the last look at what may go that another is due."""
        since_ns = self._broker.engine.now_ns - self._retained_ns
        segments = self._broker.log.active_segment() - self._retained_segment
        return segments >= GROWN_SEGMENTS and since_ns >= GROWN_PERIOD_NS

    async def keep_log_time(self) -> None:
        """Write the mark of the log's time when that is due. Apart from the upkeep, which must not
        wait for the metadata."""
        broker = self._broker
        if broker.log_clock.is_due(broker.clock.monotonic_ns()):
            await broker.log_clock.keep(broker.writer)

    def log_upkeep(self) -> None:
        """Run the due maintenance of every log: see :mod:`headgate.storage.log_maintenance`."""
        for managed in self._broker.logs:
            managed.maintenance.run()

    async def sample_rates(self) -> None:
        """Take the samples that the rates in stats are computed from."""
        async for topic in self._topics():
            now_ns = self._broker.engine.now_ns
            topic.rates.sample(topic.counters(), now_ns)
            for producer in topic.producers.values():
                producer.rates.sample(producer.counters(), now_ns)
            for subscription in topic.subscriptions.values():
                subscription.rates.sample(subscription.counters(), now_ns)
                for consumer in subscription.consumers:
                    consumer.rates.sample(consumer.counters(), now_ns)

    async def remember(self) -> None:
        """Have the observer note what each topic did."""
        if self.observer is None or not self.observer.begin_round():
            return
        async for topic in self._topics():
            self.observer.observe(topic)

    async def watch_adaptive(self) -> None:
        """See that the limits of a controller that fails do not outlive it."""
        if self._broker.adaptive is not None:
            self._broker.begin_turn()
            self._broker.adaptive.watch()

    async def retain(self) -> None:
        """Give up acknowledged entries that retention no longer asks for, by whole ledgers."""
        self._retained_ns = self._broker.engine.now_ns
        self._retained_segment = self._broker.log.active_segment()
        looks = 0
        async for topic in self._topics():
            first = topic.log.first
            if first == topic.log.end or topic.slowest_durable_ordinal() <= first:
                continue  # quickly: most topics, most times
            if topic.log.damage:
                continue  # nobody knows who owes what of it
            log = self._broker.logs.of(topic).log
            keep_from = release(
                log,
                topic,
                self._broker.policies.retention(topic.name),
                self._broker.engine.log_ms,
                need=self._full_rounds >= FULL_ROUNDS,
            )
            if keep_from > topic.log.first:
                for subscription in topic.subscriptions.values():
                    if (
                        not subscription.is_durable
                        and subscription.acks.mark_delete + 1 < keep_from
                    ):
                        subscription.skip_to(keep_from)
                log.stage_trim(topic.log, keep_from)
            looks += 1
            if looks % SLICE_RETAINED == 0:
                await asyncio.sleep(0)
                self._broker.begin_turn()
        for managed in self._broker.logs:
            managed.committer.kick()

    async def delete_inactive(self) -> None:
        """Delete topics that nobody has used for a whole period and that hold nothing retained."""
        broker = self._broker
        if not broker.settings.brokerDeleteInactiveTopicsEnabled:
            return
        doomed = [topic async for topic in self._topics() if self._is_inactive(topic)]
        for topic in doomed:
            try:
                await broker.registry.delete(
                    topic.name, force=False, unless=partial(self._is_in_use, topic)
                )
            except HeadgateError as error:
                logger.warning("inactive %s is not deleted: %s", topic.name, error)

    def _is_inactive(self, topic: Topic) -> bool:
        broker = self._broker
        period_ns = broker.settings.brokerDeleteInactiveTopicsFrequencySeconds * NS_PER_S
        return (
            topic.is_unused()
            and not topic.log.damage
            and not topic.is_system
            and topic.name.partition < 0
            and broker.engine.now_ns - topic.idle_since_ns >= period_ns
            and broker.policies.retention(topic.name) == Retention(0, 0)
        )

    def _is_in_use(self, topic: Topic) -> bool:
        """Whether it is used again, or gone, since it was found inactive."""
        self._broker.begin_turn()
        return not topic.is_live or not self._is_inactive(topic)

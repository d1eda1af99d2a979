"""One running broker.

A broker owns its data directory, its ports and its topics, and has no global state. It runs on the
event loop on which it is started; its lanes do the blocking work. Every event reaches the engine
inside a turn: :meth:`Broker.begin_turn` reads the clock once, and :meth:`Broker._flush` dispatches
what the turn made possible before the loop rests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from headgate.base.ack_set import AckSet
from headgate.base.clock import Clock
from headgate.base.errors import InvariantError, StorageError, broken
from headgate.base.names import parse_topic
from headgate.base.units import MIB, MS_PER_S, NS_PER_MS, NS_PER_S
from headgate.base.work_units import PRODUCER_RESOLVED
from headgate.broker.audit import AuditLog
from headgate.broker.authentication import Authentication
from headgate.broker.authorization import Authorizer, authorizer_of
from headgate.broker.client_memory import ClientMemory
from headgate.broker.connection.command_budget import CommandBudget
from headgate.broker.connection.connection_limits import ConnectionLimits
from headgate.broker.connection.open_connections import OpenConnections
from headgate.broker.connection_admission import ConnectionAdmission
from headgate.broker.count_limits import CountLimits
from headgate.broker.damage import damage_text
from headgate.broker.effects import EngineEffects
from headgate.broker.entries import SingleEntryReader
from headgate.broker.http_memory import HttpMemory
from headgate.broker.info import BrokerCounts, BrokerInfo
from headgate.broker.lanes import Lanes
from headgate.broker.policy_rollout import PolicyRollout
from headgate.broker.policy_updates import PolicyUpdates, engine_limits
from headgate.broker.process_room import ProcessRoom
from headgate.broker.quota_logger import QuotaLogger
from headgate.broker.registry import TopicRegistry
from headgate.broker.revoked_clients import RevokedClients, principals_by_role
from headgate.broker.rights_rollout import RightsRollout
from headgate.broker.schemas.registry import SchemaRegistry
from headgate.broker.subscriptions import Subscriptions
from headgate.broker.sweeps.client_memory_sweep import ClientMemorySweep
from headgate.broker.sweeps.deduplication_sweep import DeduplicationSweep
from headgate.broker.sweeps.endings import Endings
from headgate.broker.sweeps.log_sweep import LogSweep
from headgate.broker.sweeps.quota_sweep import QuotaSweep
from headgate.broker.sweeps.session_sweep import CHECK_PERIOD_S, SessionSweep
from headgate.broker.sweeps.space_check import PERIOD_S as SPACE_CHECK_PERIOD_S
from headgate.broker.sweeps.space_check import SpaceCheck
from headgate.broker.sweeps.sweeps import Sweeps
from headgate.broker.sweeps.topic_growth import TopicGrowthSweep
from headgate.broker.sweeps.topic_sweeps import TopicSweeps
from headgate.broker.sweeps.trimming import Trimming
from headgate.broker.tls_status import TlsStatus
from headgate.broker.topic_watchers import TopicWatchers
from headgate.broker.work.scheduler import JobClass, WorkScheduler
from headgate.broker.work.turn_meter import NOTED_NS_MIN, TurnMeter
from headgate.control.adaptive import AdaptiveThrottle
from headgate.control.memory import MemorySource
from headgate.engine.engine import Engine
from headgate.engine.rate_meter import SAMPLE_PERIOD_NS
from headgate.engine.topic import Topic
from headgate.ledger import CommitLog
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.store import MetadataStore
from headgate.policy.current_limits import CurrentDispatchLimits, CurrentPublishLimits
from headgate.policy.dynamic_settings import DynamicSettings
from headgate.policy.resolver import PolicyResolver
from headgate.policy.settings import Settings
from headgate.storage.committer import Committer
from headgate.storage.disk_monitor import DiskMonitor
from headgate.storage.entry_reader import EntryReader
from headgate.storage.identity_writer import IdentityWriter
from headgate.storage.index_loader import IndexLoader
from headgate.storage.lane_watch import LaneWatch
from headgate.storage.lanes import Lane
from headgate.storage.log_clock import LogClock
from headgate.storage.log_maintenance import LogMaintenance
from headgate.storage.log_rewriting import LogRewriting
from headgate.storage.managed_logs import TELEMETRY_LOG, ManagedLog, ManagedLogs
from headgate.storage.metadata_writer import MetadataWriter
from headgate.storage.paced_removal import PacedRemoval
from headgate.storage.publish_buffer import PublishBuffer
from headgate.storage.store_binding import MAIN_LOG
from headgate.wire.delivery_time import due_time_ms_of

logger = logging.getLogger("headgate.broker")

HEALTH_TOPIC_NUMBER = 0
"""No topic has this number, so the next start drops what a health check wrote to the log."""


class Broker:
    """A running broker. Build it with opened stores, then :meth:`start` it."""

    is_ready = False
    _names_count = 0
    _flush_scheduled_ns: int | None = None
    _wake: asyncio.TimerHandle | None = None
    _wake_ns = 0

    def __init__(
        self,
        *,
        settings: Settings,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        catalog: Catalog,
        store: MetadataStore,
        log: CommitLog,
        telemetry_log: CommitLog | None = None,
        lanes: Lanes,
        info: BrokerInfo,
        authorizer: Authorizer | None = None,
        authentication: Authentication | None = None,
        memory: MemorySource | None = None,
        room: ProcessRoom,
        client_memory_bytes_max: int,
        boot_id: str = "",
    ) -> None:
        """``authentication`` is None if every client is taken as it comes, ``memory`` is for the
        adaptive controller, ``boot_id`` for the time of the log."""
        self.settings = settings
        self.clock, self.loop, self.catalog, self.log = clock, loop, catalog, log
        turns = self.turns = TurnMeter(clock)
        self.lane_watch = LaneWatch(clock, turns.ended)
        self.lanes = lanes = lanes.watched(self.lane_watch)
        self.info = info
        self.authorizer = authorizer or authorizer_of(catalog, settings)
        self.authentication = authentication
        self.audit = AuditLog(clock, loop, settings.superUserRoles)
        self._telemetry_topic = parse_topic(settings.headgateTelemetryTopic)
        self.policies = PolicyResolver(catalog, settings, [self._telemetry_topic.full])
        self.current_publish_limits = CurrentPublishLimits(self.policies.publish_limits)
        self.quota_logger = QuotaLogger()
        self.dynamic = DynamicSettings(settings)
        logs = (log,) if telemetry_log is None else (log, telemetry_log)
        self.log_clock = LogClock(clock, catalog, logs, boot_id)
        effects = EngineEffects(self.log_clock, self.quota_logger, self.schedule_flush)
        self.engine = self._make_engine(effects)
        room.tell = self.engine.memory_part.use
        self.count_limits = CountLimits(self.policies.counts, self.engine.memory_part)
        self.current_dispatch_limits = self._make_current_dispatch_limits()
        self.work = WorkScheduler(loop, self.begin_turn, self.turns)
        self.command_budget = CommandBudget(loop)
        self._policy_updates = self._make_policy_updates()
        self.begin_turn()
        self.started_ms = self.engine.now_ms
        self.connection_admission = ConnectionAdmission(self.engine)
        self.client_memory = self._make_client_memory(client_memory_bytes_max, room)
        self.http_memory, self.tls = HttpMemory.of(settings, room), TlsStatus()
        self.connection_limits = self._make_connection_limits()
        self.disk = DiskMonitor(log, lanes.metadata, self.engine, logs[1:])
        self.publish_buffer = self._make_publish_buffer()
        self.logs = effects.logs = self._manage_logs(telemetry_log)
        self.committer = self.logs.main.committer
        self.reader = self.logs.main.reader
        self.writer = MetadataWriter(catalog, store, lanes.metadata, loop, self._metadata_applied)
        self.identity_writer = self._make_identity_writer(logs)
        self.registry = self._make_registry()
        self.topic_watchers = TopicWatchers(self)
        self.subscriptions = self._make_subscriptions()
        self.schemas = SchemaRegistry(self)
        self.entries = SingleEntryReader(self.logs, lanes.read, self.begin_turn)
        self.adaptive = self._make_adaptive(memory)
        self.sweeps = self._make_sweeps(effects)
        self.closed = asyncio.Event()
        self.counts = BrokerCounts()
        self.connections, self.revoked_clients = self._make_connections()
        self.on_flush: list[Callable[[], None]] = []
        """Actions for the end of the next flush: connections write what they gathered."""

    def _make_identity_writer(self, logs: Sequence[CommitLog]) -> IdentityWriter:
        by_name = dict(zip((MAIN_LOG, TELEMETRY_LOG), logs, strict=False))  # as in the metadata
        return IdentityWriter(self.catalog, by_name, self.lanes.metadata)

    def _make_client_memory(self, bytes_max: int, room: ProcessRoom) -> ClientMemory:
        return ClientMemory(bytes_max, lambda: self.engine.now_ns, self._bounded_elsewhere, room)

    def _make_current_dispatch_limits(self) -> CurrentDispatchLimits:
        return CurrentDispatchLimits(self.policies.dispatch_limits, self.engine)

    def _make_connections(self) -> tuple[OpenConnections, RevokedClients]:
        admission, limits = self.connection_admission, self.connection_limits
        call_soon = self.loop.call_soon
        found = OpenConnections(admission, limits, self.client_memory, self.counts, call_soon)
        revoked = RevokedClients(
            self.settings, found, self.work, self.engine,
            lambda connection: connection.principals or principals_by_role(connection),
        )  # fmt: skip
        if self.authentication is not None:
            self.authentication.why_revoked = revoked.why_refused
            self.authentication.note_failure = self.audit.note_failed_login
        self.sweeps.add("the revocation sweep", revoked.sweep, revoked.period_s)
        return found, revoked

    def _make_connection_limits(self) -> ConnectionLimits:
        places, now_ns = self.client_memory.connections_max, lambda: self.engine.now_ns
        return ConnectionLimits(self.settings, now_ns, places, partial(places, of_few=True))

    def _make_publish_buffer(self) -> PublishBuffer:
        settings = self.settings
        return PublishBuffer(self.log, lambda: settings.maxMessagePublishBufferSizeInMB * MIB)

    def _manage_logs(self, telemetry_log: CommitLog | None) -> ManagedLogs:
        main = self._manage_log(self.log, self.lanes.commit, self.disk, "the log")
        if telemetry_log is None:
            return ManagedLogs(main, None)
        lane = self.lanes.telemetry or self.lanes.commit
        telemetry = self._manage_log(telemetry_log, lane, None, "the telemetry log")
        return ManagedLogs(main, telemetry)

    def _manage_log(
        self, log: CommitLog, lane: Lane, disk: DiskMonitor | None, what: str
    ) -> ManagedLog:
        engine, loop, begin_turn = self.engine, self.loop, self.begin_turn
        committer = Committer(
            log, lane, engine, loop, begin_turn, partial(self.commit_ended, log), disk, what,
            lambda name, steps: self.work.run(name, JobClass.COMMIT, steps),
        )  # fmt: skip
        reader = EntryReader(log, self.lanes.read, engine, loop, begin_turn, committer, self.clock)
        upkeep = self.lanes.upkeep
        maintenance = LogMaintenance(
            log, lane, upkeep, engine, loop, begin_turn, committer, disk, what
        )
        rewriting = LogRewriting(
            log, upkeep, engine, loop, begin_turn,
            lambda: self.settings.headgateRewriteBytesPerSecond, what,
        )  # fmt: skip
        index = IndexLoader(log, self.lanes.read, engine, begin_turn, self.clock)
        removal = PacedRemoval(log, self.lanes.removal, engine, loop, begin_turn, what)
        return ManagedLog(log, lane, committer, reader, index, maintenance, rewriting, removal)

    def _make_registry(self) -> TopicRegistry:
        telemetry = self._telemetry_topic
        if self.logs.telemetry is not None:
            self.catalog.keep_in(telemetry, TELEMETRY_LOG)
        self.catalog.limit_topics(self.policies.counts.topics_of_namespace, [telemetry.full])
        self.catalog.limit_namespaces(lambda: self.settings.maxNamespacesPerTenant)
        return TopicRegistry(
            self.engine,
            self.logs,
            self.catalog,
            self.writer,
            self.settings,
            self.policies.uses,
            self.when_durable,
            self.work,
            self.count_limits.check_partitions,
            system_topics=[telemetry.full],
        )

    def _make_subscriptions(self) -> Subscriptions:
        partition_ready = self.registry.partition_subscriptions.when_ready
        return Subscriptions(
            self.engine,
            self.logs,
            self.begin_turn,
            partition_ready,
            self.count_limits,
            self.work,
            self.registry.note_use,
            self.registry.partitions,
        )

    def _make_policy_updates(self) -> PolicyUpdates:
        engine, work, loop = self.engine, self.work, self.loop
        rollout = PolicyRollout(engine, work, loop)
        rights = RightsRollout(engine, lambda: self.authorizer, work, loop)
        return PolicyUpdates(
            engine, self.catalog, self.settings, self.dynamic, self.policies, rollout, rights
        )

    def _make_engine(self, effects: EngineEffects) -> Engine:
        return Engine(
            effects,
            limits=engine_limits(self.settings),
            cache_bytes_max=self.settings.managedLedgerCacheSizeMB * MIB,
            policies=self.policies.of_engine(due_time_ms_of),
        )

    def _make_adaptive(self, memory: MemorySource | None) -> AdaptiveThrottle | None:
        if not self.settings.adaptivePublisherThrottlingEnabled:
            return None
        return AdaptiveThrottle(
            self.engine,
            self.settings,
            self.current_publish_limits,
            memory,
            loop=self.loop,
            clock=self.clock,
            begin_turn=self.begin_turn,
            run_in_slices=lambda steps: self.work.run(
                "putting an adaptive limit in force",
                JobClass.COMMAND,
                (PRODUCER_RESOLVED for _ in steps),
            ),
        )

    def _make_sweeps(self, effects: EngineEffects) -> Sweeps:
        settings, adaptive = self.settings, self.adaptive
        self.topic_sweeps = TopicSweeps(self.engine, self)
        self.quota_sweep = QuotaSweep(self.engine, settings, self.clock, self.quota_logger, self)
        idle_ms = settings.managedLedgerInactiveLedgerRolloverTimeSeconds * MS_PER_S
        retention_of, measured = self.policies.applied_retention, self.turns.measured
        self.trimming = Trimming(self.engine, self.logs, retention_of, self, idle_ms, measured)
        effects.trimming = self.trimming
        self.endings = Endings(self)
        effects.message_expiry = self.endings.messages
        sweeps = Sweeps(self.loop, self.engine, self.turns)

        def every_second() -> float:
            return 1.0

        async def keep_log_time() -> None:
            await self.log_clock.write_mark_if_due(self.writer)

        async def check_adaptive() -> None:
            if adaptive is not None:
                self.begin_turn()
                adaptive.check_health()

        log_sweep = LogSweep(
            self.engine,
            self.logs,
            self.identity_writer,
            self.update_clocks,
            self.disk,
            (self.committer.latency, self.connection_admission, self.connection_limits),
        )
        sweeps.add("the trimming sweep", self.trimming.trim_if_needed, every_second)
        sweeps.add("the log sweep", log_sweep.run, every_second)
        sweeps.add("the log time sweep", keep_log_time, every_second)
        sweeps.add("the observation sweep", self.topic_sweeps.observe, every_second)
        sweeps.add("the watch over adaptive throttling", check_adaptive, every_second)
        sweeps.add("the quota fill sweep", self.quota_sweep.sample, every_second)
        sweeps.add(
            "the quota check",
            self.quota_sweep.check,
            lambda: settings.backlogQuotaCheckIntervalInSeconds,
        )
        sweeps.add(
            "the rate sweep",
            self.topic_sweeps.sample_rates,
            lambda: SAMPLE_PERIOD_NS / NS_PER_S,
        )
        sweeps.add(
            "the retention sweep",
            self.trimming.trim,
            lambda: settings.retentionCheckIntervalInSeconds,
        )
        DeduplicationSweep(self.engine, settings, self).add_to(sweeps)
        self.space_check = SpaceCheck(self.logs, self)
        self.topic_growth = growth = TopicGrowthSweep(self.engine, self.logs, self)
        sweeps.add("the topic growth sweep", growth.measure, growth.period_s)
        sweeps.add("the space check", self.space_check.check, lambda: SPACE_CHECK_PERIOD_S)
        self.endings.add_to(sweeps)
        return sweeps

    # -- start and end ---------------------------------------------------------------------

    async def start(self) -> None:
        """Create the metadata of a first start, load the stored topics and begin the sweeps."""
        self._policy_updates.use_stored_settings()
        namespaces = [self._telemetry_topic.namespace]
        change = self.catalog.plan_first_boot(system_namespaces=namespaces)
        if change is not None:
            await self.writer.commit(change)
        self.begin_turn()
        self._policy_updates.set_broker_limits()
        self.registry.load_all()
        if damage := damage_text(self.engine):
            logger.error("%s; 'headgate explain' shows what can be done", damage)
        if not self.settings.backlogQuotaCheckEnabled:
            logger.warning("backlogQuotaCheckEnabled is false: no backlog quota is enforced")
        memory_sweep = ClientMemorySweep(self.client_memory, self.connections, self.work)
        self.sweeps.add(
            "the client memory sweep", memory_sweep.measure, lambda: self.client_memory.period_s
        )
        if self.authentication is not None:
            session_sweep = SessionSweep(self.authentication, self.work)
            self.sweeps.add("the session sweep", session_sweep.check, lambda: CHECK_PERIOD_S)
        self.sweeps.start()
        if self.adaptive is not None:
            self.adaptive.start()
        self.is_ready = True

    async def close(self) -> None:
        """Stop the sweeps and make everything staged durable. Connections are closed already."""
        self.is_ready = False
        await self.connections.left_acknowledgements.finish()
        self.stop_sweeps()
        self.audit.close()
        try:
            await self._make_durable()
        finally:
            for managed in self.logs:
                managed.committer.stop()
            self.closed.set()

    async def _make_durable(self) -> None:
        for managed in self.logs:
            managed.reader.close()
        self.begin_turn()
        if self.adaptive is not None:
            self.adaptive.stop()
        for topic in list(self.engine.topics.values()):
            topic.fence()
        for managed in self.logs:
            try:
                await managed.committer.when_all_answered()
            except StorageError as error:
                logger.error("closing: %s", error)
        await self.log_clock.write_mark(self.writer)
        await self.writer.when_earlier_done()
        await self.identity_writer.close()
        if self._wake is not None:
            self._wake.cancel()

    async def commit(self, change: Change) -> None:
        """Commit a change of the metadata. Return when it is in effect and the partitions that it
        created have their subscriptions.

        Raises:
            StorageError: it could not be stored, or these subscriptions could not.
        """
        await self.writer.commit(change)
        await self._policy_updates.when_in_force(change)
        await self.registry.partition_subscriptions.when_created(change)

    async def check_commits(self) -> None:
        """Commit the creation and deletion of a cursor of no topic to the main log.

        Raises:
            StorageError: it could not be stored.
        """
        self.begin_turn()
        cursor_id = self.log.create_cursor(HEALTH_TOPIC_NUMBER, "health", AckSet(), {})
        self.log.delete_cursor(cursor_id)
        await self.committer.prove()

    def internal_errors(self) -> list[str]:
        """The periodic jobs that fail with an internal error at present, each with the error."""
        own = (*self.identity_writer.internal_errors(), *self.disk.internal_errors())
        return [*self.sweeps.internal_errors(), *self.logs.internal_errors(), *own]

    def why_unready(self) -> str:
        """Why the started broker cannot serve: a store failed or a lane is stuck. Empty if it
        can."""
        for failed in (self.log.failed, self.writer.failed):
            if failed is not None:
                return str(failed)
        return self.lane_watch.stuck_sentence()

    def stop_sweeps(self) -> None:
        """End all periodic work; a running maintenance job of a log is the last one."""
        self.logs.stop_maintenance()
        for stop in (self.sweeps.stop, self.trimming.stop, self.endings.messages.stop):
            stop()

    def _metadata_applied(self, change: Change) -> None:
        """A change of metadata is durable: it takes effect in this turn."""
        self.begin_turn()
        self.registry.partition_subscriptions.applied(change)
        if self._policy_updates.apply_settings(change) and self.adaptive is not None:
            self.adaptive.settings_changed()
        self._policy_updates.apply_policies(change)
        self.topic_watchers.applied(change)

    # -- the turn --------------------------------------------------------------------------

    def update_clocks(self) -> None:
        """Read the offsets of wall clock and log time again, then begin a turn."""
        has_jumped = self.log_clock.update_offsets()
        self.begin_turn()
        if has_jumped:
            self.engine.quotas.time_jumped()
        self._arm_wake()  # due times of delayed messages follow the wall clock

    def begin_turn(self) -> None:
        """Read the clock: everything until the next call happens at this instant."""
        now_ns, clock = self.clock.monotonic_ns(), self.log_clock
        now_ms = (now_ns + clock.wall_offset_ns) // NS_PER_MS
        self.engine.begin_turn(now_ns, now_ms, now_ms - clock.skew_ms)

    async def give_way(self, units: int) -> None:
        """Let others run, until a walk may do ``units`` more of its work, and begin a turn."""
        await self.work.give_way(units)

    async def grant(self, units: int) -> int:
        """As :meth:`give_way`; returns how many units may be done, perhaps more."""
        return await self.work.grant(units)

    def schedule_flush(self) -> None:
        """Run :meth:`_flush` before the loop rests."""
        if self._flush_scheduled_ns is None:
            self._flush_scheduled_ns = self.turns.now_ns()
            self.loop.call_soon(self._flush)

    def at_end_of_turn(self, action: Callable[[], None]) -> None:
        """Call ``action`` once, at the end of the next flush."""
        self.on_flush.append(action)
        self.schedule_flush()

    def _flush(self) -> None:
        began_ns, scheduled_ns = self.turns.now_ns(), self._flush_scheduled_ns
        if scheduled_ns is not None:
            self._flush_scheduled_ns = None
            if began_ns - scheduled_ns >= NOTED_NS_MIN:
                # Everything that ran since then delayed this flush.
                self.turns.ended("one iteration of the loop", scheduled_ns)
        self.begin_turn()
        try:
            more = self.engine.flush()
        except Exception as error:
            # Also one of the expected kinds: nothing in a turn may fail, and what it had begun
            # would stand still until its next event.
            raise broken("a turn", error) from error
        actions, self.on_flush = self.on_flush, []
        for action in actions:
            try:
                action()
            except InvariantError:
                raise
            except Exception:
                # An action concerns one connection: the others still write their frames.
                logger.exception("the end of a turn failed with an internal error")
        for managed in self.logs:
            managed.committer.commit_if_idle()
        if more:
            self.schedule_flush()
        else:
            self._arm_wake()
        self.turns.ended("dispatch and the end of a turn", began_ns)

    def _arm_wake(self) -> None:
        wake_ns = self.engine.next_wake_ns()
        if wake_ns is None:
            return
        if self._wake is not None:
            if self._wake_ns <= wake_ns:
                return
            self._wake.cancel()
        delay_ns = max(wake_ns - self.engine.now_ns, 0)
        # The loop's timers have a resolution of a millisecond: round up, never wake early.
        self._wake = self.loop.call_later(-(-delay_ns // NS_PER_MS) * 0.001, self._woken)
        self._wake_ns = wake_ns

    def _woken(self) -> None:
        self._wake = None
        self._flush()

    # -- for connections -------------------------------------------------------------------

    def _bounded_elsewhere(self) -> dict[str, int]:
        """Bytes of clients, by kind, that other settings bound."""
        return {
            "parked": self.engine.parked.bytes,
            "staged": self.log.unstored_bytes,
            "http": self.http_memory.held_bytes,
        }

    def publish_buffer_full(self) -> bool:
        """Whether more bytes wait to be durable than maxMessagePublishBufferSizeInMB allows."""
        return self.publish_buffer.is_full

    def commit_ended(self, log: CommitLog) -> None:
        """A commit ended, or more receipts are sent: resume connections, and maintain what is due.

        Publishers may fill segments faster than the periodic sweep prepares them, and a full disk
        needs its reserve for acknowledgements, and the room that other logs can give.
        """
        self.engine.admission.recheck_pending_limits()
        self.connections.resume_reading()
        for managed in self.logs:
            if managed.log is log or log.full:
                managed.maintenance.run_if_due()

    def unique_name(self) -> str:
        """A producer or consumer name that is never used twice, even after a restart."""
        self._names_count += 1
        return f"{self.settings.clusterName}-{self.started_ms:x}-{self._names_count}"

    def ordinal_at_time(self, topic: Topic, publish_ms: int) -> int:
        """The first entry that was published at or after a time of the wall clock; the end if
        there is none. A look-up for :meth:`IndexLoader.look_up`."""
        return topic.log.ordinal_published_at_or_after(publish_ms - self.log_clock.skew_ms)

    async def when_durable(self, topic: Topic | None = None) -> None:
        """Return when what is staged in the main log is durable, or in a topic's and answered.

        Raises:
            StorageError: it could not be stored.
        """
        committer = self.committer if topic is None else self.logs.of(topic).committer
        await (committer.when_durable() if topic is None else committer.when_answered(topic))

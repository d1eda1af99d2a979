"""A whole broker in one object: engine, log, metadata, connections, in memory and virtual time.

The power can be cut at any instant (:meth:`World.crash`): what was not synced is gone or partly
there, the broker's tasks and lanes stop where they are, its connections end. :meth:`World.start`
then recovers from what is left, as a restarted process does.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import random
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from headgate.base.names import parse_topic
from headgate.base.units import KIB, NS_PER_MS, NS_PER_S
from headgate.broker.authentication import Authentication
from headgate.broker.client_memory import client_memory_bytes
from headgate.broker.connection.connection import Connection
from headgate.broker.info import BrokerInfo
from headgate.broker.lanes import Lanes
from headgate.broker.process_room import ProcessRoom
from headgate.broker.server import connection_factory
from headgate.broker.service import Broker
from headgate.control.memory import MemorySource
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger import CommitLog, LedgerSettings, look_at_log
from headgate.metadata.catalog import Catalog
from headgate.metadata.memory_store import MemoryStore
from headgate.observe.observer import Observer
from headgate.policy.settings import Settings
from headgate.security.failed_attempts import FailedAttempts
from headgate.security.provider import Provider
from headgate.storage.closing import close_log
from headgate.storage.log_clock import receive_time_bound
from headgate.storage.managed_logs import TELEMETRY_LOG
from headgate.storage.store_binding import MAIN_LOG, LogPlace, open_bound_log
from headgate.storage.topic_migration import migrate_topic
from headgate.testing.client import SimClient
from headgate.testing.clock import ManualClock
from headgate.testing.errors import ConnectionLostError
from headgate.testing.lanes import SimLane
from headgate.testing.loop import HOST, SimLoop
from headgate.testing.transport import NetworkProfile, SimNetwork
from headgate.wire.sequence_ids import entry_sequence

T = TypeVar("T")

DIRECTORY = "/data"
TELEMETRY_DIRECTORY = "/telemetry"

SMALL_SEGMENTS = LedgerSettings(segment_bytes=256 * KIB, checkpoint_part_bytes=KIB)
"""The default ledger settings of a world: small segments, because they live in memory, and small
parts of checkpoints, so that there are some."""


class PowerCutError(Exception):
    """Ends a thread's work when its machine loses power."""


class World:
    """One broker with its disk, network and clients; ``seed`` decides all chance.

    ``settings`` are the broker's (as text, by Pulsar's keys), ``ledger`` those of its log,
    ``capacity_bytes`` the size of its disk. Use it as a context manager, or call :meth:`close`.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        settings: Mapping[str, str] | None = None,
        ledger: LedgerSettings | None = None,
        network: NetworkProfile | None = None,
        capacity_bytes: int | None = None,
        memory: MemorySource | None = None,
        process: MemorySource | None = None,
        providers: Sequence[Provider] = (),
        telemetry_log: bool = False,
    ) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.clock = ManualClock()
        self.loop = SimLoop(self.clock)
        self.network = SimNetwork(self.loop, self._source("network"), network)
        self.settings = dict(settings or {})
        self.ledger_settings = ledger or SMALL_SEGMENTS
        self.fs = MemFs(capacity_bytes)
        self.disk = FaultyFs(self.fs)
        self.store = MemoryStore()
        self.has_telemetry_log = telemetry_log
        self.memory = memory
        """Where the broker's adaptive controller reads memory figures."""
        self.process = process
        """Where the bounds on what clients hold read what the process takes."""
        self.providers = providers
        """What authenticates clients, with the setting ``authenticationEnabled``."""
        self.clients: list[SimClient] = []
        """Every client that was ever connected."""
        self.starts_count = 0
        self.power_cuts_count = 0
        """Power cuts so far; each one restarts the machine."""
        self._broker: Broker | None = None
        self._observer: Observer | None = None
        self._context = contextvars.copy_context()
        self._watch = _ErrorWatch(self.loop)
        self.lanes: list[SimLane] = []
        """Lanes of the running broker: commit, read, metadata, upkeep, removal, and the telemetry
        log's."""

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the machine and close the loop; the world leaves nothing behind."""
        self._end_machine()
        self._watch.close()
        self.loop.kill_host(0)
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    def _source(self, name: str) -> random.Random:
        """A random source for one purpose, so that further draws for one do not shift another."""
        return random.Random(f"{self.seed}:{name}")

    # -- time ------------------------------------------------------------------------------

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run until ``coroutine`` is done and return its result."""
        result = self.loop.run_until_complete(coroutine)
        self.loop.raise_failure()
        return result

    def advance(self, seconds: float) -> None:
        """Let time pass, with everything that happens in it."""
        self.run(asyncio.sleep(seconds))

    def wall_ms(self) -> int:
        """The wall clock, in milliseconds since the epoch."""
        return self.clock.wall_ns() // NS_PER_MS

    @property
    def now_s(self) -> float:
        """Seconds of monotonic time."""
        return self.clock.monotonic_ns() / NS_PER_S

    # -- the broker ------------------------------------------------------------------------

    @property
    def broker(self) -> Broker:
        """The running broker.

        Raises:
            RuntimeError: none is running.
        """
        if self._broker is None:
            raise RuntimeError("the broker is not running")
        return self._broker

    @property
    def observer(self) -> Observer:
        """The observer of the running broker, or of the last one.

        Raises:
            RuntimeError: none ever ran.
        """
        if self._observer is None:
            raise RuntimeError("no broker was started")
        return self._observer

    @property
    def is_running(self) -> bool:
        """Whether a broker is running."""
        return self._broker is not None

    async def start(self) -> Broker:
        """Start (or start again) the broker on what its disk holds.

        Raises whatever the opening of the log raises.
        """
        self.starts_count += 1
        self._context = contextvars.copy_context()
        self._context.run(HOST.set, self.starts_count)
        return await self.loop.create_task(self._start(), context=self._context)

    async def _start(self) -> Broker:
        chance = self._source(f"lanes {self.starts_count}")
        lanes_count = 6 if self.has_telemetry_log else 5
        self.lanes = [SimLane(self.loop, chance) for _ in range(lanes_count)]
        settings = Settings()
        for key, text in self.settings.items():
            settings.set(key, text)
        catalog = Catalog(settings.clusterName, self.store.load())
        log = self._open_log(catalog, MAIN_LOG, DIRECTORY, "")
        telemetry_log = None
        if self.has_telemetry_log:
            telemetry_log = self._open_log(
                catalog, TELEMETRY_LOG, TELEMETRY_DIRECTORY, TELEMETRY_LOG
            )
            topic = parse_topic(settings.headgateTelemetryTopic)
            migrate_topic(catalog, self.store, log, telemetry_log, topic)
        broker = Broker(
            settings=settings,
            clock=self.clock,
            loop=self.loop,
            catalog=catalog,
            store=self.store,
            log=log,
            telemetry_log=telemetry_log,
            lanes=Lanes(*self.lanes),
            info=BrokerInfo(
                broker_id="127.0.0.1:8080",
                broker_url="pulsar://127.0.0.1:6650",
                web_url="http://127.0.0.1:8080",
                version="simulated",
                metadata_url="memory",
            ),
            authentication=self._authentication(settings),
            memory=self.memory,
            room=ProcessRoom(self.process),
            client_memory_bytes_max=client_memory_bytes(settings.headgateClientMemoryMB, 0),
            boot_id=f"boot {self.power_cuts_count}",
        )
        self._observer = Observer(broker)
        self.built(broker)
        await broker.start()
        self._broker = broker
        return broker

    def _authentication(self, settings: Settings) -> Authentication | None:
        if not settings.authenticationEnabled:
            return None
        return Authentication(
            settings, self.providers, FailedAttempts(), lambda: self.clock.wall_ns() / NS_PER_S
        )

    def _open_log(self, catalog: Catalog, name: str, path: str, rows_say: str) -> CommitLog:
        place = LogPlace(name, path, "the metadata", look_at_log(self.disk, path))
        is_main = name == MAIN_LOG
        return open_bound_log(
            catalog,
            self.store,
            place,
            lambda terms: CommitLog.open(
                self.disk,
                path,
                topic_numbers=catalog.topic_numbers_in(rows_say),
                entropy=self._source(f"{name} {self.starts_count}").randbytes,
                settings=self.ledger_settings,
                receive_time_bound=receive_time_bound(catalog, self.clock) if is_main else None,
                topic_number_last=terms.topic_number_last,
                ids_min=terms.ids_min,
                batch_min=terms.batch_min,
                sequence_of=entry_sequence,
            ),
            entropy=self._source("identity").randbytes,
            boot_wall_ms=self.wall_ms(),
        )

    def built(self, broker: Broker) -> None:
        """Called before a broker starts. A subclass may watch it from its first turn on."""

    async def stop(self) -> None:
        """Stop the broker as an operator does: everything staged becomes durable."""
        broker, self._broker = self.broker, None  # from here on it accepts no connection
        for connection in sorted(broker.connections, key=lambda c: c.address):
            connection.close()
        await asyncio.sleep(0)
        await self.loop.create_task(_close(broker), context=self._context)
        self.loop.kill_host(self.starts_count)
        await asyncio.sleep(0)

    def crash(self) -> None:
        """Cut the power now; also while a :meth:`start` is under way or after it failed.

        A job in progress may reach the disk whole, in part or not at all, by chance; so may pages
        and names that were not synced.
        """
        self.power_cuts_count += 1
        chance = self._source(f"crash {self.starts_count}")
        pending = [lane.pending_work()[:1] for lane in self.lanes]
        self._end_machine()
        for work in [job for jobs in pending for job in jobs if chance.random() < 0.5]:
            self._work_until_the_cut(work, chance)
        self.fs = self.fs.crash_clone(chance.randrange(1 << 30) if chance.random() < 0.8 else None)
        self.disk = FaultyFs(self.fs)
        self.store = self.store.crash_clone()

    def _work_until_the_cut(self, work: Any, chance: random.Random) -> None:
        """Run a job for a few disk operations, then cut it off."""
        last = self.disk.operations_count + chance.randrange(5)

        def plan(operation: Operation) -> None:
            if operation.index >= last:
                raise PowerCutError

        self.disk.plan = plan
        try:
            work()
        except Exception:  # no machine is left to report it
            logging.getLogger("headgate.testing").debug("cut off", exc_info=True)

    def _end_machine(self) -> None:
        broker, self._broker = self._broker, None
        for lane in self.lanes:
            lane.kill()
        self.loop.kill_host(self.starts_count)
        if broker is None:
            return
        broker.stop_sweeps()
        for connection in sorted(broker.connections, key=lambda c: c.address):
            connection._transport.abort()

    async def ask(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run something on the broker's machine, as a request to its admin API.

        Raises:
            ConnectionLostError: the power was cut before it ended.
        """
        task = self.loop.create_task(coroutine, context=self._context.copy())
        task.add_done_callback(_retrieve_error)
        await asyncio.wait([task])
        if task.cancelled():
            raise ConnectionLostError("the power was cut")
        return task.result()

    # -- clients ---------------------------------------------------------------------------

    def accept(self) -> Connection:
        """The broker's side of a new connection. A subclass may return one that it watches."""
        return connection_factory(self.broker)()

    def open_connection(self, client: SimClient | None = None) -> SimClient:
        """A client whose connection is open and has sent nothing yet: ``client``, or a new one."""
        if client is None:
            client = SimClient(self.loop, wall_ms=self.wall_ms)
        server = self._context.run(self.accept)
        self.network.connect(server, client, server_context=self._context.copy())
        self.clients.append(client)
        return client

    async def connect(self, **options: Any) -> SimClient:
        """A client that is connected: the broker sent CONNECTED. ``options`` are those of
        :meth:`SimClient.connect`."""
        client = self.open_connection()
        await client.connect(**options)
        return client


async def _close(broker: Broker) -> None:
    """Close a broker, its logs and its threads in the order of a node."""
    await broker.close()
    for managed in reversed([*broker.logs]):
        lanes = broker.lanes
        await close_log(
            managed.log, removal=lanes.removal, upkeep=lanes.upkeep, commits=managed.lane
        )
    broker.lanes.close()


def _retrieve_error(task: asyncio.Task[Any]) -> None:
    """Retrieve the task's error: asyncio reports one that a caller who is gone never retrieves."""
    if not task.cancelled():
        task.exception()


class _ErrorWatch(logging.Handler):
    """Ends the run when the broker logs an error with a traceback."""

    def __init__(self, loop: SimLoop) -> None:
        super().__init__(logging.ERROR)
        self._loop = loop
        logging.getLogger("headgate").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self._loop.fail(record.exc_info[1])

    def close(self) -> None:
        logging.getLogger("headgate").removeHandler(self)
        super().close()

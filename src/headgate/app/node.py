"""One broker with its directory, stores, threads and ports.

:meth:`Node.start` opens them in order. Closing, or a start that fails half way, closes them in
reverse order. Nothing here is global: several nodes may live in one process.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from headgate import __version__
from headgate.admin.app import AdminApp
from headgate.app.authentication_providers import providers_of
from headgate.app.backup.holding import FileHolding
from headgate.app.data_directory import DataDirectory
from headgate.app.descriptors import descriptors_max
from headgate.app.disk_reserve import DiskReserve
from headgate.app.export_settings import export_settings
from headgate.app.http_rate import HttpRate
from headgate.app.listeners import check_address
from headgate.app.machine import boot_id
from headgate.app.names_key import names_key
from headgate.app.open_stores import open_copied, open_log
from headgate.app.open_telemetry import start_export
from headgate.app.openid_provider import OpenIdProvider
from headgate.app.ports import Ports, Urls, plain_ports_warning
from headgate.app.private_files import make_private, tighten
from headgate.app.revocation_file import RevocationFile
from headgate.app.segment_copying.copy_process import CopyProcess
from headgate.app.sign_in.issuer_client import IssuerClient
from headgate.app.sign_in.opening import open_issuer_client
from headgate.app.sign_in.routes import SignInApp
from headgate.app.system_memory import ProcSelfMemory, memory_with_caches, throttling_memory
from headgate.app.telemetry_log import has_telemetry_log, open_telemetry_log
from headgate.app.tls.current import CurrentTls
from headgate.app.tls.entry import HandshakePace
from headgate.app.tls.refresh import TlsRefresh
from headgate.app.turn_parts import measure_callbacks, measured_connection
from headgate.app.used_keys import UsedKeys, key_files_of
from headgate.app.web import WebApp
from headgate.app.web_authentication import METRICS_PATH, WebAuthentication
from headgate.app.web_guard import WebGuard, own_host_names
from headgate.base.clock import Clock, SystemClock, thread_cpu_ns
from headgate.base.errors import InvariantError
from headgate.base.units import MIB, MS_PER_S, NS_PER_S, S_PER_MINUTE
from headgate.broker.authentication import Authentication
from headgate.broker.client_memory import client_memory_bytes
from headgate.broker.connection.connection import Connection
from headgate.broker.info import BrokerInfo
from headgate.broker.lanes import Lanes
from headgate.broker.process_room import ProcessRoom
from headgate.broker.service import Broker
from headgate.broker.work.turn_meter import logger as turns_logger
from headgate.facade.admin_facade import AdminFacade
from headgate.fs import OsFs, SpareFiles
from headgate.ledger import CommitLog, LedgerSettings
from headgate.metadata.catalog import Catalog
from headgate.metadata.store import MetadataStore
from headgate.observe.observer import Observer
from headgate.page.app import PageApp
from headgate.page.files import broker_files, page_files
from headgate.policy.authorization_settings import (
    authorization_warning,
    everybody_may_do_everything,
)
from headgate.policy.settings import Settings
from headgate.security.failed_attempts import FailedAttempts
from headgate.security.sign_ins import SignIns
from headgate.storage.closing import close_log
from headgate.storage.lanes import Lane, ThreadLane, run_on
from headgate.storage.managed_logs import LOGS
from headgate.storage.metadata_copier import MetadataCopier
from headgate.telemetry.prometheus.route import metrics_route
from headgate.telemetry.records.publisher import TelemetryPublisher

logger = logging.getLogger("headgate.app")

Bug = Callable[[BaseException], None]
"""Receives a broken invariant. It must stop everything of the node."""


class Node:
    """A running broker and its parts. Made by :meth:`start`."""

    def __init__(self, broker: Broker, urls: Urls, data_path: str, stack: AsyncExitStack) -> None:
        """For :meth:`start` only."""
        self.broker = broker
        self.urls = urls
        self.data_path = data_path
        self._stack = stack

    @classmethod
    async def start(
        cls,
        settings: Settings,
        data_path: str,
        *,
        on_bug: Bug,
        is_insecure_allowed: bool = False,
        shut_down: Callable[[], None] | None = None,
    ) -> Node:
        """Open everything on the running loop and return when clients are served.

        With ``is_insecure_allowed`` other machines may reach a broker without authentication.
        ``shut_down`` begins to close the process, when an administrator asks for that.

        Raises:
            HeadgateError: a port, a file of TLS, the data directory, its content or the
                environment cannot be used; nothing is left open then.
        """
        warning = check_address(
            settings.bindAddress,
            has_authentication=not everybody_may_do_everything(settings),
            is_insecure_allowed=is_insecure_allowed,
        )
        export = export_settings(os.environ)
        async with AsyncExitStack() as stack:
            loop = asyncio.get_running_loop()
            on_bug = with_reason(on_bug)
            loop.set_exception_handler(exception_handler(on_bug))
            data_path = str(Path(data_path).absolute())
            tls = CurrentTls.open(settings)
            ports = Ports.open(settings, stack)
            for each in (warning, plain_ports_warning(settings), authorization_warning(settings)):
                if each:
                    logger.warning("%s", each)
            _watch_keys(settings, loop, stack)
            authentication = open_authentication(settings, loop, stack)
            issuer = _open_issuer_client(settings, authentication, stack)
            spare = SpareFiles()
            stack.callback(spare.close)
            directory = DataDirectory.open(OsFs(spare), data_path)
            stack.callback(directory.close)
            tighten(directory.path)
            info = broker_info(ports, directory)
            broker, observer, backups = await _open_broker(
                settings, directory, info, loop, stack, authentication
            )
            connection_class = Connection
            if turns_logger.isEnabledFor(logging.DEBUG):
                broker.turns.measure_cpu(thread_cpu_ns)
                measure_callbacks(loop, broker.turns)
                connection_class = measured_connection(broker.turns)
            if export is not None:
                stack.push_async_callback(start_export(broker, export).stop)
            if tls is not None:
                stack.callback(_start_refresh(tls, broker).stop)
            pace = HandshakePace(loop)
            stack.callback(pace.records.steps.close)
            await ports.serve_binary(broker, tls, pace, connection_class, stack)
            facade = AdminFacade(broker, observer, backups, shut_down)
            admin = AdminApp(facade, broker.clock, broker.audit)
            app: ASGIApp = WebApp(
                admin, {METRICS_PATH: metrics_route(broker)}, on_bug, broker.turns
            )
            if authentication is not None:
                app = WebAuthentication(app, authentication, settings)
            if settings.headgatePageEnabled:
                app = _page(app, broker, issuer)
            await ports.serve_web(_guarded(app, broker), broker, tls, pace, stack)
            return cls(broker, ports.urls, data_path, stack.pop_all())

    async def close(self) -> None:
        """End connections, make everything durable, release ports and directory."""
        await self._stack.aclose()


def open_authentication(
    settings: Settings, loop: asyncio.AbstractEventLoop, stack: AsyncExitStack
) -> Authentication | None:
    """What authenticates clients; None without ``authenticationEnabled``. Reads the keys.

    Raises:
        InvalidKeyError: a key or the file of passwords cannot be used.
    """
    if not settings.authenticationEnabled:
        return None

    def open_lane() -> Lane:
        lane = ThreadLane(loop, "headgate-passwords")
        stack.callback(lane.abandon)
        return lane

    attempts = FailedAttempts()
    providers = providers_of(settings, attempts, open_lane, SystemClock())
    for provider in providers:
        if isinstance(provider, OpenIdProvider):
            stack.callback(provider.close)
    return Authentication(settings, providers, attempts, lambda: time.time_ns() / NS_PER_S)


def _watch_keys(settings: Settings, loop: asyncio.AbstractEventLoop, stack: AsyncExitStack) -> None:
    """Warn from now on when a file that the start reads has changed."""
    if files := key_files_of(settings):
        keys = UsedKeys(files, ThreadLane(loop, "headgate-keys"))
        keys.start()
        stack.callback(keys.stop)


def _open_issuer_client(
    settings: Settings, authentication: Authentication | None, stack: AsyncExitStack
) -> IssuerClient | None:
    """What asks the issuer at which readers of the page sign in; None if they do not."""
    providers = authentication.providers if authentication is not None else ()
    issuer = open_issuer_client(settings, providers, SystemClock())
    if issuer is not None:
        stack.callback(issuer.close)
    return issuer


def _page(rest: ASGIApp, broker: Broker, issuer: IssuerClient | None) -> ASGIApp:
    """The page before ``rest``, and the routes with which its readers sign in."""
    if issuer is None:
        return PageApp(page_files(), rest)
    page = PageApp(broker_files(issuer.client.issuer), rest)
    return SignInApp(issuer, SignIns(os.urandom), broker.clock, broker.audit.note, page)


def _guarded(app: ASGIApp, broker: Broker) -> WebGuard:
    """``app`` behind the rules for every request, whoever sends it."""
    settings, clock = broker.settings, broker.clock
    rate = HttpRate(settings, clock.monotonic_ns())
    return WebGuard(
        app,
        own_host_names(settings),
        lambda: rate.refusal(clock.monotonic_ns()),
        broker.audit.note_refused_request,
    )


def broker_info(ports: Ports, directory: DataDirectory) -> BrokerInfo:
    """The broker's names and URLs, once its ports are known."""
    urls = ports.urls
    return BrokerInfo(
        broker_id=ports.broker_id,
        broker_url=urls.broker,
        web_url=urls.web,
        version=__version__,
        metadata_url=f"sqlite:{directory.metadata_path}",
        broker_url_tls=urls.broker_tls,
        web_url_tls=urls.web_tls,
    )


def _start_refresh(tls: CurrentTls, broker: Broker) -> TlsRefresh:
    lane = ThreadLane(broker.loop, "headgate-tls")
    period_s = broker.settings.tlsCertRefreshCheckDurationSec
    refresh = TlsRefresh(tls, broker.tls, lane, period_s, lambda: broker.clock.wall_ns() / NS_PER_S)
    refresh.start()
    return refresh


def ledger_settings(settings: Settings) -> LedgerSettings:
    """The bounds of the log by the settings of the broker."""
    defaults = LedgerSettings()
    age_ms_max = settings.managedLedgerMaxLedgerRolloverTimeMinutes * S_PER_MINUTE * MS_PER_S
    return LedgerSettings(
        ledger_bytes_max=settings.managedLedgerMaxSizePerLedgerMbytes * MIB,
        ledger_age_ms_min=min(defaults.ledger_age_ms_min, age_ms_max),
        ledger_age_ms_max=age_ms_max,
        index_cache_bytes=settings.headgateIndexCacheSizeMB * MIB,
    )


_LANES = ("commit", "read", "metadata", "upkeep", "removal", "telemetry")
"""The threads of :class:`Lanes`, in its order."""


def cached_bytes(broker: Broker) -> int:
    """Memory that the caches could give up at once."""
    logs = broker.logs.by_name().values()
    return broker.engine.cache.size_bytes + sum(log.index_use().size_bytes for log in logs)


def bounded_bytes(broker: Broker) -> int:
    """Memory that has bounds of its own: of caches, of clients as far as they are charged, and of
    what tenants keep when their clients have left."""
    kept_bytes = broker.engine.memory_part.kept_bytes + broker.catalog.bounded_bytes
    return cached_bytes(broker) + sum(broker.client_memory.by_kind().values()) + kept_bytes


async def _open_broker(
    settings: Settings,
    directory: DataDirectory,
    info: BrokerInfo,
    loop: asyncio.AbstractEventLoop,
    stack: AsyncExitStack,
    authentication: Authentication | None,
) -> tuple[Broker, Observer, FileHolding]:
    """Recover the content of the directory and start the broker on it."""
    names_hash_key = names_key(settings, directory.path)
    clock: Clock = SystemClock()
    bounds = ledger_settings(settings)
    lanes = Lanes(*(ThreadLane(loop, f"headgate-{work}") for work in _LANES))
    stack.callback(lanes.close)
    # SQLite's connection belongs to the thread that opened it.
    reserve = DiskReserve(directory.fs, directory.reserve_path)
    await run_on(lanes.metadata, reserve.keep)  # before the log takes the free space
    store = await run_on(lanes.metadata, lambda: open_copied(directory, reserve.release))
    stack.push_async_callback(run_on, lanes.metadata, store.close)
    await run_on(lanes.metadata, lambda: make_private(directory.path))  # SQLite makes its own files
    catalog = Catalog(settings.clusterName, await run_on(lanes.metadata, store.load))
    log = await run_on(
        # Opening reads both stores and binds them to each other; no other thread uses them yet.
        lanes.metadata,
        lambda: open_log(
            directory,
            catalog,
            store,
            clock,
            bounds,
            is_last=not has_telemetry_log(catalog, settings),
        ),
    )
    _keep_log(stack, log, lanes, lanes.commit)
    telemetry_log = await run_on(
        lanes.metadata,
        lambda: open_telemetry_log(directory, catalog, store, clock, settings, log, bounds),
    )
    if telemetry_log is not None and lanes.telemetry is not None:
        _keep_log(stack, telemetry_log, lanes, lanes.telemetry)
    system = ProcSelfMemory()
    stack.callback(system.close)
    all_memory = memory_with_caches(settings, system, clock)
    memory = None
    if settings.adaptivePublisherThrottlingEnabled:
        memory = throttling_memory(settings, system, lambda: cached_bytes(broker), clock)
    broker = Broker(
        settings=settings,
        clock=clock,
        loop=loop,
        catalog=catalog,
        store=store,
        log=log,
        telemetry_log=telemetry_log,
        lanes=lanes,
        info=info,
        authentication=authentication,
        memory=memory,
        room=ProcessRoom(all_memory),
        client_memory_bytes_max=client_memory_bytes(
            settings.headgateClientMemoryMB, all_memory.limit_bytes
        ),
        boot_id=boot_id(),
    )
    broker.disk.reserve = reserve
    broker.identity_writer.copier = MetadataCopier(store, broker.lanes.metadata)
    broker.connection_admission.set_limit(descriptors_max())
    broker.connection_limits.set_descriptors(broker.connection_admission.clients_max)
    observer = await _start_observed(broker, names_hash_key, stack)
    return broker, observer, await _backups(broker, directory, store)


async def _start_observed(
    broker: Broker, names_hash_key: bytes | None, stack: AsyncExitStack
) -> Observer:
    """Start the broker. What observes it is made before the topics are loaded, so that it observes
    each from its loading on."""
    observer = Observer(broker)
    telemetry = TelemetryPublisher(broker, entropy=os.urandom, names_key=names_hash_key)
    stack.push_async_callback(broker.close)
    _watch_revocations(broker, stack)
    await broker.start()
    telemetry.start()
    stack.push_async_callback(telemetry.stop)
    return observer


def _watch_revocations(broker: Broker, stack: AsyncExitStack) -> None:
    """Read the file of revocations, if there is one, now and whenever it changes."""
    if path := broker.settings.headgateRevocationFile:
        lane = ThreadLane(broker.loop, "headgate-revocations")
        stack.callback(lane.abandon)
        file = RevocationFile(path, lane, broker.revoked_clients.use_file)
        broker.sweeps.add("the revocation file", file.check, broker.revoked_clients.period_s)


def _keep_log(stack: AsyncExitStack, log: CommitLog, lanes: Lanes, commits: Lane) -> None:
    """Let another process copy the log's segments; close the log with the node, and then that."""
    copier = CopyProcess()
    stack.callback(copier.close)
    log.copy_segments_with(copier)
    stack.push_async_callback(
        close_log, log, removal=lanes.removal, upkeep=lanes.upkeep, commits=commits
    )


async def _backups(broker: Broker, directory: DataDirectory, store: MetadataStore) -> FileHolding:
    """What holds the files of the directory for backups."""
    logs = dict(zip(LOGS, (managed.log for managed in broker.logs), strict=False))
    backups = FileHolding(
        directory.fs,
        directory.path,
        logs,
        store.copy_to,
        broker.identity_writer.identities,
        upkeep=broker.lanes.upkeep,
        metadata=broker.lanes.metadata,
        entropy=os.urandom,
    )
    await run_on(broker.lanes.upkeep, backups.clear)
    return backups


def exception_handler(
    on_bug: Bug,
) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """The handler of errors that no code caught.

    An error in one connection's callback ended that connection already, so it is logged. A broken
    invariant means that memory cannot be trusted any more.
    """

    def handle(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        logger.error("%s", context.get("message"), exc_info=error)
        if isinstance(error, InvariantError):
            on_bug(error)

    return handle


def with_reason(on_bug: Bug) -> Bug:
    """``on_bug``, which ends the process, with its reason in the log before."""

    def tell(error: BaseException) -> None:
        logger.critical(
            "the broker ends at once, because its memory cannot be trusted any more: %s. "
            "Everything acknowledged is on disk; start it again",
            error,
            exc_info=error,
        )
        on_bug(error)

    return tell

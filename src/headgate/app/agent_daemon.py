"""Runs ``headgate agent``, from its settings to its last signal.

One thread looks at each cluster, and the event loop serves HTTP. A cluster that cannot be reached
is no failure of the agent: it goes on, and its series say so.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import secrets
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from functools import partial
from random import Random
from signal import SIGINT, SIGTERM
from typing import Final

import uvloop
from starlette.types import ASGIApp

from headgate import __version__
from headgate.agent.cluster_client import ClusterClient
from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.cluster_watch import ClusterWatch, RecordSink
from headgate.agent.configuration import AgentSettings, ClusterSettings, PortSettings
from headgate.agent.look_plan import LookPlan
from headgate.agent.record_files import RecordFiles
from headgate.agent.record_topic import RecordTopic
from headgate.agent.records import Instants, RecordWindows
from headgate.agent.request_budget import RequestBudget
from headgate.agent.scout import Scope, Scout
from headgate.agent.shared_history import SharedHistory
from headgate.agent.web import AgentRoutes
from headgate.agent.web_turns import AT_ONCE
from headgate.app.agent_access import TokenGate, check_agent_address, token_verifier
from headgate.app.agent_port import AgentPort
from headgate.app.listeners import listen, port_of
from headgate.app.run import EXIT_BUG, StopSignals, end_process
from headgate.app.telemetry_topic.process import TopicProcess, check_installed
from headgate.app.tls.handshake_steps import end_amid_steps
from headgate.app.used_keys import UsedKeys, key_files
from headgate.app.web_guard import WebGuard
from headgate.base.clock import Clock, SystemClock
from headgate.base.names import parse_topic
from headgate.base.units import NS_PER_S
from headgate.base.web_hosts import HostNames
from headgate.fs.os_fs import OsFs
from headgate.page.app import PageApp
from headgate.page.files import agent_files
from headgate.security.failed_attempts import network_of
from headgate.storage.lanes import ThreadLane

logger = logging.getLogger("headgate.agent")

COLLECTIONS: Final = (50_000, 20, 20)
"""Thresholds of Python's garbage collection. A survey makes a million objects that stay and no
cycles: at Python's own thresholds a third of its time goes into looking for them."""
THREADS_OF_CLUSTER: Final = 16
"""Requests to one cluster at the same time; its budget allows four for each broker."""
STOP_S: Final = 20.0
"""How long a stop waits for the watches: for requests that run, and the last telemetry."""

Environment = Mapping[str, str]


def run_agent(
    settings: AgentSettings,
    environment: Environment,
    announce: Callable[[str], None],
    *,
    is_insecure_allowed: bool = False,
) -> None:
    """Run the agent until SIGINT or SIGTERM; a second one ends the process at once.

    ``environment`` has secrets that the settings name. ``announce`` receives one line when the
    agent serves clients.

    Raises:
        HeadgateError: it cannot start; the text is one sentence.
    """
    gc.set_threshold(*COLLECTIONS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, environment, announce, is_insecure_allowed))
    end_amid_steps(threading.enumerate(), end_process)


async def _serve(
    settings: AgentSettings,
    environment: Environment,
    announce: Callable[[str], None],
    is_insecure_allowed: bool,
) -> None:
    signals = StopSignals(time.monotonic, os._exit)
    loop = asyncio.get_running_loop()
    for number in (SIGINT, SIGTERM):
        loop.add_signal_handler(number, signals.receive, number)
    warning = check_agent_address(settings.port, is_insecure_allowed=is_insecure_allowed)
    if warning:
        logger.warning(warning)
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        port = AgentPort.open(settings.port, clock)
        listener = listen(settings.port.host, settings.port.port, key="listen")
        stack.callback(listener.close)
        with ExitStack() as opened:
            watches = [
                watch_of(cluster, settings, environment, clock, opened)
                for cluster in settings.clusters
            ]
            # From here on the threads close what they use.
            stack.push(opened.pop_all())
        executor = stack.enter_context(ThreadPoolExecutor(AT_ONCE, "web"))
        _watch_keys(settings.port, loop, stack)
        routes = AgentRoutes(watches, clock, executor, port.certificate, network_of)
        app = _app(settings, routes, clock)
        await port.serve(app, listener, stack)
        stop = threading.Event()
        threads = [_started(watch, stop) for watch in watches]
        names = ", ".join(watch.name for watch in watches)
        url = f"{port.scheme}://{_url_host(settings.port.host)}:{port_of(listener)}"
        announce(f"Headgate {__version__} agent ready: {url}  watching {names}")
        await signals.received.wait()
        stop.set()
        await _joined(threads)
    logger.info("stopped")


def _watch_keys(port: PortSettings, loop: asyncio.AbstractEventLoop, stack: AsyncExitStack) -> None:
    """Warn from now on when a file of a key has changed since the start that reads it."""
    values = {"tokenSecretKey": port.secret_key, "tokenPublicKey": port.public_key}
    if files := key_files(values):
        keys = UsedKeys(files, ThreadLane(loop, "headgate-keys"))
        keys.start()
        stack.callback(keys.stop)


def watch_of(
    cluster: ClusterSettings,
    settings: AgentSettings,
    environment: Environment,
    clock: Clock,
    stack: ExitStack,
) -> ClusterWatch:
    """The watch of one cluster; ``stack`` closes what it uses.

    Raises:
        InputError: credentials or a folder cannot be used, or a package is not installed.
    """
    client = ClusterClient(cluster.client, environment, clock, say=logger.warning)
    stack.callback(client.close)
    executor = stack.enter_context(ThreadPoolExecutor(THREADS_OF_CLUSTER, f"look-{cluster.name}"))
    history = SharedHistory(ClusterHistory(cluster.name))
    budget = RequestBudget(cluster.requests_per_s)
    scout = Scout(
        client, history, LookPlan(), budget, executor, clock, Random(secrets.randbits(64)),
        Scope(namespaces=cluster.namespaces, left_out=own_topics(cluster, settings)),
    )  # fmt: skip
    files = None
    if settings.files:
        files = RecordFiles(OsFs(), os.path.join(settings.files, cluster.name), settings.bounds)
        stack.callback(files.close)
    boot_id = str(uuid.uuid4())

    def windows() -> RecordWindows:
        start = Instants(clock.wall_ns(), clock.monotonic_ns())
        return RecordWindows(f"agent:{cluster.name}", cluster.name, boot_id, start)

    return ClusterWatch(
        cluster.name, scout, history, windows(), clock,
        budget=budget, files=files, sinks=_sinks(cluster, environment), file_windows=windows(),
    )  # fmt: skip


def own_topics(cluster: ClusterSettings, settings: AgentSettings) -> frozenset[str]:
    """The topics of a cluster that the agent itself publishes telemetry to. It does not look at
    them: its own messages would be news for ever."""
    return frozenset(
        parse_topic(each.telemetry_topic).base.full
        for each in settings.clusters
        if each.telemetry_topic and each.telemetry_url == cluster.client.broker_url
    )


def _sinks(cluster: ClusterSettings, environment: Environment) -> list[RecordSink]:
    if not cluster.telemetry_topic:
        return []
    check_installed()
    config = replace(cluster.client, broker_url=cluster.telemetry_url)
    topic = cluster.telemetry_topic
    sink = RecordTopic(topic, partial(TopicProcess, config, topic, environment, logger.warning))
    sink.start()
    return [sink]


def _app(settings: AgentSettings, routes: AgentRoutes, clock: Clock) -> ASGIApp:
    app: ASGIApp = routes.app()
    port = settings.port
    verifier = token_verifier(port)
    if verifier is not None:
        app = TokenGate(app, verifier, port.roles, lambda: clock.wall_ns() / NS_PER_S)
    # The page holds no secret, and must open for whoever signs in there.
    app = PageApp(agent_files(), app)
    return WebGuard(app, HostNames((port.host,), port.host_names))


def _started(watch: ClusterWatch, stop: threading.Event) -> threading.Thread:
    thread = threading.Thread(target=_watch, args=(watch, stop), name=watch.name, daemon=True)
    thread.start()
    return thread


def _watch(watch: ClusterWatch, stop: threading.Event) -> None:
    try:
        watch.run(stop)
    except BaseException:
        # A broken invariant: what the agent says from here on could be wrong.
        logger.exception("the watch of %s ended; the agent ends, too", watch.name)
        logging.shutdown()
        os._exit(EXIT_BUG)


async def _joined(threads: Sequence[threading.Thread]) -> None:
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + STOP_S
    for thread in threads:
        left_s = max(0.0, deadline_s - loop.time())
        await loop.run_in_executor(None, thread.join, left_s)
        if thread.is_alive():
            logger.warning("the watch of %s did not stop within %g s", thread.name, STOP_S)


def _url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host

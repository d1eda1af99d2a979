"""Looks at an Apache Pulsar cluster for a while, and answers as a Headgate broker does.

Only requests that read go to the cluster, within the budget of
:mod:`headgate.agent.request_budget`.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.client import NOT_FOUND
from random import Random
from typing import Any, Final
from urllib.parse import urlsplit

from headgate.access.admin_api import AccessRefusedError, AdminApi
from headgate.agent.bundle import Header, RecordedHistory, replay
from headgate.agent.cluster_client import ClusterClient
from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.cluster_kind import ClusterKind, cluster_kind
from headgate.agent.look_plan import LookKind, LookPeriods, LookPlan
from headgate.agent.name_hashes import SALT_BYTES, NameHashes
from headgate.agent.questions import path_of
from headgate.agent.request_budget import RequestBudget
from headgate.agent.scout import History, Scope, Scout
from headgate.agent.shared_history import SharedHistory, UnknownTopicError
from headgate.base.clock import Clock, SystemClock
from headgate.base.errors import HeadgateError, InputError
from headgate.base.names import parse_topic
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.cli.explain.errors import EXIT_NOT_ANSWERED, EXIT_REFUSED, ExplainError
from headgate.explain.delivery import Instant

THREADS: Final = 16
TOPIC_PERIODS: Final = LookPeriods({LookKind.STATS: 1.0, LookKind.PROOF: 5.0})
"""One topic is looked at each second: what a minute shows then is sure."""
LIST_PERIODS: Final = LookPeriods({LookKind.STATS: 2.0, LookKind.PROOF: 10.0})
SUSPECTS_MAX: Final = 60
"""With a look each two seconds they take 30 of the 50 requests a second."""

_SHOW_NS: Final = 2 * NS_PER_S
_SLEEP_S_MAX: Final = 0.1
_BUNDLE_MODE: Final = 0o600

Show = Callable[[float, Callable[[], str]], None]
"""Shows a share of the time that has passed, and the present sentence, which takes time to find."""


@dataclass(frozen=True, slots=True)
class LookRequest:
    """What to look at, and how long."""

    topic: str = ""
    """Full name; empty for the largest backlogs."""
    namespaces: tuple[str, ...] = ()
    count: int = 10
    seconds: float = 30.0
    record_path: str = ""
    """Where to keep the looks; empty for nowhere."""
    is_hashed: bool = False


def look_at(
    client: ClusterClient, request: LookRequest, show: Show, clock: Clock | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Any]:  # fmt: skip
    """Look at the cluster, and judge what was seen. Ctrl-C ends the looks and not the answer.

    Raises:
        ExplainError: nothing was seen, with the reason.
        HeadgateError: the cluster does not answer, or is none.
    """
    clock = clock or SystemClock()
    kind = cluster_kind(client)
    history = SharedHistory(ClusterHistory(urlsplit(client.url).netloc or client.url))
    with ExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(THREADS, thread_name_prefix="look"))
        recorder = stack.enter_context(_recorder(client, kind, request, history, clock))
        scout = Scout(
            client,
            recorder or history,
            LookPlan(TOPIC_PERIODS if request.topic else LIST_PERIODS),
            RequestBudget(),
            executor,
            clock,
            Random(secrets.randbits(64)),
            Scope(
                topics=(request.topic,) if request.topic else (),
                namespaces=request.namespaces,
                only_namespaces=True,
                suspects_max=min(2 * request.count, SUSPECTS_MAX),
            ),
        )
        session = _Session(scout, history, request, clock)
        with suppress(KeyboardInterrupt):
            session.run(show, sleep)
        scout.close()
        at_ns = clock.monotonic_ns()
        absent = _absent(client, request.namespaces, history)
        not_seen = [*filter(None, [kind.caution]), *absent, *scout.not_seen()]
        if recorder is not None:
            recorder.finish(at_ns, not_seen)
    if absent and not history.looks:
        raise ExplainError(absent[0], EXIT_REFUSED)
    session.check()
    answer = judged(history, request.topic, request.count, _instant(clock, at_ns))
    return with_evidence(answer, kind.version, not_seen)


def _absent(client: ClusterClient, namespaces: Sequence[str], history: SharedHistory) -> list[str]:
    """Of the namespaces of which nothing was seen, those that the cluster does not have. A survey
    does not tell them from namespaces without a loaded topic."""
    seen = {str(parse_topic(topic).namespace) for topic in history.topics()} if namespaces else ()
    found = []
    for name in namespaces:
        if name not in seen:
            with suppress(HeadgateError):
                if client.get(path_of(LookKind.TOPICS, name)).status == NOT_FOUND:
                    found.append(f"Namespace {name} not found")
    return found


def replayed(path: str, topic: str, count: int) -> dict[str, Any]:
    """The answer of a bundle: that of the run which recorded it.

    Raises:
        InputError: the file cannot be read, or is no bundle.
        ExplainError: it has no look at the topic.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    with file:
        inner = ClusterHistory("")
        history = SharedHistory(inner)
        header, end = replay(file, path, history)
    inner.name = urlsplit(header.cluster).netloc or header.cluster
    now_ms = header.started_ms + (end.at_ns - header.started_ns) // NS_PER_MS
    answer = judged(history, topic or header.topic, count, Instant(end.at_ns, now_ms))
    cut = ["the bundle ends early: the run that made it was killed"] if end.is_cut else []
    return with_evidence(answer, header.version, [*end.not_seen, *cut])


def judged(history: SharedHistory, topic: str, count: int, instant: Instant) -> dict[str, Any]:
    """What the looks show.

    Raises:
        ExplainError: there is none at the topic.
    """
    if not topic:
        return history.top(count, instant)
    try:
        return history.topic(topic, instant)
    except UnknownTopicError as error:
        raise ExplainError(f"no look has shown the topic {topic}", EXIT_REFUSED) from error


def with_evidence(answer: dict[str, Any], version: str, not_seen: list[str]) -> dict[str, Any]:
    """The answer with the cluster's version, and all that was not seen."""
    told = [*answer.get("notSeen", ()), *not_seen]
    return answer | {"clusterVersion": version, "notSeen": list(dict.fromkeys(told))}


class _Session:
    """The looks of one run."""

    def __init__(
        self, scout: Scout, history: SharedHistory, request: LookRequest, clock: Clock
    ) -> None:
        self._scout = scout
        self._history = history
        self._request = request
        self._clock = clock
        self._sentence = "looking at the cluster"
        self._shown_ns = clock.monotonic_ns()

    def run(self, show: Show, sleep: Callable[[float], None]) -> None:
        """Look for the time of the request; less if it is clear that nothing can be seen."""
        start_ns = now_ns = self._clock.monotonic_ns()
        end_ns = start_ns + round(self._request.seconds * NS_PER_S)
        while now_ns < end_ns and not self._is_hopeless():
            wait_s = self._scout.step()
            show((now_ns - start_ns) / (end_ns - start_ns), self._present)
            sleep(min(wait_s, _SLEEP_S_MAX))
            now_ns = self._clock.monotonic_ns()

    def check(self) -> None:
        """Raise :class:`ExplainError` if nothing was seen."""
        if self._history.looks:
            return
        topic = self._request.topic
        if topic and topic in self._scout.missing:
            raise ExplainError(f"Topic {topic} not found", EXIT_REFUSED)
        scout = self._scout
        if not_seen := scout.not_seen():
            is_refusal = scout.lacks_superuser or scout.is_refused
            # Of named namespaces the last sentence says why not even they were seen.
            sentence = not_seen[-1 if self._request.namespaces else 0]
            raise ExplainError(sentence, EXIT_REFUSED if is_refusal else EXIT_NOT_ANSWERED)
        if topic:
            raise ExplainError(f"no broker answered for {topic} in time", EXIT_NOT_ANSWERED)

    def _is_hopeless(self) -> bool:
        scout = self._scout
        if self._history.looks:
            return False
        if self._request.topic:
            return bool(scout.missing) or scout.is_refused
        return scout.lacks_superuser and not self._request.namespaces

    def _present(self) -> str:
        """The sentence of the largest backlog, each two seconds anew."""
        now_ns = self._clock.monotonic_ns()
        if now_ns - self._shown_ns >= _SHOW_NS and self._history.looks:
            self._shown_ns = now_ns
            instant = _instant(self._clock, now_ns)
            answer = judged_or_none(self._history, self._request.topic, instant)
            if answer is not None and (reports := answer["subscriptions"]):
                first = reports[0]
                where = "" if self._request.topic else f"{first['topic']} "
                self._sentence = f"{where}{first['subscription']}: {first['sentence']}"
        return self._sentence


def judged_or_none(history: SharedHistory, topic: str, instant: Instant) -> dict[str, Any] | None:
    """As :func:`judged`, with one backlog; None while there is no look."""
    try:
        return judged(history, topic, 1, instant)
    except ExplainError:
        return None


@contextmanager
def _recorder(
    client: ClusterClient, kind: ClusterKind, request: LookRequest, history: History, clock: Clock
) -> Iterator[RecordedHistory | None]:
    if not request.record_path:
        yield None
        return
    header = Header(
        cluster=client.url,
        version=kind.version,
        topic=request.topic,
        started_ns=clock.monotonic_ns(),
        started_ms=clock.wall_ns() // NS_PER_MS,
        is_hashed=request.is_hashed,
    )
    hashes = NameHashes(secrets.token_bytes(SALT_BYTES)) if request.is_hashed else None
    try:
        # Looks have names and addresses: others need not read them.
        descriptor = os.open(
            request.record_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _BUNDLE_MODE
        )
    except FileExistsError as error:
        raise InputError(f"{request.record_path} exists: --record writes a new file") from error
    except OSError as error:
        raise InputError(f"{request.record_path} cannot be written: {error.strerror}") from error
    with os.fdopen(descriptor, "wb") as file:
        yield RecordedHistory(history, file, header, hashes)


def client_of(api: AdminApi) -> ClusterClient:
    """A client of the cluster that ``api`` names, with its credentials.

    It warns of nothing: ``api`` did when it was asked, and the client runs in threads.

    Raises:
        InputError: as :class:`ClusterClient`.
    """
    return ClusterClient(api.config, os.environ, SystemClock())


def answer_of_cluster(api: AdminApi, request: LookRequest, show: Show) -> dict[str, Any]:
    """Look at the cluster that ``api`` names.

    Raises:
        ExplainError: with one sentence and an exit status.
    """
    client = client_of(api)
    try:
        return look_at(client, request, show)
    except (AccessRefusedError, InputError) as error:
        raise ExplainError(str(error), EXIT_REFUSED) from error
    except HeadgateError as error:
        raise ExplainError(str(error), EXIT_NOT_ANSWERED) from error
    finally:
        client.close()


def _instant(clock: Clock, at_ns: int) -> Instant:
    ago_ns = clock.monotonic_ns() - at_ns
    return Instant(at_ns, (clock.wall_ns() - ago_ns) // NS_PER_MS)

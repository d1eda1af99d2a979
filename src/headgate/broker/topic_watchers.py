"""Watchers: clients that learn at once which topics match their pattern.

All watchers of one pattern in one namespace share a *view* (:mod:`headgate.broker.watched_names`).
A job brings the views up to date in slices, one after the other, and writes to their watchers.
While it does, nothing else changes a view, so what a watcher was told and the hash beside it always
fit.

The views of a namespace take at most a tenth of the time, however often its topics change: changes
that come meanwhile go together. A watcher whose peer does not read waits, and then gets what it
missed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from typing import Final, Protocol

from headgate.base.errors import HeadgateError
from headgate.base.names import PERSISTENT, NamespaceName
from headgate.base.units import KIB, NS_PER_S
from headgate.base.work_owner import NO_TENANT
from headgate.base.work_units import COLD, JOB_STEP_UNITS_MAX, UNIT_NS
from headgate.broker.authorization import Authorizer
from headgate.broker.client_memory import ClientMemory
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.name_differences import (
    PART_BYTES_MAX,
    Names,
    add_difference,
    only_in_first,
    parts_of,
)
from headgate.broker.namespace_changes import TopicChange
from headgate.broker.registry import TopicRegistry
from headgate.broker.topic_pattern import (
    HASHED_PER_UNIT,
    NAMES_PER_UNIT,
    TopicsHash,
    matching_names,
)
from headgate.broker.watched_names import (
    PATTERN_BYTES,
    Difference,
    TopicWatcher,
    View,
    WatchedNamespace,
)
from headgate.broker.watched_turns import DueNamespaces, NamespaceTurns
from headgate.broker.work.scheduler import JobClass, Steps, WorkScheduler
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.errors import RefusalError, UnauthorizedError
from headgate.metadata.rows import Kind
from headgate.policy.access_law import Decision
from headgate.policy.settings import Settings
from headgate.wire import encode
from headgate.wire.codes import CommandType
from headgate.wire.commands import COMMANDS
from headgate.wire.messages import BaseCommand

logger = logging.getLogger("headgate.topics")

RETRY_S: Final = 1.0
"""After this time the broker looks again at watchers whose peers did not read."""

MIN_REST_S: Final = 0.002
"""Timers may fire a little early."""

REST_FACTOR: Final = 10
"""The views of a namespace rest so many times as long as they worked."""
VIEWS_REST_S_MAX: Final = 10.0
"""They rest no longer, whatever one client's patterns cost: others wait for news of its topics."""

HASH_CHARACTERS_MAX: Final = 64
"""More than the hash of a list of topics has."""

NOTED_PER_UNIT: Final = 32
"""Changes that are remembered for one watcher with one unit of work."""

VIEWS_PER_STEP: Final = 256
"""Views that need nothing, and are passed over in one step."""

VIEWS_AT_ONCE: Final = 32
"""Views of a namespace that are worked on before those of the next namespace have their turn."""

LIST_TOPICS: Final = COMMANDS[CommandType.WATCH_TOPIC_LIST].operation

REFUSED: Final = "Client is not authorized to WatchTopicList"
"""As authorization refuses the command."""

_PREFIX: Final = f"{PERSISTENT}://"


class WatchingBroker(Protocol):
    """The broker, as its watchers use it."""

    catalog: Catalog
    settings: Settings
    authorizer: Authorizer
    client_memory: ClientMemory
    work: WorkScheduler
    loop: asyncio.AbstractEventLoop
    registry: TopicRegistry


class TopicWatchers:
    """The watchers of one broker."""

    def __init__(self, broker: WatchingBroker) -> None:
        self._catalog = broker.catalog
        self._settings = broker.settings
        self._hidden = broker.registry.system_topics
        self._work = broker.work
        self._loop = broker.loop
        self._broker = broker
        self._views: dict[str, WatchedNamespace] = {}
        """By namespace."""
        self._asked = NamespaceTurns()
        """Those with views that somebody has asked for a watcher."""
        self._due = DueNamespaces()
        self._is_running = False
        self._wake: asyncio.TimerHandle | None = None
        self._wake_s = 0.0
        """The time of that timer."""

    @property
    def views_count(self) -> int:
        """Patterns that somebody watches."""
        return sum(len(watched.views) for watched in self._views.values())

    def new_pattern_bytes(self, namespace: NamespaceName, pattern: str) -> int:
        """What a watcher would add to its own size, because nobody else has its pattern."""
        watched = self._views.get(str(namespace))
        return 0 if watched is not None and pattern in watched.views else PATTERN_BYTES

    def open(
        self,
        connection: ClientConnection,
        command: BaseCommand,
        namespace: NamespaceName,
        pattern: str,
    ) -> TopicWatcher:
        """Open a watcher for ``command``, which gets its answer later.

        Raises:
            PatternError: the broker does not evaluate the pattern.
        """
        watched = self._views.get(str(namespace)) or WatchedNamespace(namespace)
        view = watched.views.get(pattern)
        if view is None:
            view = View(watched, pattern, self._forget)
            self._views.setdefault(str(namespace), watched).views[pattern] = view
        watcher = TopicWatcher(connection, command.watchTopicList.watcher_id, view)
        view.open_count += 1
        view.opening[watcher] = _kept(command)
        if view.owner is None:
            view.owner = watcher
        watched.asked[view] = None
        self._asked.add(watched)
        self._run()
        return watcher

    def applied(self, change: Change) -> None:
        """A change of the metadata is durable."""
        if not self._views:
            return
        by_namespace: dict[str, list[TopicChange]] = {}
        for row in change.rows:
            if row.kind is not Kind.TOPIC or (row.before is None) is (row.after is None):
                continue
            if row.key.startswith(_PREFIX) and row.key not in self._hidden:
                namespace = row.key.removeprefix(_PREFIX).rpartition("/")[0]
                if namespace in self._views:
                    found = TopicChange(row.key, row.after is not None)
                    by_namespace.setdefault(namespace, []).append(found)
        for namespace, changes in by_namespace.items():
            watched = self._views[namespace]
            watched.changes.add(changes)
            self._due.add(watched, self._loop.time())
        self._run()

    def _forget(self, view: View) -> None:
        watched = view.watched
        if watched.views.get(view.text) is view:
            del watched.views[view.text]
            if not watched.views:
                self._views.pop(str(watched.name), None)
                self._due.discard(watched)
        watched.asked.pop(view, None)
        if not watched.asked:
            self._asked.discard(watched)

    # -- the job ---------------------------------------------------------------------------

    def _run(self) -> None:
        """Begin the job, unless it runs or all namespaces that are due rest."""
        if self._is_running or not (self._asked or self._due):
            return
        if self._asked or self._due.are_any_rested(self._loop.time()):
            self._is_running = True
            self._work.run("watching topics", JobClass.ADMIN, self._steps(), NO_TENANT)
            return
        wake_s = self._due.first_rests_until_s
        # A namespace that rests for long keeps no other one resting.
        if self._wake is None or wake_s < self._wake_s:
            if self._wake is not None:
                self._wake.cancel()
            self._wake_s = max(wake_s, self._loop.time() + MIN_REST_S)
            self._wake = self._loop.call_at(self._wake_s, self._woken)

    def _woken(self) -> None:
        self._wake = None
        self._run()

    def _steps(self) -> Steps:
        while self._asked or self._due:
            yield from self._answer_one()
            watched = self._due.take(self._loop.time())
            if watched is None:
                if self._asked:
                    continue
                break
            yield 1
            yield from self._bring_some_up_to_date(watched)
            if not watched.left:
                rest_s = min(REST_FACTOR * UNIT_NS * watched.used / NS_PER_S, VIEWS_REST_S_MAX)
                watched.rests_until_s, watched.used = self._loop.time() + rest_s, 0
                watched.forget_changes()
            # What came meanwhile knew nothing of its rest.
            is_due = self._due.discard(watched) or watched.left or len(watched.changes)
            if watched.views and is_due:
                self._due.add(watched, self._loop.time())  # behind the others
        self._is_running = False
        self._run()

    def _answer_one(self) -> Steps:
        """Answer those that have asked for one pattern, of each namespace in turn, and after one of
        a tenant one of another. That changes no rest: who asks again and again would keep all
        others of the namespace waiting. Between two of them a view that is due has its turn."""
        watched = self._asked.take()
        if watched is not None:
            view, _ = watched.asked.popitem(last=False)
            if watched.asked:
                self._asked.add(watched)  # behind the others
            yield from self._counted(view)

    def _bring_some_up_to_date(self, watched: WatchedNamespace) -> Steps:
        """Bring some views of a namespace up to date, from a new round on if the last one is over.
        Those of others do not wait for thousands."""
        if not watched.left:
            watched.left.extend(watched.views.values())
        worked = passed = 0
        while watched.left and worked < VIEWS_AT_ONCE:
            view = watched.left.popleft()
            if view.open_count and view.needs_work:
                worked += 1
                watched.used += yield from self._counted(view)
                yield from self._answer_one()
                continue
            passed += 1
            if passed % VIEWS_PER_STEP == 0:
                yield JOB_STEP_UNITS_MAX

    def _counted(self, view: View) -> Generator[int, None, int]:
        """Bring a view up to date; returns the work of that."""
        used = 0
        for units in self._bring_up_to_date(view):
            used += units
            yield units
        if view.must_retry and not view.will_retry:
            view.will_retry = True
            self._loop.call_later(RETRY_S, self._look_again, view)
        return used

    def _look_again(self, view: View) -> None:
        view.will_retry = False
        view.opening.update(view.blocked)
        view.blocked.clear()
        if view.open_count:
            self._due.add(view.watched, self._loop.time())
            self._run()

    def _bring_up_to_date(self, view: View) -> Steps:
        is_new, changes = not view.is_built, view.watched.changes
        deleted: Names = {}
        created: Names = {}
        missed = changes.since(view.seen)
        if is_new or missed is None:
            view.seen = changes.end  # what comes while it is built may be found already, or not
            deleted, created = yield from self._build(view)
            missed = changes.since(view.seen)
        if missed is not None:  # else it is built again in the next round
            view.seen += len(missed)
            yield from _joined(deleted, created, view.apply(missed))
        if is_new or deleted or created:
            yield from self._hash(view)
        if deleted or created:
            yield from self._tell_all(view, deleted, created)
        for watcher in list(view.lagging):
            yield from self._tell(watcher, {}, {})
        yield from self._answer(view)

    def _build(self, view: View) -> Difference:
        """Find all topics of a view; returns which left and which came since it was last built."""
        per_step = view.pattern.names_per_step
        pieces = matching_names(self._catalog, view.namespace, self._hidden, view.pattern, per_step)
        names: list[str] = []
        for found in pieces:
            names += found
            yield JOB_STEP_UNITS_MAX
            if not view.open_count:
                return {}, {}
        before, view.names = view.names, names
        is_new, view.is_built = not view.is_built, True
        if is_new:
            return {}, {}
        deleted = yield from only_in_first(before, names)
        created = yield from only_in_first(names, before)
        return deleted, created

    @staticmethod
    def _hash(view: View) -> Steps:
        found, names = TopicsHash(), view.names
        step = HASHED_PER_UNIT * (JOB_STEP_UNITS_MAX // 4)
        for start in range(0, len(names), step):
            part = names[start : start + step]
            found.add(part)
            yield len(part) // HASHED_PER_UNIT + 1
        view.hash = found.text

    def _tell_all(self, view: View, deleted: Names, created: Names) -> Steps:
        for watcher in list(view.watchers):
            yield from self._tell(watcher, deleted, created)

    def _tell(self, watcher: TopicWatcher, deleted: Names, created: Names) -> Steps:
        """Tell a watcher changes, and what it missed; or remember them if its peer does not read,
        or clients hold too much: thousands may watch. One whose client may not list the topics any
        more ends."""
        connection, view = watcher.connection, watcher.view
        if not watcher.is_open:
            return
        if not self._may_list(watcher).allowed:
            connection.watchers.pop(watcher.watcher_id, None)
            watcher.end()
            return
        memory = self._broker.client_memory
        has_room = memory.has_room_for(connection.identity, PART_BYTES_MAX)
        must_wait = connection.peer_blocked or not has_room
        if watcher.deleted or watcher.created or must_wait:
            watcher.note(deleted, created)
            if must_wait:
                view.lagging[watcher] = None
                yield 1 + (len(deleted) + len(created)) // NOTED_PER_UNIT
                return
            deleted, created = watcher.deleted, watcher.created
            watcher.deleted, watcher.created = {}, {}
            watcher.note({}, {})
        view.lagging.pop(watcher, None)
        for gone, come in parts_of(deleted, created):
            frame = encode.watch_topic_update(
                watcher.watcher_id, deleted=gone, created=come, topics_hash=view.hash
            )
            connection.write(frame)
            yield COLD + (len(gone) + len(come)) // NAMES_PER_UNIT

    def _answer(self, view: View) -> Steps:
        """Answer those that have asked for a watcher; one whose peer leaves earlier answers unread
        waits."""
        parts: list[bytes] | None = None
        for _ in range(len(view.opening)):
            if not view.opening:
                return
            watcher, command = view.opening.popitem(last=False)
            request, connection = command.watchTopicList, watcher.connection
            if connection.peer_blocked:
                view.blocked[watcher] = command
                yield 1
                continue
            is_known = request.HasField("topics_hash") and request.topics_hash == view.hash
            if not is_known and parts is None:
                parts = []
                for start in range(0, len(view.names), 1_024):
                    parts.append(encode.watched_names(view.names[start : start + 1_024]))
                    yield 1_024 // NAMES_PER_UNIT // 4
            if not watcher.is_open:
                continue
            decision = self._may_list(watcher)  # it may have waited for long
            if not decision.allowed:
                error = UnauthorizedError(403, REFUSED, f"{view.namespace}: {decision.reason}")
                self._refuse(watcher, command, error)
                continue
            answer = [] if is_known or parts is None else parts
            size_bytes = sum(map(len, answer))
            if not self._broker.client_memory.has_room_for(connection.identity, size_bytes):
                view.blocked[watcher] = command
                yield 1
                continue
            if size_bytes > self._settings.maxMessageSize:
                self._refuse(
                    watcher, command, too_many(view.namespace, self._settings.maxMessageSize)
                )
                continue
            view.watchers[watcher] = None
            view.owner = view.owner or watcher  # the one before may have ended meanwhile
            watcher.note({}, {})
            self._broker.client_memory.charge(view.bytes_each)
            connection.write(
                encode.watch_topic_list_success(
                    request.request_id, request.watcher_id, view.hash, answer
                )
            )
            yield COLD + size_bytes // (16 * KIB)

    def _may_list(self, watcher: TopicWatcher) -> Decision:
        """Whether a watcher's client may list the topics now."""
        return self._broker.authorizer.decide(
            watcher.connection.identity, LIST_TOPICS, str(watcher.view.namespace)
        )

    @staticmethod
    def _refuse(watcher: TopicWatcher, command: BaseCommand, error: HeadgateError) -> None:
        connection = watcher.connection
        connection.watchers.pop(watcher.watcher_id, None)
        connection.refuse(command, error)
        watcher.end()


def _kept(command: BaseCommand) -> BaseCommand:
    """What the answer needs of a command, which may wait for as long as its peer does not read:
    beside that a client may have put what it is not charged with."""
    request, kept = command.watchTopicList, BaseCommand(type=command.type)
    watch = kept.watchTopicList
    watch.request_id, watch.watcher_id = request.request_id, request.watcher_id
    watch.namespace = watch.topics_pattern = ""  # required, and known to the view
    if len(request.topics_hash) <= HASH_CHARACTERS_MAX:  # else it is that of no list
        watch.topics_hash = request.topics_hash
    return kept


def _joined(deleted: Names, created: Names, later: Difference) -> Generator[int]:
    """Steps that add a later difference to an earlier one."""
    add_difference(deleted, created, *(yield from later))


def too_many(namespace: NamespaceName, bytes_max: int) -> RefusalError:
    """The refusal of a list that one command of the protocol cannot hold."""
    return RefusalError(
        429,
        f"The names of the topics in {namespace} have more than {bytes_max} bytes "
        "(maxMessageSize): use more namespaces, or list the topics with the admin API",
    )

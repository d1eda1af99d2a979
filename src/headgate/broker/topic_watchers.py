"""Watchers: clients that learn at once which topics match their pattern.

All watchers of one pattern in one namespace share a *view*: the sorted names that match, and their
hash. A change of the metadata adds to what the views of its namespace have pending. A job brings
the views up to date in slices, one after the other, and writes to their watchers. While it does,
nothing else changes a view, so what a watcher was told and the hash beside it always fit.

A view takes at most a tenth of the time, however often its topics change: changes that come
meanwhile go together. A watcher whose peer does not read waits, and then gets what it missed.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator
from itertools import chain
from typing import Final, Protocol

from headgate.base.errors import HeadgateError
from headgate.base.names import PERSISTENT, NamespaceName
from headgate.base.units import KIB
from headgate.base.work_units import COLD, JOB_STEP_UNITS_MAX
from headgate.broker.authorization import Authorizer
from headgate.broker.client_memory import ClientMemory
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.held_memory import OBJECT_BYTES
from headgate.broker.registry import TopicRegistry
from headgate.broker.topic_pattern import (
    HASHED_PER_UNIT,
    NAMES_PER_UNIT,
    USUAL_CHARACTERS,
    TopicPattern,
    TopicsHash,
    matching_names,
)
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

NAME_BYTES: Final = 8
"""What a view keeps of a name, which is the catalog's."""

PATTERN_BYTES: Final = 36 * KIB
"""What a pattern takes whose program and states are large. The watcher that brought it is charged
with it, or another one of its view once that has ended."""

CHANGE_BYTES: Final = 100
"""What the broker remembers of a change that a watcher has not been told."""

UPDATE_BYTES_MAX: Final = 256 * KIB
"""Names of one update; more go into several."""

RETRY_S: Final = 1.0
"""After this time the broker looks again at watchers whose peers did not read."""

MIN_REST_S: Final = 0.002
"""Timers may fire a little early."""

UNIT_S: Final = 4e-6
REST_FACTOR: Final = 10
"""A view rests so many times as long as it worked."""

LIST_TOPICS: Final = COMMANDS[CommandType.WATCH_TOPIC_LIST].operation

REFUSED: Final = "Client is not authorized to WatchTopicList"
"""As authorization refuses the command."""

_PREFIX: Final = f"{PERSISTENT}://"


class TopicWatcher:
    """One watcher of one connection."""

    __slots__ = ("connection", "created", "deleted", "is_open", "view", "watcher_id")

    def __init__(self, connection: ClientConnection, watcher_id: int, view: _View) -> None:
        self.connection = connection
        self.watcher_id = watcher_id
        self.view = view
        self.is_open = True
        self.deleted: dict[str, None] = {}
        self.created: dict[str, None] = {}
        """What it has not been told: first the deleted, then the created topics."""

    def end(self) -> None:
        """Tell it nothing more."""
        if self.is_open:
            self.is_open = False
            self.deleted, self.created = {}, {}
            self.view.remove(self)

    def note(self, deleted: dict[str, None], created: dict[str, None]) -> None:
        """Remember changes that it cannot be told now."""
        for name in deleted:
            if name in self.created:
                del self.created[name]
            else:
                self.deleted[name] = None
        self.created |= created
        self.charge()

    def charge(self) -> None:
        """Charge its connection with what it takes now."""
        pattern_bytes = PATTERN_BYTES if self.view.owner is self else 0
        changes_bytes = CHANGE_BYTES * (len(self.deleted) + len(self.created))
        self.connection.described_bytes["watcher", self.watcher_id] = (
            OBJECT_BYTES + pattern_bytes + self.view.bytes_each + changes_bytes
        )


class _View:
    """The topics that match one pattern in one namespace."""

    __slots__ = (
        "_forget",
        "hash",
        "is_asked",
        "is_built",
        "lagging",
        "names",
        "namespace",
        "open_count",
        "opening",
        "owner",
        "pattern",
        "pending",
        "rests_until_s",
        "text",
        "watchers",
        "will_retry",
    )

    def __init__(
        self, namespace: NamespaceName, text: str, forget: Callable[[_View], None]
    ) -> None:
        self.namespace = namespace
        self.text = text
        self.pattern = TopicPattern(text)
        self._forget = forget
        self.names: list[str] = []
        self.hash = ""
        self.is_built = False
        self.is_asked = False
        """Whether somebody has asked for a watcher since the last look: then it does not rest."""
        self.pending: list[list[tuple[str, bool]]] = []
        """Changes of the namespace since the last look, in order: the name and whether it was
        created."""
        self.watchers: dict[TopicWatcher, None] = {}
        self.opening: OrderedDict[TopicWatcher, BaseCommand] = OrderedDict()
        """Those whose command has no answer yet."""
        self.owner: TopicWatcher | None = None
        """The one that is charged with the pattern."""
        self.open_count = 0
        """Watchers that have not ended."""
        self.lagging: dict[TopicWatcher, None] = {}
        self.rests_until_s = 0.0
        self.will_retry = False

    @property
    def bytes_each(self) -> int:
        """What each watcher is charged with for the names."""
        return NAME_BYTES * len(self.names)

    def remove(self, watcher: TopicWatcher) -> None:
        """A watcher has ended."""
        self.watchers.pop(watcher, None)
        self.lagging.pop(watcher, None)
        self.opening.pop(watcher, None)
        self.open_count -= 1
        if self.owner is watcher:
            self.owner = next(chain(self.watchers, self.opening), None)
            if self.owner is not None:
                self.owner.charge()
        if not self.open_count:
            self._forget(self)

    def apply(self) -> Generator[int, None, tuple[dict[str, None], dict[str, None]]]:
        """Take in what is pending; returns which names left and which came."""
        pending, self.pending = self.pending, []
        deleted: dict[str, None] = {}
        created: dict[str, None] = {}
        names, used = self.names, 0.0
        units_each = JOB_STEP_UNITS_MAX / self.pattern.names_per_step
        for change in pending:
            for name, is_created in change:
                used += units_each * max(len(name) / USUAL_CHARACTERS, 1)
                if used >= JOB_STEP_UNITS_MAX:
                    yield int(used)
                    used = 0
                if not self.pattern.matches(name):
                    continue
                at = bisect_left(names, name)
                is_present = at < len(names) and names[at] == name
                if is_created and not is_present:
                    insort(names, name)
                    created[name] = None
                elif not is_created and is_present:
                    del names[at]
                    if name in created:
                        del created[name]
                    else:
                        deleted[name] = None
        yield int(used) + 1
        return deleted, created


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
        self._views: dict[str, dict[str, _View]] = {}
        """By namespace and pattern."""
        self._due: dict[_View, None] = {}
        self._is_running = False
        self._wake: asyncio.TimerHandle | None = None

    @property
    def views_count(self) -> int:
        """Patterns that somebody watches."""
        return sum(map(len, self._views.values()))

    def new_pattern_bytes(self, namespace: NamespaceName, pattern: str) -> int:
        """What a watcher would add to its own size, because nobody else has its pattern."""
        return 0 if pattern in self._views.get(str(namespace), {}) else PATTERN_BYTES

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
        views = self._views.get(str(namespace), {})
        view = views.get(pattern)
        if view is None:
            view = _View(namespace, pattern, self._forget)
            self._views.setdefault(str(namespace), views)[pattern] = view
        watcher = TopicWatcher(connection, command.watchTopicList.watcher_id, view)
        view.open_count += 1
        view.is_asked = True
        view.opening[watcher] = command
        if view.owner is None:
            view.owner = watcher
        self._look_at(view)
        return watcher

    def applied(self, change: Change) -> None:
        """A change of the metadata is durable."""
        if not self._views:
            return
        by_namespace: dict[str, list[tuple[str, bool]]] = {}
        for row in change.rows:
            if row.kind is not Kind.TOPIC or (row.before is None) is (row.after is None):
                continue
            if row.key.startswith(_PREFIX) and row.key not in self._hidden:
                namespace = row.key.removeprefix(_PREFIX).rpartition("/")[0]
                event = row.key, row.after is not None
                by_namespace.setdefault(namespace, []).append(event)
        for namespace, events in by_namespace.items():
            for view in self._views.get(namespace, {}).values():
                view.pending.append(events)
                self._look_at(view)

    def _forget(self, view: _View) -> None:
        views = self._views.get(str(view.namespace), {})
        if views.get(view.text) is view:
            del views[view.text]
            if not views:
                del self._views[str(view.namespace)]
        self._due.pop(view, None)

    # -- the job ---------------------------------------------------------------------------

    def _look_at(self, view: _View) -> None:
        self._due[view] = None
        self._run()

    def _run(self) -> None:
        """Begin the job, unless it runs or all views that are due rest."""
        if self._is_running or not self._due:
            return
        if self._next_due() is not None:
            self._is_running = True
            self._work.run("watching topics", JobClass.ADMIN, self._steps())
        elif self._wake is None:
            rest_s = min(view.rests_until_s for view in self._due) - self._loop.time()
            self._wake = self._loop.call_later(max(rest_s, MIN_REST_S), self._woken)

    def _woken(self) -> None:
        self._wake = None
        self._run()

    def _next_due(self) -> _View | None:
        now_s = self._loop.time()
        return next((v for v in self._due if v.rests_until_s <= now_s or v.is_asked), None)

    def _steps(self) -> Steps:
        while (view := self._next_due()) is not None:
            del self._due[view]
            view.is_asked = False
            used = 0
            for units in self._bring_up_to_date(view):
                used += units
                yield units
            view.rests_until_s = self._loop.time() + REST_FACTOR * UNIT_S * used
            if (view.lagging or view.opening) and view.open_count and not view.will_retry:
                view.will_retry = True
                self._loop.call_later(RETRY_S, self._look_again, view)
        self._is_running = False
        self._run()

    def _look_again(self, view: _View) -> None:
        view.will_retry = False
        if view.open_count:
            self._look_at(view)

    def _bring_up_to_date(self, view: _View) -> Steps:
        is_new = not view.is_built
        if is_new:
            yield from self._build(view)
        deleted, created = yield from view.apply()
        if is_new or deleted or created:
            yield from self._hash(view)
        if deleted or created:
            yield from self._tell_all(view, deleted, created)
        for watcher in list(view.lagging):
            yield from self._tell(watcher, {}, {})
        yield from self._answer(view)

    def _build(self, view: _View) -> Steps:
        per_step = view.pattern.names_per_step
        pieces = matching_names(self._catalog, view.namespace, self._hidden, view.pattern, per_step)
        for found in pieces:
            view.names += found
            yield JOB_STEP_UNITS_MAX
            if not view.open_count:
                return
        view.is_built = True

    @staticmethod
    def _hash(view: _View) -> Steps:
        found, names = TopicsHash(), view.names
        step = HASHED_PER_UNIT * (JOB_STEP_UNITS_MAX // 4)
        for start in range(0, len(names), step):
            part = names[start : start + step]
            found.add(part)
            yield len(part) // HASHED_PER_UNIT + 1
        view.hash = found.text

    def _tell_all(self, view: _View, deleted: dict[str, None], created: dict[str, None]) -> Steps:
        for watcher in list(view.watchers):
            yield from self._tell(watcher, deleted, created)

    def _tell(
        self, watcher: TopicWatcher, deleted: dict[str, None], created: dict[str, None]
    ) -> Steps:
        """Tell a watcher changes, and what it missed; or remember them if its peer does not read.
        One whose client may not list the topics any more ends."""
        connection, view = watcher.connection, watcher.view
        if not watcher.is_open:
            return
        if not self._may_list(watcher).allowed:
            connection.watchers.pop(watcher.watcher_id, None)
            watcher.end()
            return
        if watcher.deleted or watcher.created or connection.peer_blocked:
            watcher.note(deleted, created)
            if connection.peer_blocked:
                view.lagging[watcher] = None
                yield 1
                return
            deleted, created = watcher.deleted, watcher.created
            watcher.deleted, watcher.created = {}, {}
            watcher.note({}, {})
        view.lagging.pop(watcher, None)
        for gone, come in _updates(deleted, created):
            frame = encode.watch_topic_update(
                watcher.watcher_id, deleted=gone, created=come, topics_hash=view.hash
            )
            connection.write(frame)
            yield COLD + (len(gone) + len(come)) // NAMES_PER_UNIT

    def _answer(self, view: _View) -> Steps:
        """Answer those that have asked for a watcher; one whose peer leaves earlier answers unread
        waits."""
        parts: list[bytes] | None = None
        for _ in range(len(view.opening)):
            if not view.opening:
                return
            watcher, command = view.opening.popitem(last=False)
            request, connection = command.watchTopicList, watcher.connection
            if connection.peer_blocked:
                view.opening[watcher] = command
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


def _updates(
    deleted: dict[str, None], created: dict[str, None]
) -> Iterator[tuple[list[str], list[str]]]:
    """Changes in pieces of about :data:`UPDATE_BYTES_MAX`, the deleted topics first."""
    gone: list[str] = []
    come: list[str] = []
    size_bytes = 0
    for number, name in enumerate(chain(deleted, created)):
        (gone if number < len(deleted) else come).append(name)
        size_bytes += len(name)
        if size_bytes >= UPDATE_BYTES_MAX:
            yield gone, come
            gone, come, size_bytes = [], [], 0
    if gone or come:
        yield gone, come


def too_many(namespace: NamespaceName, bytes_max: int) -> RefusalError:
    """The refusal of a list that one command of the protocol cannot hold."""
    return RefusalError(
        429,
        f"The names of the topics in {namespace} have more than {bytes_max} bytes "
        "(maxMessageSize): use more namespaces, or list the topics with the admin API",
    )

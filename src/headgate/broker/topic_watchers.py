"""Watchers: clients that learn at once which topics match their pattern.

All watchers of one pattern in one namespace share a *view*: the sorted names that match, and their
hash. A change of the metadata is kept once for all views of its namespace, each of which knows how
far it has come. A job brings the views up to date in slices, one after the other, and writes to
their watchers. While it does, nothing else changes a view, so what a watcher was told and the hash
beside it always fit.

The views of a namespace take at most a tenth of the time, however often its topics change: changes
that come meanwhile go together. A watcher whose peer does not read waits, and then gets what it
missed.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left, insort
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Sequence
from itertools import chain
from typing import Final, Protocol

from headgate.base.errors import HeadgateError
from headgate.base.names import PERSISTENT, NamespaceName
from headgate.base.text_memory import text_bytes
from headgate.base.units import KIB
from headgate.base.work_units import COLD, JOB_STEP_UNITS_MAX
from headgate.broker.authorization import Authorizer
from headgate.broker.client_memory import ClientMemory
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.held_memory import OBJECT_BYTES
from headgate.broker.name_differences import Names, add_difference, only_in_first, parts_of
from headgate.broker.namespace_changes import NamespaceChanges, TopicChange
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

RETRY_S: Final = 1.0
"""After this time the broker looks again at watchers whose peers did not read."""

MIN_REST_S: Final = 0.002
"""Timers may fire a little early."""

UNIT_S: Final = 4e-6
REST_FACTOR: Final = 10
"""The views of a namespace rest so many times as long as they worked."""
NAMESPACE_REST_S_MAX: Final = 10.0
"""They rest no longer, whatever one client's patterns cost: others wait for news of its topics."""

VIEWS_PER_STEP: Final = 256
"""Views that need nothing, and are passed over in one step."""

VIEWS_AT_ONCE: Final = 32
"""Views of a namespace that are worked on before those of the next namespace have their turn."""

LIST_TOPICS: Final = COMMANDS[CommandType.WATCH_TOPIC_LIST].operation

REFUSED: Final = "Client is not authorized to WatchTopicList"
"""As authorization refuses the command."""

_PREFIX: Final = f"{PERSISTENT}://"


class TopicWatcher:
    """One watcher of one connection."""

    __slots__ = ("connection", "created", "deleted", "gone_bytes", "is_open", "view", "watcher_id")

    def __init__(self, connection: ClientConnection, watcher_id: int, view: _View) -> None:
        self.connection = connection
        self.watcher_id = watcher_id
        self.view = view
        self.is_open = True
        self.deleted: Names = {}
        self.created: Names = {}
        """What it has not been told: first the deleted, then the created topics."""
        self.gone_bytes = 0
        """What the names of the deleted take, which nothing else has any more."""

    def end(self) -> None:
        """Tell it nothing more."""
        if self.is_open:
            self.is_open = False
            self.deleted, self.created = {}, {}
            self.view.remove(self)

    def note(self, deleted: Names, created: Names) -> None:
        """Remember changes that it cannot be told now."""
        news = (name for name in deleted if name not in self.deleted and name not in self.created)
        self.gone_bytes += sum(map(text_bytes, news))
        add_difference(self.deleted, self.created, deleted, created)
        if not self.deleted:
            self.gone_bytes = 0
        self.charge()

    def charge(self) -> None:
        """Charge its connection with what it takes now."""
        pattern_bytes = PATTERN_BYTES if self.view.owner is self else 0
        changes_bytes = CHANGE_BYTES * (len(self.deleted) + len(self.created))
        self.connection.described_bytes["watcher", self.watcher_id] = (
            OBJECT_BYTES + pattern_bytes + self.view.bytes_each + changes_bytes + self.gone_bytes
        )


class _WatchedNamespace:
    """The views of one namespace, and what they have not all taken in."""

    __slots__ = ("asked", "changes", "left", "name", "rests_until_s", "used", "views")

    def __init__(self, name: NamespaceName) -> None:
        self.name = name
        self.views: dict[str, _View] = {}
        """By pattern."""
        self.asked: dict[_View, None] = {}
        """Those that somebody has asked for a watcher: they do not rest."""
        self.changes = NamespaceChanges()
        self.left: deque[_View] = deque()
        """Views whose turn comes in the present round."""
        self.used = 0
        """The work of this round."""
        self.rests_until_s = 0.0

    def forget_changes(self) -> None:
        """Forget what all views have taken in."""
        if len(self.changes):
            first = min((view.seen for view in self.views.values()), default=self.changes.end)
            self.changes.forget_before(first)


class _View:
    """The topics that match one pattern in one namespace."""

    __slots__ = (
        "_forget",
        "hash",
        "is_built",
        "lagging",
        "names",
        "namespace",
        "open_count",
        "opening",
        "owner",
        "pattern",
        "seen",
        "text",
        "watched",
        "watchers",
        "will_retry",
    )

    def __init__(
        self, watched: _WatchedNamespace, text: str, forget: Callable[[_View], None]
    ) -> None:
        self.watched = watched
        self.namespace = watched.name
        self.text = text
        self.pattern = TopicPattern(text)
        self._forget = forget
        self.names: list[str] = []
        self.hash = ""
        self.is_built = False
        self.seen = watched.changes.end
        """The number of the first change that it has not taken in."""
        self.watchers: dict[TopicWatcher, None] = {}
        self.opening: OrderedDict[TopicWatcher, BaseCommand] = OrderedDict()
        """Those whose command has no answer yet."""
        self.owner: TopicWatcher | None = None
        """The one that is charged with the pattern."""
        self.open_count = 0
        """Watchers that have not ended."""
        self.lagging: dict[TopicWatcher, None] = {}
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

    @property
    def needs_work(self) -> bool:
        """Whether it has not taken in everything, or somebody waits for what it has."""
        return bool(
            self.seen < self.watched.changes.end
            or not self.is_built
            or self.lagging
            or self.opening
        )

    def apply(self, changes: Sequence[TopicChange]) -> _Difference:
        """Take in changes; returns which names left and which came."""
        deleted: Names = {}
        created: Names = {}
        names, used = self.names, 0.0
        units_each = JOB_STEP_UNITS_MAX / self.pattern.names_per_step
        for name, is_created in changes:
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


_Difference = Generator[int, None, tuple[Names, Names]]
"""Steps that return which names left a view and which came."""


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
        self._views: dict[str, _WatchedNamespace] = {}
        """By namespace."""
        self._asked: dict[_WatchedNamespace, None] = {}
        """Those with views that somebody has asked for a watcher."""
        self._due: dict[_WatchedNamespace, None] = {}
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
        watched = self._views.get(str(namespace)) or _WatchedNamespace(namespace)
        view = watched.views.get(pattern)
        if view is None:
            view = _View(watched, pattern, self._forget)
            self._views.setdefault(str(namespace), watched).views[pattern] = view
        watcher = TopicWatcher(connection, command.watchTopicList.watcher_id, view)
        view.open_count += 1
        view.opening[watcher] = command
        if view.owner is None:
            view.owner = watcher
        watched.asked[view] = None
        self._asked[watched] = None
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
            self._due[watched] = None
        self._run()

    def _forget(self, view: _View) -> None:
        watched = view.watched
        if watched.views.get(view.text) is view:
            del watched.views[view.text]
            if not watched.views:
                self._views.pop(str(watched.name), None)
                self._due.pop(watched, None)
        watched.asked.pop(view, None)
        if not watched.asked:
            self._asked.pop(watched, None)

    # -- the job ---------------------------------------------------------------------------

    def _run(self) -> None:
        """Begin the job, unless it runs or all namespaces that are due rest."""
        if self._is_running or not (self._asked or self._due):
            return
        if self._asked or self._next_due() is not None:
            self._is_running = True
            self._work.run("watching topics", JobClass.ADMIN, self._steps())
            return
        wake_s = min(watched.rests_until_s for watched in self._due)
        # A namespace that rests for long keeps no other one resting.
        if self._wake is None or wake_s < self._wake_s:
            if self._wake is not None:
                self._wake.cancel()
            self._wake_s = max(wake_s, self._loop.time() + MIN_REST_S)
            self._wake = self._loop.call_at(self._wake_s, self._woken)

    def _woken(self) -> None:
        self._wake = None
        self._run()

    def _next_due(self) -> _WatchedNamespace | None:
        now_s = self._loop.time()
        return next((watched for watched in self._due if watched.rests_until_s <= now_s), None)

    def _steps(self) -> Steps:
        while self._asked or self._due:
            yield from self._answer_one()
            watched = self._next_due()
            if watched is None:
                if self._asked:
                    continue
                break
            del self._due[watched]
            yield from self._bring_some_up_to_date(watched)
            if not watched.left:
                rest_s = min(REST_FACTOR * UNIT_S * watched.used, NAMESPACE_REST_S_MAX)
                watched.rests_until_s, watched.used = self._loop.time() + rest_s, 0
                watched.forget_changes()
            if watched.views and (watched.left or len(watched.changes)):
                self._due[watched] = None  # behind the others
        self._is_running = False
        self._run()

    def _answer_one(self) -> Steps:
        """Answer those that have asked for one pattern, of each namespace in turn. That changes no
        rest: who asks again and again would keep all others of the namespace waiting. Between two
        of them a view that is due has its turn."""
        if self._asked:
            watched = next(iter(self._asked))
            view = next(iter(watched.asked))
            del self._asked[watched], watched.asked[view]
            if watched.asked:
                self._asked[watched] = None  # behind the others
            yield from self._counted(view)

    def _bring_some_up_to_date(self, watched: _WatchedNamespace) -> Steps:
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

    def _counted(self, view: _View) -> Generator[int, None, int]:
        """Bring a view up to date; returns the work of that."""
        used = 0
        for units in self._bring_up_to_date(view):
            used += units
            yield units
        if (view.lagging or view.opening) and view.open_count and not view.will_retry:
            view.will_retry = True
            self._loop.call_later(RETRY_S, self._look_again, view)
        return used

    def _look_again(self, view: _View) -> None:
        view.will_retry = False
        if view.open_count:
            self._due[view.watched] = None
            self._run()

    def _bring_up_to_date(self, view: _View) -> Steps:
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

    def _build(self, view: _View) -> _Difference:
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
    def _hash(view: _View) -> Steps:
        found, names = TopicsHash(), view.names
        step = HASHED_PER_UNIT * (JOB_STEP_UNITS_MAX // 4)
        for start in range(0, len(names), step):
            part = names[start : start + step]
            found.add(part)
            yield len(part) // HASHED_PER_UNIT + 1
        view.hash = found.text

    def _tell_all(self, view: _View, deleted: Names, created: Names) -> Steps:
        for watcher in list(view.watchers):
            yield from self._tell(watcher, deleted, created)

    def _tell(self, watcher: TopicWatcher, deleted: Names, created: Names) -> Steps:
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
        for gone, come in parts_of(deleted, created):
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


def _joined(deleted: Names, created: Names, later: _Difference) -> Generator[int]:
    """Steps that add a later difference to an earlier one."""
    add_difference(deleted, created, *(yield from later))


def too_many(namespace: NamespaceName, bytes_max: int) -> RefusalError:
    """The refusal of a list that one command of the protocol cannot hold."""
    return RefusalError(
        429,
        f"The names of the topics in {namespace} have more than {bytes_max} bytes "
        "(maxMessageSize): use more namespaces, or list the topics with the admin API",
    )

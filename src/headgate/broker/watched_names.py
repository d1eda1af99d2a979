"""What the watchers of one namespace share: the names that match a pattern, and changes to tell.

A *view* has the sorted names that match one pattern, and their hash. A change is kept once for all
views of a namespace, each of which knows how far it has come. :mod:`headgate.broker.topic_watchers`
brings them up to date.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Sequence
from itertools import chain
from typing import Final

from headgate.base.names import NamespaceName
from headgate.base.text_memory import text_bytes
from headgate.base.units import KIB
from headgate.base.work_units import JOB_STEP_UNITS_MAX
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.held_memory import OBJECT_BYTES
from headgate.broker.name_differences import Names, add_difference
from headgate.broker.namespace_changes import NamespaceChanges, TopicChange
from headgate.broker.topic_pattern import USUAL_CHARACTERS, TopicPattern
from headgate.wire.messages import BaseCommand

NAME_BYTES: Final = 8
"""What a view keeps of a name, which is the catalog's."""

PATTERN_BYTES: Final = 36 * KIB
"""What a pattern takes whose program and states are large. The watcher that brought it is charged
with it, or another one of its view once that has ended."""

CHANGE_BYTES: Final = 100
"""What the broker remembers of a change that a watcher has not been told."""

Difference = Generator[int, None, tuple[Names, Names]]
"""Steps that return which names left a view and which came."""


class TopicWatcher:
    """One watcher of one connection."""

    __slots__ = ("connection", "created", "deleted", "gone_bytes", "is_open", "view", "watcher_id")

    def __init__(self, connection: ClientConnection, watcher_id: int, view: View) -> None:
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


class WatchedNamespace:
    """The views of one namespace, and what they have not all taken in."""

    __slots__ = ("asked", "changes", "left", "name", "rests_until_s", "used", "views")

    def __init__(self, name: NamespaceName) -> None:
        self.name = name
        self.views: dict[str, View] = {}
        """By pattern."""
        self.asked: OrderedDict[View, None] = OrderedDict()
        """Those that somebody has asked for a watcher: they do not rest."""
        self.changes = NamespaceChanges()
        self.left: deque[View] = deque()
        """Views whose turn comes in the present round."""
        self.used = 0
        """The work of this round."""
        self.rests_until_s = 0.0

    def forget_changes(self) -> None:
        """Forget what all views have taken in."""
        if len(self.changes):
            first = min((view.seen for view in self.views.values()), default=self.changes.end)
            self.changes.forget_before(first)


class View:
    """The topics that match one pattern in one namespace."""

    __slots__ = (
        "_forget",
        "blocked",
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
        self, watched: WatchedNamespace, text: str, forget: Callable[[View], None]
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
        # The first of an ordinary table is looked for among all that have left before it, and
        # thousands leave together.
        self.watchers: OrderedDict[TopicWatcher, None] = OrderedDict()
        self.opening: OrderedDict[TopicWatcher, BaseCommand] = OrderedDict()
        """Those whose command has no answer yet."""
        self.blocked: OrderedDict[TopicWatcher, BaseCommand] = OrderedDict()
        """Those whose peers leave earlier answers unread: nobody looks at them for a while."""
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
        self.blocked.pop(watcher, None)
        self.open_count -= 1
        if self.owner is watcher:
            self.owner = next(chain(self.watchers, self.opening, self.blocked), None)
            if self.owner is not None:
                self.owner.charge()
        if not self.open_count:
            self._forget(self)

    @property
    def must_retry(self) -> bool:
        """Whether somebody waits until its peer reads."""
        return bool(self.lagging or self.opening or self.blocked) and self.open_count > 0

    @property
    def needs_work(self) -> bool:
        """Whether it has not taken in everything, or somebody waits for what it has."""
        return bool(
            self.seen < self.watched.changes.end
            or not self.is_built
            or self.lagging
            or self.opening
        )

    def apply(self, changes: Sequence[TopicChange]) -> Difference:
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

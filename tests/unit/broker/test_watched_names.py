"""Views of the names that match a pattern, and what a watcher is charged with."""

from __future__ import annotations

from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

from headgate.base.names import NamespaceName
from headgate.base.text_memory import text_bytes
from headgate.broker.held_memory import OBJECT_BYTES
from headgate.broker.name_differences import Names
from headgate.broker.namespace_changes import TopicChange
from headgate.broker.watched_names import (
    CHANGE_BYTES,
    NAME_BYTES,
    PATTERN_BYTES,
    TopicWatcher,
    View,
    WatchedNamespace,
)

BASE = "persistent://public/default"
CAME, LEFT = True, False


def view(pattern: str = ".*/a.*") -> View:
    made = View(WatchedNamespace(NamespaceName("public", "default")), pattern, lambda _: None)
    made.watched.views[pattern] = made
    return made


def applied(made: View, *changes: tuple[str, bool]) -> tuple[Names, Names]:
    steps = made.apply([TopicChange(f"{BASE}/{name}", is_created) for name, is_created in changes])
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: tuple[Names, Names] = end.value
            return found


def names(*short: str) -> Names:
    return {f"{BASE}/{name}": None for name in short}


def test_a_view_takes_in_what_matches_and_says_what_differs() -> None:
    made = view()
    assert applied(made, ("a2", CAME), ("b", CAME), ("a1", CAME)) == ({}, names("a2", "a1"))
    assert made.names == list(names("a1", "a2"))
    # One that left and came back is in both, one that came and left again in neither.
    changes = ("a1", LEFT), ("a1", CAME), ("a3", CAME), ("a3", LEFT)
    assert applied(made, *changes) == (names("a1"), names("a1"))
    assert applied(made, ("a1", CAME), ("a9", LEFT)) == ({}, {})
    assert made.names == list(names("a1", "a2"))


def test_changes_are_forgotten_when_all_views_have_taken_them_in() -> None:
    one = view()
    watched = one.watched
    other = watched.views["other"] = View(watched, "other", lambda _: None)
    watched.changes.add([TopicChange(f"{BASE}/a", CAME), TopicChange(f"{BASE}/b", CAME)])
    one.seen = 2
    assert (one.needs_work, other.needs_work) == (True, True)  # neither is built
    one.is_built = other.is_built = True
    assert (one.needs_work, other.needs_work) == (False, True)
    watched.forget_changes()
    assert len(watched.changes) == 2
    other.seen = 1
    watched.forget_changes()
    assert len(watched.changes) == 1


def test_the_pattern_is_charged_once_and_what_was_not_told_to_each() -> None:
    connection: Any = SimpleNamespace(described_bytes={})
    made = view()
    made.names = list(names("a1", "a2"))
    watchers = [TopicWatcher(connection, number, made) for number in range(2)]
    made.watchers = OrderedDict.fromkeys(watchers)
    made.open_count, made.owner = 2, watchers[0]
    charged = connection.described_bytes
    for watcher in watchers:
        watcher.note(names("a3"), names("a4"))
    each = OBJECT_BYTES + 2 * NAME_BYTES + 2 * CHANGE_BYTES + text_bytes(f"{BASE}/a3")
    assert [charged["watcher", number] - each for number in range(2)] == [PATTERN_BYTES, 0]
    watchers[0].end()
    assert charged["watcher", 1] == each + PATTERN_BYTES
    watchers[1].deleted.clear()
    watchers[1].created.clear()
    watchers[1].note({}, {})
    assert charged["watcher", 1] == OBJECT_BYTES + 2 * NAME_BYTES + PATTERN_BYTES


def test_who_is_charged_next_is_not_searched_for() -> None:
    """The first one of an ordinary table stands behind the places of all that left before it: of
    150,000 watchers on 150 connections that ended together the last ones were found after 7 s."""
    made = view()
    assert all(
        isinstance(each, OrderedDict) for each in (made.watchers, made.opening, made.blocked)
    )

"""The rows that a broker keeps for itself."""

from __future__ import annotations

import pytest

from headgate.base.errors import CorruptionError
from headgate.metadata.memory_store import MemoryStore
from headgate.metadata.own_rows import OwnRows
from headgate.metadata.rows import IdentityRow
from headgate.metadata.state import Change


class Rig:
    """A store, and the rows on it."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.rows = OwnRows(self.store.load())

    def commit(self, change: Change) -> None:
        self.store.commit(change.writes)
        self.rows._state.apply(change)

    def restart(self) -> OwnRows:
        return OwnRows(self.store.load())


def test_nothing_is_known_at_first() -> None:
    rows = Rig().rows
    assert (rows.identity, rows.revision, rows.topic_number_last) == (IdentityRow(), 0, 0)
    assert rows.log_time() is None


def test_each_durable_change_makes_a_revision() -> None:
    rig = Rig()
    first, second = rig.rows.plan_setting("a", "1"), rig.rows.plan_setting("b", "2")
    assert rig.rows.revision == 0
    rig.commit(first)
    assert rig.rows.revision == 1
    rig.commit(second)
    assert rig.rows.revision == rig.restart().revision == 2


def test_a_revision_that_was_given_up_is_never_that_of_another_change() -> None:
    rig = Rig()
    rig.rows.plan_setting("a", "1")
    rig.rows._state.abandon_all()
    rig.commit(rig.rows.plan_setting("b", "2"))
    assert rig.rows.revision == 2


def test_an_identity_is_kept_and_raises_the_highest_number() -> None:
    rig = Rig()
    identity = IdentityRow("00" * 16, {"log": 3}, "metadata")
    rig.commit(rig.rows.plan_identity(identity, topic_number_min=41))
    again = rig.restart()
    assert (again.identity, again.topic_number_last) == (identity, 41)
    rig.commit(rig.rows.plan_identity(identity, topic_number_min=7))
    assert rig.restart().topic_number_last == 41


def test_settings_are_seen_when_they_are_durable() -> None:
    rig = Rig()
    change = rig.rows.plan_setting("a", "1")
    assert (rig.rows.settings(), rig.rows.planned_settings()) == ({}, {"a": "1"})
    rig.commit(change)
    assert rig.restart().settings() == {"a": "1"}


def test_a_topic_number_that_the_log_cannot_hold_is_refused() -> None:
    rows = {("counter", "topic_number"): b'{"value":4294967296}'}
    with pytest.raises(CorruptionError, match="number 4294967296 was given: 4294967295"):
        OwnRows(rows)
    OwnRows({("counter", "topic_number"): b'{"value":4294967295}'})

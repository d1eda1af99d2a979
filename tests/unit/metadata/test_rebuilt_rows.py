"""Rebuilt metadata know what the copy knew, belong to the logs, and lose no topic that has data."""

from __future__ import annotations

import pytest

from headgate.base.names import NamespaceName, parse_topic
from headgate.metadata.catalog import Catalog
from headgate.metadata.memory_store import MemoryStore
from headgate.metadata.own_rows import IDENTITY
from headgate.metadata.rebuilt_rows import LogFacts, catalog_of, rebuild_rows
from headgate.metadata.rows import IdentityRow, Kind
from headgate.metadata.state import Change

ID = "ab" * 16
TOPICS = [parse_topic(f"persistent://public/default/{name}") for name in ("a", "b", "c")]


def copied(deleted: int = 0) -> dict[tuple[str, str], bytes]:
    """Metadata with three topics, of which the first ``deleted`` are deleted again."""
    store = MemoryStore()
    catalog = Catalog("east", {})

    def commit(change: Change | None) -> None:
        assert change is not None
        store.commit(change.writes)
        catalog.apply(change)

    commit(catalog.plan_first_boot())
    for topic in TOPICS:
        commit(catalog.plan_create_topic(topic, now_ms=1))
    for topic in TOPICS[:deleted]:
        commit(catalog.plan_delete_topic(topic))
    commit(catalog.plan_identity(IdentityRow(ID, {"log": 3}, "metadata")))
    return store.load()


def facts(*numbers: int, name: str = "log", revision: int = 0, starts: int = 3) -> LogFacts:
    topics_in = "" if name == "log" else name
    return LogFacts(name, topics_in, ID, starts, revision, 3, frozenset(numbers))


def rebuilt(rows: dict[tuple[str, str], bytes] | None, *logs: LogFacts) -> Catalog:
    made = rebuild_rows(rows, logs, cluster="east", now_ms=7)
    return Catalog("east", made.rows)


def test_a_whole_copy_comes_back_as_it_was() -> None:
    rows = copied()
    before = catalog_of(rows)
    made = rebuild_rows(rows, [facts(1, 2, 3, revision=before.revision)], cluster="", now_ms=7)
    assert (made.made_names, made.changes_lost) == ({}, 0)
    changed = {row for row in made.rows if made.rows[row] != rows.get(row)}
    assert changed == {("identity", "data"), ("counter", "revision")}
    catalog = Catalog("east", made.rows)
    assert catalog.identity == IdentityRow(ID, {"log": 3})  # an accepted loss is over
    assert catalog.revision > before.revision


def test_topics_of_later_numbers_get_names_and_deleted_ones_stay_deleted() -> None:
    rows = copied(deleted=1)
    made = rebuild_rows(rows, [facts(1, 2, 3, 4, 6)], cluster="", now_ms=7)
    assert made.made_names == {
        number: f"persistent://public/recovered/topic-{number}" for number in (4, 6)
    }
    catalog = Catalog("east", made.rows)
    assert catalog.topic_numbers() == {2, 3, 4, 6}
    assert catalog.namespace(NamespaceName("public", "recovered")) is not None
    assert catalog.topic_number_last == 6
    again = rebuild_rows(made.rows, [facts(1, 2, 3, 4, 6)], cluster="", now_ms=9)
    assert again.made_names == {}


def test_a_made_name_that_is_taken_gets_another() -> None:
    made = rebuild_rows(copied(), [facts(4)], cluster="", now_ms=7).rows
    taken = "persistent://public/recovered/topic-5"
    made["topic", taken] = made.pop(("topic", "persistent://public/recovered/topic-4")).replace(
        b"topic-4", b"topic-5"
    )
    names = rebuild_rows(made, [facts(5)], cluster="", now_ms=7).made_names
    assert names == {5: f"{taken}-recovered"}


@pytest.mark.parametrize("lost", [0, 5])
def test_known_revisions_say_what_is_lost(lost: int) -> None:
    rows = copied()
    known = catalog_of(rows).revision + lost
    made = rebuild_rows(rows, [facts(revision=known, starts=9)], cluster="", now_ms=7)
    catalog = Catalog("east", made.rows)
    assert made.changes_lost == lost
    assert catalog.revision > known
    assert catalog.identity.starts_by_log == {"log": 9}


def test_without_a_copy_all_topics_get_names_in_their_logs() -> None:
    catalog = rebuilt(None, facts(1, 3), facts(2, name="telemetry-log"))
    assert catalog.topic_numbers_in("") == {1, 3}
    assert catalog.topic_numbers_in("telemetry-log") == {2}
    assert catalog.clusters() == ["east"]
    assert catalog.namespace(NamespaceName("public", "default")) is not None
    assert catalog.identity.data_id == ID
    assert (Kind.IDENTITY, IDENTITY) in rebuild_rows(None, [], cluster="e", now_ms=1).rows


def test_a_log_without_identity_keeps_what_the_copy_says() -> None:
    unknown = LogFacts("log", "", "", 0, 0, 0, frozenset())
    catalog = rebuilt(copied(), unknown)
    assert catalog.identity == IdentityRow(ID, {"log": 3})

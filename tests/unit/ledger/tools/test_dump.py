"""A dump lists each record once, by topic, segment and ordinal."""

from __future__ import annotations

import base64

from headgate.base.ack_set import AckSet
from headgate.fs import MemFs
from headgate.ledger.tools.dump import DumpChoice, Row, dump_log
from headgate.ledger.tools.verify import verify_log
from tests.unit.ledger.support import DIRECTORY, commit, content, open_log, overwrite, path
from tests.unit.ledger.tools.test_verify import log_in_use


def rows(choice: DumpChoice | None = None) -> list[Row]:
    return list(dump_log(log_in_use(), DIRECTORY, choice or DumpChoice()))


def test_all_records_are_listed_in_order() -> None:
    found = rows()
    places = [(row["segment"], row["offset"]) for row in found]
    assert places == sorted(places)  # type: ignore[type-var]
    kinds = {row["kind"] for row in found}
    assert kinds == {"batch", "run", "entry", "trim", "createSubscription"}
    assert not any("damage" in row for row in found)


def test_entries_have_ids_times_and_bodies() -> None:
    entries = [r for r in rows(DumpChoice(topic=2, with_bodies=True)) if r["kind"] == "entry"]
    assert [entry["ordinal"] for entry in entries] == [0, 1, 2, 3]
    assert [str(entry["messageId"]).partition(":")[2] for entry in entries] == list("0123")
    assert entries[-1]["receivedMs"] == 5000
    assert base64.b64decode(str(entries[-1]["body"])) == b"last of two"
    assert "body" not in rows(DumpChoice(topic=2))[-1]


def test_a_choice_narrows_it() -> None:
    assert {row["segment"] for row in rows(DumpChoice(segment=2))} == {"0000000000000002.log"}
    found = rows(DumpChoice(topic=1, ordinal_min=5))
    assert [row["ordinal"] for row in found if row["kind"] == "entry"] == [5, 6]
    assert {row["topicNumber"] for row in found} == {1}


def test_a_damaged_record_says_so() -> None:
    fs = log_in_use()
    overwrite(fs, path(), content(fs, path()).index(b"b" * 900) + 5, b"??")
    (row,) = [row for row in dump_log(fs, DIRECTORY, DumpChoice()) if "damage" in row]
    assert row["damage"] == "a message has a wrong checksum"
    assert (row["topicNumber"], row["ordinal"]) == (1, 1)
    assert "messages" not in row


def test_properties_of_a_subscription_are_listed() -> None:
    fs = MemFs()
    log = open_log(fs)
    cursor = log.create_cursor(1, "s", AckSet(), {})
    commit(log)
    log.set_properties(cursor, {"a": "b"})
    commit(log)
    found = list(dump_log(fs, DIRECTORY, DumpChoice()))
    (row,) = [row for row in found if row["kind"] == "subscriptionProperties"]
    assert (row["cursorId"], row["properties"]) == (cursor, {"a": "b"})
    assert verify_log(fs, DIRECTORY, {1: "t"}).damage == []


def test_deduplication_and_its_producers_are_listed() -> None:
    fs = MemFs()
    log = open_log(fs)
    topic = log.enter_topic(1)
    log.track_sequences(topic, is_on=True)
    commit(log)
    log.track_sequences(topic, is_on=False)
    commit(log)
    found = [row for row in dump_log(fs, DIRECTORY, DumpChoice()) if row["kind"] == "deduplication"]
    assert [(row["topicNumber"], row["isOn"], row["lastSequenceIds"]) for row in found] == [
        (1, True, {}), (1, False, {}),
    ]  # fmt: skip
    assert not any(
        one.is_damage for one in verify_log(fs, DIRECTORY, {1: "one", 2: "two"}).findings
    )

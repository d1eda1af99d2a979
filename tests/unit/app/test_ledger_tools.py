"""The tools work on a stopped data directory only, with names from its metadata; only a repair
changes something."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from headgate.app.ledger_tools import dump_directory, repair_directory, verify_directory
from headgate.app.open_stores import open_copied, open_log, open_metadata
from headgate.base.ack_set import AckSet
from headgate.base.clock import SystemClock
from headgate.base.errors import CorruptionError, InputError
from headgate.base.names import parse_topic
from headgate.ledger.errors import DirectoryInUseError, UnknownFormatError
from headgate.ledger.format.records import (
    KIND_RUN,
    KIND_TRIM,
    PREFIX,
    PREFIX_BYTES,
    SEGMENT_HEADER_BYTES,
    crc32c,
)
from headgate.metadata.catalog import Catalog
from tests.unit.app.test_open_stores import SMALL, owned, run

TOPIC = "persistent://public/default/orders"


def fill(path: Path) -> None:
    """One topic with a subscription and five messages."""
    run(path)
    with owned(path) as directory, closing(open_metadata(directory)) as store:
        catalog = Catalog("c", store.load())
        first = catalog.plan_first_boot()
        assert first is not None
        store.commit(first.writes)
        catalog.apply(first)
        made = catalog.plan_create_topic(parse_topic(TOPIC), now_ms=1000)
        store.commit(made.writes)
        catalog.apply(made)
        log = open_log(directory, catalog, store, SystemClock(), SMALL)
        (number,) = catalog.topic_numbers_in("")
        log.create_cursor(number, "billing", AckSet(), {})
        for body in (b"one", b"two", b"three", b"four", b"five"):
            log.stage_entry(log.topic(number), 1, 1000, 0, body * 20)
        batch = log.seal_batch()
        assert batch is not None
        log.commit(batch)
        log.close()


def copy_metadata(path: Path) -> None:
    """Copy the metadata into the log, as a broker does within a second of each change."""
    with owned(path) as directory, closing(open_copied(directory, lambda: False)) as store:
        store.load()
        store.save()


def damage(path: Path, what: bytes) -> None:
    """Change two bytes of a message."""
    file = next(p for p in sorted((path / "log").glob("*.log")) if what in p.read_bytes())
    data = bytearray(file.read_bytes())
    at = data.index(what)
    data[at : at + 2] = b"??"
    file.write_bytes(data)


def files(path: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def test_a_sound_directory_is_sound_and_unchanged(tmp_path: Path) -> None:
    fill(tmp_path)
    before = files(tmp_path)
    found = verify_directory(str(tmp_path))
    assert found["isSound"]
    assert found["metadataProblem"] is None
    assert [log["log"] for log in found["logs"]] == ["log"]
    assert found["logs"][0]["soundEntries"] == 5
    assert list(dump_directory(str(tmp_path), "log"))
    assert files(tmp_path) == before


def test_damage_is_named_with_topic_and_message(tmp_path: Path) -> None:
    fill(tmp_path)
    damage(tmp_path, b"threethree")
    found = verify_directory(str(tmp_path))
    assert not found["isSound"]
    (finding,) = [f for f in found["logs"][0]["findings"] if f["isDamage"]]
    (cost,) = finding["costs"]
    assert (cost["kind"], cost["topic"], cost["entries"]) == ("lost", TOPIC, 1)
    assert cost["firstMessageId"] == cost["lastMessageId"]
    assert cost["firstMessageId"].endswith(":2")


def test_damaged_metadata_are_named_and_the_log_is_checked_without(tmp_path: Path) -> None:
    fill(tmp_path)
    metadata = tmp_path / "metadata.sqlite3"
    data = bytearray(metadata.read_bytes())
    data[data.index(b"orders")] ^= 1
    metadata.write_bytes(data)
    damage(tmp_path, b"threethree")
    found = verify_directory(str(tmp_path))
    assert str(metadata) in found["metadataProblem"]
    costs = [c for f in found["logs"][0]["findings"] for c in f["costs"]]
    assert [(cost["topic"], cost["entries"]) for cost in costs] == [(None, 1)]
    metadata.unlink()
    assert "is missing" in verify_directory(str(tmp_path))["metadataProblem"]


def test_a_dump_has_names_and_takes_names(tmp_path: Path) -> None:
    fill(tmp_path)
    rows = list(dump_directory(str(tmp_path), "log", topic=TOPIC, with_bodies=True))
    assert {row["topic"] for row in rows} == {TOPIC}
    entries = [row for row in rows if row["kind"] == "entry"]
    assert len(entries) == 5
    assert list(dump_directory(str(tmp_path), "log", topic="99")) == []
    with pytest.raises(InputError, match="has no topic 'nowhere'"):
        list(dump_directory(str(tmp_path), "log", topic="nowhere"))
    with pytest.raises(InputError, match="has no log 'telemetry-log'"):
        list(dump_directory(str(tmp_path), "telemetry-log"))


def test_not_while_a_broker_runs(tmp_path: Path) -> None:
    run(tmp_path)
    with owned(tmp_path), pytest.raises(DirectoryInUseError, match="stop it first"):
        verify_directory(str(tmp_path))
    assert verify_directory(str(tmp_path))["isSound"]


def test_a_folder_that_is_no_data_directory_stays_as_it_is(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match="is no data directory"):
            verify_directory(str(path))
    assert list(tmp_path.iterdir()) == []


def break_copies(path: Path) -> dict[str, bytes]:
    """Change one bit of a checkpoint and of the identity; returns the files before."""
    with owned(path) as directory, closing(open_metadata(directory)) as store:
        catalog = Catalog("c", store.load())
        open_log(directory, catalog, store, SystemClock(), SMALL).close()
    before = files(path / "log")
    checkpoint = next((path / "log").glob("*.checkpoint"))
    for file, at in ((checkpoint, 40), (path / "log" / "identity", 30)):
        data = bytearray(file.read_bytes())
        data[at] ^= 8
        file.write_bytes(data)
    return before


def test_a_repair_restores_what_has_a_copy_and_the_broker_serves_all(tmp_path: Path) -> None:
    fill(tmp_path)
    before = break_copies(tmp_path)
    broken = files(tmp_path)
    plan = repair_directory(str(tmp_path), dry_run=True)
    assert files(tmp_path) == broken
    assert (plan["isSound"], plan["copies"], len(plan["repairs"])) == (False, None, 2)
    found = repair_directory(str(tmp_path))
    assert found["isSound"]
    assert [row["changed"] for row in found["repairs"]] == [r["changed"] for r in plan["repairs"]]
    assert files(tmp_path / "log") == before
    folder = Path(found["copies"], "log")
    for row in found["repairs"]:
        name = str(tmp_path / "log" / row["changed"])
        assert (folder / row["copy"]).read_bytes() == broken[name]
    assert verify_directory(str(tmp_path))["isSound"]
    assert bodies(tmp_path) == [word * 20 for word in (b"one", b"two", b"three", b"four", b"five")]
    again = repair_directory(str(tmp_path))
    assert (again["isSound"], again["repairs"], again["copies"]) == (True, [], None)


def bodies(path: Path) -> list[bytes]:
    """The messages that a start serves."""
    with owned(path) as directory, closing(open_metadata(directory)) as store:
        catalog = Catalog("c", store.load())
        log = open_log(directory, catalog, store, SystemClock(), SMALL)
        (number,) = catalog.topic_numbers_in("")
        topic = log.topic(number)
        found = []
        for ordinal in range(topic.first, topic.end):
            try:
                found += [body for *_, body in log.read(log.locate(topic, ordinal, 1, 1))]
            except CorruptionError:
                continue
        log.close()
    return [bytes(body) for body in found]


def test_a_lost_message_stays_named_and_all_others_are_served(tmp_path: Path) -> None:
    fill(tmp_path)
    break_copies(tmp_path)
    damage(tmp_path, b"threethree")
    found = repair_directory(str(tmp_path))
    assert not found["isSound"]
    (finding,) = [f for f in found["logs"][0]["findings"] if f["isDamage"]]
    assert [(cost["topic"], cost["entries"]) for cost in finding["costs"]] == [(TOPIC, 1)]
    assert bodies(tmp_path) == [word * 20 for word in (b"one", b"two", b"four", b"five")]


def test_two_repairs_in_one_second_keep_their_copies_apart(tmp_path: Path) -> None:
    fill(tmp_path)
    folders = set()
    for _ in range(2):
        break_copies(tmp_path)
        folders.add(repair_directory(str(tmp_path))["copies"])
    assert len(folders) == 2


def test_a_repair_refuses_while_a_broker_runs(tmp_path: Path) -> None:
    fill(tmp_path)
    break_copies(tmp_path)
    before = files(tmp_path)
    with owned(tmp_path), pytest.raises(DirectoryInUseError, match="stop it first"):
        repair_directory(str(tmp_path))
    assert files(tmp_path) == before


@pytest.mark.parametrize("text", [None, b"headgate-dat", b""])
def test_the_format_of_the_directory_is_written_anew(tmp_path: Path, text: bytes | None) -> None:
    fill(tmp_path)
    file = tmp_path / "format"
    before = file.read_bytes()
    file.unlink()
    if text is not None:
        file.write_bytes(text)
    assert not verify_directory(str(tmp_path))["isSound"]
    found = repair_directory(str(tmp_path))
    (repair,) = found["repairs"]
    assert (found["isSound"], repair["file"], file.read_bytes()) == (True, "format", before)
    if text is not None:
        assert Path(found["copies"], "directory", "format").read_bytes() == text
    assert len(bodies(tmp_path)) == 5


def test_the_format_of_another_release_is_not_changed(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "format").write_text("headgate-data 99\n")
    with pytest.raises(UnknownFormatError):
        repair_directory(str(tmp_path))
    assert (tmp_path / "format").read_text() == "headgate-data 99\n"


def test_a_record_that_was_made_by_something_else_is_named(tmp_path: Path) -> None:
    """Its checksum is right, so it is no damage that could be repaired."""
    fill(tmp_path)
    (file,) = (p for p in (tmp_path / "log").glob("*.log") if b"one" in p.read_bytes())
    data = bytearray(file.read_bytes())
    at = SEGMENT_HEADER_BYTES
    while (head := PREFIX.unpack_from(data, at))[2] != KIND_RUN:
        at += PREFIX_BYTES + head[1]
    data[at + 8] = KIND_TRIM  # its payload is shorter than that of a run
    end = at + PREFIX_BYTES + head[1]
    data[at : at + 4] = crc32c(bytes(data[at + 4 : end])).to_bytes(4, "little")
    file.write_bytes(data)
    for tool in (
        lambda: verify_directory(str(tmp_path)),
        lambda: repair_directory(str(tmp_path)),
        lambda: list(dump_directory(str(tmp_path), "log")),
    ):
        with pytest.raises(CorruptionError, match="not the content of its kind"):
            tool()

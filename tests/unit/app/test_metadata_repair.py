"""Metadata is rebuilt from its copy: all comes back, at a crash in each step, and twice."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from headgate.app.data_directory import METADATA_NAME
from headgate.app.ledger_tools import repair_directory, verify_directory
from headgate.app.metadata_check import check_metadata
from headgate.app.metadata_repair import (
    REBUILT_NAME,
    MetadataRepair,
    apply_metadata,
    plan_metadata,
)
from headgate.app.open_stores import open_log, open_metadata
from headgate.base.ack_set import AckSet
from headgate.base.clock import SystemClock
from headgate.base.names import parse_topic
from headgate.fs import FaultyFs, MemFs, Operation, OsFs
from headgate.ledger.format.directory import read_file, write_file
from headgate.ledger.tools.verify import verify_log
from headgate.metadata.catalog import Catalog
from headgate.metadata.rebuilt_rows import RebuiltRows
from headgate.storage.store_binding import BindingError
from tests.unit.app.test_ledger_tools import TOPIC, bodies, copy_metadata, files, fill
from tests.unit.app.test_metadata_check import DAMAGE
from tests.unit.app.test_open_stores import SMALL, owned
from tests.unit.metadata.test_file_check import forge_journal

ALL = [word * 20 for word in (b"one", b"two", b"three", b"four", b"five")]
LATER = "persistent://public/default/later"


def create_later(path: Path) -> None:
    """A topic that the copy does not know, with a message and a subscription."""
    with owned(path) as directory, closing(open_metadata(directory)) as store:
        catalog = Catalog("c", store.load())
        made = catalog.plan_create_topic(parse_topic(LATER), now_ms=1000)
        store.commit(made.writes)
        catalog.apply(made)
        log = open_log(directory, catalog, store, SystemClock(), SMALL)
        number = catalog.topic_number_last
        log.create_cursor(number, "late", AckSet(), {})
        log.stage_entry(log.topic(number), 1, 1000, 0, b"later")
        batch = log.seal_batch()
        assert batch is not None
        log.commit(batch)
        log.close()


def topics(path: Path) -> dict[str, list[str]]:
    """The topics that a start finds, with the names of their subscriptions."""
    with owned(path) as directory, closing(open_metadata(directory)) as store:
        catalog = Catalog("c", store.load())
        log = open_log(directory, catalog, store, SystemClock(), SMALL)
        found: dict[str, list[str]] = {}
        for number in catalog.topic_numbers_in(""):
            row = catalog.topic_by_number(number)
            assert row is not None
            found[row.name] = [cursor.name for cursor in log.cursors_of(number)]
        log.close()
    return found


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_metadata_come_back_from_the_copy(how: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    fill(path)
    copy_metadata(path)
    DAMAGE[how][0](path)
    broken = files(path)
    found = repair_directory(str(path), dry_run=True)
    assert (found["isSound"], found["metadataRepair"]["isComplete"]) == (False, True)
    assert files(path) == broken
    found = repair_directory(str(path))
    assert (found["isSound"], found["metadataProblem"]) == (True, None)
    kept = Path(found["copies"], "directory")
    if how != "missing":
        assert (kept / METADATA_NAME).read_bytes() == broken[str(path / METADATA_NAME)]
    assert verify_directory(str(path))["isSound"]
    assert bodies(path) == ALL
    assert topics(path) == {TOPIC: ["billing"]}
    again = repair_directory(str(path))
    assert (again["isSound"], again["metadataRepair"]) == (True, None)


def test_a_journal_that_names_another_file_is_damage_and_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "data"
    fill(path)
    copy_metadata(path)
    victim = tmp_path / "victim"
    victim.write_text("of somebody")
    forge_journal(path / METADATA_NAME, victim)
    assert "names another file" in verify_directory(str(path))["metadataProblem"]
    assert repair_directory(str(path))["isSound"]
    assert victim.read_text() == "of somebody"
    assert not (path / f"{METADATA_NAME}-journal").exists()
    assert bodies(path) == ALL
    assert victim.read_text() == "of somebody"


def test_a_stray_write_ahead_log_is_put_aside(tmp_path: Path) -> None:
    fill(tmp_path)
    copy_metadata(tmp_path)
    (tmp_path / METADATA_NAME).unlink()
    for suffix in ("-wal", "-shm", "-journal"):
        (tmp_path / f"{METADATA_NAME}{suffix}").write_bytes(b"of yesterday")
    found = repair_directory(str(tmp_path))
    assert found["isSound"]
    assert not (tmp_path / f"{METADATA_NAME}-wal").exists()
    assert Path(found["copies"], "directory", f"{METADATA_NAME}-wal").read_bytes()
    assert bodies(tmp_path) == ALL


def test_topics_that_the_copy_does_not_know_need_the_option_and_get_names(tmp_path: Path) -> None:
    fill(tmp_path)
    copy_metadata(tmp_path)
    create_later(tmp_path)
    (tmp_path / METADATA_NAME).unlink()
    before = files(tmp_path)
    found = repair_directory(str(tmp_path))
    assert not found["isSound"]
    assert "is missing" in found["metadataProblem"]
    assert files(tmp_path) == before
    name = "persistent://public/recovered/topic-2"
    made = found["metadataRepair"]["madeNames"]
    assert made == [{"topicNumber": 2, "topic": name}]
    found = repair_directory(str(tmp_path), rebuild_metadata=True)
    assert found["isSound"]
    assert topics(tmp_path) == {TOPIC: ["billing"], name: ["late"]}


def test_metadata_older_than_the_log_come_back_from_the_copy(tmp_path: Path) -> None:
    fill(tmp_path)
    old = (tmp_path / METADATA_NAME).read_bytes()
    create_later(tmp_path)
    copy_metadata(tmp_path)
    (tmp_path / METADATA_NAME).write_bytes(old)
    found = verify_directory(str(tmp_path))
    assert "is older than" in found["metadataProblem"]
    with pytest.raises(BindingError, match="headgate ledger repair --dry-run"):
        topics(tmp_path)
    assert repair_directory(str(tmp_path))["isSound"]
    assert topics(tmp_path) == {TOPIC: ["billing"], LATER: ["late"]}


def test_metadata_that_lack_a_topic_of_the_log_are_found_by_its_records(tmp_path: Path) -> None:
    fill(tmp_path)
    old = (tmp_path / METADATA_NAME).read_bytes()
    identity = (tmp_path / "log" / "identity").read_bytes()
    create_later(tmp_path)
    (tmp_path / METADATA_NAME).write_bytes(old)
    (tmp_path / "log" / "identity").write_bytes(identity)
    found = verify_directory(str(tmp_path))
    assert "has records of topic number 2, and the highest" in found["metadataProblem"]
    assert found["metadataRepair"]["source"] == METADATA_NAME


def test_without_a_copy_the_messages_come_back_under_made_names(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / METADATA_NAME).unlink()
    found = repair_directory(str(tmp_path), rebuild_metadata=True, cluster="c")
    assert found["isSound"]
    assert found["metadataRepair"]["source"] is None
    assert topics(tmp_path) == {"persistent://public/recovered/topic-1": ["billing"]}
    assert bodies(tmp_path) == ALL


@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_a_lost_identity_is_written_as_the_metadata_tell_it(how: str, tmp_path: Path) -> None:
    fill(tmp_path)
    copy_metadata(tmp_path)
    identity = tmp_path / "log" / "identity"
    identity.unlink()
    if how == "damaged":
        identity.write_bytes(b"neither line")
    found = verify_directory(str(tmp_path))
    (finding,) = [f for f in found["logs"][0]["findings"] if f["isDamage"]]
    assert (finding["file"], finding["refusesStart"]) == ("identity", True)
    with pytest.raises(BindingError):
        bodies(tmp_path)
    assert repair_directory(str(tmp_path))["isSound"]
    assert bodies(tmp_path) == ALL


def test_metadata_and_identity_both_lost(tmp_path: Path) -> None:
    fill(tmp_path)
    copy_metadata(tmp_path)
    (tmp_path / METADATA_NAME).unlink()
    (tmp_path / "log" / "identity").write_bytes(b"neither line")
    assert repair_directory(str(tmp_path))["isSound"]
    assert bodies(tmp_path) == ALL


def test_a_damaged_copy_is_written_anew(tmp_path: Path) -> None:
    fill(tmp_path)
    copy_metadata(tmp_path)
    file = tmp_path / "log" / "metadata.copy"
    sound = file.read_bytes()
    file.write_bytes(b"?" + sound[1:])
    (finding,) = verify_directory(str(tmp_path))["findings"]
    assert (finding["log"], finding["isDamage"], finding["costs"]) == ("log", True, [])
    found = repair_directory(str(tmp_path))
    assert (found["isSound"], file.read_bytes()) == (True, sound)
    assert Path(found["copies"], "log", "metadata.copy").read_bytes() == b"?" + sound[1:]


def test_a_crash_in_each_step_leaves_a_refused_start_or_the_rebuilt_metadata(
    tmp_path: Path,
) -> None:
    fill(tmp_path / "sound")
    copy_metadata(tmp_path / "sound")
    for how in ("a flipped bit", "missing"):
        path = tmp_path / how
        shutil.copytree(tmp_path / "sound", path)
        DAMAGE[how][0](path)
        (path / f"{METADATA_NAME}-wal").write_bytes(b"")
        outcomes = []
        while "rebuilt" not in outcomes:
            outcomes.append(crash(path, tmp_path / f"{how}-{len(outcomes)}", len(outcomes)))
        assert outcomes.count("refused") > 15


def crash(source: Path, path: Path, at: int) -> str:
    """Repair a copy of a directory until the operation ``at``, look, repair again. Returns what the
    crash left."""
    shutil.copytree(source, path)
    check = check_metadata(str(path), ["log"])
    reports = {"log": verify_log(OsFs(), f"{path}/log", None)}
    repair = plan_metadata(check, reports, cluster="c", now_ms=1)
    disk = FaultyFs(OsFs(), stop_at(at))
    with suppress(InterruptedError):
        apply_metadata(disk, str(path), f"{path}/aside/directory", check.problem, repair)
    outcome = "rebuilt"
    if check_metadata(str(path), ["log"]).problem:
        outcome = "refused"
        assert repair_directory(str(path))["isSound"]
    assert not (path / REBUILT_NAME).exists()
    if outcome == "rebuilt" or at % 5 == 0:
        assert bodies(path) == ALL
    return outcome


def test_a_power_cut_never_leaves_a_write_ahead_log_beside_rebuilt_metadata() -> None:
    repair = MetadataRepair("log/metadata.copy", RebuiltRows({("tenant", "a"): b"{}"}))
    old = {METADATA_NAME: b"old", f"{METADATA_NAME}-wal": b"old"}
    left: set[tuple[str, ...]] = set()
    for seed in range(120):
        fs = MemFs()
        fs.make_directory("data")
        for name, content in old.items():
            write_file(fs, "data", name, [content])
        disk = FaultyFs(fs, stop_at(seed % 40))
        with suppress(InterruptedError):
            apply_metadata(disk, "data", "data/aside/directory", "damaged", repair)
        after = fs.crash_clone(seed)
        there = {
            name: read_file(after, f"data/{name}")
            for name in after.list_directory("data")
            if name in old
        }
        is_old = there.get(METADATA_NAME) == b"old"
        if METADATA_NAME in there and not is_old:
            assert there[METADATA_NAME].startswith(b"SQLite format 3")
            assert len(there) == 1
        for name in set(old) - set(there) - {METADATA_NAME}:
            assert read_file(after, f"data/aside/directory/{name}") == b"old"
        left.add(("old" if is_old else "new", *there))
    assert len(left) >= 3


def stop_at(index: int) -> Callable[[Operation], None]:
    """A plan that ends the process at an operation."""

    def plan(operation: Operation) -> None:
        if operation.index == index:
            raise InterruptedError

    return plan

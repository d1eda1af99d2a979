"""Which metadata and logs belong together, and what a start says when they do not."""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass, field

import pytest

from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.fs import FaultyFs, MemFs
from headgate.ledger import CommitLog, Identity, LedgerSettings, LogFound, look_at_log
from headgate.ledger.format.identity import write_identity
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.memory_store import MemoryStore
from headgate.metadata.rows import IdentityRow
from headgate.storage.store_binding import (
    MAIN_LOG,
    BindingError,
    LogPlace,
    metadata_missing,
    open_bound_log,
)
from headgate.testing import World
from tests.sim.test_ledger_power_cuts import PowerCutError, cut_at

SMALL = LedgerSettings(segment_bytes=8192, extent_bytes=1024)
PATH = "/data/log"
NOW_MS = 1_700_000_000_000


@dataclass
class Directory:
    """What a broker keeps: its disk and its metadata."""

    fs: MemFs | FaultyFs = field(default_factory=MemFs)
    store: MemoryStore = field(default_factory=MemoryStore)
    seed: int = 0

    def copy(self) -> Directory:
        assert isinstance(self.fs, MemFs)
        return Directory(self.fs.crash_clone(None), self.store.crash_clone(), self.seed)

    def catalog(self) -> Catalog:
        return Catalog("c", self.store.load())

    def place(self, name: str = MAIN_LOG) -> LogPlace:
        path = f"/data/{name}"
        return LogPlace(name, path, "/data/metadata.sqlite3", look_at_log(self.fs, path))

    def open(
        self, catalog: Catalog | None = None, name: str = MAIN_LOG, *, is_last: bool = True
    ) -> CommitLog:
        catalog = catalog or self.catalog()
        place = self.place(name)
        return open_bound_log(
            catalog,
            self.store,
            place,
            lambda terms: CommitLog.open(
                self.fs,
                place.path,
                topic_numbers=catalog.topic_numbers(),
                entropy=random.Random(1).randbytes,
                settings=SMALL,
                topic_number_last=terms.topic_number_last,
                ids_min=terms.ids_min,
                batch_min=terms.batch_min,
            ),
            entropy=lambda size: bytes([self.seed]) * size,
            boot_wall_ms=NOW_MS,
            is_last=is_last,
        )

    def commit(self, catalog: Catalog, change: Change | None) -> None:
        assert change is not None
        self.store.commit(change.writes)
        catalog.apply(change)

    def run(self, *topics: str, bound: bool = True) -> Directory:
        """One life of a broker: it makes topics, with a message in each, and ends cleanly."""
        catalog = self.catalog()
        log = (
            self.open(catalog)
            if bound
            else CommitLog.open(
                self.fs,
                PATH,
                topic_numbers=catalog.topic_numbers(),
                entropy=random.Random(1).randbytes,
                settings=SMALL,
            )
        )
        first = catalog.plan_first_boot()
        if first is not None:
            self.commit(catalog, first)
        for name in topics:
            topic = parse_topic(f"persistent://public/default/{name}")
            self.commit(catalog, catalog.plan_create_topic(topic, now_ms=1))
            row = catalog.topic(topic.full)
            assert row is not None
            log.stage_entry(log.enter_topic(row.number), 1, 1000, 0, name.encode())
            batch = log.seal_batch()
            assert batch is not None
            log.commit(batch)
        if bound:
            row_ = catalog.identity
            starts, number = row_.starts_by_log[MAIN_LOG], catalog.topic_number_last
            log.identify(Identity(row_.data_id, starts, number, catalog.revision, log.last_batch))
        log.close()
        return self

    def files(self) -> dict[str, int]:
        return {
            name: self.fs.open(f"{PATH}/{name}").size() for name in self.fs.list_directory(PATH)
        }

    def refusal(self) -> BindingError:
        """Of a start, which must not have changed anything."""
        files, rows = self.files() if "log" in self.names() else {}, self.store.load()
        with pytest.raises(BindingError) as caught:
            self.open()
        assert (self.files() if files else {}, self.store.load()) == (files, rows)
        return caught.value

    def names(self) -> list[str]:
        try:
            return self.fs.list_directory("/data")
        except FileNotFoundError:
            return []

    def accept(self, loss: str) -> None:
        catalog = self.catalog()
        row = catalog.identity
        accepted = IdentityRow(row.data_id, row.starts_by_log, loss)
        self.commit(catalog, catalog.plan_identity(accepted))

    def messages(self) -> dict[str, int]:
        catalog = self.catalog()
        log = self.open(catalog)
        found = {
            row.name.rpartition("/")[2]: log.topic(number).end
            for number in sorted(catalog.topic_numbers())
            if (row := catalog.topic_by_number(number)) is not None
        }
        log.close()
        return found


def test_a_new_directory_is_bound_and_each_start_is_counted() -> None:
    directory = Directory(seed=7).run("a").run("b").run()
    assert directory.catalog().identity == IdentityRow("07" * 16, {"log": 3})
    identity = directory.place().found.identity
    assert identity is not None
    assert (identity.data_id, identity.starts, identity.topic_number) == ("07" * 16, 3, 2)
    assert directory.messages() == {"a": 1, "b": 1}


def test_new_metadata_beside_a_log_are_refused() -> None:
    directory = Directory().run("a")
    directory.store = MemoryStore()
    error = directory.refusal()
    assert error.loss is None
    assert str(error) == (
        "/data/metadata.sqlite3 does not belong to /data/log: it has no id, the log's is "
        f"{'00' * 16}. Put metadata and log back from the same backup, taken while no broker ran; "
        "or rebuild the metadata from its copy in the log, which this command shows first: "
        "headgate ledger repair --dry-run --data-dir /data; "
        "or, to begin without these messages, move /data/log away"
    )


def test_metadata_of_another_directory_are_refused() -> None:
    directory = Directory(seed=1).run("a")
    directory.store = Directory(seed=2).run("a").store
    error = directory.refusal()
    assert (f"its id is {'02' * 16}, the log's is {'01' * 16}" in str(error), error.loss) == (
        True,
        None,
    )


@pytest.mark.parametrize("topics", [("b",), ()])
def test_older_metadata_are_refused_also_when_no_topic_was_made_since(
    topics: tuple[str, ...],
) -> None:
    directory = Directory().run("a")
    old = directory.store.crash_clone()
    directory.run(*topics)
    directory.store = old
    error = directory.refusal()
    assert error.loss == "metadata"
    assert "/data/metadata.sqlite3 is older than /data/log" in str(error)
    assert str(error).endswith("run: headgate accept-loss metadata --data-dir /data")


def test_a_number_that_the_log_was_reported_of_and_the_metadata_never_gave_is_refused() -> None:
    """Whatever their revision says."""
    directory = Directory().run("a")
    catalog = directory.catalog()
    log = directory.open(catalog)
    row, number = catalog.identity, catalog.topic_number_last + 1
    log.identify(Identity(row.data_id, row.starts_by_log[MAIN_LOG], number, catalog.revision))
    log.close()
    error = directory.refusal()
    assert "the highest topic number is 1, and 2 was known when the log was last used" in str(error)
    assert error.loss == "metadata"


def test_a_number_in_the_log_that_was_never_given_is_refused() -> None:
    """As after a crash within the second in which the log's directory had not heard of it."""
    directory = Directory().run("a")
    catalog = directory.catalog()
    log = directory.open(catalog)
    old = directory.store.crash_clone()
    topic = parse_topic("persistent://public/default/late")
    directory.commit(catalog, catalog.plan_create_topic(topic, now_ms=1))
    log.stage_entry(log.enter_topic(2), 1, 1000, 0, b"x")
    batch = log.seal_batch()
    assert batch is not None
    log.commit(batch)
    crashed = Directory(directory.fs.crash_clone(None), old)
    error = crashed.refusal()
    assert "the highest number that the metadata ever assigned is 1" in str(error)
    assert error.loss == "metadata"


def test_metadata_ahead_of_the_log_are_what_a_crash_leaves() -> None:
    directory = Directory().run("a")
    catalog = directory.catalog()
    directory.open(catalog)
    topic = parse_topic("persistent://public/default/late")
    directory.commit(catalog, catalog.plan_create_topic(topic, now_ms=1))
    crashed = Directory(directory.fs.crash_clone(None), directory.store)
    assert crashed.messages() == {"a": 1, "late": 0}


@pytest.mark.parametrize("kind", ["gone", "emptied", "older", "unbound"])
def test_a_log_that_is_gone_or_older_is_refused(kind: str) -> None:
    directory = Directory().run("a")
    old = directory.fs.crash_clone(None)
    directory.run("b")
    directory.fs = old if kind == "older" else MemFs()
    if kind == "emptied":
        directory.fs.make_directory(PATH)
    if kind == "unbound":
        CommitLog.open(
            directory.fs, PATH, topic_numbers=[], entropy=random.Random(1).randbytes, settings=SMALL
        ).close()
    error = directory.refusal()
    said = {
        "gone": "/data/log is missing or empty, but /data/metadata.sqlite3 says that it had",
        "emptied": "/data/log is missing or empty, but",
        "older": "/data/log is older than /data/metadata.sqlite3: it knows of 1 starts, the "
        "metadata of 2",
        "unbound": "/data/log is no longer bound, but",
    }[kind]
    assert str(error).startswith(said)
    assert error.loss == "log"


def test_yesterdays_log_with_todays_identity_is_refused() -> None:
    """Somebody put back the whole folder of the log, but for the file that says whose it is."""
    directory = Directory().run("a")
    old = directory.fs.crash_clone(None)
    directory.run("b")
    identity = directory.place().found.identity
    assert identity is not None
    assert identity.batch > 1
    write_identity(old, PATH, identity)
    directory.fs = old.crash_clone(None)
    error = directory.refusal()
    assert error.loss == "log"
    assert str(error).startswith("/data/log is older than it was, or its last records are gone: it")
    assert f"and batch {identity.batch} was durable" in str(error)
    assert str(error).endswith("run: headgate accept-loss log --data-dir /data")
    directory.accept("log")
    assert directory.messages() == {"a": 1, "b": 0}
    assert directory.messages() == {"a": 1, "b": 0}  # and the next start refuses nothing


def test_a_damaged_identity_is_refused() -> None:
    directory = Directory().run("a")
    directory.fs.create(f"{PATH}/identity").close()
    error = directory.refusal()
    assert "identity is damaged" in str(error)
    assert error.loss == "metadata"
    directory.accept("metadata")
    assert directory.messages() == {"a": 1}
    assert directory.place().found.identity is not None


# -- directories of the release before ---------------------------------------------------------


def test_a_directory_without_an_id_is_adopted_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "headgate.broker")
    directory = Directory().run("a", bound=False)
    assert directory.messages() == {"a": 1}
    assert [record.getMessage() for record in caplog.records] == [
        "/data/metadata.sqlite3 and /data/log come from a release that did not bind them: they are "
        f"bound now, by the id {'00' * 16}; earlier releases cannot open them any more"
    ]
    directory.run()
    assert len(caplog.records) == 1


@pytest.mark.parametrize("bound", [True, False])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("commits", [0, 1])
def test_a_crash_in_the_middle_of_binding_is_mended_by_the_next_start(
    commits: int, keep: bool, bound: bool
) -> None:
    directory = Directory()
    if not bound:
        directory.run("a", bound=False)
    directory.store.crash_at(directory.store.commits + commits, keep=keep)
    with pytest.raises(StorageError, match="the power was cut"):
        directory.open()
    crashed = Directory(directory.fs.crash_clone(3), directory.store.crash_clone(), seed=9)
    assert crashed.run("b").messages() == ({"b": 1} if bound else {"a": 1, "b": 1})


def test_a_log_of_the_release_before_that_is_gone_is_refused() -> None:
    directory = Directory().run("a", bound=False)
    directory.fs = MemFs()
    assert "/data/log is missing or empty" in str(directory.refusal())


def test_older_metadata_of_the_release_before_are_refused() -> None:
    directory = Directory().run("a", bound=False)
    old = directory.store.crash_clone()
    directory.run("b", bound=False)
    directory.store = old
    with pytest.raises(BindingError, match=r"topic number 2, .* ever assigned is 1"):
        directory.open()
    # The id that they have got meanwhile does not keep the right ones out.
    assert Directory(directory.fs, directory.store).place().found.identity is None


# -- what is accepted --------------------------------------------------------------------------


def test_metadata_that_are_older_can_be_accepted(caplog: pytest.LogCaptureFixture) -> None:
    directory = Directory().run("a")
    old = directory.store.crash_clone()
    directory.run("b", "c")
    newer = directory.store
    directory.store = old
    directory.accept("metadata")
    assert directory.messages() == {"a": 1}
    assert "starting without what the metadata of /data/log lacks" in caplog.text
    # Numbers are not given again, and the ones that were given up are another state now.
    directory.run("d")
    assert directory.catalog().topic_number_last == 4
    assert directory.messages() == {"a": 1, "d": 1}
    directory.store = newer
    assert directory.refusal().loss == "metadata"


@pytest.mark.parametrize("kind", ["gone", "older"])
def test_a_log_that_is_gone_or_older_can_be_accepted(kind: str) -> None:
    directory = Directory().run("a")
    old = directory.fs.crash_clone(None)
    directory.run("b")
    newer = directory.fs
    directory.fs = old if kind == "older" else MemFs()
    directory.accept("log")
    assert directory.messages() == {"a": int(kind == "older"), "b": 0}
    assert directory.catalog().identity.accepted_loss == ""
    directory.run("c")
    log = directory.open()
    assert log.topic(3).ledgers()[0].ledger_id >= NOW_MS  # no id is used again
    directory.fs = newer
    assert directory.refusal().loss == "log"


@pytest.mark.parametrize("kind", ["older metadata", "older log", "older end of the log"])
def test_a_power_cut_at_any_step_neither_forgets_nor_prolongs_an_accepted_loss(kind: str) -> None:
    before = Directory().run("a")
    old = before.copy()
    before.run("b")
    newer = before.copy()
    identity = newer.place().found.identity
    assert identity is not None
    if kind == "older metadata":
        before.store = old.store.crash_clone()
    else:
        before.fs = old.fs
    if kind == "older end of the log":
        write_identity(before.fs, PATH, identity)
        before.fs = before.fs.crash_clone(None)
    loss = "metadata" if kind == "older metadata" else "log"
    assert before.refusal().loss == loss
    before.accept(loss)
    step = 0
    while True:
        here = before.copy()
        cut = cut_at(step)
        cut.inner = here.fs
        here.fs = cut
        try:
            here.open().close()
            step = -1
        except PowerCutError:
            step += 1
        assert isinstance(cut.inner, MemFs)
        after = Directory(cut.inner.crash_clone(None), here.store.crash_clone())
        after.messages()  # is not refused
        assert after.catalog().identity.accepted_loss == ""
        if kind == "older metadata":
            after.store = old.store
        else:
            after.fs = newer.fs.crash_clone(None)
        assert after.refusal().loss == loss  # the next mismatch is not accepted
        if step < 0:
            return


def test_a_log_that_lacks_nothing_is_not_said_to_give_something_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "headgate.broker")
    directory = Directory().run("a")
    directory.open(name="telemetry").close()
    directory.fs.remove("/data/telemetry/identity")
    directory.accept("log")
    catalog = directory.catalog()
    directory.open(catalog, is_last=False).close()
    assert not caplog.messages
    directory.open(catalog, name="telemetry").close()
    (line,) = caplog.messages
    assert line.startswith("starting without what the log of /data/telemetry lacks")
    assert directory.catalog().identity.accepted_loss == ""


def test_a_loss_of_the_other_kind_is_not_accepted() -> None:
    directory = Directory().run("a")
    directory.fs = MemFs()
    directory.accept("metadata")
    assert directory.refusal().loss == "log"


# -- a disk that misbehaves, and further logs --------------------------------------------------


def test_a_start_on_a_full_disk_is_not_noted_and_the_next_one_is_fine(
    caplog: pytest.LogCaptureFixture,
) -> None:
    directory = Directory().run("a")
    directory.store.fail_next(StorageError("the disk is full", retryable=True))
    assert directory.messages() == {"a": 1}
    assert "this start of /data/log could not be recorded: the disk is full" in caplog.text
    assert directory.catalog().identity.starts_by_log == {"log": 1}
    assert directory.messages() == {"a": 1}


def test_the_first_change_after_a_start_that_could_not_be_noted_is_taken() -> None:
    """What the start had planned was still in its way, and that ended the broker."""
    with World(1) as world:
        world.run(world.start())
        world.run(world.stop())
        world.store.fail_next(StorageError("disk full", retryable=True))
        broker = world.run(world.start())
        name = parse_topic("persistent://public/default/t")
        world.run(broker.registry.create(name))
        assert broker.registry.exists(name)


def test_a_disk_too_full_for_a_first_segment_leaves_nothing_bound() -> None:
    directory = Directory(MemFs(capacity_bytes=100_000))
    directory.fs.make_directory("/others")
    directory.fs.create("/others/file").allocate(95_000)
    with pytest.raises(StorageError, match="no room for the first segment"):
        directory.open()
    assert directory.catalog().identity.starts_by_log == {}
    assert directory.place().found.identity is None


def test_a_second_log_is_bound_by_the_same_id() -> None:
    directory = Directory(seed=5).run("a")
    directory.open(name="telemetry").close()
    identity = directory.place("telemetry").found.identity
    assert identity is not None
    assert (identity.data_id, identity.starts) == ("05" * 16, 1)
    directory.open(name="telemetry").close()
    assert directory.catalog().identity.starts_by_log == {"log": 1, "telemetry": 2}


def test_missing_metadata_are_reported_before_a_file_is_made() -> None:
    empty = LogPlace("log", PATH, "/data/metadata.sqlite3", LogFound(None, holds_records=False))
    assert metadata_missing([empty]) is None
    for found in (
        LogFound(None, holds_records=True),
        LogFound(None, holds_records=False, damage="damaged"),
        LogFound(Identity("00" * 16, 1, 1, 1), holds_records=False),
    ):
        place = LogPlace("log", PATH, "/data/metadata.sqlite3", found)
        error = metadata_missing([place, empty])
        assert error is not None
        assert str(error).startswith("/data/metadata.sqlite3 is missing, but /data/log is there")
        assert error.loss is None
    both = metadata_missing([place, LogPlace("t", "/data/t", "/data/metadata.sqlite3", found)])
    assert str(both).endswith("to begin without these messages, move /data/log and /data/t away")


def test_a_kill_right_after_a_loss_was_accepted_gives_no_id_again() -> None:
    directory = Directory().run("a")
    directory.fs = MemFs()
    directory.accept("log")
    directory.open()
    directory.fs = directory.fs.crash_clone(None)
    directory.run("b")
    assert directory.open().topic(2).ledgers()[0].ledger_id >= NOW_MS

"""A running broker holds one consistent state for one backup, as long as that is renewed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.app.backup.folder import BackupFolder
from headgate.app.backup.holding import LEASE_S, SOURCE_NAME, FileHolding
from headgate.app.backup.restore import newest_manifest, restore
from headgate.app.backup.sources import running_source
from headgate.app.backup.take import take_backup
from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.facade.protocol import BackupHold
from headgate.fs import MemFs, OsFs
from headgate.ledger import CommitLog, LedgerSettings, look_at_log
from headgate.ledger.format.directory import write_file
from headgate.metadata.catalog import Catalog
from headgate.metadata.errors import RefusalError
from headgate.storage.store_binding import LogPlace, check_binding
from headgate.testing import World
from tests.unit.app.backup.directories import BACKUP, DATA, NEW, free_pace
from tests.unit.broker.playing import TOPIC, played
from tests.unit.ledger.support import bodies_of

SMALL = LedgerSettings(segment_bytes=16_384)


@pytest.fixture(autouse=True)
def _log_in_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.testing.world.DIRECTORY", f"{DATA}/log")


class Backups:
    """The holds on a broker of the simulation, and the tool that copies."""

    def __init__(self, world: World, before_copy: Callable[[], None] = lambda: None) -> None:
        self.world = world
        self.fs: MemFs = world.fs
        self.rows: dict[tuple[str, str], bytes] = {}
        """The metadata of the backup."""
        self.before_copy = before_copy
        broker = world.broker
        self.fs.make_directory(DATA)
        write_file(self.fs, DATA, "format", [b"headgate-data 1\n"])
        self.holding = FileHolding(
            world.disk,
            DATA,
            {"log": broker.log},
            self._copy_metadata,
            broker.identity_writer.identities,
            upkeep=broker.lanes.upkeep,
            metadata=broker.lanes.metadata,
            entropy=random.Random(1).randbytes,
        )

    def _copy_metadata(self, target: str) -> None:
        self.before_copy()
        self.rows = self.world.store.load()
        directory, _, name = target.rpartition("/")
        write_file(self.fs, directory, name, [b"metadata"])

    def copy(self, hold: BackupHold) -> None:
        """Copy what is held, as the tool does."""

        class Held:
            data_path = hold.data_directory
            source_path = hold.source_directory

            def confirm(self) -> None: ...

        folder = BackupFolder.create(self.fs, BACKUP)
        source = running_source(self.fs, Held())
        take_backup(source, folder, free_pace(), "now", keep=1)
        folder.close()

    def restored(self) -> tuple[Catalog, CommitLog]:
        """Restore the backup and start on it, as far as metadata and log go."""
        folder = BackupFolder.open(self.fs, BACKUP)
        restore(folder, newest_manifest(folder, None), NEW, free_pace(), lambda _: None)
        folder.close()
        catalog = Catalog("standalone", self.rows)
        place = LogPlace("log", f"{NEW}/log", "", look_at_log(self.fs, f"{NEW}/log"))
        check_binding(catalog, place)
        log = CommitLog.open(
            self.fs,
            f"{NEW}/log",
            topic_numbers=catalog.topic_numbers(),
            entropy=random.Random(2).randbytes,
            settings=SMALL,
            topic_number_last=catalog.topic_number_last,
        )
        return catalog, log


def body(at: int) -> bytes:
    return f"{at:06d}".encode() * 500


async def publish(world: World, first: int, end: int, topic: str = TOPIC) -> None:
    client = await world.connect()
    producer = await client.producer(topic)
    for at in range(first, end):
        await producer.send(body(at))
    await producer.close()


def restored_bodies(log: CommitLog, catalog: Catalog, topic: str = TOPIC) -> list[bytes]:
    row = catalog.topic(parse_topic(topic).full)
    assert row is not None
    # An entry of a topic ends with the message; the bytes before it are its metadata.
    return [found[-len(body(0)) :] for found in bodies_of(log, row.number)]


@played(ledger=SMALL)
async def test_the_state_is_that_of_the_beginning_while_all_goes_on(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    await publish(world, 0, 30)
    received = [await consumer.receive() for _ in range(30)]
    await consumer.ack(*(message.position for message in received[:10]))
    backups = Backups(world)
    hold = await backups.holding.begin()
    await publish(world, 30, 60)
    await consumer.ack(*(message.position for message in received[10:]))
    await publish(world, 0, 20, f"{TOPIC}-later")
    await asyncio.sleep(20)  # room would come back, holes would be punched
    assert world.broker.log.statistics().segments_deleted == 0
    backups.copy(hold)
    await backups.holding.end(hold.id)
    catalog, log = backups.restored()
    assert catalog.topic(f"{TOPIC}-later") is None
    assert restored_bodies(log, catalog) == [body(at) for at in range(30)]
    (cursor,) = log.cursors()
    assert cursor.ack_set.mark_delete == 9
    log.close()


@pytest.mark.parametrize("seed", range(20))
def test_metadata_and_log_are_of_one_moment(seed: int) -> None:
    """Topics are created, used and deleted meanwhile: no record is about an unknown one."""

    async def story(world: World) -> None:
        await world.start()
        backups = Backups(world)

        async def use(name: str, after_s: float) -> None:
            await asyncio.sleep(after_s)
            await publish(world, 0, 3, name)

        chance = random.Random(seed)
        tasks = [
            asyncio.create_task(use(f"{TOPIC}-{at}", chance.random() / 10)) for at in range(30)
        ]
        await asyncio.sleep(chance.random() / 10)
        hold = await backups.holding.begin()
        await asyncio.gather(*tasks)
        backups.copy(hold)
        await backups.holding.end(hold.id)
        catalog, log = backups.restored()
        for name in [f"{TOPIC}-{at}" for at in range(30)]:
            if catalog.topic(name) is not None:
                found = restored_bodies(log, catalog, name)
                assert found == [body(at) for at in range(len(found))]
        log.close()

    with World(seed, ledger=SMALL) as world:
        world.run(story(world))


@played(ledger=SMALL)
async def test_a_rewriting_ends_before_a_backup_begins(world: World) -> None:
    backups = Backups(world)
    log = world.broker.log
    log._rewriting._slices = iter(())  # type: ignore[assignment]
    begun = asyncio.create_task(backups.holding.begin())
    await asyncio.sleep(1)
    assert not begun.done()
    assert log.files_hold.is_held
    log._rewriting._slices = None
    await backups.holding.end((await begun).id)
    log._rewriting._slices = iter(())  # type: ignore[assignment]
    log._rewriting._job = "never"  # type: ignore[assignment]
    with pytest.raises(RefusalError, match="are being rewritten"):
        await backups.holding.begin()
    log._rewriting._slices = log._rewriting._job = None


@played(ledger=SMALL)
async def test_a_backup_that_is_not_renewed_ends(world: World) -> None:
    backups = Backups(world)
    hold = await backups.holding.begin()
    await asyncio.sleep(12)
    text = (
        "another backup is under way. Its command renewed it 12 s ago. If that command was killed, "
        "the broker ends the backup in 18 s"
    )
    with pytest.raises(RefusalError, match=text) as caught:
        await backups.holding.begin()
    assert caught.value.status == 409
    await asyncio.sleep(LEASE_S - 13)
    await backups.holding.renew(hold.id)
    await asyncio.sleep(LEASE_S - 1)
    assert world.broker.log.files_hold.is_held
    await asyncio.sleep(2)
    assert not world.broker.log.files_hold.is_held
    assert backups.fs.list_directory(f"{DATA}/{SOURCE_NAME}") == []
    for late in (backups.holding.renew, backups.holding.end):
        with pytest.raises(RefusalError, match="not renewed for 30 s") as caught:
            await late(hold.id)
        assert caught.value.status == 409
    await backups.holding.end((await backups.holding.begin()).id)


def test_the_log_has_the_end_of_each_backup(caplog: pytest.LogCaptureFixture) -> None:
    @played(ledger=SMALL)
    async def story(world: World) -> None:
        holding = Backups(world).holding
        await holding.end((await holding.begin()).id)
        hold = await holding.begin()
        world.broker.log.files_hold.lose("the disk became full")
        with pytest.raises(RefusalError):
            await holding.renew(hold.id)
        await holding.begin()
        await asyncio.sleep(LEASE_S + 1)

    with caplog.at_level("INFO", "headgate.backup"):
        story()
    lines = [one.message for one in caplog.records if one.name == "headgate.backup"]
    assert all(line.startswith("a backup begins: ") for line in lines[::2])
    assert lines[1::2] == [
        "the backup has ended: segments are deleted and punched again",
        "the backup is given up: the disk became full",
        "the backup is given up: it was not renewed for 30 s",
    ]


@played(ledger=SMALL)
async def test_what_was_not_begun_is_unknown(world: World) -> None:
    backups = Backups(world)
    for ask in (backups.holding.renew, backups.holding.end):
        for name in ("", "00", "x"):
            with pytest.raises(RefusalError, match="no such backup") as caught:
                await ask(name)
            assert caught.value.status == 404
    hold = await backups.holding.begin()
    await backups.holding.end(hold.id)
    with pytest.raises(RefusalError, match="no such backup"):
        await backups.holding.end(hold.id)


@played(ledger=SMALL)
async def test_a_full_disk_ends_the_hold_with_the_reason(world: World) -> None:
    backups = Backups(world)
    for ask in (backups.holding.renew, backups.holding.end):
        hold = await backups.holding.begin()
        world.broker.log.files_hold.lose("the disk became full")
        with pytest.raises(RefusalError, match="the disk became full") as caught:
            await ask(hold.id)
        assert caught.value.status == 409
        assert backups.fs.list_directory(f"{DATA}/{SOURCE_NAME}") == []


@played(ledger=SMALL)
async def test_a_backup_that_cannot_begin_holds_nothing(world: World) -> None:
    backups = Backups(world)

    def refuse() -> None:
        raise StorageError("the disk is full", retryable=True)

    backups.before_copy = refuse
    with pytest.raises(StorageError, match="the disk is full"):
        await backups.holding.begin()
    backups.before_copy = lambda: world.broker.log.files_hold.lose("the room was needed")
    with pytest.raises(RefusalError, match="the room was needed"):
        await backups.holding.begin()
    assert not world.broker.log.files_hold.is_held
    backups.before_copy = lambda: None
    await backups.holding.end((await backups.holding.begin()).id)


@played(ledger=SMALL)
async def test_a_start_removes_what_a_killed_broker_left(world: World) -> None:
    backups = Backups(world)
    backups.holding.clear()
    await backups.holding.begin()
    assert backups.fs.list_directory(f"{DATA}/{SOURCE_NAME}")
    Backups(world).holding.clear()
    assert backups.fs.list_directory(f"{DATA}/{SOURCE_NAME}") == []


def test_a_start_removes_nothing_through_a_link(tmp_path: Path) -> None:
    """A data directory from an archive may lead to any folder."""
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "thesis").touch()
    data = tmp_path / "data"
    data.mkdir()
    (data / SOURCE_NAME).symlink_to(documents)
    none: Any = None
    holding = FileHolding(
        OsFs(), str(data), {}, none, none, upkeep=none, metadata=none, entropy=none
    )
    holding.clear()
    assert (documents / "thesis").exists()
    assert not (data / SOURCE_NAME).is_symlink()
    holding.clear()


def test_a_start_removes_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / SOURCE_NAME).touch()
    none: Any = None
    holding = FileHolding(
        OsFs(), str(tmp_path), {}, none, none, upkeep=none, metadata=none, entropy=none
    )
    holding.clear()
    assert not (tmp_path / SOURCE_NAME).exists()

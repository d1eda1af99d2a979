"""Shared by the ledger's tests: a small log in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from headgate.base.ack_set import AckSet
from headgate.fs import Fs
from headgate.ledger import CommitLog, LedgerSettings, TopicLog
from headgate.ledger.format.records import CRC, crc32c, segment_name
from headgate.ledger.index.footer import (
    FOOTER_MAGIC,
    FOOTER_TRAILER,
    ROW_WITHOUT_BLOCKS,
    VERSION_WITHOUT_BLOCKS,
)
from headgate.ledger.space.accounting import space_errors

DIRECTORY = "/data"
SMALL = LedgerSettings(
    segment_bytes=8192,
    extent_bytes=1024,
    checkpoint_records=100_000,
    checkpoint_bytes=1 << 30,
    checkpoint_part_bytes=1024,
    slice_items=2,
)

SPARSE = replace(SMALL, ledger_entries_max=4, ledger_age_ms_min=0, checkpoint_bytes=8192)


def open_log(
    fs: Fs,
    topics: Collection[int] = (1, 2),
    settings: LedgerSettings = SMALL,
    entropy: Callable[[int], bytes] = lambda size: b"\x5a" * size,
    batch_min: int = 0,
    directory: str = DIRECTORY,
) -> CommitLog:
    return CommitLog.open(
        fs, directory, topic_numbers=topics, entropy=entropy, settings=settings, batch_min=batch_min
    )


def sparse_log(fs: Fs, settings: LedgerSettings = SPARSE, directory: str = DIRECTORY) -> CommitLog:
    """Topic 2 was released but for a little, so the sealed segments hold little of topic 1."""
    log = open_log(fs, settings=settings, directory=directory)
    log.create_cursor(1, "reader", AckSet(), {})
    for at in range(12):
        append(log, 1, b"kept %d " % at * 10, received_ms=1000 + at)
        append(log, 2, *[b"released" * 150] * 4, received_ms=1000 + at)
    log.checkpoint()
    log.run_maintenance()
    log.stage_trim(log.topic(2), 46)
    log.stage_trim(log.topic(1), 1)
    commit(log)
    return log


def facts(log: CommitLog) -> object:
    """Everything that a client sees of both topics."""
    return [
        (
            bodies_of(log, number),
            times_of(log, number),
            [log.topic(number).position(at) for at in range(t.first, t.end)],
            (t.first, t.end, t.totals(t.first), t.totals(t.end), t.ledgers()),
        )
        for number, t in ((number, log.topic(number)) for number in (1, 2))
    ]


def append(log: CommitLog, number: int, *bodies: bytes, received_ms: int = 1000) -> TopicLog:
    """Stage bodies in one batch and make them durable."""
    topic = log.enter_topic(number)
    for body in bodies:
        log.stage_entry(topic, 1, received_ms, 0, body)
    commit(log)
    return topic


def check_space(log: CommitLog) -> None:
    """Fail if an account of the space is wrong, or if the check of a running broker says so."""
    assert space_errors(log._state) == []
    assert wrong_segments(log) == 0


def wrong_segments(log: CommitLog) -> int:
    """Run the check of a running broker to its end; returns how many segments differed."""
    steps = log.check_space()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            wrong: int = end.value
            return wrong


def commit(log: CommitLog) -> None:
    batch = log.seal_batch()
    assert batch is not None
    log.commit(batch)


def bodies_of(log: CommitLog, number: int) -> list[bytes]:
    """Everything that a topic still holds, through the reader."""
    topic = log.topic(number)
    found: list[bytes] = []
    at = topic.first
    while at < topic.end:
        for _, ordinal, body in log.read(log.locate(topic, at, 1000, 1 << 30)):
            assert ordinal == at
            found.append(body)
            at += 1
    return found


def times_of(log: CommitLog, number: int) -> list[tuple[int, int]]:
    """``(received, published)`` of everything that a topic still holds."""
    topic = log.topic(number)
    entries = range(topic.first, topic.end)
    return [(topic.received_ms(at), topic.published_ms(at)) for at in entries]


def path(segment: int = 1) -> str:
    return f"{DIRECTORY}/{segment_name(segment)}"


def content(fs: Fs, name: str) -> bytes:
    file = fs.open(name)
    return file.read_at(0, file.size())


def overwrite(fs: Fs, name: str, at: int, data: bytes) -> None:
    """Change bytes behind the log's back, durably."""
    file = fs.open(name, writable=True)
    file.write_at(at, [data])
    file.sync_data()


def footer_without_blocks(segment: int, data_end: int, topics: Collection[TopicLog]) -> list[bytes]:
    """A footer of version 2, as earlier releases wrote it."""
    rows: list[bytes] = []
    parts: list[bytes] = []
    at = data_end
    for topic in topics:
        run = topic.run_in(segment)
        if run is None:
            continue
        first, end = run
        block = b"".join(column.tobytes() for column in topic.columns(first, end))
        rows.append(ROW_WITHOUT_BLOCKS.pack(topic.number, end - first, first, at, crc32c(block), 0))
        parts.append(block)
        at += len(block)
    directory = b"".join(rows)
    trailer = FOOTER_TRAILER.pack(
        FOOTER_MAGIC, VERSION_WITHOUT_BLOCKS, len(rows), segment, data_end, crc32c(directory)
    )
    return [*parts, directory, trailer, CRC.pack(crc32c(trailer))]


def use_old_files(log: CommitLog, number: int = 2) -> None:
    """Publish to a topic and trim it until the next two segments are in files of deleted ones."""
    writer, body = log._writer, b"of before " * 25
    writer.old_files.count_max = 2
    for at in range(400):
        active = log.active_segment()
        info = log._state.segments.get(active)
        is_begun = info is not None and info.data_end > 2_000
        if {active, active + 1} <= writer._reused and not is_begun:
            return
        topic = append(log, number, body)
        if at % 60 == 0:
            log.stage_trim(topic, topic.end)
            commit(log)
            log.checkpoint()
        log.run_maintenance()
    raise AssertionError("no file of a deleted segment was used")

"""The disk that a log takes is bounded by what it retains, over 300 lifetimes of a segment.

A thousand topics share the log: fast and slow ones, some released at once, some retained for a
time, some behind cursors that stand still for long and then catch up. Without rewriting, each slow
topic keeps a whole segment for each of its messages. The log is on a disk in memory, and a segment
is scaled to 1 MiB. ``./dev soak space`` plays a week.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.units import KIB, MIB, NS_PER_S
from headgate.fs import MemFs
from headgate.ledger import CommitLog, LedgerSettings
from headgate.storage import paced_removal
from tests.unit.ledger.support import check_space

DIRECTORY = "/data"
TOPICS = 1_000
SETTINGS = LedgerSettings(
    segment_bytes=MIB,
    checkpoint_bytes=4 * MIB,
    hole_bytes_min=64 * KIB,
    removed_piece_bytes=16 * KIB,
)
BATCH_ENTRIES = 16
PUBLISH_BYTES_PER_S = 5 * MIB // 64
"""5 MiB/s, as much smaller as the segments are."""
REWRITE_BYTES_PER_S = 16 * MIB // 64
REMOVE_BYTES_PER_S = paced_removal.BYTES_PER_S // 64
CATCH_UP_ENTRIES = 400
"""What a consumer acknowledges at once."""
BODY = bytes(range(256)) * 48


@dataclass(slots=True)
class Workload:
    """How fast each topic is, and when its messages are released."""

    rng: random.Random
    fast: int = 20
    """Topics with most of the messages."""
    catching_up: set[int] = field(default_factory=set)

    def topic(self) -> int:
        """The topic of the next message."""
        dice = self.rng.random()
        if dice < 0.8:
            return self.rng.randrange(self.fast)
        if dice < 0.95:
            return self.rng.randrange(self.fast, 200)
        return self.rng.randrange(200, TOPICS)

    def release(self, number: int, first: int, end: int) -> int:
        """The first ordinal that a topic keeps now."""
        kind = number % 5
        if kind < 2:
            return end  # acknowledged at once
        if kind == 2:
            return max(first, end - 30)  # retained for a time
        if kind == 3:
            return end if self.rng.random() < 0.02 else first  # a slow cursor
        if number in self.catching_up or self.rng.random() < 0.002:
            self.catching_up.add(number)  # a stuck one: its consumer is back, and reads on
            if end <= first + CATCH_UP_ENTRIES:
                self.catching_up.discard(number)
            return min(first + CATCH_UP_ENTRIES, end)
        return first


class Life:
    """A log at work on a simulated disk."""

    def __init__(self, seed: int, *, rewrites: bool = True) -> None:
        self.fs = MemFs()
        self.rng = random.Random(seed)
        self.work = Workload(self.rng)
        self.rewrites = rewrites
        self.log = self.opened()
        self.cursors = [
            self.log.create_cursor(number, "s", AckSet(), {}) for number in range(0, TOPICS, 5)
        ]
        self.now_s = 0.0
        self.allowed_bytes = 0.0
        self.removable_bytes = 0.0
        self.written_bytes = 0
        self.worst = 0.0
        """The largest part of the bound that was used at a check."""

    def opened(self) -> CommitLog:
        return CommitLog.open(
            self.fs,
            DIRECTORY,
            topic_numbers=range(TOPICS),
            entropy=self.rng.randbytes,
            settings=SETTINGS,
        )

    def turn(self) -> None:
        """A batch of messages, and what maintenance does until the next one."""
        log, rng = self.log, self.rng
        size = 0
        for _ in range(BATCH_ENTRIES):
            topic = log.topic(self.work.topic())
            body = BODY[: rng.randrange(200, 5_000)]
            log.stage_entry(topic, 1, int(self.now_s * 1000), 0, body)
            size += len(body)
        for _ in range(3):
            topic = log.topic(self.work.topic())
            first = self.work.release(topic.number, topic.first, topic.end)
            if first > topic.first:
                log.stage_trim(topic, first)
        batch = log.seal_batch()
        assert batch is not None
        log.commit(batch)
        self.written_bytes += size
        seconds = size / PUBLISH_BYTES_PER_S
        self.now_s += seconds
        log.note_time(int(self.now_s * NS_PER_S))
        log.run_maintenance()
        self.remove(seconds)
        self.rewrite(seconds)

    def remove(self, seconds: float) -> None:
        """As much of deleted segments as the rate allows."""
        self.removable_bytes = min(self.removable_bytes + seconds * REMOVE_BYTES_PER_S, MIB)
        while self.removable_bytes > 0 and self.log.removal_left_bytes:
            self.removable_bytes -= self.log.removal_step()

    def rewrite(self, seconds: float) -> None:
        """As many jobs as the rate allows; the log goes on between two of them."""
        self.allowed_bytes = min(self.allowed_bytes + seconds * REWRITE_BYTES_PER_S, MIB)
        while self.rewrites and self.allowed_bytes > 0 and self.log.rewriting_due():
            job = self.log.rewriting_step()
            if job is not None:
                before = self.log.written_bytes().rewritten
                job.run()
                self.log.finish_rewriting_job(job)
                self.allowed_bytes -= self.log.written_bytes().rewritten - before

    def check(self) -> None:
        """Compare the disk with the bound."""
        live_bytes = self.log.space_use().live_bytes
        bound_bytes = 1.5 * live_bytes + 4 * SETTINGS.segment_bytes
        self.worst = max(self.worst, self.fs.used_bytes() / bound_bytes)

    def live(self, lifetimes: int) -> None:
        """Publish that many segments, with a check after each batch."""
        turns = 0
        while self.written_bytes < lifetimes * SETTINGS.segment_bytes:
            self.turn()
            self.check()
            turns += 1
            if turns % 2_000 == 0:
                check_space(self.log)


def test_the_disk_is_bounded_by_what_is_retained(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    lifetimes = request.config.getoption("--lifetimes", default=300)
    life = Life(1)
    life.live(lifetimes)
    use, written = life.log.space_use(), life.log.written_bytes()
    check_space(life.log)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{lifetimes} segments: at most {life.worst:.2f} of the bound, {use.segments} files, "
            f"{use.file_bytes:,} bytes for {use.live_bytes:,} retained, "
            f"{life.log.statistics().segments_rewritten} segments rewritten, write amplification "
            f"{written.amplification:.2f}\n"
        )
    assert life.worst <= 1
    assert written.amplification is not None
    assert written.amplification < 2.5


def test_without_rewriting_the_bound_would_not_hold() -> None:
    life = Life(1, rewrites=False)
    life.live(40)
    assert life.worst > 1.3


def test_what_is_released_at_once_is_given_back_at_the_bounded_rate() -> None:
    life = Life(2)
    life.live(60)
    for number in range(4, TOPICS, 5):
        topic = life.log.topic(number)
        life.log.stage_trim(topic, topic.end)
    life.turn()
    begun_s = life.now_s
    life.worst = 2.0
    while life.worst > 1:
        life.turn()
        life.worst = 0.0
        life.check()
        assert life.now_s - begun_s < 180


def test_a_restart_goes_on_within_the_bound() -> None:
    life = Life(3)
    life.live(30)
    life.log.close()
    life.log = life.opened()
    check_space(life.log)
    life.live(60)
    assert life.worst <= 1
    check_space(life.log)

"""Rewriting of segments, as the event loop goes through it in slices.

One rewriting has four parts: the law chooses neighbours (rewrite_choice.py); what their topics
retain is collected; jobs on the thread of the upkeep copy it into a new file (segment_copy.py),
which takes the place of the last of them in one rename; then each topic is led to the new file. A
power cut before the rename leaves the old segments and a temporary file, which the next start
removes. One after it leaves the new file beside old segments whose entries it has, too: of two
files with an entry the one with the higher id counts, so the old ones hold nothing and are deleted.


Messages may be read and released at any time. The old segments are neither punched nor deleted
before all topics are led to the new file, and a read that was planned for the old file of the last
segment finds that until then.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from headgate.base.errors import CorruptionError, StorageError, invariant
from headgate.base.units import NS_PER_S
from headgate.fs.api import Fs
from headgate.ledger.format.records import SEGMENT_HEADER_BYTES, segment_name
from headgate.ledger.index.block_cache import BlockCache, BlockMissingError, FetchedBlock
from headgate.ledger.index.columns import TopicTotals
from headgate.ledger.index.state import LogState, SegmentInfo
from headgate.ledger.index.topic_log import TopicLog
from headgate.ledger.reader import LogReader
from headgate.ledger.settings import LedgerSettings
from headgate.ledger.space.maintenance import Job, Maintenance
from headgate.ledger.space.rewrite_choice import (
    SLICE_SEGMENTS,
    SegmentUse,
    choose_segments,
    kept_bytes,
)
from headgate.ledger.space.segment_copy import (
    Copier,
    CopyTask,
    OwnCopier,
    SegmentCopy,
    TopicPart,
    part_ordinals,
    topic_part,
)
from headgate.ledger.write.health import LogHealth
from headgate.ledger.write.writer import LogWriter

RETRY_NS: Final = 600 * NS_PER_S
"""How long segments that could not be rewritten are left alone."""
_ITEM_BLOCKS = 4
"""So many blocks of an index take as long to collect as one topic."""
_SLICE_NUMBERS: Final = 1_000
"""Numbers of topics that one slice puts together."""
_SLICE_TOTALS: Final = 256
"""Totals of a topic that one slice looks up: as many as the topic has ledgers in the segments."""
_Slices = Generator[Job | None]


class Pace(NamedTuple):
    """How fast the jobs of a rewriting go. Both are called on the thread of a job."""

    pause: Callable[[int], bool]
    """Called when so many bytes more are moved. Returns whether the job may move more at once; if
    not, the next job goes on."""
    bytes_per_s: Callable[[], int]
    """The most to move in a second, for a copier that makes pauses itself; 0: it makes none."""


UNPACED: Final = Pace(lambda _: False, lambda: 0)
"""Each job moves one piece, and makes no pause."""


class Rewriting:
    """Rewrites the segments of one log, one set of neighbours after the other."""

    def __init__(
        self,
        fs: Fs,
        directory: str,
        state: LogState,
        writer: LogWriter,
        reader: LogReader,
        health: LogHealth,
        maintenance: Maintenance,
        settings: LedgerSettings,
    ) -> None:
        self._fs = fs
        self._directory = directory
        self._state = state
        self._writer = writer
        self._reader = reader
        self._health = health
        self._maintenance = maintenance
        self._settings = settings
        self._slices: _Slices | None = None
        self._job: Job | None = None
        self._error: StorageError | None = None
        self._copy: SegmentCopy | None = None
        self._steps: Generator[int] | None = None
        """The steps of the copy."""
        self._copier: Copier = OwnCopier()
        self._pace: Pace = UNPACED
        self._unfit: dict[int, int] = {}
        """When segments that could not be rewritten may be tried again."""
        self._fruitless: tuple[int, ...] = ()
        """The state of the log when nothing was worth a copy."""
        self.bytes_written = 0
        """Bytes of the new files, also of those that were given up."""
        self.bytes_freed = 0
        """Bytes of the old files, without their holes, less those of the new ones."""
        self.segments_rewritten = 0
        """Old segments whose entries were copied."""

    def copy_with(self, copier: Copier) -> None:
        """Let ``copier`` copy the segments, from the next rewriting on."""
        self._copier = copier

    def rest(self) -> None:
        """Note that nothing is to be rewritten at present. Does not block."""
        self._copier.rest()

    @property
    def has_job(self) -> bool:
        """Whether a job is in progress."""
        return self._job is not None

    @property
    def is_active(self) -> bool:
        """Whether a rewriting is under way, with a job or between two."""
        return self._slices is not None

    def due(self) -> bool:
        """Whether :meth:`step` has work now."""
        if self._job is not None:
            return False
        if self._slices is not None:
            return True
        if self._maintenance.hold.is_held:
            return False
        return self._health.is_open and self._fruitless != self._mark()

    def step(self, pace: Pace) -> Job | None:
        """Do one slice of the work; the caller must run and finish a returned job."""
        if not self.due():
            return None
        self._pace = pace
        if self._slices is None:
            self._slices = self._rewrite()
        try:
            self._job = next(self._slices)
        except StopIteration:
            self._slices = None
        return self._job

    def finish(self, job: Job, error: StorageError | None) -> None:
        """Note how a job ended. After an error the old segments stay, and are left alone for
        :data:`RETRY_NS`."""
        self._job, self._error = None, error
        job.done()

    def abandon(self) -> None:
        """Give up what is in the making. Blocks. No job may be in progress."""
        self._slices = None
        copy, self._copy = self._copy, None
        if copy is not None:
            self._give_up(copy)

    # Inside ---------------------------------------------------------------------------------

    def _mark(self) -> tuple[int, ...]:
        state, space, now_ns = self._state, self._state.space, self._maintenance.now_ns
        return (
            state.checkpoint_segment, len(state.segments), space.live_bytes, space.sealed_bytes,
            space.punched_bytes, sum(ns > now_ns for ns in self._unfit.values()),
        )  # fmt: skip

    def _rewrite(self) -> _Slices:
        mark = self._mark()
        segments = yield from self._chosen()
        if not segments:
            self._fruitless = mark
            return
        state = self._state
        state.held = frozenset(segments)
        copy: SegmentCopy | None = None
        try:
            copy = yield from self._collected(segments)
            if copy is not None and copy.parts:
                yield from self._copied(copy)
                yield from self._switched(copy)
        except StorageError as error:
            # The topics are still led to places in the old file, which no start would find.
            is_renamed = copy is not None and copy.is_in_place
            invariant(not is_renamed, f"a rewritten segment was put in place, then: {error}")
            if self._copy is not None:
                self._error = None
                unfinished = self._copy
                yield Job(
                    "rewrite", unfinished.target, lambda: self._give_up(unfinished), lambda: None
                )
                self._copy = None
            copy = None
        state.held = frozenset()
        self._reader.forget_before()
        if copy is not None and copy.replaced_name:
            self._writer.removal.add(copy.replaced_name)
        if copy is None:
            retry_ns = self._maintenance.now_ns + RETRY_NS
            self._unfit.update(dict.fromkeys(segments, retry_ns))

    def _chosen(self) -> Generator[None, None, tuple[int, ...]]:
        """The segments that the law chooses; none if the upkeep works on one of them."""
        state, now_ns = self._state, self._maintenance.now_ns
        limit = state.checkpoint_segment
        self._unfit = {s: ns for s, ns in self._unfit.items() if ns > now_ns}
        uses: list[SegmentUse] = []
        for at, info in enumerate([*state.segments.values()], 1):
            if info.segment < limit and not info.is_dead:
                uses.append(self._use(info))
            if at % SLICE_SEGMENTS == 0:
                yield
        found = yield from choose_segments(
            uses, state.space.live_bytes, self._settings.segment_bytes
        )
        if any(s not in state.segments or state.segments[s].is_dead for s in found):
            return ()  # meanwhile; what is left is looked at anew
        if found and not self._maintenance.let_go(found):
            return ()
        return found

    def _use(self, info: SegmentInfo) -> SegmentUse:
        index_bytes = info.file_bytes - info.data_end
        data_bytes = info.data_end - SEGMENT_HEADER_BYTES
        return SegmentUse(
            info.segment,
            info.file_bytes - info.punched_bytes,
            kept_bytes(info.live_bytes, info.live_runs, data_bytes, index_bytes),
            info.sealed and info.segment not in self._unfit,
        )

    def _collected(
        self, segments: tuple[int, ...]
    ) -> Generator[Job | None, None, SegmentCopy | None]:
        """What the topics retain in the segments; None if a topic in them lost something: bytes
        outside the index may be needed for a repair."""
        state = self._state
        last_batch, stamp = state.checkpoint_last_batch, self._writer.stamp
        task = CopyTask(self._directory, segments, last_batch, stamp)
        copy = SegmentCopy(self._fs, task, state.blocks)
        numbers: dict[int, None] = {}
        for segment in segments:
            listed = iter([*state.segments[segment].topics])
            while some := list(islice(listed, _SLICE_NUMBERS)):
                numbers.update(dict.fromkeys(some))
                yield None
        items = 0
        for number in numbers:
            part = yield from self._part(number, segments)
            topic = state.topics.get(number)
            items += 1
            if topic is not None and part is not None:
                is_whole = not topic.damage and all(stop <= topic.first for _, stop in topic.lost)
                if not is_whole or 0 not in part.runs:
                    return None
                copy.parts.append(part)
                items += len(part.index) // _ITEM_BLOCKS
            if items >= self._settings.slice_items:
                items = 0
                yield None
        yield None
        return copy

    def _part(
        self, number: int, segments: tuple[int, ...]
    ) -> Generator[Job | None, None, TopicPart | None]:
        """What a topic retains in the segments; None if it is nothing. Jobs read the blocks of the
        index that are needed for that. Raises :class:`StorageError`."""
        topics = self._state.topics
        totals: dict[int, TopicTotals] = {}
        while (topic := topics.get(number)) is not None:
            # The topic may be trimmed while its totals are looked up.
            wanted = [at for at in part_ordinals(topic, segments) if at not in totals]
            if not wanted:
                return topic_part(topic, segments, totals)
            for begin in range(0, len(wanted), _SLICE_TOTALS):
                for ordinal in wanted[begin : begin + _SLICE_TOTALS]:
                    found = yield from self._totals(topic, ordinal, segments)
                    if found is None:
                        return None
                    totals[ordinal] = found
                if len(wanted) > _SLICE_TOTALS:
                    yield None
        return None

    def _totals(
        self, topic: TopicLog, ordinal: int, segments: tuple[int, ...]
    ) -> Generator[Job | None, None, TopicTotals | None]:
        """The totals of a topic before an ordinal; None if the topic is deleted meanwhile. They are
        looked up one by one: then one block at a time has to be in memory, and the cache may be
        smaller than all of them."""
        blocks, topics = self._state.blocks, self._state.topics
        while topics.get(topic.number) is topic:
            try:
                return blocks.look_up(partial(topic.totals, ordinal))
            except BlockMissingError as missing:
                fetched: list[FetchedBlock] = []
                yield Job("rewrite", segments[-1], _reading(blocks, missing, fetched), _nothing)
                error, self._error = self._error, None
                if error is not None:
                    raise error from missing
                for each in fetched:
                    if each.block is None and isinstance(each.error, StorageError):
                        raise each.error from missing
                    blocks.keep(each, topic.stored)
        return None

    def _copied(self, copy: SegmentCopy) -> _Slices:
        """Write the new file."""
        self._copy = copy
        steps = self._steps = self._copier.steps(copy, lambda: self._pace.bytes_per_s())
        yield from self._run(copy, lambda: self._check_room(copy))
        is_over = False

        def advance() -> None:
            nonlocal is_over
            moved_bytes: int | None = 0
            while moved_bytes is not None:
                moved_bytes = next(steps, None)
                if moved_bytes is not None and not self._pace.pause(moved_bytes):
                    return
            is_over = True

        while not is_over:
            if not self._health.is_open:
                raise StorageError("the disk is full", retryable=True)
            yield from self._run(copy, advance)

    def _numbers(
        self, copy: SegmentCopy
    ) -> Generator[None, None, tuple[dict[int, None], set[int]]]:
        """The topics with entries in the new file; these and those that its last segment knew."""
        numbers: dict[int, None] = {}
        known = iter([*self._state.segments[copy.target].topics])
        pending: set[int] = set()
        for begin in range(0, len(copy.parts), _SLICE_NUMBERS):
            numbers.update((p.number, None) for p in copy.parts[begin : begin + _SLICE_NUMBERS])
            pending.update(p.number for p in copy.parts[begin : begin + _SLICE_NUMBERS])
            yield
        while some := list(islice(known, _SLICE_NUMBERS)):
            pending.update(some)
            yield
        return numbers, pending

    def _give_up(self, copy: SegmentCopy) -> None:
        steps, self._steps = self._steps, None
        if steps is not None:
            steps.close()
        copy.abandon()

    def _run(self, copy: SegmentCopy, work: Callable[[], None]) -> _Slices:
        """Run a part of the work on the thread. Raises its error."""

        def run() -> None:
            try:
                work()
            except StorageError:
                raise
            except (OSError, CorruptionError) as error:
                doing = f"rewriting {segment_name(copy.target)}"
                raise StorageError(f"{doing} failed: {error}", retryable=True) from error

        before_bytes = copy.written_bytes

        def done() -> None:
            self.bytes_written += copy.written_bytes - before_bytes

        yield Job("rewrite", copy.target, run, done)
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _check_room(self, copy: SegmentCopy) -> None:
        """Raise :class:`StorageError` if the new file would take the room of the next segments."""
        free_bytes = self._fs.space(self._directory).free_bytes
        needed_bytes = copy.expected_bytes() + 2 * self._settings.segment_bytes
        if free_bytes < needed_bytes:
            raise StorageError(
                f"no room to rewrite {segment_name(copy.target)}: {needed_bytes:,} bytes are "
                f"needed, and {free_bytes:,} are free",
                retryable=True,
            )

    def _put_in_place(self, copy: SegmentCopy) -> None:
        removal = self._writer.removal
        name = removal.second_name(copy.target)
        try:
            self._reader.replace(copy.target, copy.temporary)
        except OSError:
            if name:
                removal.forget(name)
            raise
        copy.is_in_place = True
        self._writer.sync_names(f"rewriting {segment_name(copy.target)}")
        copy.replaced_name = name

    def _switched(self, copy: SegmentCopy) -> _Slices:
        """Put the new file in the place of the last segment, and lead the topics to it."""
        numbers, pending = yield from self._numbers(copy)
        yield from self._run(copy, lambda: self._put_in_place(copy))
        self._copy = self._steps = None
        state = self._state
        infos = [state.segments[segment] for segment in copy.segments]
        freed_bytes = sum(info.file_bytes - info.punched_bytes for info in infos)
        parts = copy.parts
        for segment in copy.segments:
            state.stored.pop(segment, None)  # what is still in memory is left to the new file
        state.begin_switch(infos[-1], copy.data_end, copy.file_bytes, numbers, pending)
        parts.reverse()
        while parts:
            # Each is freed when it is done: 100,000 at once would take a third of a second.
            for _ in range(min(self._settings.slice_items, len(parts))):
                part = parts.pop()
                stored = copy.stored.pop(part.number, None)
                state.switch_topic(part.number, copy.segments[0], part.first, part.offsets, stored)
            yield None
        state.end_switch()
        self.bytes_freed += freed_bytes - copy.file_bytes
        self.segments_rewritten += len(infos)


def _reading(
    blocks: BlockCache, missing: BlockMissingError, fetched: list[FetchedBlock]
) -> Callable[[], None]:
    """Work that reads missing blocks, for the thread."""

    def run() -> None:
        fetched.extend(blocks.fetch(missing.keys))

    return run


def _nothing() -> None:
    """What follows a job that the loop awaits anyway."""

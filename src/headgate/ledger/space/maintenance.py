"""Log maintenance in bounded slices: prepare, seal, spill, checkpoint, punch, delete.

The loop calls :meth:`Maintenance.step`. Each call handles at most ``slice_items`` topics or cursors
and may return a :class:`Job`, whose blocking part another thread runs, one job at a time. Batches
are written meanwhile. The order is: prepare the next segment, seal full segments and leave their
index to the disk, write a checkpoint, delete or punch segments with dead entries. Segments that
little live data pins are rewritten beside this: see rewriting.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, repeat
from typing import Final, TypeVar

from headgate.base.errors import CorruptionError, StorageError
from headgate.ledger.errors import LogFullError
from headgate.ledger.format.records import segment_name
from headgate.ledger.index.block_cache import BlockPart
from headgate.ledger.index.checkpoint import CheckpointBuilder
from headgate.ledger.index.checkpoint_cursors import PIECE_PARTS, add_in_pieces
from headgate.ledger.index.checkpoint_sequences import add_sequences
from headgate.ledger.index.columns import Columns
from headgate.ledger.index.footer import FooterBuilder
from headgate.ledger.index.state import LogState, SegmentInfo
from headgate.ledger.index.topic_log import TopicLog
from headgate.ledger.settings import LedgerSettings
from headgate.ledger.space.early_checkpoint import EarlyCheckpoint
from headgate.ledger.space.files_hold import FilesHold
from headgate.ledger.space.hole_punching import WASTE_PART, HoleFinder, HolePlan, holes
from headgate.ledger.space.spilling import Spilling
from headgate.ledger.write.control_records import ControlRecords
from headgate.ledger.write.health import LogHealth
from headgate.ledger.write.staging import Staging
from headgate.ledger.write.writer import LogWriter

_CHECKPOINT_PART: Final = "checkpoint part"
_MAKING_ROOM: Final = ("seal", "checkpoint", _CHECKPOINT_PART, "reserve")
"""Jobs that make room, and need a little room for that."""
_BLOCKS_PER_REST: Final = 16
"""Blocks of an index that are encoded, or looked at, between two rests: about 0.1 ms."""
REST_S: Final = 0.002
"""A rest in work that takes the interpreter, which its thread shares with the event loop."""
_UNSEALED_MAX: Final = 2
"""With more complete segments that wait for their footers there is no rest."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Job:
    """Blocking work for a thread; afterwards the loop passes it to ``finish_job``."""

    name: str
    """What it does, for log lines."""
    segment: int
    """The segment that it handles."""
    run: Callable[[], None]
    """Do the work. Raises :class:`StorageError`."""
    done: Callable[[], None]
    """For the log only."""
    is_exclusive: bool = False
    """Whether it must run on the commit thread: it writes to files that batches go to. Any other
    job may run beside a commit."""


class Maintenance:
    """Decides which maintenance is due, and prepares it slice by slice."""

    def __init__(
        self,
        staging: Staging,
        controls: ControlRecords,
        health: LogHealth,
        state: LogState,
        writer: LogWriter,
        settings: LedgerSettings,
        forget: Callable[[int], None],
    ) -> None:
        """``forget`` closes the open file of a segment that is deleted."""
        self._staging = staging
        self._controls = controls
        self._health = health
        self._state = state
        self._writer = writer
        self._settings = settings
        self._forget = forget
        self._rest: Callable[[float], None] = lambda _: None
        self._job: Job | None = None
        self._footer: tuple[int, FooterBuilder, Iterator[int]] | None = None
        self._target: int | None = None
        self._checkpoint: tuple[CheckpointBuilder, Iterator[tuple[bool, int]]] | None = None
        self._cursor: Iterator[None] = iter(())
        """Of the same checkpoint: the rest of a cursor, piece by piece."""
        self._sequences: Iterator[None] | None = None
        """Of the same checkpoint: its rows of producers, slice by slice."""
        self._awaited: int | None = None
        self._cursors_end = 0
        """Of the same checkpoint: one past the last cursor that was made before its segment."""
        self._unstored: frozenset[int] = frozenset()
        """Those of them whose creation was deferred, and so comes in its segment or later."""
        self._resting = False
        self._make_way = False
        self.yields_space = False
        """While True, prepare no segment: another log needs the room."""
        self._holes: tuple[HoleFinder, Iterator[int]] | None = None
        self._hole_bytes_waiting: dict[int, int] = {}
        """Bytes that holes would free, by segment that still waits for a checkpoint."""
        self._can_punch = True
        self.hold = FilesHold()
        """While a backup holds the files, none is deleted or punched."""
        self._spilling = Spilling(state, settings.slice_items)
        self._early_checkpoint = EarlyCheckpoint(settings.segment_bytes)
        self.now_ns = 0
        """The time of the monotonic clock; the owner of the log sets it about once a second."""
        self.records_since = state.replayed_records
        """Records behind the point from which a start would replay."""
        self.bytes_since = state.replayed_bytes
        self.checkpoints = 0
        self.segments_deleted = 0
        self.footer_bytes_written = 0
        self.checkpoint_bytes_written = 0

    @property
    def has_job(self) -> bool:
        """Whether a job is in progress."""
        return self._job is not None

    @property
    def checkpoint_begun(self) -> bool:
        """Whether a checkpoint is being collected or written."""
        return self._target is not None

    def due(self) -> bool:
        """Whether :meth:`step` has work now."""
        if self._job is not None or self._resting:
            return False
        if self._to_prepare() is not None and not self._health.is_full:
            return True
        if self._make_way or self._to_seal() is not None or self._to_delete() is not None:
            return True
        if self._to_punch() is not None or self._gives_back() or self._spilling.is_due():
            return True
        if self._target is None:
            return self._checkpoint_wanted()
        if self._awaited is not None:
            return self._is_durable(self._awaited)
        return self._staging.first_unsynced_segment() >= self._target

    def step(self, *, force_checkpoint: bool = False) -> Job | None:
        """Do one slice of the work; the caller must run and finish a returned job."""
        if self._job is not None:
            return None
        self._resting = False
        if self._make_way:
            return self._start_make_way()
        if self._gives_back():
            return self._start_give_back()
        if self._health.is_full and (dead := self._to_delete()) is not None:
            return self._start_delete(dead)
        prepare = self._to_prepare()
        if prepare is not None and not self._health.is_full:
            return self._start_prepare(prepare)
        seal = self._to_seal()
        if seal is not None:
            return self._step_seal(seal)
        if self._spilling.step():
            return None
        if self._target is None and (force_checkpoint or self._checkpoint_wanted()):
            spare = self._staging.active_segment() + 1
            if self._health.is_full and not self._writer.has(spare):
                return self._start_reserve(spare)
            self._target = self._staging.roll()
            self._cursors_end = self._state.next_cursor_id
            self._unstored = self._controls.deferred_creations()
            self._early_checkpoint.begun()
            self.records_since = self.bytes_since = 0
        if self._target is not None and self._staging.first_unsynced_segment() >= self._target:
            job = self._step_checkpoint(self._target)
            if job is not None or self._awaited is None:
                return job
        dead = self._to_delete()
        if dead is not None:
            return self._start_delete(dead)
        worn = self._to_punch()
        if worn is not None:
            return self._step_punch(worn)
        if self._health.is_full and not self.yields_space:
            if prepare is not None:
                return self._start_prepare(prepare)
            self._health.room_found()
        return None

    def finish(self, job: Job, error: StorageError | None) -> None:
        """Note how a job ended. A failed job is tried again at the next :meth:`step`."""
        self._job = None
        if error is None:
            job.done()
        else:
            self._resting = True
            if job.name in ("checkpoint", _CHECKPOINT_PART):
                self.records_since = self._settings.checkpoint_records
            if job.name == "punch":
                self._state.worn[job.segment] = None  # behind the others that wait
            if isinstance(error, LogFullError) and job.name in _MAKING_ROOM:
                self._make_way = True
        if job.name == "seal":
            self._footer = None
        if job.name == "checkpoint" or (job.name == _CHECKPOINT_PART and error is not None):
            self._end_checkpoint()

    def abandon(self) -> None:
        """Forget the footer and the checkpoint that are being collected. No job is in progress.
        Blocks."""
        self._footer = None
        if self._checkpoint is not None:
            self._checkpoint[0].discard()
        self._end_checkpoint()

    def _end_checkpoint(self) -> None:
        self._checkpoint = None
        self._target = None
        self._awaited = None

    def rewound(self, active_segment: int) -> None:
        """Restart a checkpoint that waits for a segment that the log took back."""
        if self._awaited is not None:
            self._awaited = self._staging.last_staged()
        if self._target is not None and self._target > active_segment:
            self._target = None
            self.records_since = self._settings.checkpoint_records

    def rest_with(self, rest: Callable[[float], None]) -> None:
        """Let long jobs call ``rest``, with seconds, again and again: the thread that runs them
        shares its interpreter with the event loop."""
        self._rest = rest

    def _start(self, job: Job) -> Job:
        self._job = job
        return job

    def _gives_back(self) -> bool:
        """Whether another log needs the room of old files."""
        writer = self._writer
        return self.yields_space and (writer.old_files.count > 0 or writer.removal.left_bytes > 0)

    def _start_give_back(self) -> Job:
        def run() -> None:
            self._writer.give_back()

        return self._start(Job("give back", self._staging.active_segment(), run, lambda: None))

    def _to_prepare(self) -> int | None:
        wanted = self._staging.active_segment()
        for segment in (wanted, wanted + 1):
            if not self._writer.is_whole(segment):
                return segment
        return None

    def _start_prepare(self, segment: int) -> Job:
        def done() -> None:
            self._health.room_found()

        run = partial(self._writer.prepare, segment)
        is_exclusive = self._writer.is_small(segment)
        return self._start(Job("prepare", segment, run, done, is_exclusive))

    def _start_reserve(self, segment: int) -> Job:
        """Prepare a small segment: a checkpoint needs a new one, and the disk is full."""
        run = partial(self._writer.prepare_small, segment)
        return self._start(Job("reserve", segment, run, lambda: None))

    def _start_make_way(self) -> Job:
        """Free room for sealing or a checkpoint: discard the spare segment, or cut the open one."""
        active = self._staging.active_segment()

        def done() -> None:
            self._make_way = False
            self._health.disk_full()

        if self._writer.has(active + 1):
            run = partial(self._writer.discard, active + 1)
            return self._start(Job("make way", active + 1, run, done, is_exclusive=True))
        run = partial(self._writer.cut, active)
        return self._start(Job("make way", active, run, done, is_exclusive=True))

    def _to_seal(self) -> int | None:
        for segment in self._state.unsealed:
            return segment if segment < self._staging.first_unsynced_segment() else None
        return None

    def _added(self, numbers: Iterator[int], add: Callable[[TopicLog], None]) -> bool:
        """Add a slice of a segment's topics, without deleted ones; False if none was left."""
        left = False
        for number in islice(numbers, self._settings.slice_items):
            left = True
            topic = self._state.topics.get(number)
            if topic is not None:
                add(topic)
        return left

    def _step_seal(self, segment: int) -> Job | None:
        info = self._state.segments[segment]
        if self._footer is None or self._footer[0] != segment:
            self._footer = (segment, FooterBuilder(segment, info.data_end), iter([*info.topics]))
        _, builder, numbers = self._footer
        if self._added(numbers, builder.add):
            return None

        file_bytes = 0
        must_wipe = self._must_wipe(segment)

        def is_late() -> bool:
            """A start replays what is not sealed; and no commit waits for a rest."""
            return must_wipe or self._staging.active_segment() - segment > _UNSEALED_MAX

        def run() -> None:
            nonlocal file_bytes
            if must_wipe:
                self._writer.wipe_refused()
            footer = [*self._rested(builder.parts(), is_late)]
            self._writer.seal(segment, info.data_end, footer)
            file_bytes = info.data_end + sum(map(len, footer))

        def done() -> None:
            self._state.seal(info, file_bytes)
            self._state.stored[segment] = builder.directory.runs
            self.footer_bytes_written += file_bytes - info.data_end

        return self._start(Job("seal", segment, run, done, is_exclusive=must_wipe))

    def _must_wipe(self, segment: int) -> bool:
        """Whether chunks of a refused batch must be wiped before ``segment`` is sealed.

        A batch in flight begins behind the segment and wipes first, but a chunk in the segment
        itself must be gone before the footer is written to its place.
        """
        refused = self._writer.refused_segments()
        return any(one <= segment for one in refused) or (
            bool(refused) and not self._staging.is_writing
        )

    def _checkpoint_wanted(self) -> bool:
        """Whether half of a bound is reached: the log fills the other half while the checkpoint is
        written. Sooner if it is worth the space that can be freed behind it."""
        return (
            self._early_checkpoint.is_wanted(
                self._waiting_bytes(),
                self._state.space.checkpoint_bytes,
                self.now_ns,
                is_full=self._health.is_full,
            )
            or 2 * self.records_since >= self._settings.checkpoint_records
            or 2 * self.bytes_since >= self._settings.checkpoint_bytes
        )

    def _waiting_bytes(self) -> int:
        """Bytes that can be freed behind the next checkpoint."""
        state = self._state
        if not (state.dead or self._hole_bytes_waiting):
            return 0  # nearly always, and asked after each commit
        dead = [segment for segment in state.dead if segment >= state.checkpoint_segment]
        dead_bytes = sum(state.segments[segment].file_bytes for segment in dead)
        return dead_bytes + sum(self._hole_bytes_waiting.values())

    def _step_checkpoint(self, target: int) -> Job | None:
        if self._checkpoint is None:
            # Lists of numbers: a tuple for each of 200,000 took 100 ms.
            keys = chain(
                zip(repeat(True), [*self._state.topics]),
                zip(repeat(False), [*self._state.cursors]),
            )
            builder = CheckpointBuilder(target, self._state.last_batch_before(target))
            self._checkpoint = (builder, keys)
            self._cursor = iter(())
            self._sequences = None
        builder, left = self._checkpoint
        if builder.collected_bytes >= self._settings.checkpoint_part_bytes:
            run = partial(self._writer.store_checkpoint, builder, is_whole=False)
            return self._start(Job(_CHECKPOINT_PART, target, run, lambda: None))
        for _ in self._cursor:
            return None
        if self._collect_some(builder, left):
            return None
        if self._sequences is None:
            self._sequences = add_sequences(builder, self._state, self._settings.slice_items)
        for _ in self._sequences:
            return None
        if self._awaited is None:
            self._awaited = self._staging.last_staged()
        if not self._is_durable(self._awaited):
            return None
        builder.add_counters(self._staging.counters())
        last_batch = builder.last_batch

        def done() -> None:
            self._state.checkpoint_segment = target
            self._state.checkpoint_last_batch = last_batch
            self._state.space.checkpoint_bytes = 2 * builder.size_bytes
            self.checkpoint_bytes_written += 2 * builder.size_bytes
            self._state.worn.update(dict.fromkeys(self._hole_bytes_waiting))
            self._hole_bytes_waiting.clear()
            self.checkpoints += 1

        run = partial(self._writer.store_checkpoint, builder, is_whole=True)
        return self._start(Job("checkpoint", target, run, done))

    def _collect_some(self, builder: CheckpointBuilder, left: Iterator[tuple[bool, int]]) -> bool:
        """Add a slice of topics and cursors to a checkpoint; False if none was left."""
        some, parts = False, 0
        for is_topic, key in islice(left, self._settings.slice_items):
            some = True
            if is_topic:
                topic = self._state.topics.get(key)
                if topic is not None:
                    builder.add_topic(topic)
                continue
            cursor = self._state.cursors.get(key)
            # Replay finds a creation behind the segment. If it is given up, no record says so.
            if cursor is None or key >= self._cursors_end or key in self._unstored:
                continue
            parts += cursor.ack_set.stored_parts_count
            if parts > PIECE_PARTS:
                self._cursor = add_in_pieces(builder, cursor, self._controls.stage_acks)
                break
            self._controls.stage_acks(key)
            builder.add_cursor(cursor)
        return some

    def _to_delete(self) -> int | None:
        """A segment that no topic needs; None while each of them waits for a checkpoint."""
        dead = self._state.dead
        if not dead or self._is_held():
            return None
        limit, segments = self._state.checkpoint_segment, self._state.segments
        held = self._state.held
        return next(
            (s for s in dead if s < limit and s not in held and segments[s].is_dead),
            None,
        )

    def _to_punch(self) -> int | None:
        """A sealed segment that lost entries and retains others."""
        worn = self._state.worn
        if not (worn and self._can_punch) or self._is_held():
            return None
        for segment in list(worn):
            info = self._state.segments.get(segment)
            if info is None or info.is_dead:
                del worn[segment]
            elif info.sealed and segment not in self._state.held:
                return segment
        return None

    def let_go(self, segments: Collection[int]) -> bool:
        """Forget the holes that were planned in segments, which are about to be rewritten. False
        if a job works on one of them."""
        if self._job is not None and self._job.segment in segments:
            return False
        if self._holes is not None and self._holes[0].segment in segments:
            self._holes = None
        for segment in segments:
            self._hole_bytes_waiting.pop(segment, None)
        return True

    def _is_held(self) -> bool:
        """Whether a backup holds the files. A full disk needs their room at once."""
        if self.hold.is_held and self._health.is_full:
            self.hold.lose("the disk became full, and the files that the backup held were needed")
        return self.hold.is_held

    def _step_punch(self, segment: int) -> Job | None:
        info = self._state.segments[segment]
        if self._holes is None or self._holes[0].segment != segment:
            self._holes = (HoleFinder(info), iter([*info.topics]))
        finder, numbers = self._holes
        if self._added(numbers, finder.add):
            return None
        if finder.plan is None:
            # Decided once: a checkpoint that ends between two steps would turn what was forgotten
            # into holes.
            waste_bytes = finder.dead_bytes - info.dead_bytes
            is_worth_it = waste_bytes >= self._settings.segment_bytes // WASTE_PART
            waits = is_worth_it and segment >= self._state.checkpoint_segment
            finder.plan = HolePlan(is_worth_it and not waits, waste_bytes if waits else 0)
        handle = finder.collect if finder.plan.is_due else finder.forget
        if handle(self._settings.slice_items):
            return None
        self._holes = None
        del self._state.worn[segment]
        if finder.plan.waiting_bytes:
            self._hole_bytes_waiting[segment] = finder.plan.waiting_bytes
        if not finder.plan.is_due:
            return None
        return self._start_punch(segment, info, finder)

    def _start_punch(self, segment: int, info: SegmentInfo, finder: HoleFinder) -> Job:
        self._state.orphans.log(segment, segment_name(segment), "is punched")
        self._state.orphans.forget(segment)
        parts, smallest = finder.parts, self._settings.hole_bytes_min
        punched_bytes = info.punched_bytes

        def run() -> None:
            nonlocal punched_bytes
            try:
                retained = self._rested(self._resolved(parts))
                ranges = holes(retained, info.data_end, smallest)
            except CorruptionError:
                return  # what is retained is not known, and a look-up will say so
            self._can_punch = self._writer.punch(segment, ranges)
            if self._can_punch:
                punched_bytes = sum(size for _, size in ranges)

        def done() -> None:
            info.dead_bytes = finder.dead_bytes
            self._state.note_punched(info, punched_bytes)

        return self._start(Job("punch", segment, run, done))

    def _rested(
        self, blocks: Iterable[T], is_late: Callable[[], bool] = lambda: False
    ) -> Iterator[T]:
        """``blocks``, with a rest after some, unless there is a hurry. Runs on the thread."""
        for at, block in enumerate(blocks, 1):
            yield block
            if at % _BLOCKS_PER_REST == 0 and not (self._health.is_full or is_late()):
                self._rest(REST_S)

    def _resolved(self, parts: list[Columns | BlockPart]) -> Iterator[Columns]:
        """The index in ``parts``, which are freed one by one: to free 100,000 at once would hold
        the interpreter."""
        while parts:
            yield self._state.blocks.resolve(parts.pop())

    def _start_delete(self, segment: int) -> Job:
        self._state.orphans.log(segment, segment_name(segment), "is deleted")

        def run() -> None:
            self._forget(segment)  # otherwise closing the file on the loop may free its blocks
            self._writer.delete(segment)

        def done() -> None:
            self._state.forget_segment(segment)
            self._state.orphans.forget(segment)
            self._forget(segment)
            self.segments_deleted += 1

        return self._start(Job("delete", segment, run, done))

    def _is_durable(self, number: int) -> bool:
        return not self._controls.has_deferred and self._staging.is_durable(number)

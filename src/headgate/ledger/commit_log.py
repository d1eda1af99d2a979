"""The commit log of a broker, as its event loop uses it.

* *Event loop* (``stage_*``, ``seal_batch``, ``complete``, ``fail``, ``locate``, maintenance steps):
  these calls do not block. A look-up of an entry whose block of the index is not in memory is the
  exception, so the loop fetches such blocks first (``look_up``, see index/block_cache.py).
* *Commit thread* (``write_batch``, ``Job.run`` of an exclusive job): these block, and touch only
  the batch and the files. One thread at a time.
* *Upkeep thread* (``Job.run`` of any other job): it may be another thread than the one that
  commits, so that no commit waits for maintenance. One job at a time.
* *Reader threads* (``fetch``, ``fetch_index``): these block, and touch only what they are given and
  the files.
* ``open`` and ``close`` block; call them while nothing else runs.

An entry becomes visible (``TopicLog.end``) when its batch is complete, in order of ordinals. If a
batch fails, its entries and all entries staged after it are gone. The log stages the batch's
acknowledgements, cursors and trims again, because the engine's state in memory holds. It never
reuses the ids of lost entries: the topic's next entry opens a new ledger.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Generator, Iterable

from headgate.base.errors import StorageError, invariant
from headgate.fs.api import Fs, Lock, Space
from headgate.ledger.backup_view import (
    BackupView,
    backup_view,
    copy_checkpoint,
    write_description,
)
from headgate.ledger.errors import LogFailedError, LogFullError
from headgate.ledger.format.directory import adopt, lock_directory
from headgate.ledger.format.identity import Identity, write_identity
from headgate.ledger.format.records import STAMP_BYTES, segment_name
from headgate.ledger.index.block_cache import BlockCache
from headgate.ledger.index.cursors import CursorState
from headgate.ledger.index.receive_time_bound import ReceiveTimeBound
from headgate.ledger.index.state import LogState
from headgate.ledger.index.topic_log import TopicLog
from headgate.ledger.read_planner import ReadPlanner
from headgate.ledger.reader import LogReader, ReadPlan, entries_of
from headgate.ledger.recovery.recover import recover
from headgate.ledger.recovery.replay import SequenceOf, no_sequence
from headgate.ledger.recovery.sealing import prepare_first
from headgate.ledger.settings import LedgerSettings
from headgate.ledger.space.accounting import check_segments, space_use
from headgate.ledger.space.capacity import check_capacity, no_space_to_begin
from headgate.ledger.space.files_hold import FilesHold
from headgate.ledger.space.maintenance import Job, Maintenance
from headgate.ledger.space.rewriting import UNPACED, Pace, Rewriting
from headgate.ledger.statistics import IndexUse, LogStatistics, SegmentWaste, SpaceUse, WrittenBytes
from headgate.ledger.write.batch import Batch
from headgate.ledger.write.control_records import ControlRecords
from headgate.ledger.write.health import LogHealth
from headgate.ledger.write.rollover import LedgerRollover
from headgate.ledger.write.staging import Staging
from headgate.ledger.write.writer import LogWriter


class CommitLog:
    """One log for all topics of a broker."""

    def __init__(
        self,
        fs: Fs,
        directory: str,
        settings: LedgerSettings,
        state: LogState,
        writer: LogWriter,
        lock: Lock,
        reader: LogReader,
    ) -> None:
        """For :meth:`open` only."""
        self._fs = fs
        self._directory = directory
        self._settings = settings
        self._state = state
        self._writer = writer
        self._lock = lock
        self._health = LogHealth()
        self._reader = reader
        rollover = LedgerRollover(settings, state)
        self._staging = staging = Staging(settings, state, writer, rollover, self._health)
        self._controls = controls = ControlRecords(state, staging, self._health)
        self._maintenance = Maintenance(
            staging, controls, self._health, state, writer, settings, self._reader.forget
        )
        self._rewriting = Rewriting(
            fs, directory, state, writer, self._reader, self._health, self._maintenance, settings
        )
        # Each of these calls goes to its part directly.
        self.topic = state.topic
        self.enter_topic = state.enter_topic
        self.cursors_of = state.cursors_of
        self.ledger_is_over = rollover.is_due
        self.ledger_due_ms = rollover.due_ms
        self.take_topics_with_new_ledgers = rollover.take_opened_or_full
        self.roll_ledger = rollover.roll
        self.stage_entry = staging.stage_entry
        self.active_segment = staging.active_segment
        self.create_cursor = controls.create_cursor
        self.set_properties = controls.set_properties
        self.delete_cursor = controls.delete_cursor
        self.stage_acks = controls.stage_acks
        self.stage_trim = controls.stage_trim
        self.accept_damage = controls.accept_damage
        self.track_sequences = controls.track_sequences
        self.seal_batch = staging.seal_batch
        self.write_batch = writer.write_batch
        planner = ReadPlanner(state, settings)
        self.locate = planner.locate
        self.is_outdated = planner.is_outdated
        self.fetch = self._reader.fetch
        self.fetch_index = state.blocks.fetch
        self.keep_index = planner.keep_index
        self.missing_index = planner.missing_index
        self.look_up = state.blocks.look_up
        self.rest_with = self._maintenance.rest_with
        self.copy_segments_with = self._rewriting.copy_with
        self.rest_rewriting = self._rewriting.rest

    @classmethod
    def open(
        cls,
        fs: Fs,
        directory: str,
        *,
        topic_numbers: Collection[int],
        entropy: Callable[[int], bytes],
        settings: LedgerSettings | None = None,
        receive_time_bound: ReceiveTimeBound | None = None,
        topic_number_last: int | None = None,
        ids_min: int = 1,
        batch_min: int = 0,
        sequence_of: SequenceOf = no_sequence,
    ) -> CommitLog:
        """Lock a log's directory and recover its content. Blocks.

        ``topic_numbers`` are the topics that exist; records of any other number are garbage.
        ``entropy`` returns that many random bytes. They stamp the files and batches of this start,
        so that no message can imitate a part of the log. ``receive_time_bound`` bounds the receive
        times in the directory. ``topic_number_last`` is the highest number ever assigned, if known.
        Ids of ledgers and cursors below ``ids_min`` are not used. ``batch_min`` is a batch that was
        durable. ``sequence_of`` reads the sequence ids of entries of topics with deduplication.

        Raises :class:`UnknownTopicsError` if a record has a topic number above
        ``topic_number_last``, :class:`OlderLogError` if the log ends before ``batch_min``, and
        :class:`DirectoryInUseError`, :class:`UnknownFormatError`, :class:`CorruptionError` and
        :class:`StorageError`.
        """
        settings = settings or LedgerSettings()
        try:
            lock = lock_directory(fs, directory)
        except OSError as error:
            raise StorageError(f"opening {directory} failed: {error}", retryable=True) from error
        try:
            check_capacity(fs, directory, settings)
            stamp = int.from_bytes(entropy(STAMP_BYTES), "little")
            writer = LogWriter(
                fs,
                directory,
                settings.segment_bytes,
                stamp,
                removed_piece_bytes=settings.removed_piece_bytes,
            )
            reader = LogReader(fs, directory)
            blocks = BlockCache(reader, settings.index_cache_bytes)
            state = recover(
                fs, directory, topic_numbers, writer, receive_time_bound, topic_number_last,
                ids_min, batch_min, blocks, sequence_of,
            )  # fmt: skip
            adopt(fs, directory)
            ready = prepare_first(fs, directory, state, writer)
            if not (ready or state.segments or topic_numbers):
                raise no_space_to_begin(fs, directory, settings)
        except OSError as error:
            lock.release()
            raise StorageError(f"reading {directory} failed: {error}", retryable=True) from error
        except BaseException:
            lock.release()
            raise
        state.blocks.started()
        log = cls(fs, directory, settings, state, writer, lock, reader)
        if not ready:
            log._health.disk_full()
        return log

    @property
    def topic_number_seen(self) -> int:
        """The highest topic number in any record that the start found; 0 without a record."""
        return self._state.orphans.number_seen

    @property
    def last_batch(self) -> int:
        """The number of the last durable batch; 0 without one."""
        return self._state.last_batch

    @property
    def checkpoint_batch(self) -> int:
        """The number of the last batch that the checkpoint covers; 0 without one."""
        return self._state.checkpoint_last_batch

    def identify(self, identity: Identity) -> None:
        """Record durably which metadata this log belongs to. Any one thread; blocks.

        Raises :class:`StorageError`, which does not affect the log.
        """
        write_identity(self._fs, self._directory, identity)

    # Health and content --------------------------------------------------------------------

    @property
    def full(self) -> bool:
        """Whether the disk is full: then the log takes no entries, and everything else goes on."""
        return self._health.is_full

    @property
    def failed(self) -> LogFailedError | None:
        """Why the log stores nothing until a restart; None while it works."""
        return self._health.failure

    @property
    def has_deferred(self) -> bool:
        """Whether acknowledgements, cursors or trims are deferred until a segment has room."""
        return self._controls.has_deferred

    @property
    def staged_records(self) -> int:
        """Records staged and not yet in a sealed batch."""
        return self._staging.staged_records

    @property
    def staged_bytes(self) -> int:
        """Bytes of the staged records, headers included."""
        return self._staging.staged_bytes

    @property
    def unstored_bytes(self) -> int:
        """Bytes of the records that are not durable: staged, or in the batch that is written."""
        return self._staging.unstored_bytes

    def cursors(self) -> Iterable[CursorState]:
        """All cursors, oldest first."""
        return self._state.cursors.values()

    def adopt_topic(self, number: int, other: TopicLog) -> TopicLog:
        """Create a topic that begins at the first ordinal of one of another log, without entries.

        Its number must be new to this log. This log never uses the other topic's ledger ids.
        """
        state = self._state
        invariant(number not in state.topics, f"topic {number} is in this log already")
        topic = state.enter_topic(number)
        topic.restart_at(other.first, other.totals(other.first))
        topic.first = other.first
        ids = [ledger_id for ledger_id, _, _ in other.ledger_rows()]
        state.next_ledger_id = max(state.next_ledger_id, *(i + 1 for i in ids), 1)
        return topic

    def drop_topic(self, number: int) -> None:
        """Forget a topic and its cursors. Its number must never be used again.

        This writes no record: the metadata decides which topics exist.
        """
        topic = self._state.topics.pop(number, None)
        if topic is None:
            return
        self._state.release_topic(topic)
        cursors = self._state.cursors_of(number)
        for cursor in cursors:
            self._state.drop_cursor(cursor.cursor_id)
        self._controls.forget_topic(number, cursors)

    # Opening and closing --------------------------------------------------------------------

    def close(self) -> None:
        """Store the staged records, write a checkpoint and unlock the directory. Blocks.

        The next start then has nothing to replay. If the log failed, this only unlocks.

        Raises :class:`InvariantError` while a batch or a job is in progress: another thread uses
        the files, so they stay open and locked. Otherwise as :meth:`checkpoint`.
        """
        invariant(not self._staging.is_writing, "the log is closed while a batch is in flight")
        has_job = self._maintenance.has_job or self._rewriting.has_job
        invariant(not has_job, "the log is closed while a job is in progress")
        try:
            self._rewriting.abandon()
            self._maintenance.abandon()
            if self.failed is None:
                self.checkpoint()
        finally:
            self._reader.close()
            for segment in self._writer.close():
                if self.failed is None and segment not in self._state.segments:
                    with contextlib.suppress(OSError):
                        self._fs.remove(f"{self._directory}/{segment_name(segment)}")
                        self._fs.sync_directory(self._directory)
            self._lock.release()

    def checkpoint(self) -> None:
        """Make the staged records durable and write a checkpoint behind them. Blocks.

        No job and no batch may be in progress. Raises :class:`StorageError`.
        """
        for cursor_id in self._state.cursors:
            self.stage_acks(cursor_id)
        wanted = self._maintenance.checkpoints + 1 + self._maintenance.checkpoint_begun
        while self._maintenance.checkpoints < wanted:
            batch = self.seal_batch()
            if batch is not None:
                self.commit(batch)
            job = self._maintenance.step(force_checkpoint=True)
            if job is not None:
                try:
                    job.run()
                except LogFullError:
                    if self.has_deferred:
                        raise
                    return  # everything is durable; the next start replays it
                self.finish_job(job)

    # Batches --------------------------------------------------------------------------------

    def complete(self, batch: Batch) -> list[TopicLog]:
        """Make the entries of a durable batch visible. Returns the topics with entries in it."""
        touched = self._staging.complete(batch)
        self._controls.stage_deferred()
        self._maintenance.records_since += batch.records
        self._maintenance.bytes_since += batch.size_bytes
        return touched

    def fail(self, batch: Batch, error: StorageError) -> list[TopicLog]:
        """Take back a batch that failed, with all entries staged after it. Returns the topics that
        had staged entries.

        If ``error`` is retryable, the log stages the acknowledgements, cursors and trims of the
        batch again as far as there is room (see :attr:`has_deferred`); a :class:`LogFullError`
        makes the log :attr:`full`. Otherwise the log is :attr:`failed`.
        """
        touched, lost = self._staging.fail(batch)
        if not error.retryable:
            self._health.fail(error)
        else:
            if isinstance(error, LogFullError):
                self._health.disk_full()
            self._controls.defer(lost)
            self._controls.stage_deferred()
        self._maintenance.rewound(self._staging.active_segment())
        return touched

    def commit(self, batch: Batch) -> list[TopicLog]:
        """Write and complete a batch, for callers that may block (tests, :meth:`close`)."""
        try:
            self.write_batch(batch)
        except StorageError as error:
            self.fail(batch, error)
            raise
        return self.complete(batch)

    # Reading --------------------------------------------------------------------------------

    def read(self, plan: ReadPlan) -> list[tuple[int, int, bytes]]:
        """Read and decode the entries of a plan in one call. Blocks: for single entries and for
        starts.

        Raises as ``fetch`` and :func:`entries_of`.
        """
        return list(entries_of(plan, self._reader.fetch(plan)))

    # Times ----------------------------------------------------------------------------------

    @property
    def topics_bounded(self) -> int:
        """Topics with a receive time that :meth:`open` lowered to ``receive_time_bound``."""
        return self._state.topics_bounded

    def newest_received_ms(self) -> int:
        """The newest receive time of all topics; 0 if the log never had an entry."""
        topics = self._state.topics.values()
        return max((topic.newest_received_ms for topic in topics), default=0)

    # The disk -------------------------------------------------------------------------------

    @property
    def segment_bytes(self) -> int:
        """The size of a segment: the room that the log needs at once."""
        return self._settings.segment_bytes

    def space_use(self) -> SpaceUse:
        """How the log uses the disk, by what the bytes are needed for."""
        active = self.active_segment()
        spare = [s for s in (active, active + 1) if s not in self._state.segments]
        prepared = sum(self._writer.has(segment) for segment in spare)
        kept = self._writer.old_files.count
        left_bytes = self._writer.removal.left_bytes
        return space_use(self._state, self._settings.segment_bytes, prepared + kept, left_bytes)

    def index_use(self) -> IndexUse:
        """The memory and the reads of the stored index."""
        blocks = self._state.blocks
        return IndexUse(
            blocks.size_bytes, blocks.hits, blocks.misses, blocks.read_at_once, blocks.rebuilt,
            blocks.lost,
        )  # fmt: skip

    def has_segment(self, segment: int) -> bool:
        """Whether a segment with records is there: it is not deleted."""
        return segment in self._state.segments

    def segment_waste(self, segment: int) -> SegmentWaste | None:
        """What of a sealed segment nothing needs, and how many topics keep it; None while it is
        open or if it is deleted."""
        info = self._state.segments.get(segment)
        if info is None or not info.sealed:
            return None
        index_bytes = info.file_bytes - info.data_end
        rest_bytes = max(info.file_bytes - info.punched_bytes - info.live_bytes, 0)
        return SegmentWaste(max(rest_bytes - index_bytes, 0), rest_bytes, info.live_runs)

    def check_space(self) -> Generator[None, None, int]:
        """Check the counts of live bytes against the index; see :func:`check_segments`."""
        return check_segments(self._state)

    def space(self) -> Space:
        """The room on the file system. Blocks. Raises :class:`OSError`."""
        return self._fs.space(self._directory)

    # Backup ---------------------------------------------------------------------------------

    @property
    def files_hold(self) -> FilesHold:
        """The hold of a backup on the files. While it is held none is deleted or punched, and no
        rewriting begins."""
        return self._maintenance.hold

    @property
    def is_rewriting(self) -> bool:
        """Whether a rewriting of segments is under way."""
        return self._rewriting.is_active

    def backup_view(self, checkpoint_segment: int) -> BackupView:
        """The durable content now; see :func:`headgate.ledger.backup_view.backup_view`."""
        return backup_view(self._state, checkpoint_segment)

    def copy_checkpoint(self, target: str, prefix: str) -> int:
        """Copy the checkpoint into the folder ``target``; returns its segment. Upkeep thread.

        Raises :class:`StorageError`.
        """
        return copy_checkpoint(self._fs, self._directory, target, prefix)

    def describe(
        self, target: str, prefix: str, view: BackupView, identity: Identity | None
    ) -> None:
        """Write the log's other small files into the folder ``target``. Any one thread; blocks.

        Raises :class:`StorageError`.
        """
        write_description(self._fs, self._directory, target, prefix, view, identity)

    # Maintenance ----------------------------------------------------------------------------

    def yield_space(self, *, is_needed: bool) -> None:
        """While another log needs space, be :attr:`full` and prepare no segment: the other log gets
        the space that becomes free."""
        self._maintenance.yields_space = is_needed
        if is_needed:
            self._health.disk_full()

    def note_time(self, now_ns: int) -> None:
        """Note the time of the monotonic clock, for maintenance that may wait. Call it about once a
        second."""
        self._maintenance.now_ns = now_ns

    def maintenance_due(self) -> bool:
        """Whether :meth:`maintenance_step` has work now."""
        return self.failed is None and self._maintenance.due()

    def maintenance_step(self) -> Job | None:
        """Do one bounded slice. Run a returned job on the upkeep thread, on the commit thread if
        it is exclusive; then pass it to :meth:`finish_job`.

        Call it about once a second also when nothing is due: on a full disk it looks for room.
        """
        if self.failed is not None:
            return None
        return self._maintenance.step()

    def finish_job(self, job: Job, error: StorageError | None = None) -> None:
        """Note that a job has ended, with ``error`` if it failed."""
        self._maintenance.finish(job, error)
        if isinstance(error, LogFailedError):
            self._health.fail(error)
            return
        if isinstance(error, LogFullError) and job.name == "prepare":
            self._health.disk_full()
        if self.failed is None:
            self._controls.stage_deferred()

    def run_maintenance(self) -> None:
        """Do all maintenance that is due, for callers that may block."""
        _run_all(self.maintenance_due, self.maintenance_step, self.finish_job)

    @property
    def removal_left_bytes(self) -> int:
        """Bytes of deleted segments that are not freed yet."""
        return self._writer.removal.left_bytes

    def removal_step(self) -> int:
        """Free a piece of a deleted segment, on the upkeep thread. Returns its bytes; 0 if nothing
        is left."""
        return self._writer.removal.step()

    @property
    def segments_rewritten(self) -> int:
        """Segments whose entries were copied into another file since the log was opened."""
        return self._rewriting.segments_rewritten

    def rewriting_due(self) -> bool:
        """Whether :meth:`rewriting_step` has work now."""
        return self.failed is None and self._rewriting.due()

    def rewriting_step(self, pace: Pace = UNPACED) -> Job | None:
        """Do one bounded slice of the rewriting of segments, as :meth:`maintenance_step`. A job may
        run beside commits and beside a job of the maintenance. It moves a piece of bytes; then it
        asks ``pace`` whether to move another one."""
        return None if self.failed is not None else self._rewriting.step(pace)

    def finish_rewriting_job(self, job: Job, error: StorageError | None = None) -> None:
        """Note that a job of the rewriting has ended, with ``error`` if it failed."""
        self._rewriting.finish(job, error)
        if isinstance(error, LogFailedError):
            self._health.fail(error)

    def run_rewriting(self) -> None:
        """Rewrite all segments that are worth it, for callers that may block."""
        _run_all(self.rewriting_due, self.rewriting_step, self.finish_rewriting_job)

    def written_bytes(self) -> WrittenBytes:
        """What was written since the log was opened."""
        staging, maintenance = self._staging, self._maintenance
        return WrittenBytes(
            messages=staging.entry_bytes,
            records=staging.size_bytes - staging.entry_bytes,
            footers=maintenance.footer_bytes_written,
            checkpoints=maintenance.checkpoint_bytes_written,
            rewritten=self._rewriting.bytes_written,
        )

    def statistics(self) -> LogStatistics:
        """A snapshot of counts; walks the segments."""
        segments = self._state.segments.values()
        return LogStatistics(
            topics=len(self._state.topics),
            cursors=len(self._state.cursors),
            segments=len(segments),
            segments_sealed=sum(info.sealed for info in segments),
            log_bytes=sum(info.data_end for info in segments),
            staged_records=self.staged_records,
            staged_bytes=self.staged_bytes,
            batches=self._staging.batches,
            records=self._staging.records,
            bytes_written=self._staging.size_bytes,
            batches_failed=self._staging.batches_failed,
            checkpoints=self._maintenance.checkpoints,
            segments_deleted=self._maintenance.segments_deleted,
            segments_rewritten=self._rewriting.segments_rewritten,
            replayed_records=self._state.replayed_records,
            records_since_checkpoint=self._maintenance.records_since,
            bytes_since_checkpoint=self._maintenance.bytes_since,
            full=self.full,
            failed=None if self.failed is None else str(self.failed),
        )


def _run_all(
    due: Callable[[], bool],
    step: Callable[[], Job | None],
    finish: Callable[[Job, StorageError | None], None],
) -> None:
    """Do all due work, jobs included, on this thread. Raises the error of a job."""
    while due():
        job = step()
        if job is None:
            continue
        try:
            job.run()
        except StorageError as error:
            finish(job, error)
            raise
        finish(job, None)

"""The commit log of a broker, as its event loop uses it.

* *Loop side* (``stage_*``, ``seal_batch``, ``complete``, ``fail``, ``locate``, maintenance steps):
  never blocks and never touches the disk.
* *Commit thread* (``write_batch``, ``Job.run``): blocks; touches the batch and the files only. One
  thread at a time.
* *Reader threads* (``read``): block; touch the plan and the files only.
* ``open`` and ``close`` block and are called while nothing else runs.

An entry becomes visible (``TopicLog.end``) when its batch is complete, in order of ordinals. When a
batch fails, its entries and all that were staged after it are gone; acknowledgements, cursors and
trims in it are staged again by themselves, because what the engine's memory says holds. Ids of
entries that were lost are never used again: the topic's next entry opens a new ledger.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable

from headgate.base.errors import StorageError, invariant
from headgate.fs.api import Fs, Lock, Space
from headgate.ledger.errors import LogFailedError, LogFullError
from headgate.ledger.format.directory import adopt, lock_directory
from headgate.ledger.format.identity import Identity, write_identity
from headgate.ledger.format.records import ENTRY_HEAD_BYTES, STAMP_BYTES, segment_name
from headgate.ledger.index.cursors import CursorState
from headgate.ledger.index.receive_time_bound import ReceiveTimeBound
from headgate.ledger.index.state import LogState
from headgate.ledger.index.topic_log import NumberedTopic, TopicLog
from headgate.ledger.reader import LogReader, ReadPlan, entries_of
from headgate.ledger.recovery.recover import recover
from headgate.ledger.recovery.sealing import prepare_first
from headgate.ledger.settings import LedgerSettings
from headgate.ledger.space.capacity import check_capacity, no_space_to_begin
from headgate.ledger.space.maintenance import Job, Maintenance
from headgate.ledger.statistics import LogStatistics
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
    ) -> None:
        """For :meth:`open` only."""
        self._fs = fs
        self._directory = directory
        self._settings = settings
        self._state = state
        self._writer = writer
        self._lock = lock
        self._health = LogHealth()
        self._reader = LogReader(fs, directory)
        rollover = LedgerRollover(settings, state)
        self._staging = staging = Staging(settings, state, writer, rollover, self._health)
        self._controls = controls = ControlRecords(state, staging, self._health)
        self._maintenance = Maintenance(
            staging, controls, self._health, state, writer, settings, self._reader.forget
        )
        # One part serves each of these alone, so a call goes there directly.
        self.topic = state.topic
        self.cursors_of = state.cursors_of
        self.ledger_is_over = rollover.is_due
        self.roll_ledger = rollover.roll
        self.stage_entry = staging.stage_entry
        self.active_segment = staging.active_segment
        self.create_cursor = controls.create_cursor
        self.delete_cursor = controls.delete_cursor
        self.stage_acks = controls.stage_acks
        self.stage_trim = controls.stage_trim
        self.accept_damage = controls.accept_damage
        self.seal_batch = staging.seal_batch
        self.write_batch = writer.write_batch

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
    ) -> CommitLog:
        """Own a data directory and recover what it holds. Blocks.

        ``topic_numbers`` are the topics that exist: records of any other number are garbage.
        ``entropy`` gives that many random bytes: with some of them this start marks the files and
        batches that it makes, so that no message can look like a part of the log.
        ``receive_time_bound`` bounds receive times of what the directory holds.
        ``topic_number_last`` is the highest number ever given, where that is known: a record with
        a higher one refuses the start with :class:`UnknownTopicsError`. Ids of ledgers and cursors
        below ``ids_min`` are not used. Raises :class:`DirectoryInUseError`,
        :class:`UnknownFormatError`, :class:`CorruptionError` and :class:`StorageError` as well.
        """
        settings = settings or LedgerSettings()
        try:
            lock = lock_directory(fs, directory)
        except OSError as error:
            raise StorageError(f"opening {directory} failed: {error}", retryable=True) from error
        try:
            check_capacity(fs, directory, settings)
            stamp = int.from_bytes(entropy(STAMP_BYTES), "little")
            writer = LogWriter(fs, directory, settings.segment_bytes, stamp)
            state = recover(
                fs, directory, topic_numbers, writer, receive_time_bound, topic_number_last, ids_min
            )
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
        log = cls(fs, directory, settings, state, writer, lock)
        if not ready:
            log._health.disk_full()
        return log

    @property
    def topic_number_seen(self) -> int:
        """The highest topic number in any record that the start found; 0 without one."""
        return self._state.orphans.number_seen

    def identify(self, identity: Identity) -> None:
        """Say durably which metadata this log belongs to. Any one thread; blocks.

        Raises :class:`StorageError`; the log goes on as before.
        """
        write_identity(self._fs, self._directory, identity)

    # Health and content --------------------------------------------------------------------

    @property
    def full(self) -> bool:
        """Whether the disk is full: the log takes no entry, everything else goes on."""
        return self._health.is_full

    @property
    def failed(self) -> LogFailedError | None:
        """Why nothing is stored until a restart; None while the log works."""
        return self._health.failure

    @property
    def has_deferred(self) -> bool:
        """Whether acknowledgements, cursors or trims wait for room outside of all batches.

        The log stages them when a segment has room for them.
        """
        return self._controls.has_deferred

    @property
    def staged_records(self) -> int:
        """Records staged and not yet in a sealed batch."""
        return self._staging.staged_records

    @property
    def staged_bytes(self) -> int:
        """Bytes of the staged records, headers included."""
        return self._staging.staged_bytes

    def cursors(self) -> Iterable[CursorState]:
        """All cursors, oldest first."""
        return self._state.cursors.values()

    def adopt_topic(self, number: int, other: TopicLog) -> TopicLog:
        """Begin a topic where one of another log begins, without its entries and ledgers.

        Its number must be new to this log, and ids of ledgers stay unique in it.
        """
        state = self._state
        invariant(number not in state.topics, f"topic {number} is in this log already")
        topic = state.topic(number)
        topic.restart_at(other.first, other.totals(other.first))
        topic.first = other.first
        ids = [ledger_id for ledger_id, _, _ in other.ledger_rows()]
        state.next_ledger_id = max(state.next_ledger_id, *(i + 1 for i in ids), 1)
        return topic

    def drop_topic(self, number: int) -> None:
        """Forget a topic and its cursors. Its number must never be used again.

        Nothing is logged: the metadata says which topics exist.
        """
        topic = self._state.topics.pop(number, None)
        if topic is None:
            return
        self._state.release_runs(topic.segments())
        cursors = self._state.cursors_of(number)
        for cursor in cursors:
            self._state.drop_cursor(cursor.cursor_id)
        self._controls.forget_topic(number, cursors)

    # Opening and closing --------------------------------------------------------------------

    def close(self) -> None:
        """Store what is staged, checkpoint, and let go of the directory. Blocks.

        The next start has nothing to replay. After a failure it only lets go.
        """
        try:
            if self.failed is None:
                self._close_cleanly()
        finally:
            self._reader.close()
            for segment in self._writer.close():
                if self.failed is None and segment not in self._state.segments:
                    with contextlib.suppress(OSError):
                        self._fs.remove(f"{self._directory}/{segment_name(segment)}")
                        self._fs.sync_directory(self._directory)
            self._lock.release()

    def _close_cleanly(self) -> None:
        self._maintenance.abandon()
        self.checkpoint()

    def checkpoint(self) -> None:
        """Make what is staged durable and write a checkpoint, so that nothing before is replayed.
        Blocks; no job and no batch may be in hand. Raises :class:`StorageError`."""
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
                    return  # everything is stored; the next start replays it
                self.finish_job(job)

    # Batches --------------------------------------------------------------------------------

    def complete(self, batch: Batch) -> list[TopicLog]:
        """The batch is durable: its entries become visible. Returns the topics that got some."""
        touched = self._staging.complete(batch)
        self._controls.stage_deferred()
        self._maintenance.records_since += batch.records
        self._maintenance.bytes_since += batch.size_bytes
        return touched

    def fail(self, batch: Batch, error: StorageError) -> None:
        """The batch is not durable: its entries, and all staged after them, are gone.

        If ``error`` is retryable, acknowledgements, cursors and trims of the batch are staged again
        as far as there is room (see :attr:`has_deferred`), and a :class:`LogFullError` makes the
        log :attr:`full`. Otherwise the log is :attr:`failed`.
        """
        lost = self._staging.fail(batch)
        if not error.retryable:
            self._health.fail(error)
        else:
            if isinstance(error, LogFullError):
                self._health.disk_full()
            self._controls.defer(lost)
            self._controls.stage_deferred()
        self._maintenance.rewound(self._staging.active_segment())

    def commit(self, batch: Batch) -> list[TopicLog]:
        """Write and complete in one call, for callers that may block (tests, :meth:`close`)."""
        try:
            self.write_batch(batch)
        except StorageError as error:
            self.fail(batch, error)
            raise
        return self.complete(batch)

    # Reading --------------------------------------------------------------------------------

    def locate(
        self, handle: NumberedTopic, ordinal: int, count_max: int, bytes_max: int
    ) -> ReadPlan:
        """Plan a read of entries from ``ordinal`` (``first`` <= it < ``end``) on.

        At least one entry, at most ``count_max`` and, beyond the first, ``bytes_max`` of bodies;
        no more than one extent holds. Add topic numbers to ``wanted_topics`` of the plan to get
        their entries in the extent too.
        """
        topic = self._state.topics[handle.number]
        invariant(topic.first <= ordinal < topic.end, "a read of an entry that is not there")
        segment, run_end = topic.run_of(ordinal)
        end = min(run_end, ordinal + max(count_max, 1))
        start = topic.columns(ordinal, ordinal + 1).offsets[0]
        end = topic.offset_end(ordinal, end, start + self._settings.extent_bytes)
        offsets, _, _, _, totals = topic.columns(ordinal, end)
        count = 1
        while count < len(offsets) and totals[count + 1] - totals[0] <= bytes_max:
            count += 1
        sizes = [totals[at + 1] - totals[at] for at in range(count)]
        needed = offsets[count - 1] + ENTRY_HEAD_BYTES + sizes[-1] - start
        room = self._state.segments[segment].data_end - start
        size = min(max(self._settings.extent_bytes, needed), room)
        return ReadPlan(
            topic.number, segment, start, size, needed, ordinal, count, offsets[:count], sizes
        )

    def fetch(self, plan: ReadPlan) -> bytes:
        """Reader thread: what was planned, as it lies in the file, for :func:`entries_of`.

        Raises as :meth:`headgate.ledger.reader.LogReader.fetch` says.
        """
        return self._reader.fetch(plan)

    def read(self, plan: ReadPlan) -> list[tuple[int, int, bytes]]:
        """Everything planned at once, as :func:`entries_of` gives it out. Blocks: for single
        entries, and where nobody waits for the interpreter.

        Raises what fetching and taking out raise.
        """
        return list(entries_of(plan, self._reader.fetch(plan)))

    # Times ----------------------------------------------------------------------------------

    @property
    def topics_bounded(self) -> int:
        """Topics that had a receive time beyond the bound that :meth:`open` was told."""
        return self._state.topics_bounded

    def newest_received_ms(self) -> int:
        """The newest receive time of all topics; 0 when nothing was ever stored."""
        topics = self._state.topics.values()
        return max((topic.newest_received_ms for topic in topics), default=0)

    # The disk -------------------------------------------------------------------------------

    @property
    def segment_bytes(self) -> int:
        """What the log needs of the disk at once."""
        return self._settings.segment_bytes

    def space(self) -> Space:
        """How much room the file system has. Blocks. Raises :class:`OSError`."""
        return self._fs.space(self._directory)

    # Maintenance ----------------------------------------------------------------------------

    def leave_room(self, *, leave: bool) -> None:
        """While ``leave``, the log is :attr:`full` and makes no segment: another one, for which
        the disk has no room, gets what becomes free."""
        self._maintenance.leaves_room = leave
        if leave:
            self._health.disk_full()

    def maintenance_due(self) -> bool:
        """Whether :meth:`maintenance_step` has something to do now."""
        return self.failed is None and self._maintenance.due()

    def maintenance_step(self) -> Job | None:
        """Do one bounded slice. A returned job goes to the commit thread, then to
        :meth:`finish_job`.

        Call it also about once a second when nothing is due: while the disk is full, it looks
        for room again.
        """
        if self.failed is not None:
            return None
        return self._maintenance.step()

    def finish_job(self, job: Job, error: StorageError | None = None) -> None:
        """A job has ended, with ``error`` when it failed."""
        self._maintenance.finish(job, error)
        if isinstance(error, LogFailedError):
            self._health.fail(error)
            return
        if isinstance(error, LogFullError) and job.name == "prepare":
            self._health.disk_full()
        if self.failed is None:
            self._controls.stage_deferred()

    def run_maintenance(self) -> None:
        """Do everything that is due, in this thread, for callers that may block."""
        while self.maintenance_due():
            job = self.maintenance_step()
            if job is None:
                continue
            try:
                job.run()
            except StorageError as error:
                self.finish_job(job, error)
                raise
            self.finish_job(job)

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
            replayed_records=self._state.replayed_records,
            records_since_checkpoint=self._maintenance.records_since,
            bytes_since_checkpoint=self._maintenance.bytes_since,
            full=self.full,
            failed=None if self.failed is None else str(self.failed),
        )

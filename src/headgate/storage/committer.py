"""Group commit: the next commit contains everything staged during the last one.

At most one commit is in flight. Acknowledgements share a commit with the next publish, or get one
after :data:`ACK_DELAY_S`. So a stream of acknowledgements costs a few commits a second, and an
acknowledgement is durable within a second.

The end of a commit sends a receipt for each entry, and tells each request that waited. What exceeds
a fixed number of units is done in the next iterations of the loop, requests and receipts alike, for
which tenants take turns. The next commits run meanwhile, and their receipts join. The end of one
that failed, or that trims entries whose receipts wait, waits until that is done: an entry that it
takes back or removes is never one whose receipt waits.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from headgate.base.errors import NoRoomError, StorageError, broken
from headgate.base.texts import duration
from headgate.base.units import NS_PER_S
from headgate.base.work_units import (
    ACKS_STAGED,
    COMMIT_UNITS,
    JOB_STEP_UNITS_MAX,
    RECEIPTS_PER_UNIT,
    TOPIC_DURABLE,
    WAITER_TOLD,
)
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.ledger import Batch, CommitLog
from headgate.storage.commit_latency import CommitLatency
from headgate.storage.disk_monitor import DiskMonitor
from headgate.storage.lanes import Lane
from headgate.storage.receipt_turns import ReceiptTurns, telling
from headgate.storage.repeated_failures import RepeatedFailureLogger

logger = logging.getLogger("headgate.commit")

ACK_DELAY_S = 0.05
"""How long an acknowledgement waits at most for a publish with which it shares a commit."""

ACKS_STAGED_MAX = COMMIT_UNITS // ACKS_STAGED
"""Subscriptions whose acknowledgements the beginning of a commit stages. A job stages more, for the
next commits."""

RETRY_DELAY_S = 0.1
"""The pause after a failed commit that may succeed later."""

PROOF_S_MAX = 10.0
"""How long :meth:`Committer.prove` waits for a commit."""

NO_ROOM_REASON = (
    "the disk is full: not stored yet; it is stored once there is space, unless power fails"
)
"""The error of an operation whose records stay in memory until there is space."""

RunJob = Callable[[str, Iterator[int]], object]
"""Runs a job, with its name: it yields the units that it used wherever it may be interrupted."""


class Committer:
    """Commits what the engine staged in one log, one batch at a time."""

    def __init__(
        self,
        log: CommitLog,
        lane: Lane,
        engine: Engine,
        loop: asyncio.AbstractEventLoop,
        begin_turn: Callable[[], None],
        on_commit_ended: Callable[[], None],
        disk: DiskMonitor | None,
        what: str,
        run_job: RunJob,
    ) -> None:
        """With ``disk``, entries wait on a full disk; without it they fail. ``what`` names the log
        in log lines. ``run_job`` runs what takes too long for one turn."""
        self._log = log
        self._lane = lane
        self._engine = engine
        self._begin_turn = begin_turn
        self._on_commit_ended = on_commit_ended
        self._disk = disk
        self._loop = loop
        self._failures = RepeatedFailureLogger(logger, f"storing in {what}")
        self.in_flight = False
        """Whether a batch is being written."""
        self.latency = CommitLatency(engine)
        self._urgent = False
        self._had_no_room = False
        """Whether the disk had no space for the last commit."""
        self._dirty_cursors: deque[Subscription] = deque()
        self._dirty_count = 0
        """Subscriptions that were ever put into ``_dirty_cursors``."""
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        """Those who wait for a commit, oldest first, each with ``_dirty_count`` of that time."""
        self._ack_timer: asyncio.TimerHandle | None = None
        self._retry_timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self._run_job = run_job
        self._receipts = ReceiptTurns(engine)
        """Those that are not sent yet."""
        self._is_resolving = False
        """Whether there are such."""
        self._ended: Callable[[], None] | None = None
        """The end of a commit that waits for them."""
        self._is_staging_acks = False
        """Whether a job stages acknowledgements."""
        self.commits_count = 0

    def acks_changed(self, subscription: Subscription) -> None:
        """Persist this subscription's acknowledgements within :data:`ACK_DELAY_S`."""
        self._dirty_cursors.append(subscription)
        self._dirty_count += 1
        if self._ack_timer is None and not self._stopped:
            self._ack_timer = self._loop.call_later(ACK_DELAY_S, self._acks_due)

    def _acks_due(self) -> None:
        self._ack_timer = None
        self._urgent = True
        self.commit_if_idle()

    @property
    def waiting_count(self) -> int:
        """Those who wait for the next commit."""
        return len(self._waiting)

    def when_durable(self) -> asyncio.Future[None]:
        """A future that is done when everything staged until now is durable, except entries that
        wait for space on the disk. Receipts may be sent later (:meth:`when_answered`).

        It fails with :class:`StorageError` if the records could not be stored.
        """
        future: asyncio.Future[None] = self._loop.create_future()
        if self._stopped:
            future.set_exception(_stopped_error())
            return future
        self._waiting.append((self._dirty_count, future))
        self._urgent = True
        self._loop.call_soon(self.commit_if_idle)
        return future

    async def when_answered(self, topic: Topic) -> None:
        """:meth:`when_durable`, and the receipts of the topic's durable entries are sent, also if
        that fails."""
        failure: StorageError | None = None
        try:
            await self.when_durable()
        except StorageError as error:
            failure = error  # what earlier commits stored has its receipts all the same
        if self._is_resolving and topic.publishing.visible < topic.log.end:
            future: asyncio.Future[None] = self._loop.create_future()
            self._receipts.add_waiting(topic, future)
            await future
        if failure is not None:
            raise failure

    async def when_all_answered(self) -> None:
        """:meth:`when_durable`, and no receipt waits: the broker ends, and needs no turns."""
        try:
            await self.when_durable()
        finally:
            while self._is_resolving:
                await asyncio.sleep(0.001)

    async def prove(self) -> None:
        """Return once a commit of what is staged now has ended.

        Raises :class:`StorageError` if it failed, or takes longer than :data:`PROOF_S_MAX`.
        """
        try:
            if self.latency.running_ns() < PROOF_S_MAX * NS_PER_S:
                await asyncio.wait_for(self.when_durable(), PROOF_S_MAX)
                return
        except TimeoutError:
            pass
        self._begin_turn()
        ended_s = max(self.latency.running_ns() / NS_PER_S, PROOF_S_MAX)
        raise StorageError(f"no commit has ended for {duration(ended_s)}", retryable=True)

    def commit_if_idle(self) -> None:
        """Start a commit if there is something to commit and none is in flight."""
        if self.in_flight or self._retry_timer is not None or self._stopped:
            return
        if not (self._log.staged_records or self._urgent):
            return
        try:
            self._begin()
        except Exception as error:
            raise broken("the beginning of a commit", error) from error

    def stop(self) -> None:
        """Begin no more commits; one in flight is the last. The log stores the rest when it is
        closed."""
        self._stopped = True
        for timer in (self._ack_timer, self._retry_timer):
            if timer is not None:
                timer.cancel()
        self._ack_timer = self._retry_timer = None
        waiting, self._waiting = self._waiting, []
        self._resolve([future for _, future in waiting], _stopped_error())

    def _begin(self) -> None:
        if self._dirty_cursors:
            self._stage_acks(ACKS_STAGED_MAX)
        self._urgent = bool(self._dirty_cursors)
        if self._urgent and not self._is_staging_acks:
            self._is_staging_acks = True
            self._run_job("storing acknowledgements", self._staging_acks())
        waiting = self._take_waiting()
        batch = self._log.seal_batch()
        if self._log.has_deferred:
            self._resolve(waiting, StorageError(NO_ROOM_REASON, retryable=True))
            waiting = []
        if batch is None:
            self._resolve(waiting, self._log.failed)
            if self._urgent:
                self._loop.call_soon(self.commit_if_idle)
            return
        self.in_flight = True
        self._begin_turn()
        self.latency.began()
        self._lane.submit(
            partial(self._log.write_batch, batch), partial(self._written, batch, waiting)
        )

    def _retry(self) -> None:
        self._retry_timer = None
        self.commit_if_idle()

    def _stage_acks(self, count_max: int) -> int:
        """Stage the acknowledgements of up to ``count_max`` subscriptions; returns of how many."""
        dirty = self._dirty_cursors
        count = min(len(dirty), count_max)
        for _ in range(count):
            subscription = dirty.popleft()
            subscription.acks_dirty = False
            if subscription.cursor_id is not None and not subscription.removed:
                self._log.stage_acks(subscription.cursor_id)
        return count

    def _staging_acks(self) -> Iterator[int]:
        """Stage all acknowledgements that wait for the next commits."""
        count_max = JOB_STEP_UNITS_MAX // ACKS_STAGED
        while not self._stopped and (count := self._stage_acks(count_max)):
            yield count * ACKS_STAGED
        self._is_staging_acks = False
        self._urgent = True
        self._loop.call_soon(self.commit_if_idle)

    def _take_waiting(self) -> list[asyncio.Future[None]]:
        """Take those whose acknowledgements are all staged."""
        if not self._waiting:
            return []
        staged_count = self._dirty_count - len(self._dirty_cursors)
        ready = bisect_right(self._waiting, staged_count, key=lambda waiting: waiting[0])
        taken = [future for _, future in self._waiting[:ready]]
        del self._waiting[:ready]
        return taken

    def _written(
        self,
        batch: Batch,
        waiting: list[asyncio.Future[None]],
        _: object,
        error: BaseException | None,
    ) -> None:
        """Handle the end of a commit. An internal error here is fatal: what is on the disk would be
        unknown, and waiting operations would never end."""
        if self._is_resolving and (error is not None or self._trims_unanswered(batch)):
            self._ended = partial(self._written, batch, waiting, None, error)
            return
        try:
            self._commit_ended(batch, waiting, error)
        except Exception as bug:
            raise broken("a commit", bug) from bug

    def _trims_unanswered(self, batch: Batch) -> bool:
        """Whether a batch trims entries whose receipts are not sent. Trims of others are of nearly
        each commit, and behind the receipts of one tenant nothing of any other would be stored."""
        by_number = self._engine.by_number
        return any(
            (topic := by_number.get(log.number)) is not None and topic.publishing.visible < first
            for log, first in batch.trims
        )

    def _commit_ended(
        self, batch: Batch, waiting: list[asyncio.Future[None]], error: BaseException | None
    ) -> None:
        self.in_flight = False
        self._begin_turn()
        storage_ns = self.latency.ended()
        if error is None:
            self.commits_count += 1
            self._had_no_room = False
            self._failures.succeeded(self._engine.now_ns)
            touched = self._log.complete(batch)
            by_number = self._engine.by_number
            for log, _ in batch.trims:
                topic = by_number.get(log.number)
                if topic is not None:
                    topic.trimmed()
            units = batch.records // RECEIPTS_PER_UNIT + len(touched) * TOPIC_DURABLE
            units += len(waiting) * WAITER_TOLD
            if self._is_resolving or units > COMMIT_UNITS:
                self._receipts.add(touched, waiting, storage_ns)
                self._resolve_in_slices()
            else:
                for log in touched:
                    topic = by_number.get(log.number)
                    if topic is not None:
                        topic.publishing.entries_durable(storage_ns)
                self._resolve(waiting, None)
        elif isinstance(error, StorageError):
            self._failed(batch, waiting, error)
        else:
            raise broken("a commit", error) from error
        self._on_commit_ended()
        if error is None or self._log.failed is not None:
            self.commit_if_idle()
        elif not self._stopped:
            # Without a pause, records staged meanwhile (acknowledgements) fail in a tight loop.
            self._retry_timer = self._loop.call_later(RETRY_DELAY_S, self._retry)

    def _resolve_in_slices(self) -> None:
        """Tell those who waited for a commit, and send its receipts: at once as far as the units of
        a turn go, the rest in the next iterations of the loop."""
        if not self._is_resolving:
            self._is_resolving = True
            self._resolve_some(self._receipts.steps())

    def _resolve_some(self, steps: Iterator[int]) -> None:
        """Send more receipts: in each iteration of the loop more than connections bring SENDs. With
        the part that a job has each commit would be larger than the last, up to all SENDs that may
        be unanswered."""
        units = COMMIT_UNITS
        for used in steps:
            units -= used
            if units <= 0:
                self._loop.call_soon(self._resolve_rest, steps)
                return
        self._is_resolving = False

    def _resolve_rest(self, steps: Iterator[int]) -> None:
        self._begin_turn()
        try:
            self._resolve_some(steps)
            self._on_commit_ended()  # whose SENDs are answered goes on, whoever else waits
            if not self._is_resolving and self._ended is not None:
                self._loop.call_soon(self._ended)  # it sends receipts, too
                self._ended = None
        except Exception as bug:
            raise broken("the receipts of a commit", bug) from bug

    def _failed(
        self, batch: Batch, waiting: list[asyncio.Future[None]], error: StorageError
    ) -> None:
        """Handle a failed commit: entries that can be stored later wait for that."""
        lost = self._log.fail(batch, error)
        disk = self._disk
        no_room = disk is not None and isinstance(error, NoRoomError)
        if disk is None or not isinstance(error, NoRoomError):
            self._failures.failed(error, self._engine.now_ns)
        else:
            disk.no_room(error)
        if disk is not None:
            disk.check_full()
        by_number = self._engine.by_number
        for log in lost:
            topic = by_number.get(log.number)
            if topic is None or not topic.publishing.pending_count:
                continue
            if not error.retryable or disk is None or (no_room and topic.is_system):
                topic.publishing.fail_pending(error)
            elif self._log.full:
                topic.publishing.park_pending()
            else:
                topic.publishing.restage_pending()
        if no_room and not self._had_no_room:
            # Other records of the batch are staged again, for the space that is reserved for them.
            self._waiting = [(0, future) for future in waiting] + self._waiting
            self._urgent = self._had_no_room = True
            return
        self._resolve(waiting + [future for _, future in self._waiting], error)
        self._waiting = []

    def _resolve(self, waiting: list[asyncio.Future[None]], error: StorageError | None) -> None:
        """Tell those who waited; very many in slices."""
        if not waiting:
            return
        steps = telling(waiting, error)
        if len(waiting) * WAITER_TOLD > COMMIT_UNITS:
            self._run_job("telling who waited for a commit", steps)
        else:
            for _ in steps:
                pass


def _stopped_error() -> StorageError:
    return StorageError("the broker stops: not known to be stored", retryable=True)

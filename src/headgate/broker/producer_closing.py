"""Closes all producers of a topic that takes no more from them."""

from __future__ import annotations

import contextlib
from typing import Final, Protocol

from headgate.base.drained import drained
from headgate.base.errors import HeadgateError
from headgate.base.work_units import CLIENT_CLOSED, PIECE_UNITS
from headgate.broker.work.scheduler import JobClass, Steps, WorkScheduler
from headgate.engine.errors import EngineError
from headgate.engine.exclusive_access import AccessWaiter
from headgate.engine.topic import Topic

CLOSED_AT_ONCE: Final = PIECE_UNITS // CLIENT_CLOSED
"""Producers that are closed between two pauses."""


class CommitHost(Protocol):
    """The broker, as far as a walk needs it that waits for commits."""

    work: WorkScheduler

    def begin_turn(self) -> None:
        """Read the clock: everything until the next call happens at this instant."""

    async def when_durable(self, topic: Topic, /) -> None:
        """Return when everything staged until now in a topic's log is durable.

        Raises:
            StorageError: it could not be stored.
        """


async def close_producers(topic: Topic, host: CommitHost) -> None:
    """Close the producers that a topic has now, each when its staged SENDs are answered. Their
    clients may connect them again, and learn then why that is refused."""
    closing, tenant = list(topic.producers.values()), topic.name.tenant
    for start in range(0, len(closing), CLOSED_AT_ONCE):
        if start:
            await host.work.give_way(PIECE_UNITS, JobClass.COMMAND, tenant)
        for producer in closing[start : start + CLOSED_AT_ONCE]:
            if not producer.closed:
                topic.publishing.close_when_answered(producer)
    while any(not producer.closed and producer.pending_count for producer in closing):
        with contextlib.suppress(HeadgateError):  # each SEND gets an error of its own
            await host.when_durable(topic)
        await host.work.give_way(PIECE_UNITS, JobClass.COMMAND, tenant)
    host.begin_turn()
    for producer in closing:
        if not producer.closed:
            # A full disk took its SENDs back: it has none that is staged, and drops them.
            producer.port.close_producer(producer.producer_id)
            topic.remove_producer(producer)


def refuse_waiters(
    topic: Topic, waiters: list[AccessWaiter], error: EngineError, host: CommitHost
) -> None:
    """Refuse producers that waited for exclusive access to ``topic``, in slices. The list is
    emptied."""

    def steps() -> Steps:
        for waiter in drained(waiters):
            waiter.refused(error)
            yield CLIENT_CLOSED

    if waiters:
        tenant = topic.name.tenant
        host.work.run("refusing producers that wait", JobClass.COMMAND, steps(), tenant)

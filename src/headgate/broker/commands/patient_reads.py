"""Reads of the index for commands that have no answer, on a disk that fails.

Such a failure cannot be told to the client, and the messages that the command names would stay with
their consumer. So the read is tried again for some seconds while the consumer is there. Then the
consumer is closed: its client connects it again, and what it had is delivered again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from headgate.base.errors import StorageError
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.work.scheduler import JobClass, WorkScheduler
from headgate.engine.consumer import Consumer
from headgate.engine.subscription import Subscription

logger = logging.getLogger("headgate.reads")

T = TypeVar("T")

RETRIES_S: Final = (1, 2, 4, 8)
"""When a read is tried again, each time after the failure before."""


async def read_patiently(
    connection: ClientConnection,
    connected: tuple[Consumer, Subscription],
    work: WorkScheduler,
    read: Callable[[], Awaitable[T]],
) -> T:
    """What ``read`` returns.

    Raises:
        StorageError: it failed for the last time. The consumer is closed.
    """
    consumer, subscription = connected
    waits_s = iter(RETRIES_S)
    while True:
        try:
            return await read()
        except StorageError as error:
            if connection.consumers.get(consumer.consumer_id) is not connected:
                raise
            wait_s = next(waits_s, None)
            if wait_s is None:
                await work.give_way(1, JobClass.COMMAND, subscription.topic.name.tenant)
                logger.error(
                    "consumer %s of subscription %s of %s is closed, so that its messages are "
                    "delivered again: what it sent about them cannot be carried out: %s",
                    consumer.name, subscription.name, subscription.topic.name, error,
                )  # fmt: skip
                subscription.disconnect_consumer(consumer)
                raise
        await asyncio.sleep(wait_s)

"""The changes of subscriptions that sweeps need: a port of ``broker/subscriptions``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headgate.engine.subscription import Subscription


class SubscriptionChanges(Protocol):
    """Moves and deletes subscriptions."""

    async def load_passed(
        self, subscription: Subscription, last: int, *, is_upkeep: bool = ...
    ) -> object:
        """Bring what a move of the cursor to behind ``last`` looks up into memory; it stays there
        as long as the caller holds the result.

        Raises:
            StorageError: the index cannot be read.
            TopicFencedError: the subscription was closed meanwhile.
        """

    async def delete(
        self, subscription: Subscription, *, force: bool = ..., unless: Callable[[], bool] = ...
    ) -> None:
        """Delete a subscription, unless ``unless``, called at the last moment, returns True.

        Raises:
            TopicFencedError: the topic is being closed.
            SubscriptionBusyError: it has consumers, and ``force`` is not set.
            StorageError: the deletion is not stored yet.
        """

"""The effects that the engine asks of the broker's shell.

The engine calls them in the order in which they must happen. None may block, and none may call back
into the engine before it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from headgate.base.chunk import Chunk
from headgate.engine.entry_appender import EntryAppender

if TYPE_CHECKING:
    from headgate.engine.eviction import Eviction
    from headgate.engine.subscription import Subscription
    from headgate.engine.topic import Topic
    from headgate.flow.quota.backlog_quota import Quota


class Effects(EntryAppender, Protocol):
    """Everything that the engine asks of the shell."""

    def chunk_of(self, body: bytes, /) -> Chunk | None:
        """The chunk that an entry is; None if it is none."""

    def read(self, subscription: Subscription, ordinal: int, /) -> None:
        """Read entries of the topic, from ``ordinal`` on, into its cache, then call
        :meth:`Subscription.read_completed`."""

    def is_looked_up(
        self, topic: Topic, action: Callable[[], object], again: Callable[[], None], /
    ) -> bool:
        """Run a look-up of entries of the topic. False if it needs a part of the index that is on
        the disk: then call ``again`` when that is in memory."""

    def acks_changed(self, subscription: Subscription, /) -> None:
        """A subscription acknowledged more or its cursor was moved: store that soon."""

    def may_release(self, topic: Topic, /) -> None:
        """Nothing may need some entries of the topic any more: look soon whether to trim them."""

    def policies_changed(self, topic: Topic, /) -> None:
        """A topic was loaded, or its policies may have changed: look soon what to trim, and what
        expires."""

    def topic_unloaded(self, topic: Topic, /) -> None:
        """A topic is no longer live: forget it."""

    def work_pending(self) -> None:
        """There is something to dispatch: call :meth:`Engine.flush` before the loop rests."""

    def quota_state_changed(self, topic: Topic, quota: Quota, exceeded: bool, /) -> None:
        """Report to the operator that a quota stops producers, or no longer does."""

    def evicted(self, topic: Topic, eviction: Eviction, /) -> None:
        """Report to the operator that a quota took messages from subscriptions."""

"""A subscription with backlog, a ready consumer and budget always has an event ahead.

The oldest complaint about brokers is a dispatcher that nothing wakes again: messages wait, a
consumer has permits, and the broker sends none until the topic is unloaded. So whenever the
broker's loop has nothing more to do, each subscription must either lack something, or wait for an
event that is scheduled: the end of a read, or a timer for the budget that refused.
"""

from __future__ import annotations

from headgate.broker.service import Broker
from headgate.engine.dispatch_shared import SharedDispatcher
from headgate.engine.dispatch_single import SingleActiveDispatcher
from headgate.engine.subscription import Subscription


def wrong_if_stuck(s: Subscription, broker: Broker, unacked: list[int]) -> list[str]:
    """What is wrong with a subscription that nothing will wake, while no flush is scheduled.

    ``unacked`` are the ordinals of its backlog, in order. It looks at plain facts and asks the
    dispatcher for nothing that changes it.
    """
    dispatcher = s.dispatcher
    if s.fenced or dispatcher.paused_until_ns > 0 or dispatcher.reading or s.removed:
        return []
    if not _is_ready(s) or not _has_undelivered(s, unacked):
        return []
    if not s.throttled:
        return ["stuck: messages wait, a consumer is ready, and nothing is scheduled"]
    release_ns = broker.engine.gate.next_wake_ns()
    if release_ns is None or broker._wake is None or broker._wake_ns > release_ns:
        return ["stuck: it waits for a limit, and no timer is set"]
    return []


def _is_ready(s: Subscription) -> bool:
    dispatcher = s.dispatcher
    if isinstance(dispatcher, SharedDispatcher):
        return not dispatcher.blocked_on_unacked and any(c.is_ready for c in s.consumers)
    if isinstance(dispatcher, SingleActiveDispatcher):
        active = dispatcher.active
        return active is not None and active.permits > 0 and active.port.writable
    return False


def _has_undelivered(s: Subscription, unacked: list[int]) -> bool:
    """Whether a message of the backlog is with no consumer and may be delivered now."""
    dispatcher, topic = s.dispatcher, s.topic
    if dispatcher.delayed is not None or topic.chunks_stop > topic.log.first:
        return False  # whether such an entry may go is decided one by one
    if isinstance(dispatcher, SharedDispatcher) and any(o in dispatcher.replaying for o in unacked):
        return True
    return bool(unacked) and unacked[-1] >= dispatcher.read_ordinal

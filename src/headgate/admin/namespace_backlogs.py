"""Backlogs and subscriptions of whole namespaces, or of the topics of one bundle."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from typing import Final

from headgate.admin.bundles import BUNDLE_PATH, existing_bundle, topics_of
from headgate.admin.names import subscription_name
from headgate.admin.operations import Operation
from headgate.admin.partition_batches import all_done
from headgate.admin.routing import NAMESPACE_PATH, NO_CONTENT, Call, Reply, Route
from headgate.base.names import TopicName
from headgate.metadata.errors import RefusalError

CHANGED_AT_ONCE: Final = 16
"""Subscriptions whose change waits for the disk together."""

LOOKED_AT_ONCE: Final = 64
"""Subscriptions that are looked at without a pause."""


async def clear_backlog(call: Call) -> Reply:
    """Skip the backlog of all subscriptions, or of those with one name."""
    await _check_each(call, Operation.SUBSCRIPTION_SKIP)
    waiting: list[Awaitable[None]] = []
    async for topic, name in _subscriptions(call):
        # One that was made meanwhile may be one that the client may not use.
        if call.may(Operation.SUBSCRIPTION_SKIP, topic.full, name):
            waiting.append(_unless_gone(call, call.facade.clear_backlog(topic, name, call.check)))
        if len(waiting) == CHANGED_AT_ONCE:
            await all_done(waiting)
            waiting.clear()
    await all_done(waiting)
    return NO_CONTENT


async def unsubscribe(call: Call) -> Reply:
    """Delete the subscriptions with one name. One with consumers is refused; those of the topics
    before it are deleted then."""
    await _check_each(call, Operation.SUBSCRIPTION_DELETE)
    async for topic, name in _subscriptions(call):
        # As in clear_backlog: one that was made meanwhile.
        if call.may(Operation.SUBSCRIPTION_DELETE, topic.full, name):
            await _unless_gone(
                call, call.facade.delete_subscription(topic, name, force=False, check=call.check)
            )
    return NO_CONTENT


async def _unless_gone(call: Call, change: Awaitable[None]) -> None:
    """Await a change; a topic or subscription that was deleted meanwhile is no failure."""
    try:
        await change
        call.progress.is_partly_done = True
    except RefusalError as refusal:
        if refusal.status != 404:
            raise


async def _check_each(call: Call, operation: Operation) -> None:
    """Check that the client may change each of these subscriptions, before any is changed."""
    async for topic, name in _subscriptions(call):
        call.facade.check_allowed(call.identity, operation, topic.full, name)


async def _subscriptions(call: Call) -> AsyncIterator[tuple[TopicName, str]]:
    """The subscriptions that the path means, with their topics; others have their turn in
    between."""
    wanted = call.params.get("subscription", "")
    if wanted:
        subscription_name(call)
    looked_at = 0
    async for topic in topics_of(call, *existing_bundle(call)):
        names = call.facade.subscriptions(topic)
        for name in names if not wanted else [wanted] * (wanted in names):
            yield topic, name
            looked_at += 1
            if looked_at % LOOKED_AT_ONCE == 0:
                await call.facade.give_way()


_CLEAR, _UNSUBSCRIBE = Operation.NAMESPACE_CLEAR_BACKLOG, Operation.NAMESPACE_UNSUBSCRIBE
_ALL, _ONE = "Skip all backlogs of", "Skip the backlogs of one subscription of"

ROUTES = (
    Route("POST", f"{NAMESPACE_PATH}/clearBacklog", _CLEAR, clear_backlog, f"{_ALL} a namespace"),
    Route("POST", f"{NAMESPACE_PATH}/clearBacklog/{{subscription}}", _CLEAR, clear_backlog,
          f"{_ONE} a namespace"),
    Route("POST", f"{BUNDLE_PATH}/clearBacklog", _CLEAR, clear_backlog, f"{_ALL} a bundle"),
    Route("POST", f"{BUNDLE_PATH}/clearBacklog/{{subscription}}", _CLEAR, clear_backlog,
          f"{_ONE} a bundle"),
    Route("POST", f"{NAMESPACE_PATH}/unsubscribe/{{subscription}}", _UNSUBSCRIBE, unsubscribe,
          "Delete a subscription of all topics of a namespace"),
    Route("POST", f"{BUNDLE_PATH}/unsubscribe/{{subscription}}", _UNSUBSCRIBE, unsubscribe,
          "Delete a subscription of all topics of a bundle"),
)  # fmt: skip

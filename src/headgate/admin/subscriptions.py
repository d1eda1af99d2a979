"""Subscriptions: list, create, delete, skip, clear, reset, expire.

A request for a partitioned topic is carried out on every partition, where that makes sense. It
fails only if it changes nothing on all of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from headgate.admin.names import existing_parts, single_topic, subscription_name, topic_name
from headgate.admin.operations import Operation
from headgate.admin.partition_batches import all_done, outcome_of, results_of, subscriptions_of
from headgate.admin.routing import NO_CONTENT, TOPIC_PATH, Call, Query, Reply, Route
from headgate.admin.streaming import PAGE_NAMES, answer_names
from headgate.admin.topics import ensure_topic
from headgate.base.names import TopicName
from headgate.base.positions import EARLIEST, LATEST, Position
from headgate.base.work_units import PIECE_UNITS, SUBSCRIPTION_EXPIRED
from headgate.facade.protocol import AtPosition, AtTime, OlderThan
from headgate.metadata.errors import RefusalError, conflict, not_allowed
from headgate.metadata.policies import JavaLong

EXPIRED_PER_PIECE: Final = PIECE_UNITS // SUBSCRIPTION_EXPIRED
EXPIRED_AT_ONCE: Final = 64
"""Pieces of a request to expire that wait for the disk together."""


class ResetCursorData(Struct, rename="camel"):
    """A place in a topic, as clients send it, or one of the texts ``latest`` and ``earliest``."""

    ledger_id: JavaLong
    entry_id: JavaLong
    partition_index: int = -1
    excluded: bool = False
    is_excluded: bool = False
    batch_index: int = -1
    properties: dict[str, str] | None = None


NAMES_PER_TURN: Final = 1_024
"""Subscriptions whose names are sorted without a pause."""

CHECKS_PER_TURN: Final = 64
"""Subscriptions and partitions that are checked without a pause, for 5 us each."""

NAME_BYTES: Final = 128
"""About what a name takes in a list that is gathered and sent."""

_NAMED: Final = {"latest": LATEST, "earliest": EARLIEST}


async def list_subscriptions(call: Call) -> Reply:
    """Names of a topic's subscriptions; of all partitions together."""
    parts, count = existing_parts(call), 0
    async for _, of_part in subscriptions_of(call, parts):
        count += len(of_part)
    # Before they are gathered: hundreds of requests may wait for the memory at the same time.
    await call.reserve(NAME_BYTES * count)
    names: set[str] = set()
    async for _, of_part in subscriptions_of(call, parts):
        names.update(of_part)
    return await answer_names(call, _sorted_pages(list(names)))


def _sorted_pages(names: list[str]) -> Iterator[list[str]]:
    """Names in order, in pages; sorting them all at once would take long."""
    runs = []
    for start in range(0, len(names), NAMES_PER_TURN):
        runs.append(sorted(names[start : start + NAMES_PER_TURN]))
        yield []
    merged = merge(*runs)
    while page := list(islice(merged, PAGE_NAMES)):
        yield page


async def create_subscription(call: Call) -> Reply:
    """Create a subscription, at the end of the topic unless the body gives a position."""
    topic, name = topic_name(call), subscription_name(call)
    data = place_body(call)
    at = AtPosition(LATEST) if data is None else place_of(data)
    properties = (data.properties or {}) if isinstance(data, ResetCursorData) else {}
    await ensure_topic(call, topic)
    parts = existing_parts(call)

    async def create_on(part: TopicName) -> None:
        await call.facade.create_subscription(part, name, at, properties, call.check)

    await _on_all(call, parts, create_on, harmless=409)
    known = set(parts)  # a topic may have thousands
    while added := [part for part in existing_parts(call) if part not in known]:
        # The topic got more partitions meanwhile: they may have joined too early for this one.
        for part in added:
            await _create_if_missing(create_on(part))
        known.update(added)
    return NO_CONTENT


async def delete_subscription(call: Call) -> Reply:
    """Delete a subscription without consumers (``force``: disconnect them)."""
    parts, name = existing_parts(call), subscription_name(call)
    force = call.flag("force")

    async def delete_on(part: TopicName) -> None:
        await call.facade.delete_subscription(part, name, force=force, check=call.check)

    try:
        await _on_all(call, parts, delete_on, harmless=404)
    except RefusalError as error:
        if error.status == 404 and len(parts) > 1:
            raise RefusalError(404, "Subscription not found") from error
        raise
    return NO_CONTENT


async def skip(call: Call) -> Reply:
    """Skip a number of messages."""
    count = call.number("count")
    topic = single_topic(call, "Skip messages on a partitioned topic is not allowed")
    if count < 0:
        raise RefusalError(400, f"Number of messages to skip is {count}: 0 or more is allowed")
    await call.facade.skip_messages(topic, subscription_name(call), count, call.check)
    return NO_CONTENT


async def skip_all(call: Call) -> Reply:
    """Skip the whole backlog."""
    parts, name = existing_parts(call), subscription_name(call)

    async def clear_on(part: TopicName) -> None:
        await call.facade.clear_backlog(part, name, call.check)

    await _on_all(call, parts, clear_on, harmless=404)
    return NO_CONTENT


async def reset_to_time(call: Call) -> Reply:
    """Move a subscription to the first message published at or after a time."""
    place = AtTime(call.number("timestamp"))
    parts, name = existing_parts(call), subscription_name(call)

    async def reset_on(part: TopicName) -> None:
        await call.facade.reset_cursor(part, name, place, call.check)

    await _on_all(call, parts, reset_on, harmless=412)
    return NO_CONTENT


async def reset_to_position(call: Call) -> Reply:
    """Move a subscription to a message."""
    topic = single_topic(call, "Reset-cursor at position is not allowed for partitioned-topic")
    data = place_body(call)
    if data is None:
        raise RefusalError(400, "A message id is needed in the body")
    name = subscription_name(call)
    await call.facade.reset_cursor(topic, name, place_of(data), call.check)
    return NO_CONTENT


async def expire_by_age(call: Call) -> Reply:
    """Expire a subscription's messages that are older than a number of seconds."""
    what = _older_than(call)
    topic, parts, name = topic_name(call), existing_parts(call), subscription_name(call)

    async def expire_on(part: TopicName) -> bool:
        return await call.facade.expire_messages(part, name, what, call.check)

    if not any(await results_of(call, parts, expire_on)):
        raise _nothing_expired(topic, name)
    return NO_CONTENT


async def expire_to_position(call: Call) -> Reply:
    """Expire a subscription's messages up to one."""
    topic = single_topic(call, "Expire message at position is not supported for partitioned-topic")
    data = place_body(call)
    name = subscription_name(call)
    if data is None:
        raise RefusalError(400, "A message id is needed in the body")
    if isinstance(data, ResetCursorData) and data.partition_index != topic.partition:
        raise not_allowed(
            f"Invalid parameter for expire message by position: partition index of passed in "
            f"message position {data.partition_index} doesn't match partition index of topic "
            f"{topic.partition}"
        )
    if not await call.facade.expire_messages(topic, name, place_of(data), call.check):
        raise _nothing_expired(topic, name)
    return NO_CONTENT


async def expire_all(call: Call) -> Reply:
    """Expire old messages of every subscription; succeeds also if there are none. If the client may
    not use one of them, it changes nothing.

    Some wait for their commit together. Before each piece of work the request gives way to others.
    """
    what = _older_than(call)
    parts = existing_parts(call)
    looked_at = 0
    for part in parts:
        names = call.facade.subscriptions(part)
        for at in range(0, len(names) + 1, CHECKS_PER_TURN):
            some = names[at : at + CHECKS_PER_TURN]
            for name in some:
                call.check_subscription(part, name)
            looked_at += 1 + len(some)
            if looked_at >= CHECKS_PER_TURN:
                looked_at = 0
                await call.facade.give_way()
    left = (
        (part, name)
        for part in parts
        for name in call.facade.subscriptions(part)
        if call.may(Operation.SUBSCRIPTION_EXPIRE, part.full, name)  # one made meanwhile
    )

    async def expire_some() -> None:
        while some := list(islice(left, EXPIRED_PER_PIECE)):
            await call.facade.give_way()
            await all_done(_expire_if_present(call, *one, what) for one in some)

    await all_done(expire_some() for _ in range(EXPIRED_AT_ONCE))
    return NO_CONTENT


async def _expire_if_present(call: Call, part: TopicName, name: str, what: OlderThan) -> None:
    try:
        if await call.facade.expire_messages(part, name, what):
            call.progress.is_partly_done = True
    except RefusalError as refusal:
        if refusal.status != 404:
            raise  # else it was deleted meanwhile


async def _on_all(
    call: Call,
    parts: Sequence[TopicName],
    work: Callable[[TopicName], Awaitable[None]],
    *,
    harmless: int,
) -> None:
    """Do ``work`` on all and raise a failure. One with the status ``harmless`` counts only if all
    failed with it."""
    _, failure = await outcome_of(call, parts, work, harmless)
    try:
        if failure is not None:
            raise failure
    finally:
        del failure  # its traceback leads to this frame: they would be a cycle


async def _create_if_missing(creation: Awaitable[None]) -> None:
    """Await a creation; an existing subscription is no failure."""
    try:
        await creation
    except RefusalError as refusal:
        if refusal.status != 409:
            raise


def _older_than(call: Call) -> OlderThan:
    age_s = call.number("seconds")
    if age_s < 0:
        raise RefusalError(400, f"The expiry time is {age_s} s: 0 or more is allowed")
    return OlderThan(age_s)


def _nothing_expired(topic: TopicName, name: str) -> RefusalError:
    return conflict(
        f"Expire message by timestamp not issued on topic {topic} for subscription {name} due to "
        "ongoing message expiration not finished or subscription almost catch  up. If it's "
        "performed on a partitioned topic operation might succeeded on other partitions, please "
        "check stats of individual partition."
    )


def place_body(call: Call) -> ResetCursorData | str | None:
    """The place in the body of a request; None without one.

    Raises:
        RefusalError: 400.
    """
    body = call.decoded(ResetCursorData | str)
    if isinstance(body, str) and body not in _NAMED:
        raise RefusalError(
            400, f"Invalid message id {body[:80]!r}: latest, earliest or an object is allowed"
        )
    return body  # type: ignore[no-any-return]


def place_of(data: ResetCursorData | str) -> AtPosition:
    """What a body names."""
    if isinstance(data, str):
        return AtPosition(_NAMED[data])
    position = Position(data.ledger_id, data.entry_id)
    return AtPosition(position, data.excluded or data.is_excluded, data.batch_index)


SUBSCRIPTION_PATH: Final = f"{TOPIC_PATH}/subscription/{{subscription}}"
_SKIP, _RESET = Operation.SUBSCRIPTION_SKIP, Operation.SUBSCRIPTION_RESET
_EXPIRE = Operation.SUBSCRIPTION_EXPIRE
_FORCE = Query("force", bool, False, "Also if it has consumers, which are disconnected")
PLACE: Final[Any] = ResetCursorData | str

ROUTES = (
    Route("GET", f"{TOPIC_PATH}/subscriptions", Operation.SUBSCRIPTION_LIST, list_subscriptions,
          "List a topic's subscriptions", reply=list[str]),
    Route("PUT", SUBSCRIPTION_PATH, Operation.SUBSCRIPTION_CREATE, create_subscription,
          "Create a subscription", body=PLACE),
    Route("DELETE", SUBSCRIPTION_PATH, Operation.SUBSCRIPTION_DELETE, delete_subscription,
          "Delete a subscription", query=(_FORCE,)),
    Route("POST", f"{SUBSCRIPTION_PATH}/skip/{{count}}", _SKIP, skip, "Skip messages"),
    Route("POST", f"{SUBSCRIPTION_PATH}/skip_all", _SKIP, skip_all, "Skip the backlog"),
    Route("POST", f"{SUBSCRIPTION_PATH}/resetcursor/{{timestamp}}", _RESET, reset_to_time,
          "Reset to a time"),
    Route("POST", f"{SUBSCRIPTION_PATH}/resetcursor", _RESET, reset_to_position,
          "Reset to a message", body=PLACE),
    Route("POST", f"{SUBSCRIPTION_PATH}/expireMessages/{{seconds}}", _EXPIRE, expire_by_age,
          "Expire messages by age"),
    Route("POST", f"{SUBSCRIPTION_PATH}/expireMessages", _EXPIRE, expire_to_position,
          "Expire messages up to one", body=PLACE),
    Route("POST", f"{TOPIC_PATH}/all_subscription/expireMessages/{{seconds}}", _EXPIRE, expire_all,
          "Expire messages of all subscriptions by age"),
)  # fmt: skip

"""What one ACK names, applied to a subscription: entries, messages of entries, all up to one.

Ids that are not stored, or belong to another topic, change nothing. An ``ack_set`` that does not
fit its batch changes nothing and is a problem, which the answer to the ACK tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from headgate.base.ack_set import BLOCK_ORDINALS
from headgate.base.ack_words import WORD_BITS, acked_mask
from headgate.base.errors import InputError
from headgate.base.work_units import (
    ACK_MESSAGES_PER_UNIT,
    ACKED_PER_UNIT,
    HOLDERS_PER_UNIT,
    PIECE_UNITS,
    TURN_UNITS,
)
from headgate.engine.ack_budget import NoAckRoomError
from headgate.engine.consumer import Consumer
from headgate.engine.subscription import Subscription
from headgate.policy.settings import Settings
from headgate.wire.ids import to_signed
from headgate.wire.messages import CommandAck, MessageIdData

REFUSED_UNITS: Final = PIECE_UNITS // 2
"""The work of an id that is refused for lack of room: other subscriptions are measured again."""


class Cold(NamedTuple):
    """An entry whose index is on the disk, to be acknowledged when it is read."""

    ordinal: int
    left: Sequence[int]
    """Which messages the acknowledgement leaves; empty if it is the whole entry."""


class Through(NamedTuple):
    """What a cumulative acknowledgement covers."""

    last: int
    """The last entry that is acknowledged with all before it."""
    part: int = -1
    """The entry behind it of which messages are acknowledged; -1 if there is none."""
    left: Sequence[int] = ()
    """Which messages of that entry are left."""


def slices(message_ids: Sequence[MessageIdData], ids_max: int) -> Iterator[Sequence[MessageIdData]]:
    """The ids of an ACK in order, in parts of up to ``ids_max`` ids and, but for a single id, about
    as much work: an ``ack_set`` of a large batch is the work of many ids."""
    start = units = 0
    for at, ids in enumerate(message_ids):
        of_id = len(ids.ack_set) * WORD_BITS // ACK_MESSAGES_PER_UNIT
        if at > start and (at - start >= ids_max or units + of_id > ids_max):
            yield message_ids[start:at]
            start, units = at, 0
        units += of_id
    yield message_ids[start:]


def ack_entries(
    consumer: Consumer,
    subscription: Subscription,
    message_ids: Sequence[MessageIdData],
    cold: list[Cold],
    problems: list[str],
    settings: Settings,
) -> tuple[int, int]:
    """Acknowledge entries and messages of entries; returns the work that it took, and how many ids
    are done: fewer than all if their batches are so large that the rest needs another turn. Entries
    whose index is not in memory are added to ``cold`` instead, and ``problems`` has why others were
    not acknowledged."""
    log, dispatcher, acks = subscription.topic.log, subscription.dispatcher, subscription.acks
    searched_before, parts_units = dispatcher.holders_searched_count, 0
    done = len(message_ids)
    for at, ids in enumerate(message_ids):
        left: Sequence[int] = ids.ack_set
        words_units = 0
        if left:
            # Reading them is the work, whatever the batch has.
            words_units = len(left) * WORD_BITS // ACK_MESSAGES_PER_UNIT
            parts_units += words_units
            if not any(left):
                left = ()  # the entry is acknowledged
            elif not settings.acknowledgmentAtBatchIndexLevelEnabled:
                continue  # the client acknowledges the entry with the last message
        position = (to_signed(ids.ledgerId), to_signed(ids.entryId))
        ordinal = log.ordinal_at_or_after(*position)
        if ordinal < log.end and log.position(ordinal) == position:
            if ordinal < log.memory_first and not _is_indexed(subscription, ordinal):
                cold.append(Cold(ordinal, tuple(left)))
            elif left:
                units = ack_part(consumer, subscription, ordinal, left, problems)
                parts_units += max(units - words_units, 0)
            elif acks.begins_block(ordinal):
                parts_units += ack_whole(consumer, subscription, ordinal, problems)
            else:
                subscription.ack_entry(consumer, ordinal)
                if not words_units:
                    continue
            if parts_units >= TURN_UNITS:
                done = at + 1
                break
    searched_count = dispatcher.holders_searched_count - searched_before
    return done + searched_count // HOLDERS_PER_UNIT + parts_units, done


def find_last(
    subscription: Subscription, ack: CommandAck, settings: Settings
) -> tuple[str, Through]:
    """Why a cumulative acknowledgement is refused, or an empty text; and what it covers."""
    if len(ack.message_id) != 1 or subscription.type.is_shared:
        problem = "A cumulative acknowledgement names one message of an unshared subscription"
        return problem, Through(-1)
    ids = ack.message_id[0]
    log = subscription.topic.log
    position = (to_signed(ids.ledgerId), to_signed(ids.entryId))
    ordinal = log.ordinal_at_or_after(*position)
    if ordinal == log.end and position >= log.position(log.end):
        # Most likely an id of another topic: up to it lies the whole backlog.
        problem = f"{position[0]}:{position[1]} is not stored yet: nothing was acknowledged"
        return problem, Through(-1)
    if ordinal == log.end or log.position(ordinal) != position:
        return "", Through(min(ordinal - 1, log.end - 1))
    if not any(ids.ack_set):
        return "", Through(ordinal)
    if not settings.acknowledgmentAtBatchIndexLevelEnabled:
        return "", Through(ordinal - 1)
    return "", Through(ordinal - 1, ordinal, tuple(ids.ack_set))


def ack_whole(
    consumer: Consumer, subscription: Subscription, ordinal: int, problems: list[str]
) -> int:
    """Acknowledge an entry whose index is in memory; returns the work that it took beside the id.
    If what is acknowledged out of order has no room for it, nothing changes, and ``problems`` says
    so."""
    return _if_there_is_room(
        subscription, ordinal, problems, lambda: subscription.ack_entry(consumer, ordinal)
    )


def _if_there_is_room(
    subscription: Subscription, ordinal: int, problems: list[str], ack: Callable[[], None]
) -> int:
    """Let ``ack`` acknowledge an entry or messages of it. If it raises :class:`InputError`, or the
    acknowledgements of all subscriptions leave no room, ``problems`` says why. Returns the work
    that a refusal took."""
    blocks, acks = subscription.topic.engine.ack_blocks, subscription.acks
    begins_block = subscription.is_durable and acks.begins_block(ordinal)
    try:
        if begins_block:
            blocks.check_room(subscription)
        ack()
    except InputError as error:
        if not problems:  # the answer tells the first
            position = subscription.topic.log.position(ordinal)
            problems.append(f"{position} was not acknowledged: {error}")
        return REFUSED_UNITS if isinstance(error, NoAckRoomError) else 0
    if begins_block:
        blocks.measure(subscription)
    return 0


def ack_part(
    consumer: Consumer,
    subscription: Subscription,
    ordinal: int,
    left: Sequence[int],
    problems: list[str],
) -> int:
    """Acknowledge messages of an entry whose index is in memory; returns the work that it took
    beside the id. If they do not fit the entry, nothing changes, and ``problems`` says so."""
    log = subscription.topic.log
    if not log.first <= ordinal < log.end:
        return 0  # it was trimmed meanwhile
    batch_size = log.message_count(ordinal)

    def ack() -> None:
        subscription.ack_messages(consumer, ordinal, acked_mask(left, batch_size))

    units = _if_there_is_room(subscription, ordinal, problems, ack)
    return units + batch_size // ACK_MESSAGES_PER_UNIT


def ack_loaded(
    consumer: Consumer, subscription: Subscription, cold: Cold, problems: list[str]
) -> int:
    """Acknowledge an entry, or messages of it, whose index was loaded; returns the work that it
    took."""
    ordinal, left = cold
    dispatcher = subscription.dispatcher
    searched_before = dispatcher.holders_searched_count
    if left:
        units = ack_part(consumer, subscription, ordinal, left, problems)
    else:
        units = ack_whole(consumer, subscription, ordinal, problems)
    return 1 + units + (dispatcher.holders_searched_count - searched_before) // HOLDERS_PER_UNIT


def ack_found(consumer: Consumer, subscription: Subscription, through: Through) -> str:
    """Carry out a cumulative acknowledgement whose index is in memory; returns why its last entry
    was not acknowledged, or an empty text."""
    last, part, left = through
    problems: list[str] = []
    subscription.ack_through(consumer, last)
    if left:
        ack_part(consumer, subscription, part, left, problems)
    return first_of(problems)


def entries_looked_up(subscription: Subscription, through: Through) -> list[int]:
    """The entries whose index a cumulative acknowledgement looks up, as far as that may be on the
    disk."""
    passed: list[int] = []
    if through.last > subscription.acks.mark_delete:
        passed = subscription.entries_passed(through.last)
    log = subscription.topic.log
    if log.first <= through.part < log.memory_first:
        following = subscription.acks.next_unacked(through.part + 1, log.end)
        passed += [o for o in (through.part, following) if o < log.memory_first]
    return passed


def through_units(subscription: Subscription, through: Through) -> int:
    """The work of a cumulative acknowledgement beside its id. It goes through the runs of
    acknowledged entries in the blocks in which the cursor stands before and behind it; those
    between have sums."""
    acks = subscription.acks
    if through.last <= acks.mark_delete or not acks.holes_count:
        return 0
    blocks = {(acks.mark_delete + 1) // BLOCK_ORDINALS, (through.last + 1) // BLOCK_ORDINALS}
    return sum(map(acks.acked_in_block, blocks)) // ACKED_PER_UNIT


def first_of(problems: list[str]) -> str:
    """The first problem; empty if there is none."""
    return problems[0] if problems else ""


def _is_indexed(subscription: Subscription, ordinal: int) -> bool:
    """Whether an acknowledgement of an entry, and the move of the cursor by it, reads nothing."""
    log, acks = subscription.topic.log, subscription.acks
    if not log.is_indexed(ordinal):
        return False
    if ordinal != acks.mark_delete + 1:
        return True
    following = acks.next_unacked(ordinal + 1, log.end)
    return following == log.end or log.is_indexed(following)

"""Makes looks of what Pulsar's admin API answers.

The answers come from a cluster that the agent does not control: another release, a proxy, a broker
that is shutting down. A figure of an unexpected kind is therefore not known (None), and an answer
of an unexpected shape is a :class:`ReadingError`; nothing else is raised. Names of fields are those
of Pulsar 4.0's ``topics/{topic}/stats``, ``broker-stats/topics`` and ``internalStats``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from headgate.agent.looks import (
    ConsumerLook,
    CursorLook,
    ProofLook,
    SubscriptionLook,
    TopicLook,
)
from headgate.base.errors import InputError
from headgate.base.names import NAME_CHARACTERS_MAX
from headgate.base.units import INT64_MAX

T = TypeVar("T")

AGE_S_MAX: Final = 1 << 32
"""An age beyond 136 years counts as this. A cluster may tell the age of a message by the publish
time, which its producer names: any number."""

_NOT_A_NUMBER = re.compile(rb"([:\[,]\s*)(?:NaN|-?Infinity)(?=\s*[,}\]])")
"""Numbers that JSON does not have and some encoders write."""

_POSITION = re.compile(r"-?\d{1,19}:-?\d{1,19}")

_EVENTS: Final = tuple(
    f"dispatch_throttled_{dimension}_events_by_{level}_limit"
    for level in ("subscription", "topic", "broker")
    for dimension in ("msg", "bytes")
)
"""By level, then dimension."""


class ReadingError(InputError):
    """An answer is not what Pulsar sends; the text says about what, in one sentence."""


class _Consumer(Struct, rename="camel"):
    consumer_name: Any = None
    address: Any = None
    connected_since: Any = None
    available_permits: Any = None
    unacked_messages: Any = None
    blocked_consumer_on_unacked_msgs: Any = None
    msg_out_counter: Any = None
    avg_messages_per_entry: Any = None


class _Subscription(Struct, rename="camel"):
    type: Any = None
    is_durable: Any = None
    msg_backlog: Any = None
    msg_delayed: Any = None
    msg_in_replay: Any = None
    unacked_messages: Any = None
    blocked_subscription_on_unacked_msgs: Any = None
    backlog_size: Any = None
    msg_out_counter: Any = None
    bytes_out_counter: Any = None
    total_msg_expired: Any = None
    draining_hashes_count: Any = None
    active_consumer_name: Any = None
    last_consumed_timestamp: Any = None
    last_acked_timestamp: Any = None
    last_mark_delete_advanced_timestamp: Any = None
    oldest_backlog_message_age_seconds: Any = None
    consumers: list[_Consumer] | None = None
    dispatch_throttled_msg_events_by_subscription_limit: Any = None
    dispatch_throttled_bytes_events_by_subscription_limit: Any = None
    dispatch_throttled_msg_events_by_topic_limit: Any = None
    dispatch_throttled_bytes_events_by_topic_limit: Any = None
    dispatch_throttled_msg_events_by_broker_limit: Any = None
    dispatch_throttled_bytes_events_by_broker_limit: Any = None


class _Publisher(Struct, rename="camel"):
    address: Any = None


class _Topic(Struct, rename="camel"):
    """``stats`` says ``msgInCounter`` where ``broker-stats`` says ``msgInCount``."""

    msg_in_counter: Any = None
    msg_in_count: Any = None
    bytes_in_counter: Any = None
    bytes_in_count: Any = None
    storage_size: Any = None
    backlog_size: Any = None
    publishers: list[_Publisher] | None = None
    publish_rate_limited_times: Any = None
    backlog_quota_limit_size: Any = None
    backlog_quota_limit_time: Any = None
    oldest_backlog_message_age_seconds: Any = None
    oldest_backlog_message_subscription_name: Any = None
    subscriptions: dict[str, _Subscription] | None = None


class _Cursor(Struct, rename="camel"):
    read_position: Any = None
    mark_delete_position: Any = None
    pending_read_ops: Any = None
    waiting_read_op: Any = None
    subscription_have_pending_read: Any = None
    subscription_have_pending_replay_read: Any = None


class _Internal(Struct, rename="camel"):
    last_confirmed_entry: Any = None
    number_of_entries: Any = None
    cursors: dict[str, _Cursor] | None = None


_TOPIC = msgspec.json.Decoder(_Topic)
_INTERNAL = msgspec.json.Decoder(_Internal)
_SURVEY = msgspec.json.Decoder(dict[str, dict[str, dict[str, Raw]]])
_TOPICS = msgspec.json.Decoder(dict[str, Raw])


def topic_look(raw: bytes | bytearray, topic: str, at_ns: int, owner: str = "") -> TopicLook:
    """The look that ``topics/{topic}/stats`` answers.

    Raises:
        ReadingError: it is not statistics of a topic.
    """
    return _topic_look(_statistics(raw, topic), topic, at_ns, owner)


def survey_looks(raw: bytes | bytearray, at_ns: int, owner: str = "") -> Iterator[TopicLook]:
    """The looks that ``broker-stats/topics`` answers: all persistent topics of one broker.

    Topics are decoded one by one, so that the answer about 100,000 topics needs little more memory
    than its bytes.

    Raises:
        ReadingError: it is not such an answer, or the statistics of a topic are none: then all
            other topics are given before.
    """
    what = f"broker-stats/topics of {owner or 'the broker'}"
    failure: ReadingError | None = None
    for bundles in decoded(_SURVEY, raw, what).values():
        for domains in bundles.values():
            persistent = domains.get("persistent")
            if persistent is None:
                continue
            for topic, stats in decoded(_TOPICS, persistent, what).items():
                try:
                    found = _statistics(stats, topic)
                except ReadingError as error:
                    failure = failure or error
                    continue
                yield _topic_look(found, topic, at_ns, owner, is_survey=True)
    if failure is not None:
        raise failure


def proof_look(raw: bytes | bytearray, topic: str, at_ns: int) -> ProofLook:
    """The look that ``topics/{topic}/internalStats`` answers.

    Raises:
        ReadingError: it is not internal statistics of a topic.
    """
    found = decoded(_INTERNAL, raw, f"internal statistics of {topic}")
    return ProofLook(
        topic=topic,
        at_ns=at_ns,
        last_position=_position(found.last_confirmed_entry),
        entries=count(found.number_of_entries),
        cursors=tuple(
            CursorLook(
                subscription=name,
                read_position=_position(cursor.read_position),
                mark_delete_position=_position(cursor.mark_delete_position),
                pending_reads=count(cursor.pending_read_ops),
                is_waiting=_flag(cursor.waiting_read_op),
                has_pending_read=_flag(cursor.subscription_have_pending_read),
                has_pending_replay=_flag(cursor.subscription_have_pending_replay_read),
            )
            for name, cursor in (found.cursors or {}).items()
        ),
    )


def decoded(decoder: msgspec.json.Decoder[T], raw: bytes | bytearray | Raw, what: str) -> T:
    """The JSON of an answer, which should be ``what``.

    Raises:
        ReadingError: it is not.
    """
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass  # a second try without what JSON does not have
    try:
        return decoder.decode(_NOT_A_NUMBER.sub(rb"\1null", bytes(raw)))
    except RecursionError:
        raise ReadingError(f"the answer is not {what}: it is nested too deeply") from None
    except (msgspec.MsgspecError, ValueError) as error:
        if bytes(b"" if isinstance(raw, Raw) else raw[:256]).lstrip().startswith(b"<"):
            why = "it is a page of HTML, so a proxy answered and no broker"
        else:
            why = str(error)
        raise ReadingError(f"the answer is not {what}: {why}") from None


def _statistics(raw: bytes | bytearray | Raw, topic: str) -> _Topic:
    """Raises :class:`ReadingError` also for other JSON: a topic without subscriptions says so."""
    what = f"statistics of {topic}"
    found = decoded(_TOPIC, raw, what)
    if found.subscriptions is None:
        raise ReadingError(f"the answer is not {what}: it tells no subscriptions")
    return found


def _topic_look(
    found: _Topic, topic: str, at_ns: int, owner: str, *, is_survey: bool = False
) -> TopicLook:
    published = found.msg_in_count if found.msg_in_counter is None else found.msg_in_counter
    in_bytes = found.bytes_in_count if found.bytes_in_counter is None else found.bytes_in_counter
    addresses = (_text(publisher.address) for publisher in found.publishers or ())
    # Pulsar has no limit, and a client may give a name of megabytes: it would stand in each report,
    # series and record about the subscription.
    named = [
        _subscription_look(name, subscription)
        for name, subscription in (found.subscriptions or {}).items()
        if len(name) <= NAME_CHARACTERS_MAX
    ]
    return TopicLook(
        topic=topic,
        at_ns=at_ns,
        owner=owner,
        published=count(published),
        published_bytes=count(in_bytes),
        storage_bytes=count(found.storage_size),
        backlog_bytes=count(found.backlog_size),
        publisher_addresses=tuple(sorted({address for address in addresses if address})),
        publish_limited_count=count(found.publish_rate_limited_times),
        quota_size_bytes=count(found.backlog_quota_limit_size),
        quota_age_s=count(found.backlog_quota_limit_time),
        oldest_age_s=_age(found.oldest_backlog_message_age_seconds),
        oldest_subscription=_text(found.oldest_backlog_message_subscription_name),
        size_evictions=None,  # these two are on /metrics alone
        age_evictions=None,
        subscriptions=tuple(named),
        nameless=len(found.subscriptions or {}) - len(named),
        is_survey=is_survey,
    )


def _subscription_look(name: str, found: _Subscription) -> SubscriptionLook:
    consumers = tuple(_consumer_look(consumer) for consumer in found.consumers or ())
    events = [count(getattr(found, field)) for field in _EVENTS]
    known = [event for event in events if event is not None]
    return SubscriptionLook(
        name=name,
        type="" if (kind := _text(found.type)) == "None" else kind,
        is_durable=_flag(found.is_durable) is not False,
        backlog=count(found.msg_backlog),
        delayed=count(found.msg_delayed),
        in_replay=count(found.msg_in_replay),
        unacked=_unacked(found, consumers),
        is_blocked=_flag(found.blocked_subscription_on_unacked_msgs) is True,
        backlog_bytes=count(found.backlog_size),
        sent=count(found.msg_out_counter),
        sent_bytes=count(found.bytes_out_counter),
        expired=count(found.total_msg_expired),
        events=tuple(known) if len(known) == len(events) else None,
        draining_hashes=count(found.draining_hashes_count),
        last_consumed_ms=count(found.last_consumed_timestamp),
        last_acked_ms=count(found.last_acked_timestamp),
        mark_delete_moved_ms=count(found.last_mark_delete_advanced_timestamp),
        oldest_age_s=_age(found.oldest_backlog_message_age_seconds),
        consumers=consumers,
        active_consumer=_text(found.active_consumer_name),
    )


def _unacked(found: _Subscription, consumers: tuple[ConsumerLook, ...]) -> int | None:
    """``broker-stats`` has it of consumers only."""
    unacked = count(found.unacked_messages)
    if unacked is not None or found.unacked_messages is not None:
        return unacked
    each = [consumer.unacked for consumer in consumers]
    return sum(one for one in each if one is not None) if None not in each else None


def _consumer_look(found: _Consumer) -> ConsumerLook:
    return ConsumerLook(
        name=_text(found.consumer_name),
        address=_text(found.address),
        connected_since=_text(found.connected_since),
        permits=_integer(found.available_permits),
        unacked=count(found.unacked_messages),
        is_blocked=_flag(found.blocked_consumer_on_unacked_msgs) is True,
        sent=count(found.msg_out_counter),
        entry_messages=amount(found.avg_messages_per_entry),
    )


def _integer(value: Any) -> int | None:
    """A whole number of 64 bits; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return int(value) if abs(value) <= INT64_MAX else None


def count(value: Any) -> int | None:
    """A number of something; None if it is negative or not a number."""
    found = _integer(value)
    return None if found is None or found < 0 else found


def amount(value: Any) -> float | None:
    """A measure; None if it is negative or not a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= INT64_MAX else None


def _age(value: Any) -> float | None:
    found = amount(value)
    return None if found is None else min(found, float(AGE_S_MAX))


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _text(value: Any) -> str:
    return value[:NAME_CHARACTERS_MAX] if isinstance(value, str) else ""


def _position(value: Any) -> tuple[int, int] | None:
    """``8:19`` as a pair of numbers."""
    if not isinstance(value, str) or not _POSITION.fullmatch(value):
        return None
    ledger, _, entry = value.partition(":")
    return int(ledger), int(entry)

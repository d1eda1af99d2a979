"""The frames that list the topics of a namespace, and those that report changes of a list.

:mod:`headgate.wire.encode` re-exports them. A list may be long: its names are encoded in parts.
"""

from __future__ import annotations

from collections.abc import Iterable

from headgate.wire.codes import CommandType
from headgate.wire.frame import encode_frame, frame_of
from headgate.wire.messages import (
    BaseCommand,
    CommandGetTopicsOfNamespaceResponse,
    CommandWatchTopicListSuccess,
)
from headgate.wire.varint import varint

TOPIC_LIST_TAG = varint(33 << 3 | 2)
"""The field of BaseCommand that holds the topics of a namespace."""

WATCH_TAG = varint(65 << 3 | 2)
"""The field of BaseCommand that holds the topics of a new watcher."""


def topic_names(names: Iterable[str]) -> bytes:
    """A part of the topics of :func:`topics_of_namespace_in_parts`."""
    encoded: bytes = CommandGetTopicsOfNamespaceResponse(topics=names).SerializePartialToString()
    return encoded


def topics_of_namespace_in_parts(
    request_id: int,
    parts: Iterable[bytes],
    *,
    filtered: bool = False,
    topics_hash: str | None = None,
    changed: bool = True,
) -> bytes:
    """:func:`topics_of_namespace` of all topics, whose names :func:`topic_names` has encoded: the
    parts of one message make the message when they are put behind each other."""
    head = CommandGetTopicsOfNamespaceResponse(
        request_id=request_id, filtered=filtered, topics_hash=topics_hash, changed=changed
    ).SerializeToString()
    reply = b"".join([head, *parts])
    command = BaseCommand(type=CommandType.GET_TOPICS_OF_NAMESPACE_RESPONSE).SerializeToString()
    return frame_of(command + TOPIC_LIST_TAG + varint(len(reply)) + reply)


def topics_of_namespace(
    request_id: int,
    topics: Iterable[str],
    *,
    filtered: bool = False,
    topics_hash: str | None = None,
    changed: bool = True,
) -> bytes:
    """Report the full names of a namespace's topics, with each partition.

    ``filtered``: the broker applied the pattern of the request. ``changed=False``, without topics:
    the client's list, known by its hash, is still valid.
    """
    part = topic_names(topics)
    return topics_of_namespace_in_parts(
        request_id, [part], filtered=filtered, topics_hash=topics_hash, changed=changed
    )


def watched_names(names: Iterable[str]) -> bytes:
    """A part of the topics of :func:`watch_topic_list_success`."""
    encoded: bytes = CommandWatchTopicListSuccess(topic=names).SerializePartialToString()
    return encoded


def watch_topic_list_success(
    request_id: int, watcher_id: int, topics_hash: str, parts: Iterable[bytes]
) -> bytes:
    """Report that the watcher exists, and its topics, whose names :func:`watched_names` has
    encoded; none if the client has the same list, known by its hash."""
    head = CommandWatchTopicListSuccess(
        request_id=request_id, watcher_id=watcher_id, topics_hash=topics_hash
    ).SerializeToString()
    reply = b"".join([head, *parts])
    command = BaseCommand(type=CommandType.WATCH_TOPIC_LIST_SUCCESS).SerializeToString()
    return frame_of(command + WATCH_TAG + varint(len(reply)) + reply)


def watch_topic_update(
    watcher_id: int, *, deleted: Iterable[str], created: Iterable[str], topics_hash: str
) -> bytes:
    """Report topics that left a watched list, and then those that came to it; and the hash of the
    list with both."""
    command = BaseCommand(type=CommandType.WATCH_TOPIC_UPDATE)
    update = command.watchTopicUpdate
    update.watcher_id = watcher_id
    update.deleted_topics.extend(deleted)
    update.new_topics.extend(created)
    update.topics_hash = topics_hash
    return encode_frame(command)

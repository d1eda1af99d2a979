"""The frames of topic lists and watchers."""

from __future__ import annotations

from headgate.wire import client, encode
from headgate.wire.codes import CommandType
from headgate.wire.frame import FrameDecoder
from headgate.wire.messages import BaseCommand


def read(frame: bytes) -> BaseCommand:
    decoder = FrameDecoder()
    decoder.feed(frame)
    found = decoder.next_frame()
    assert found is not None
    return found[0]


def test_a_filtered_list() -> None:
    frame = encode.topics_of_namespace_in_parts(
        3, [encode.topic_names(["a"]), encode.topic_names(["b"])], filtered=True, topics_hash="h"
    )
    reply = read(frame).getTopicsOfNamespaceResponse
    assert (reply.request_id, list(reply.topics)) == (3, ["a", "b"])
    assert (reply.filtered, reply.topics_hash, reply.changed) == (True, "h", True)
    whole = encode.topics_of_namespace(3, ["a", "b"], filtered=True, topics_hash="h")
    assert read(whole).getTopicsOfNamespaceResponse == reply


def test_a_watcher_and_its_updates() -> None:
    parts = [encode.watched_names(["a", "b"]), encode.watched_names(["c"])]
    success = read(encode.watch_topic_list_success(4, 2, "h", parts))
    assert success.type == CommandType.WATCH_TOPIC_LIST_SUCCESS
    reply = success.watchTopicListSuccess
    assert (reply.request_id, reply.watcher_id, reply.topics_hash) == (4, 2, "h")
    assert list(reply.topic) == ["a", "b", "c"]
    frame = encode.watch_topic_update(2, deleted=["a"], created=["d"], topics_hash="i")
    update = read(frame).watchTopicUpdate
    assert (update.watcher_id, update.topics_hash) == (2, "i")
    assert (list(update.deleted_topics), list(update.new_topics)) == (["a"], ["d"])


def test_requests_of_a_client() -> None:
    asked = read(client.watch_topic_list(1, 2, "a/b", "x.*", topics_hash="h")).watchTopicList
    assert (asked.request_id, asked.watcher_id, asked.namespace) == (1, 2, "a/b")
    assert (asked.topics_pattern, asked.topics_hash) == ("x.*", "h")
    assert not read(client.watch_topic_list(1, 2, "a/b", "x")).watchTopicList.HasField(
        "topics_hash"
    )
    closed = read(client.watch_topic_list_close(1, 2)).watchTopicListClose
    assert (closed.request_id, closed.watcher_id) == (1, 2)

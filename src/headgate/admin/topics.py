"""Topics and partitioned topics: create, list, grow, delete, unload, and single messages' ids."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from headgate.admin.names import (
    existing_namespace,
    existing_partitioned,
    existing_parts,
    missing_topic,
    namespace_name,
    refuse_partitioned_delete,
    single_topic,
    topic_name,
)
from headgate.admin.operations import Operation
from headgate.admin.partition_batches import results_of
from headgate.admin.queries import FORCE_TOPIC, SYSTEM_TOPICS
from headgate.admin.routing import BYTES, NO_CONTENT, Call, Query, Reply, Route, as_json
from headgate.admin.streaming import answer_names, pages
from headgate.base.names import NamespaceName, TopicName
from headgate.base.positions import Position
from headgate.facade.message_protocol import PlacedEntry
from headgate.metadata.bundles import bundle_finder
from headgate.metadata.errors import RefusalError, conflict, not_found
from headgate.metadata.rows import NamespaceRow

PROPERTY_HEADERS_BYTES_MAX: Final = 4_096
"""Most bytes of the properties of a message in headers: clients read 8 KiB of headers."""

PROPERTY_HEADERS_MAX: Final = 60
"""Most properties of a message in headers: clients in Python read a hundred headers."""

TEXT_HEADER_CHARACTERS_MAX: Final = 4_096
"""Most characters of a name, key or id in a header; the rest of a longer one is cut off."""

_PROPERTY: Final = "X-Pulsar-PROPERTY-"
_HEADER_NAME: Final = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+\Z")
_HEADER_VALUE: Final = re.compile(r"[!-~]([ -~]*[!-~])?\Z")


class PartitionedMetadata(Struct):
    """A partitioned topic as newer clients send it; others send the bare count."""

    partitions: int = 0
    properties: dict[str, str] | None = None


async def list_topics(call: Call) -> Reply:
    """Full names of a namespace's topics; each partition is one."""
    name, row = existing_namespace(call)
    return await answer_names(call, _topic_pages(call, name, row, call.query.get("bundle")))


def _topic_pages(
    call: Call, name: NamespaceName, row: NamespaceRow, bundle: str | None
) -> Iterator[list[str]]:
    """The topics of a namespace, or of one of its bundles."""
    found = bundle_finder(row.bundles)
    for page in pages(partial(call.facade.catalog.topics_after, name)):
        if bundle:
            page = [topic for topic in page if found(topic) == bundle]
        yield page


async def list_partitioned(call: Call) -> Reply:
    """Full names of a namespace's partitioned topics."""
    name, _ = existing_namespace(call)
    return await answer_names(call, pages(partial(call.facade.catalog.partitioned_after, name)))


async def list_none(call: Call) -> Reply:
    """Non-persistent topics: there are none."""
    existing_namespace(call)
    return as_json([])


async def create_topic(call: Call) -> Reply:
    """Create a topic without partitions."""
    topic = topic_name(call)
    properties = call.decoded(dict[str, str]) or {}
    plan = call.facade.catalog.plan_create_topic
    await call.commit(plan(topic, now_ms=call.now_ms(), properties=properties))
    return NO_CONTENT


async def delete_topic(call: Call) -> Reply:
    """Delete a topic that is not partitioned, or one partition."""
    topic = topic_name(call)
    refuse_partitioned_delete(call.facade.catalog, topic)
    if call.facade.catalog.topic(topic.full) is None:
        raise missing_topic(call.facade.catalog, topic)
    await call.facade.delete_topic(topic, force=call.flag("force"))
    return NO_CONTENT


async def unload_topic(call: Call) -> Reply:
    """Disconnect a topic's clients, which reconnect, and drop it from memory."""
    await results_of(call, existing_parts(call), call.facade.unload_topic)
    return NO_CONTENT


async def accept_damage(call: Call) -> Reply:
    """Serve a damaged topic without its lost data."""
    for part in existing_parts(call):
        await call.facade.accept_damage(part)
        call.progress.is_partly_done = True
    return NO_CONTENT


async def create_partitioned(call: Call) -> Reply:
    """Create a partitioned topic with its partitions."""
    topic = topic_name(call)
    wanted = _partitioned_body(call)
    plan = call.facade.catalog.plan_create_partitioned
    await call.commit(
        plan(topic, wanted.partitions, now_ms=call.now_ms(), properties=wanted.properties or {})
    )
    return NO_CONTENT


async def get_partitioned(call: Call) -> Reply:
    """How many partitions a topic has; 0 if it is not partitioned."""
    topic = topic_name(call)
    catalog = call.facade.catalog
    row = catalog.partitioned(topic.full)
    if row is None and catalog.topic(topic.full) is None:
        partitions = None
        if call.flag("checkAllowAutoCreation") and catalog.namespace(namespace_name(call)):
            partitions = call.facade.auto_creation_partitions(topic)
        if partitions is None:
            raise not_found(f"Topic {topic} not found")
        if partitions > 0:
            await _create(call, topic, partitions)
        return as_json({"partitions": partitions, "deleted": False})
    view: dict[str, Any] = {"partitions": row.partitions if row else 0, "deleted": False}
    if row is not None and row.properties:
        view["properties"] = row.properties
    return as_json(view)


async def grow_partitioned(call: Call) -> Reply:
    """Give a partitioned topic more partitions."""
    topic = topic_name(call)
    wanted = _partitioned_body(call)
    plan = call.facade.catalog.plan_grow_partitioned
    await call.commit(plan(topic, wanted.partitions, now_ms=call.now_ms()))
    return NO_CONTENT


async def create_missed(call: Call) -> Reply:
    """Create the missing partitions of a partitioned topic."""
    topic, row = existing_partitioned(call)
    plan = call.facade.catalog.plan_grow_partitioned
    await call.commit(plan(topic, row.partitions, now_ms=call.now_ms()))
    return NO_CONTENT


async def delete_partitioned(call: Call) -> Reply:
    """Delete a partitioned topic with all its partitions."""
    topic = topic_name(call)
    catalog = call.facade.catalog
    if catalog.partitioned(topic.full) is None and catalog.topic(topic.full) is not None:
        raise conflict(
            f"{topic} is a non-partitioned topic. Instead of calling delete-partitioned-topic "
            "please call delete."
        )
    existing_partitioned(call)
    await call.facade.delete_topic(topic, force=call.flag("force"))
    return NO_CONTENT


async def last_message_id(call: Call) -> Reply:
    """Id of a topic's last message."""
    topic = single_topic(call, "GetLastMessageId on a partitioned-topic is not allowed")
    found = await call.facade.last_message(topic)
    view = {
        "ledgerId": found.position.ledger_id,
        "entryId": found.position.entry_id,
        "partitionIndex": topic.partition,
    }
    if found.batch_index >= 0:
        view |= {
            "batchIndex": found.batch_index,
            "batchSize": 0,
            "outstandingAcksInSameBatch": 0,
            "originalBatchSize": 0,
        }
    return as_json(view)


async def message_id_by_time(call: Call) -> Reply:
    """Id of the first message published at or after a time."""
    publish_ms = call.number("timestamp")
    topic = single_topic(
        call,
        "Get message ID by timestamp on a partitioned topic is not allowed, please try do it "
        "on specific topic partition",
    )
    found = await call.facade.message_at(topic, publish_ms)
    return as_json(
        {
            "ledgerId": found.position.ledger_id,
            "entryId": found.position.entry_id,
            "partitionIndex": topic.partition,
            "batchIndex": -1,
            "batchSize": 0,
        }
    )


async def message_by_id(call: Call) -> Reply:
    """One entry: its payload as the producer sent it, and its metadata in headers."""
    topic = single_topic(call, "GetMessageById on a partitioned-topic is not allowed")
    position = Position(call.number("ledger"), call.number("entry"))
    entry = await call.facade.entry(topic, position, call.reserve)
    return entry_reply(PlacedEntry(position, entry))


def entry_reply(placed: PlacedEntry) -> Reply:
    """An entry as clients of the admin API get it: its payload, with its metadata in headers."""
    position, entry = placed
    headers = {
        "X-Pulsar-Message-ID": f"{position.ledger_id}:{position.entry_id}",
        "X-Pulsar-producer-name": _header_text(entry.producer_name),
        "X-Pulsar-sequence-id": str(entry.sequence_id),
        "X-Pulsar-publish-time": entry.published,
    }
    if entry.batch_size is not None:
        headers["X-Pulsar-num-batch-message"] = str(entry.batch_size)
    if entry.key is not None:
        headers |= {
            "X-Pulsar-partition-key": _header_text(entry.key.text),
            "X-Pulsar-partition-key-b64-encoded": str(entry.key.is_base64).lower(),
            "X-Pulsar-null-partition-key": str(entry.key.is_null).lower(),
        }
    if entry.compression:
        headers |= {
            "X-Pulsar-compression": entry.compression.name,
            "X-Pulsar-uncompressed-size": str(entry.uncompressed_bytes),
        }
    if entry.chunk is not None:
        headers |= {
            "X-Pulsar-uuid": _header_text(entry.chunk.uuid),
            "X-Pulsar-chunk-id": str(entry.chunk.chunk_id),
            "X-Pulsar-num-chunks-from-msg": str(entry.chunk.chunk_count),
            "X-Pulsar-total-chunk-msg-size": str(entry.chunk.message_size_bytes),
        }
    if entry.encryption is not None:
        keys = (b64encode(key).decode() for key in entry.encryption.keys)
        headers |= {
            "X-Pulsar-Base64-encryption-keys": ",".join(keys),
            "X-Pulsar-Base64-encryption-param": b64encode(entry.encryption.parameter).decode(),
        }
    if entry.event_time:
        headers["X-Pulsar-event-time"] = entry.event_time
    return Reply(200, entry.payload, BYTES, headers | _property_headers(entry.properties))


def _header_text(text: str) -> str:
    return quote(text[:TEXT_HEADER_CHARACTERS_MAX], safe="")


def _property_headers(properties: Iterable[tuple[str, str]]) -> dict[str, str]:
    """A header for each property of a message, as far as clients read them: a name that no header
    may have is left out, and so is what is beyond :data:`PROPERTY_HEADERS_BYTES_MAX` and
    :data:`PROPERTY_HEADERS_MAX`."""
    headers: dict[str, str] = {}
    size = 0
    for key, value in properties:
        size += len(_PROPERTY) + len(key)
        if size + len(value) > PROPERTY_HEADERS_BYTES_MAX or len(headers) == PROPERTY_HEADERS_MAX:
            break
        shown = value if _HEADER_VALUE.match(value) else quote(value, safe=" ")
        size += len(shown)
        if size > PROPERTY_HEADERS_BYTES_MAX:
            break
        if _HEADER_NAME.match(key):
            headers[f"{_PROPERTY}{key}"] = shown
    return headers


async def ensure_topic(call: Call, topic: TopicName) -> None:
    """Create ``topic`` as a client's first use would, unless it exists.

    Raises:
        RefusalError: 412 if topics are not created by using them.
    """
    catalog = call.facade.catalog
    if catalog.topic(topic.full) is not None or catalog.partitioned(topic.full) is not None:
        return
    if catalog.namespace(topic.namespace) is None:
        raise not_found("Namespace not found")
    partitions = call.facade.auto_creation_partitions(topic)
    if partitions is None:
        raise RefusalError(412, "Topic does not exist and cannot be auto-created")
    await _create(call, topic, partitions)


async def _create(call: Call, topic: TopicName, partitions: int) -> None:
    catalog = call.facade.catalog
    if partitions > 0:
        change = catalog.plan_create_partitioned(topic, partitions, now_ms=call.now_ms())
    else:
        change = catalog.plan_create_topic(topic, now_ms=call.now_ms())
    await call.commit(change)


def _partitioned_body(call: Call) -> PartitionedMetadata:
    body = call.decoded(int | PartitionedMetadata)
    if isinstance(body, int):
        return PartitionedMetadata(body)
    return body or PartitionedMetadata()


_NS = "/admin/v2/{domain}/{{tenant}}/{{namespace}}"
_P = _NS.format(domain="persistent")
_NP = _NS.format(domain="non-persistent")
_T = f"{_P}/{{topic}}"
_LIST = Operation.NAMESPACE_TOPICS
_BUNDLE = Query("bundle", str, "", "Only topics in this hash range of the namespace")
_AUTO_CREATION = Query(
    "checkAllowAutoCreation",
    bool,
    False,
    "Create a topic that does not exist, if a client's use of it would create a partitioned one",
)

ROUTES = (
    Route("GET", _P, _LIST, list_topics, "List a namespace's topics", reply=list[str],
          query=(_BUNDLE, SYSTEM_TOPICS)),
    Route("GET", f"{_P}/partitioned", _LIST, list_partitioned,
          "List a namespace's partitioned topics", reply=list[str], query=(SYSTEM_TOPICS,)),
    Route("GET", _NP, _LIST, list_none, "List non-persistent topics", reply=list[str]),
    Route("GET", f"{_NP}/partitioned", _LIST, list_none,
          "List non-persistent partitioned topics", reply=list[str]),
    Route("PUT", _T, Operation.TOPIC_CREATE, create_topic, "Create a topic", body=dict[str, str]),
    Route("DELETE", _T, Operation.TOPIC_DELETE, delete_topic, "Delete a topic",
          query=(FORCE_TOPIC,)),
    Route("PUT", f"{_T}/unload", Operation.TOPIC_UNLOAD, unload_topic, "Unload a topic"),
    Route("PUT", f"{_T}/acceptDamage", Operation.TOPIC_ACCEPT_DAMAGE, accept_damage,
          "Serve a damaged topic without its lost data"),
    Route("PUT", f"{_T}/partitions", Operation.TOPIC_CREATE, create_partitioned,
          "Create a partitioned topic", body=int | PartitionedMetadata),
    Route("GET", f"{_T}/partitions", Operation.TOPIC_READ, get_partitioned,
          "Partitions of a topic", reply=dict[str, Any], query=(_AUTO_CREATION,)),
    Route("POST", f"{_T}/partitions", Operation.TOPIC_UPDATE, grow_partitioned,
          "Add partitions", body=int | PartitionedMetadata),
    Route("POST", f"{_T}/createMissedPartitions", Operation.TOPIC_UPDATE, create_missed,
          "Create missing partitions"),
    Route("DELETE", f"{_T}/partitions", Operation.TOPIC_DELETE, delete_partitioned,
          "Delete a partitioned topic", query=(FORCE_TOPIC,)),
    Route("GET", f"{_T}/lastMessageId", Operation.TOPIC_MESSAGES, last_message_id,
          "Id of the last message", reply=dict[str, int]),
    Route("GET", f"{_T}/messageid/{{timestamp}}", Operation.TOPIC_MESSAGES, message_id_by_time,
          "Id of the first message since a time", reply=dict[str, int]),
    Route("GET", f"{_T}/ledger/{{ledger}}/entry/{{entry}}", Operation.TOPIC_MESSAGES,
          message_by_id, "An entry as its producer sent it, with its metadata in headers",
reply=bytes), )  # fmt: skip

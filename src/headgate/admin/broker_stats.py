"""Figures of the whole broker: all topics, sums of each namespace, and the load report.

A walk asks for one topic after the other. The answer with all topics is sent while it is made, so
its size needs no memory. Figures of a JVM, of Netty's buffers and of bookies are absent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from headgate.admin.json_pieces import Encoded, emptied_pieces
from headgate.admin.operations import Operation
from headgate.admin.routing import JSON, Call, Reply, Route, as_json
from headgate.admin.streaming import discard, encoded, pages
from headgate.admin.topic_stats import OWNED
from headgate.base.names import NamespaceName, TopicName, parse_topic
from headgate.metadata.bundles import bundle_finder, ranges_of
from headgate.metadata.errors import RefusalError
from headgate.metadata.rows import NamespaceRow
from headgate.observe.stats.fields import (
    CursorStats,
    InternalStats,
    StatsOptions,
    SubscriptionStats,
    TopicStats,
)

ADDED_AT_ONCE: Final = 256
"""Subscriptions that are added to a sum without a pause."""

_OPTIONS: Final = StatsOptions()


@dataclass(slots=True)
class Sums:
    """Sums over topics."""

    topics: int = 0
    producers: int = 0
    consumers: int = 0
    subscriptions: int = 0
    backlog_entries: int = 0
    storage_bytes: int = 0
    rate_in: float = 0.0
    rate_out: float = 0.0
    throughput_in: float = 0.0
    throughput_out: float = 0.0

    async def add(self, call: Call, stats: TopicStats) -> None:
        """Add one topic; others have their turn in between."""
        self.topics += 1
        self.producers += len(stats.publishers)
        self.subscriptions += len(stats.subscriptions)
        for number, subscription in enumerate(stats.subscriptions.values(), start=1):
            self.consumers += len(subscription.consumers)
            self.backlog_entries += subscription.msg_backlog
            if number % ADDED_AT_ONCE == 0:
                await call.facade.give_way()
        self.storage_bytes += stats.storage_size
        self.rate_in += stats.msg_rate_in
        self.rate_out += stats.msg_rate_out
        self.throughput_in += stats.msg_throughput_in
        self.throughput_out += stats.msg_throughput_out


async def topics(call: Call) -> Reply:
    """Every topic by namespace and bundle, with its producers, subscriptions and consumers."""
    return Reply(200, b"", JSON, parts=_topic_parts(call))


async def _topic_parts(call: Call) -> AsyncIterator[bytes]:
    yield b"{"
    separator = b""
    async for name, row in _namespaces(call):
        by_bundle = defaultdict(list)
        bundle_of = bundle_finder(row.bundles)
        for page in pages(partial(call.facade.catalog.topics_after, name)):
            for topic in page:
                by_bundle[bundle_of(topic)].append(topic)
            await call.facade.give_way()
        if not by_bundle:
            continue
        yield separator + msgspec.json.encode(str(name)) + b":{"
        separator = b""
        for bundle in sorted(by_bundle):
            yield separator + b'"%s":{"persistent":{' % bundle.encode()
            separator = b""
            for topic in by_bundle[bundle]:
                if (found := await _encoded(call, topic)) is not None:
                    yield separator
                    for part in found.parts:
                        yield part
                    separator = b","
            yield b'},"non-persistent":{}}'
            separator = b","
        yield b"}"
        separator = b","
    yield b"}"


async def _encoded(call: Call, full_name: str) -> Encoded | None:
    """A topic's name and figures as a member of a JSON object; None if it was deleted meanwhile."""
    topic = parse_topic(full_name)
    size_bytes = call.facade.answer_bytes(topic)
    await call.facade.reserve_answer(size_bytes)
    try:
        await call.facade.give_way()
        stats = await call.facade.topic_stats(topic, _OPTIONS)
        internal = await call.facade.internal_stats(topic, metadata=False)
        return await encoded(call, _topic_pieces(full_name, stats, internal))
    except RefusalError as refusal:
        if refusal.status != 404:
            raise
        return None
    finally:
        call.facade.release_answer(size_bytes)


def _topic_pieces(full_name: str, stats: TopicStats, internal: InternalStats) -> Iterator[bytes]:
    """A topic in the fields of ``broker-stats topics``. What it lists is taken out one by one."""
    yield msgspec.json.encode(full_name) + b':{"subscriptions":'
    before = b"{"
    for name in list(stats.subscriptions):
        cursor = internal.cursors.pop(name, None)
        view = _subscription_view(stats.subscriptions.pop(name), cursor)
        yield before + msgspec.json.encode(name) + b":"
        yield from emptied_pieces(view, OWNED)
        before = b","
    yield b"{}," if before == b"{" else b"},"
    rest = emptied_pieces(_topic_view(stats, internal), OWNED)
    yield next(rest).removeprefix(b"{")
    yield from rest


def _topic_view(stats: TopicStats, internal: InternalStats) -> dict[str, Any]:
    return {
        "publishers": stats.publishers,
        "replication": {},
        "producerCount": len(stats.publishers),
        "averageMsgSize": stats.average_msg_size,
        "msgRateIn": stats.msg_rate_in,
        "msgRateOut": stats.msg_rate_out,
        "msgInCount": stats.msg_in_counter,
        "bytesInCount": stats.bytes_in_counter,
        "msgOutCount": stats.msg_out_counter,
        "bytesOutCount": stats.bytes_out_counter,
        "msgThroughputIn": stats.msg_throughput_in,
        "msgThroughputOut": stats.msg_throughput_out,
        "storageSize": stats.storage_size,
        "backlogSize": stats.backlog_size,
        "pendingAddEntriesCount": internal.pending_add_entries_count,
        "filteredEntriesCount": 0,
    }


def _subscription_view(stats: SubscriptionStats, cursor: CursorStats | None) -> dict[str, Any]:
    view: dict[str, Any] = {
        "consumers": stats.consumers,
        "msgBacklog": stats.msg_backlog,
        "msgRateExpired": stats.msg_rate_expired,
        "msgRateOut": stats.msg_rate_out,
        "messageAckRate": stats.message_ack_rate,
        "msgThroughputOut": stats.msg_throughput_out,
        "msgRateRedeliver": stats.msg_rate_redeliver,
        "type": stats.type,
    }
    if cursor is not None:  # else the subscription was deleted between the two looks
        view |= {
            "numberOfEntriesSinceFirstNotAckedMessage": (
                cursor.number_of_entries_since_first_not_acked_message
            ),
            "totalNonContiguousDeletedMessagesRange": (
                cursor.total_non_contiguous_deleted_messages_range
            ),
        }
    return view


async def metrics(call: Call) -> Reply:
    """Sums of each namespace that has topics."""
    found: list[dict[str, Any]] = []
    async for name, _ in _namespaces(call):
        sums = await _sums(call, name)
        if sums.topics:
            found.append({"metrics": _metrics_view(sums), "dimensions": {"namespace": str(name)}})
    return as_json(found)


def _metrics_view(sums: Sums) -> dict[str, Any]:
    return {
        "brk_in_rate": sums.rate_in,
        "brk_in_tp_rate": sums.throughput_in,
        "brk_out_rate": sums.rate_out,
        "brk_out_tp_rate": sums.throughput_out,
        "brk_no_of_producers": sums.producers,
        "brk_no_of_consumers": sums.consumers,
        "brk_no_of_subscriptions": sums.subscriptions,
        "brk_no_of_topics": sums.topics,
        "brk_msg_backlog": sums.backlog_entries,
        "brk_storage_size": sums.storage_bytes,
    }


async def load_report(call: Call) -> Reply:
    """The broker's addresses and sums over all topics. What a load manager would use of the
    machine is absent: there is none."""
    info = call.facade.info
    sums, bundles = Sums(), 0
    async for name, row in _namespaces(call):
        bundles += len(ranges_of(row.bundles))
        await _sums(call, name, sums)
    urls = {
        "webServiceUrl": info.web_url,
        "webServiceUrlTls": info.web_url_tls,
        "pulsarServiceUrl": info.broker_url,
        "pulsarServiceUrlTls": info.broker_url_tls,
    }
    report = {
        **{key: url for key, url in urls.items() if url},
        "persistentTopicsEnabled": True,
        "nonPersistentTopicsEnabled": False,
        "msgThroughputIn": sums.throughput_in,
        "msgThroughputOut": sums.throughput_out,
        "msgRateIn": sums.rate_in,
        "msgRateOut": sums.rate_out,
        "lastUpdate": call.now_ms(),
        "numTopics": sums.topics,
        "numBundles": bundles,
        "numConsumers": sums.consumers,
        "numProducers": sums.producers,
        "brokerVersionString": info.version,
        "loadReportType": "LocalBrokerData",
    }
    return as_json(report)


async def _sums(call: Call, name: NamespaceName, sums: Sums | None = None) -> Sums:
    """The sums of a namespace, added to ``sums`` if given."""
    sums = Sums() if sums is None else sums
    for page in pages(partial(call.facade.catalog.topics_after, name)):
        for full_name in page:
            await _add(call, sums, parse_topic(full_name))
    return sums


async def _add(call: Call, sums: Sums, topic: TopicName) -> None:
    size_bytes = call.facade.answer_bytes(topic)
    await call.facade.reserve_answer(size_bytes)
    try:
        await call.facade.give_way()
        stats = await call.facade.topic_stats(topic, _OPTIONS)
        await sums.add(call, stats)
        await discard(call.facade, stats, OWNED)
    except RefusalError as refusal:
        if refusal.status != 404:
            raise  # else it was deleted meanwhile
    finally:
        call.facade.release_answer(size_bytes)


async def _namespaces(call: Call) -> AsyncIterator[tuple[NamespaceName, NamespaceRow]]:
    """All namespaces; others have their turn in between."""
    catalog = call.facade.catalog
    for tenant in catalog.tenants():
        for page in pages(partial(catalog.namespaces_after, tenant)):
            for text in page:
                name = NamespaceName.parse(text)
                row = catalog.namespace(name)
                if row is not None:
                    yield name, row
            await call.facade.give_way()


_A = "/admin/v2/broker-stats"
_OP = Operation.BROKER_STATS
_REPLY: Any = dict[str, Any]

ROUTES = (
    Route("GET", f"{_A}/topics", _OP, topics, "Figures of all topics", reply=_REPLY),
    Route("GET", f"{_A}/destinations", _OP, topics, "Another name for topics", reply=_REPLY),
    Route("GET", f"{_A}/metrics", _OP, metrics, "Sums of each namespace", reply=list[_REPLY]),
    Route("GET", f"{_A}/load-report", _OP, load_report, "Addresses and sums of the broker",
          reply=_REPLY),
)  # fmt: skip

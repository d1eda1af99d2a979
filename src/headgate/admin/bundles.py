"""Bundles: the hash ranges of namespaces, which can be listed and unloaded; one broker owns all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any, Final

from headgate.admin.names import existing_namespace
from headgate.admin.operations import Operation
from headgate.admin.partition_batches import all_done
from headgate.admin.routing import NAMESPACE_PATH, NO_CONTENT, Call, Query, Reply, Route, as_json
from headgate.admin.streaming import answer, pages
from headgate.base.names import NamespaceName, TopicName, parse_topic
from headgate.metadata.bundles import bundle_finder, ranges_of
from headgate.metadata.catalog import Catalog
from headgate.metadata.errors import RefusalError, not_allowed, not_found
from headgate.metadata.rows import Bundles, NamespaceRow

UNLOADED_AT_ONCE: Final = 8
"""Topics of a bundle that are unloaded at the same time."""


async def topics_of(
    call: Call, name: NamespaceName, row: NamespaceRow, bundle: str = ""
) -> AsyncIterator[TopicName]:
    """The topics of a namespace, or of one of its bundles; each partition is one. Others have
    their turn in between, so a topic may be gone when it comes."""
    found = bundle_finder(row.bundles)
    for page in pages(partial(call.facade.catalog.topics_after, name)):
        for topic in page:
            if (not bundle or found(topic) == bundle) and call.facade.catalog.topic(topic):
                yield parse_topic(topic)
        await call.facade.give_way()


def existing_bundle(call: Call) -> tuple[NamespaceName, NamespaceRow, str]:
    """The namespace that the path names, and its bundle; empty if the path names none.

    Raises:
        RefusalError: 404 without the namespace, 412 if it has no such bundle.
    """
    name, row = existing_namespace(call)
    bundle = call.params.get("bundle", "")
    if bundle and bundle not in ranges_of(row.bundles):
        raise not_allowed(f"Namespace {name} has no bundle {bundle[:80]!r}: see its bundles")
    return name, row, bundle


async def get_bundles(call: Call) -> Reply:
    """A namespace's hash ranges."""
    _, row = existing_namespace(call)
    return as_json(row.bundles)


async def unload(call: Call) -> Reply:
    """Unload the topics of a namespace or of one bundle: their clients reconnect."""
    name, row, bundle = existing_bundle(call)
    if call.query.get("destinationBroker", call.facade.info.broker_id) not in (
        "", call.facade.info.broker_id,
    ):  # fmt: skip
        raise not_allowed("destinationBroker is not this broker, which owns all bundles")
    waiting: list[TopicName] = []
    async for topic in topics_of(call, name, row, bundle):
        waiting.append(topic)
        if len(waiting) == UNLOADED_AT_ONCE:
            await _unload(call, waiting)
            waiting.clear()
    await _unload(call, waiting)
    return NO_CONTENT


async def _unload(call: Call, topics: list[TopicName]) -> None:
    async def unload_one(topic: TopicName) -> None:
        if call.facade.catalog.topic(topic.full) is not None:  # else it was deleted meanwhile
            await call.facade.unload_topic(topic)
            call.progress.is_partly_done = True

    await all_done(map(unload_one, topics))


async def split(call: Call) -> Reply:
    """Refuse to split a bundle."""
    name, _, bundle = existing_bundle(call)
    raise RefusalError(
        405,
        f"Bundle {bundle} of namespace {name} is not split: one broker owns all bundles, so that "
        "would move nothing",
    )


async def owned(call: Call) -> Reply:
    """The bundles that a broker owns: all of this one."""
    info, catalog = call.facade.info, call.facade.catalog
    if call.params["cluster"] not in catalog.clusters():
        raise not_found("Cluster does not exist")
    if call.params["broker"] != info.broker_id:
        raise not_found(f"Broker {call.params['broker'][:80]!r} not found: see the brokers")
    return await answer(call, _owned_pieces(catalog), step_pieces=1)


def _owned_pieces(catalog: Catalog) -> Iterator[bytes]:
    """One JSON object in pieces of a namespace each."""
    yield b"{"
    separator = ""
    for tenant in catalog.tenants():
        for page in pages(partial(catalog.namespaces_after, tenant)):
            for name in page:
                row = catalog.namespace(NamespaceName.parse(name))
                if row is None:
                    continue
                shown = ",".join(f'"{name}/{bundle}":{_OWNED}' for bundle in ranges_of(row.bundles))
                yield f"{separator}{shown}".encode()
                separator = ","
    yield b"}"


_OWNED: Final = '{"broker_assignment":"shared","is_controlled":false,"is_active":true}'

_CHANGE = Operation.NAMESPACE_BUNDLES_CHANGE
BUNDLE_PATH: Final = f"{NAMESPACE_PATH}/{{bundle}}"
_DESTINATION = Query("destinationBroker", str, "", "Only this broker")
_UNLOAD = Query("unload", bool, False, "Has no effect")

ROUTES = (
    Route("GET", f"{NAMESPACE_PATH}/bundles", Operation.NAMESPACE_BUNDLES, get_bundles,
          "Bundles of a namespace", reply=Bundles),
    Route("PUT", f"{NAMESPACE_PATH}/unload", _CHANGE, unload, "Unload a namespace's topics",
          query=(_DESTINATION,)),
    Route("PUT", f"{BUNDLE_PATH}/unload", _CHANGE, unload, "Unload the topics of a bundle",
          query=(_DESTINATION,)),
    Route("PUT", f"{BUNDLE_PATH}/split", _CHANGE, split,
          "Always refused: one broker owns all bundles", query=(_UNLOAD,)),
    Route("GET", "/admin/v2/brokers/{cluster}/{broker}/ownedNamespaces", Operation.BROKER_READ,
          owned, "Bundles that a broker owns", reply=dict[str, Any]),
)  # fmt: skip

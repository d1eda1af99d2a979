"""Deletion of namespaces, and forced deletion: of one with its topics, of a tenant with its
namespaces.

The namespace is marked first, so that clients which reconnect create no topic in it any more. If
the deletion ends early, for example because the broker stops, the mark stays: repeat the request,
which is allowed for a marked namespace whatever the setting says by then. One without topics is
marked only if it has very many grants and schemas, which go in several changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from headgate.admin.routing import Call
from headgate.admin.streaming import pages
from headgate.base.names import NamespaceName, parse_topic
from headgate.metadata.errors import RefusalError, not_found

NAMESPACES = "forceDeleteNamespaceAllowed", "Broker doesn't allow forced deletion of namespaces"
TENANTS = "forceDeleteTenantAllowed", "Broker doesn't allow forced deletion of tenants"


def check_force_allowed(call: Call, rule: tuple[str, str]) -> None:
    """Return if the setting of ``rule`` allows a forced deletion.

    Raises:
        RefusalError: 405 with Pulsar's text.
    """
    setting, text = rule
    if call.facade.runtime_settings()[setting] != "true":
        raise RefusalError(405, text)


async def delete_empty_namespace(call: Call, name: NamespaceName) -> None:
    """Delete a namespace without topics.

    Raises:
        RefusalError: 404 without the namespace, 409 if it has topics.
        StorageError: a deletion could not be stored; what is deleted stays deleted.
    """
    catalog = call.facade.catalog
    if catalog.has_much(name):
        await call.commit(catalog.plan_begin_namespace_deletion(name, only_empty=True))
        await _empty(call, name)
    await call.commit(catalog.plan_delete_namespace(name))


async def _empty(call: Call, name: NamespaceName) -> None:
    """Remove grants and schemas of a marked namespace, until few are left."""
    while (change := call.facade.catalog.plan_empty_namespace(name)) is not None:
        await call.facade.commit(change)  # the audit log needs none of these rows
        await call.facade.give_way()


async def delete_namespace_with_topics(call: Call, name: NamespaceName) -> None:
    """Delete a namespace with all its topics, whose clients are disconnected.

    Raises:
        RefusalError: 404 without the namespace, also if another request has deleted it meanwhile.
        StorageError: a deletion could not be stored; what is deleted stays deleted.
    """
    catalog = call.facade.catalog
    await call.commit(catalog.plan_begin_namespace_deletion(name))
    for topic in _topics(call, name):
        _check_marked(call, name)
        try:
            await call.facade.delete_topic(parse_topic(topic), force=True)
        except RefusalError as refusal:
            if refusal.status != 404:
                raise
        await call.facade.give_way()
    await _empty(call, name)
    await call.commit(catalog.plan_delete_namespace(name))


def _check_marked(call: Call, name: NamespaceName) -> None:
    """Return if a namespace is still the one that was marked: another request may have deleted it
    meanwhile, and its name may be that of a new one.

    Raises:
        RefusalError: 404, it is not.
    """
    row = call.facade.catalog.namespace(name)
    if row is None or not row.deleted:
        raise not_found("Namespace not found")


async def delete_tenant_with_namespaces(call: Call, tenant: str) -> None:
    """Delete a tenant with all its namespaces and their topics.

    Raises:
        RefusalError: 404 without the tenant; 409 if a namespace is created meanwhile.
        StorageError: as :func:`delete_namespace_with_topics`.
    """
    catalog = call.facade.catalog
    for name in catalog.namespaces(tenant):
        await delete_namespace_with_topics(call, NamespaceName.parse(name))
    await call.commit(catalog.plan_delete_tenant(tenant))


def _topics(call: Call, name: NamespaceName) -> Iterator[str]:
    """Partitioned topics first: each goes with its partitions."""
    catalog = call.facade.catalog
    for after in (catalog.partitioned_after, catalog.topics_after):
        for page in pages(partial(after, name)):
            yield from page

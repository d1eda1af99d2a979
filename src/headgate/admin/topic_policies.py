"""Policies of a topic, one route each: GET (``applied=true``: the one in force), POST, DELETE.

Topic-level policies belong to the base name. There is one cluster, so ``isGlobal`` changes
nothing and is ignored.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, Final

from headgate.admin.backlog_quotas import (
    QUOTA_TYPE,
    BacklogQuotaBody,
    BacklogQuotaMap,
    decoded_quota,
    quota_kind,
    shown_quotas,
)
from headgate.admin.names import missing_topic, subscription_name, topic_name
from headgate.admin.operations import Operation
from headgate.admin.policy_routes import PolicyHandlers, policy_routes
from headgate.admin.queries import APPLIED
from headgate.admin.routing import (
    EMPTY,
    NO_CONTENT,
    TOPIC_PATH,
    Call,
    Handler,
    Reply,
    Route,
    as_json,
)
from headgate.base.names import TopicName
from headgate.metadata.errors import not_allowed
from headgate.metadata.policies import (
    TOPIC_COUNT_NAMES,
    BacklogQuota,
    CountField,
    DelayedDeliveryPolicy,
    DispatchRate,
    JavaInt,
    PublishRate,
    QuotaKind,
    Retention,
)

_NO_CONTENT_IF_UNSET: Final = ("max_consumers_per_subscription", "max_subscriptions_per_topic")
"""Limits on numbers for which Pulsar answers 204 if they are not set, as for the publish rate; it
has no ``applied=true`` for them either."""


def getter(field: str) -> Handler:
    """A handler that shows one policy; an empty 200 if it is not set."""

    async def get(call: Call) -> Reply:
        topic = policy_topic(call)
        if call.flag("applied"):
            return as_json(_applied(call, topic, field))
        value = getattr(call.facade.catalog.topic_policies(topic), field)
        return EMPTY if value is None else as_json(value)

    return get


def setter(field: str, type_: Any) -> Handler:
    """A handler that replaces one policy; an empty body changes nothing, as in Pulsar."""

    async def post(call: Call) -> Reply:
        topic = policy_topic(call)
        value = call.decoded(type_)
        if value is None:
            return NO_CONTENT
        catalog = call.facade.catalog
        await call.commit(catalog.plan_topic_policies(topic, **{field: value}))
        return NO_CONTENT

    return post


def remover(field: str) -> Handler:
    """A handler that removes one policy."""

    async def delete(call: Call) -> Reply:
        topic = policy_topic(call)
        catalog = call.facade.catalog
        await call.commit(catalog.plan_topic_policies(topic, **{field: None}))
        return NO_CONTENT

    return delete


async def get_publish_rate(call: Call) -> Reply:
    """The publish rate; 204 if it is not set, or (``applied=true``, which Pulsar does not have
    here) if nothing is in force."""
    topic = policy_topic(call)
    rate = call.facade.catalog.topic_policies(topic).publish_rate
    if call.flag("applied"):
        rate = call.facade.effective_publish_rate(topic)
    return NO_CONTENT if rate is None else as_json(rate)


def count_getter(field: CountField) -> Handler:
    """A handler that shows a limit on a number, or (``applied=true``) the one in force."""
    unset = NO_CONTENT if field in _NO_CONTENT_IF_UNSET else EMPTY

    async def get(call: Call) -> Reply:
        topic = policy_topic(call)
        if call.flag("applied"):
            return as_json(call.facade.effective_count(topic, field))
        count = getattr(call.facade.catalog.topic_policies(topic), field)
        return unset if count is None else as_json(count)

    return get


async def get_subscription_rate(call: Call) -> Reply:
    """The dispatch rate of one subscription."""
    topic, name = policy_topic(call), subscription_name(call)
    policies = call.facade.catalog.topic_policies(topic)
    rate = policies.dispatch_rate_by_subscription.get(name)
    if call.flag("applied"):
        rate = call.facade.effective_dispatch_rate("subscription", topic, name)
    return EMPTY if rate is None else as_json(rate)


async def set_subscription_rate(call: Call) -> Reply:
    """Set the dispatch rate of one subscription; an empty rate changes nothing."""
    topic, name = policy_topic(call), subscription_name(call)
    rate = call.decoded(DispatchRate)
    if rate is not None and not rate.says_nothing:
        catalog = call.facade.catalog
        await call.commit(catalog.plan_subscription_rate(topic, name, rate))
    return NO_CONTENT


async def remove_subscription_rate(call: Call) -> Reply:
    """Remove the dispatch rate of one subscription."""
    topic, name = policy_topic(call), subscription_name(call)
    catalog = call.facade.catalog
    await call.commit(catalog.plan_subscription_rate(topic, name, None))
    return NO_CONTENT


async def get_quotas(call: Call) -> Reply:
    """The backlog quotas that are set, by type; both types if those in force are asked for."""
    topic = policy_topic(call)
    if call.flag("applied"):
        return as_json(shown_quotas(call.facade.effective_backlog_quotas(topic)))
    return as_json(shown_quotas(call.facade.catalog.topic_policies(topic).backlog_quotas))


async def set_quota(call: Call) -> Reply:
    """Replace the backlog quota of one type; an empty body removes it, as in Pulsar."""
    topic = policy_topic(call)
    await _commit_quota(call, topic, quota_kind(call), decoded_quota(call, f"topic[{topic}]"))
    return NO_CONTENT


async def remove_quota(call: Call) -> Reply:
    """Remove the backlog quota of one type."""
    topic = policy_topic(call)
    await _commit_quota(call, topic, quota_kind(call), None)
    return NO_CONTENT


async def _commit_quota(
    call: Call, topic: TopicName, kind: QuotaKind, quota: BacklogQuota | None
) -> None:
    facade = call.facade
    retention = facade.broker_retention()
    await call.commit(
        facade.catalog.plan_topic_quota(topic, kind, quota, broker_retention=retention)
    )


def policy_topic(call: Call) -> TopicName:
    """The topic that the path names: it must exist and not be a partition.

    Raises:
        RefusalError: 412 or 404.
    """
    topic = topic_name(call)
    catalog = call.facade.catalog
    if topic.partition >= 0 and catalog.partitioned(topic.base.full) is not None:
        raise not_allowed("Not allowed to set/get topic policy for a partition")
    if catalog.topic(topic.full) is None and catalog.partitioned(topic.full) is None:
        raise missing_topic(catalog, topic)
    return topic


def _applied(
    call: Call, topic: TopicName, field: str
) -> DispatchRate | Retention | DelayedDeliveryPolicy | bool:
    if field == "dispatch_rate":
        return call.facade.effective_dispatch_rate("topic", topic)
    if field == "subscription_dispatch_rate":
        return call.facade.effective_dispatch_rate("subscription", topic)
    if field == "deduplication":
        return call.facade.effective_deduplication(topic)
    if field == "delayed_delivery":
        return call.facade.effective_delayed_delivery(topic)
    return call.facade.effective_retention(topic)


_READ, _WRITE = Operation.TOPIC_POLICY_READ, Operation.TOPIC_POLICY_WRITE


def _routes(segment: str, field: str, type_: Any, get: Handler | None = None) -> tuple[Route, ...]:
    path, name = f"{TOPIC_PATH}/{segment}", f"{segment} of a topic"
    handlers = PolicyHandlers(get or getter(field), setter(field, type_), remover(field))
    return policy_routes(path, name, type_, handlers, _READ, _WRITE, (APPLIED,))


_SUBSCRIPTION_RATE = PolicyHandlers(
    get_subscription_rate, set_subscription_rate, remove_subscription_rate
)

ROUTES = (
    *_routes("dispatchRate", "dispatch_rate", DispatchRate),
    *_routes("subscriptionDispatchRate", "subscription_dispatch_rate", DispatchRate),
    *_routes("retention", "retention", Retention),
    *_routes("delayedDelivery", "delayed_delivery", DelayedDeliveryPolicy),
    *_routes("publishRate", "publish_rate", PublishRate, get_publish_rate),
    *_routes("deduplicationEnabled", "deduplication", bool),
    *chain.from_iterable(
        _routes(segment, field, JavaInt, count_getter(field))
        for field, segment in TOPIC_COUNT_NAMES.items()
    ),
    *policy_routes(f"{TOPIC_PATH}/{{subscription}}/dispatchRate",
                   "the dispatchRate of one subscription", DispatchRate, _SUBSCRIPTION_RATE,
                   _READ, _WRITE, (APPLIED,)),
    Route("GET", f"{TOPIC_PATH}/backlogQuotaMap", _READ, get_quotas,
          "Get backlog quotas of a topic", reply=BacklogQuotaMap, query=(APPLIED,)),
    Route("POST", f"{TOPIC_PATH}/backlogQuota", _WRITE, set_quota,
          "Set backlogQuota of a topic", body=BacklogQuotaBody, query=(QUOTA_TYPE,)),
    Route("DELETE", f"{TOPIC_PATH}/backlogQuota", _WRITE, remove_quota,
          "Remove backlogQuota of a topic", query=(QUOTA_TYPE,)),
)  # fmt: skip

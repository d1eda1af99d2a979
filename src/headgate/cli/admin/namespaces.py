"""The verbs of ``headgate admin namespaces``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from headgate.cli.admin import namespace_upkeep, producer_policies, schemas
from headgate.cli.admin.command import VerbGroup
from headgate.cli.admin.ending_policies import (
    EXPIRATION_OPTION,
    INACTIVE_OPTIONS,
    PERSISTENCE_OPTIONS,
    SUBSCRIPTION_CREATION_OPTIONS,
    TOPIC_CREATION_OPTIONS,
    TYPES_OPTION,
    inactive_body,
    persistence_body,
    subscription_creation_body,
    topic_creation_body,
    ttl_option,
    types_body,
)
from headgate.cli.admin.output import as_lines
from headgate.cli.admin.permissions import NAMESPACE_VERBS
from headgate.cli.admin.policies import (
    DEDUPLICATION_OPTIONS,
    DELAY_OPTIONS,
    PUBLISH_RATE_OPTIONS,
    QUOTA_OPTIONS,
    QUOTA_TYPE,
    QUOTA_TYPE_QUERY,
    RATE_OPTIONS,
    RETENTION_OPTIONS,
    as_quotas,
    count_body,
    count_option,
    deduplication_body,
    delay_body,
    publish_rate_body,
    quota_body,
    rate_body,
    retention_body,
)
from headgate.cli.admin.values import int32, names, topic_mode
from headgate.cli.admin.verbs import (
    NAMESPACE_NAME,
    NAMESPACE_PATH,
    Parameter,
    Values,
    Verb,
    argument,
    option,
    send,
    show,
    switch,
)


def new_policies(values: Values) -> dict[str, Any]:
    """The object of policies that ``pulsar-admin`` sends for a new namespace."""
    clusters, bundles = values["clusters"] or [], values["numBundles"]
    policies: dict[str, Any] = {
        "auth_policies": {
            "namespace_auth": {},
            "destination_auth": {},
            "subscription_auth_roles": {},
        },
        "replication_clusters": clusters,
        "allowed_clusters": [],
    }
    if bundles > 0:
        policies["bundles"] = {"numBundles": bundles}
    policies |= {
        "backlog_quota_map": {},
        "clusterDispatchRate": {},
        "topicDispatchRate": {},
        "subscriptionDispatchRate": {},
        "replicatorDispatchRate": {},
        "clusterSubscribeRate": {},
        "publishMaxMessageRate": {},
        "latency_stats_sample_rate": {},
        "deleted": False,
        "encryption_required": False,
        "subscription_auth_mode": "None",
        "offload_threshold": -1,
        "offload_threshold_in_seconds": -1,
        "schema_compatibility_strategy": "UNDEFINED",
        "schema_validation_enforced": False,
        "subscription_types_enabled": [],
        "properties": {},
        "migrated": False,
    }
    if len(clusters) == 1:
        policies["clusterThatCanDeleteNamespace"] = clusters[0]
    return policies


def _policy(
    name: str,
    segment: str,
    options: tuple[Parameter, ...],
    body: Callable[[Values], Any],
    what: str,
) -> tuple[Verb, ...]:
    """The three verbs of one policy."""
    path = f"{NAMESPACE_PATH}/{segment}"
    only = (NAMESPACE_NAME,)
    return (
        Verb(f"get-{name}", f"Show {what}.", only, show(path)),
        Verb(f"set-{name}", f"Set {what}.", (*only, *options), send("POST", path, body=body)),
        Verb(f"remove-{name}", f"Remove {what}.", only, send("DELETE", path)),
    )


def _counts() -> Iterator[Verb]:
    """The verbs of the limits on numbers."""
    for name, segment, short, what in (
        ("max-topics-per-namespace", "maxTopicsPerNamespace", "-t", "topics of a namespace"),
        ("max-producers-per-topic", "maxProducersPerTopic", "-p", "producers of a topic"),
        ("max-consumers-per-topic", "maxConsumersPerTopic", "-c", "consumers of a topic"),
        ("max-consumers-per-subscription", "maxConsumersPerSubscription", "-c",
         "consumers of a subscription"),
        ("max-subscriptions-per-topic", "maxSubscriptionsPerTopic", "-m",
         "subscriptions of a topic"),
        ("max-unacked-messages-per-consumer", "maxUnackedMessagesPerConsumer",
         "--max-unacked-messages-per-topic -c",  # pulsar-admin's name for it
         "unacknowledged messages of a shared consumer"),
        ("max-unacked-messages-per-subscription", "maxUnackedMessagesPerSubscription", "-c",
         "unacknowledged messages of a shared subscription"),
    ):  # fmt: skip
        options = (count_option(f"--{name} {short}", segment, what),)
        yield from _policy(name, segment, options, count_body(segment), f"the most {what}")


_QUOTA: Final = f"{NAMESPACE_PATH}/backlogQuota"
_QUOTAS: Final = (
    *(
        Verb(name, summary, (NAMESPACE_NAME,), show(f"{_QUOTA}Map", as_quotas))
        for name, summary in (
            ("get-backlog-quotas", "Show the backlog quotas of the topics of a namespace."),
            ("get-backlog-quota", "Another name for get-backlog-quotas."),
        )
    ),
    Verb("set-backlog-quota", "Set a backlog quota for the topics of a namespace.",
         (NAMESPACE_NAME, *QUOTA_OPTIONS), send("POST", _QUOTA, (QUOTA_TYPE_QUERY,), quota_body)),
    Verb("remove-backlog-quota", "Remove a backlog quota for the topics of a namespace.",
         (NAMESPACE_NAME, QUOTA_TYPE), send("DELETE", _QUOTA, (QUOTA_TYPE_QUERY,))),
)  # fmt: skip

GROUP: Final = VerbGroup(
    "namespaces",
    "Manage namespaces and their policies.",
    (
        Verb(
            "list", "List a tenant's namespaces.",
            (argument("tenant", str, "tenant-name"),),
            show("/admin/v2/namespaces/{tenant}", as_lines),
        ),
        Verb(
            "topics", "List a namespace's topics, one name for each partition.",
            (
                NAMESPACE_NAME,
                option("--mode -m", "mode", topic_mode, "persistent, non_persistent or all."),
                switch("--include-system-topic -ist", "includeSystemTopic",
                       "No effect: there are no system topics."),
            ),
            show(f"{NAMESPACE_PATH}/topics", as_lines,
                 ("mode={mode}", "includeSystemTopic={includeSystemTopic}")),
        ),
        Verb("policies", "Show all policies of a namespace.", (NAMESPACE_NAME,),
             show(NAMESPACE_PATH)),
        Verb("bundles", "Show a namespace's hash ranges.", (NAMESPACE_NAME,),
             show(f"{NAMESPACE_PATH}/bundles")),
        *NAMESPACE_VERBS,
        *namespace_upkeep.VERBS,
        Verb(
            "create", "Create a namespace.",
            (
                NAMESPACE_NAME,
                option("--clusters -c", "clusters", names, "Clusters of the namespace; a,b."),
                option("--bundles -b", "numBundles", int32,
                       "Number of hash ranges; 0 for the broker's default.", default="0"),
            ),
            send("PUT", NAMESPACE_PATH, body=new_policies),
        ),
        Verb(
            "delete", "Delete a namespace without topics.",
            (
                NAMESPACE_NAME,
                switch("--force -f", "force",
                       "Delete its topics too, if forceDeleteNamespaceAllowed is true."),
            ),
            send("DELETE", NAMESPACE_PATH, ("force={force}",)),
        ),
        *_policy("dispatch-rate", "dispatchRate", RATE_OPTIONS, rate_body,
                 "the dispatch limit of each topic of a namespace"),
        *_policy("subscription-dispatch-rate", "subscriptionDispatchRate", RATE_OPTIONS, rate_body,
                 "the dispatch limit of each subscription in a namespace"),
        *_policy("publish-rate", "publishRate", PUBLISH_RATE_OPTIONS, publish_rate_body,
                 "the publish limit of each topic of a namespace"),
        *_policy("retention", "retention", RETENTION_OPTIONS, retention_body,
                 "the retention of acknowledged messages in a namespace"),
        *_policy("deduplication", "deduplication", DEDUPLICATION_OPTIONS, deduplication_body,
                 "whether the topics of a namespace store no message twice"),
        *_policy("delayed-delivery", "delayedDelivery", DELAY_OPTIONS, delay_body,
                 "the delayed delivery of the messages of a namespace"),
        *_QUOTAS,
        *_counts(),
        *schemas.NAMESPACE_VERBS,
        *_policy("message-ttl", "messageTTL", (ttl_option("--messageTTL -ttl"),),
                 count_body("messageTTL"), "the age from which messages in a namespace expire"),
        *_policy("subscription-expiration-time", "subscriptionExpirationTime",
                 (EXPIRATION_OPTION,), count_body("expirationTime"),
                 "the time after which unused subscriptions in a namespace are deleted"),
        *_policy("inactive-topic-policies", "inactiveTopicPolicies", INACTIVE_OPTIONS,
                 inactive_body, "when unused topics of a namespace are deleted"),
        *_policy("auto-topic-creation", "autoTopicCreation", TOPIC_CREATION_OPTIONS,
                 topic_creation_body, "whether a client's first use creates a topic"),
        *_policy("auto-subscription-creation", "autoSubscriptionCreation",
                 SUBSCRIPTION_CREATION_OPTIONS, subscription_creation_body,
                 "whether a consumer creates its subscription"),
        *_policy("subscription-types-enabled", "subscriptionTypesEnabled", (TYPES_OPTION,),
                 types_body, "the types of subscriptions that are allowed in a namespace"),
        *_policy("persistence", "persistence", PERSISTENCE_OPTIONS, persistence_body,
                 "how messages of a namespace are stored"),
        *producer_policies.NAMESPACE_VERBS,
        *_policy(
            "allowed-topic-property-keys-for-metrics", "allowedTopicPropertyKeysForMetrics",
            (option("--keys -k", "keys", names, "Names of properties; a,b.", required=True),),
            lambda values: values["keys"],
            "which properties of the topics of a namespace are labels on /metrics",
        ),
    ),
)  # fmt: skip

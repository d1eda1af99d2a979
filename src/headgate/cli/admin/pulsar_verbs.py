"""The groups and verbs of ``pulsar-admin`` 4.0.8, aliases and hidden ones included.

A user who types one that Headgate lacks made no typing error, so the error says that it is missing.
The names are those of the tool's own table of commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from headgate.base.input_errors import closest_match

PULSAR_VERBS: Final[Mapping[str, frozenset[str]]] = {
    group: frozenset(verbs.split())
    for group, verbs in {
        "bookies": """
            delete-bookie-rack get-bookie-rack list-bookies racks-placement set-bookie-rack""",
        "broker-stats": """
            allocator-stats destinations load-report mbeans monitoring-metrics topics""",
        "brokers": """
            backlog-quota-check delete-dynamic-config get-all-dynamic-config
            get-internal-config get-runtime-config healthcheck leader-broker list
            list-dynamic-config namespaces shutdown update-dynamic-config version""",
        "clusters": """
            create create-failure-domain delete delete-failure-domain get
            get-cluster-migration get-failure-domain get-peer-clusters list
            list-failure-domains update update-cluster-migration update-failure-domain
            update-peer-clusters""",
        "documents": "generate",
        "functions": """
            available-functions create delete download get getstatus list localrun putstate
            querystate reload restart start stats status stop trigger update upload""",
        "functions-worker": """
            function-stats get-cluster get-cluster-leader get-function-assignments
            monitoring-metrics rebalance""",
        "namespaces": """
            bundles clear-backlog clear-offload-deletion-lag clear-properties create delete
            delete-anti-affinity-group delete-bookie-affinity-group destinations
            get-allowed-clusters get-anti-affinity-group get-anti-affinity-namespaces
            get-auto-subscription-creation get-auto-topic-creation get-backlog-quotas
            get-bookie-affinity-group get-clusters get-compaction-threshold get-deduplication
            get-deduplication-snapshot-interval get-delayed-delivery get-dispatch-rate
            get-dispatcher-pause-on-ack-state-persistent get-encryption-required
            get-entry-filters get-inactive-topic-policies get-is-allow-auto-update-schema
            get-max-consumers-per-subscription get-max-consumers-per-topic
            get-max-producers-per-topic get-max-subscriptions-per-topic
            get-max-topics-per-namespace get-max-unacked-messages-per-consumer
            get-max-unacked-messages-per-subscription get-message-ttl get-offload-deletion-lag
            get-offload-policies get-offload-threshold get-persistence get-properties
            get-property get-publish-rate get-replicator-dispatch-rate get-resource-group
            get-retention get-schema-autoupdate-strategy get-schema-compatibility-strategy
            get-schema-validation-enforce get-subscribe-rate get-subscription-auth-mode
            get-subscription-dispatch-rate get-subscription-expiration-time
            get-subscription-types-enabled get-topic-positions grant-permission
            grant-subscription-permission list list-cluster permissions policies
            remove-auto-subscription-creation remove-auto-topic-creation remove-backlog-quota
            remove-compaction-threshold remove-deduplication
            remove-deduplication-snapshot-interval remove-delayed-delivery
            remove-dispatch-rate remove-dispatcher-pause-on-ack-state-persistent
            remove-entry-filters remove-inactive-topic-policies
            remove-max-consumers-per-subscription remove-max-consumers-per-topic
            remove-max-producers-per-topic remove-max-subscriptions-per-topic
            remove-max-topics-per-namespace remove-max-unacked-messages-per-consumer
            remove-max-unacked-messages-per-subscription remove-message-ttl
            remove-offload-policies remove-persistence remove-property remove-publish-rate
            remove-replicator-dispatch-rate remove-resource-group remove-retention
            remove-subscribe-rate remove-subscription-dispatch-rate
            remove-subscription-expiration-time remove-subscription-types-enabled
            revoke-permission revoke-subscription-permission set-allowed-clusters
            set-anti-affinity-group set-auto-subscription-creation set-auto-topic-creation
            set-backlog-quota set-bookie-affinity-group set-clusters set-compaction-threshold
            set-deduplication set-deduplication-snapshot-interval set-delayed-delivery
            set-dispatch-rate set-dispatcher-pause-on-ack-state-persistent
            set-encryption-required set-entry-filters set-inactive-topic-policies
            set-is-allow-auto-update-schema set-max-consumers-per-subscription
            set-max-consumers-per-topic set-max-producers-per-topic
            set-max-subscriptions-per-topic set-max-topics-per-namespace
            set-max-unacked-messages-per-consumer set-max-unacked-messages-per-subscription
            set-message-ttl set-offload-deletion-lag set-offload-policies
            set-offload-threshold set-persistence set-properties set-property set-publish-rate
            set-replicator-dispatch-rate set-resource-group set-retention
            set-schema-autoupdate-strategy set-schema-compatibility-strategy
            set-schema-validation-enforce set-subscribe-rate set-subscription-auth-mode
            set-subscription-dispatch-rate set-subscription-expiration-time
            set-subscription-types-enabled split-bundle subscription-permission topics unload
            unsubscribe update-migration-state""",
        "non-persistent": """
            create-partitioned-topic get-partitioned-topic-metadata list list-in-bundle lookup
            stats stats-internal""",
        "ns-isolation-policy": "broker brokers delete get list set",
        "packages": "delete download get-metadata list list-versions update-metadata upload",
        "persistent": """
            bundle-range compact compaction-status create-partitioned-topic
            create-subscription delete delete-partitioned-topic expire-messages
            expire-messages-all-subscriptions get-message-by-id get-partitioned-topic-metadata
            grant-permission info-internal last-message-id list list-partitioned-topics lookup
            partitioned-stats partitioned-stats-internal peek-messages permissions
            reset-cursor revoke-permission skip skip-all stats stats-internal subscriptions
            terminate truncate unload unsubscribe update-partitioned-topic""",
        "properties": "create delete get list update",
        "proxy-stats": "connections topics",
        "resource-quotas": "get reset-namespace-bundle-quota set",
        "resourcegroups": "create delete get list update",
        "schemas": "compatibility delete extract get metadata upload",
        "sink": """
            available-sinks create delete get getstatus list localrun reload restart start
            status stop update""",
        "sinks": """
            available-sinks create delete get getstatus list localrun reload restart start
            status stop update""",
        "source": """
            available-sources create delete get getstatus list localrun reload restart start
            status stop update""",
        "sources": """
            available-sources create delete get getstatus list localrun reload restart start
            status stop update""",
        "tenants": "create delete get list update",
        "topicPolicies": """
            delete get-auto-subscription-creation get-backlog-quota get-compaction-threshold
            get-deduplication get-deduplication-snapshot-interval get-delayed-delivery
            get-dispatch-rate get-dispatcher-pause-on-ack-state-persistent
            get-entry-filters-per-topic get-inactive-topic-policies get-max-consumers
            get-max-consumers-per-subscription get-max-message-size get-max-producers
            get-max-subscriptions-per-topic get-max-unacked-messages-per-consumer
            get-max-unacked-messages-per-subscription get-message-ttl get-offload-policies
            get-persistence get-publish-rate get-replication-clusters
            get-replicator-dispatch-rate get-retention get-schema-compatibility-strategy
            get-subscribe-rate get-subscription-dispatch-rate get-subscription-types-enabled
            remove-auto-subscription-creation remove-backlog-quota remove-compaction-threshold
            remove-deduplication remove-deduplication-snapshot-interval
            remove-delayed-delivery remove-dispatch-rate
            remove-dispatcher-pause-on-ack-state-persistent remove-entry-filters-per-topic
            remove-inactive-topic-policies remove-max-consumers
            remove-max-consumers-per-subscription remove-max-message-size remove-max-producers
            remove-max-subscriptions-per-topic remove-max-unacked-messages-per-consumer
            remove-max-unacked-messages-per-subscription remove-message-ttl
            remove-offload-policies remove-persistence remove-publish-rate
            remove-replication-clusters remove-replicator-dispatch-rate remove-retention
            remove-schema-compatibility-strategy remove-subscribe-rate
            remove-subscription-dispatch-rate remove-subscription-types-enabled
            set-auto-subscription-creation set-backlog-quota set-compaction-threshold
            set-deduplication set-deduplication-snapshot-interval set-delayed-delivery
            set-dispatch-rate set-dispatcher-pause-on-ack-state-persistent
            set-entry-filters-per-topic set-inactive-topic-policies set-max-consumers
            set-max-consumers-per-subscription set-max-message-size set-max-producers
            set-max-subscriptions-per-topic set-max-unacked-messages-per-consumer
            set-max-unacked-messages-per-subscription set-message-ttl set-offload-policies
            set-persistence set-publish-rate set-replication-clusters
            set-replicator-dispatch-rate set-retention set-schema-compatibility-strategy
            set-subscribe-rate set-subscription-dispatch-rate set-subscription-types-enabled""",
        "topics": """
            analyze-backlog bundle-range clear-backlog compact compaction-status create
            create-missed-partitions create-partitioned-topic create-shadow-topic
            create-subscription delete delete-partitioned-topic disable-deduplication
            enable-deduplication examine-messages expire-messages
            expire-messages-all-subscriptions get-backlog-quotas get-backlog-size
            get-compaction-threshold get-deduplication get-deduplication-enabled
            get-deduplication-snapshot-interval get-delayed-delivery get-dispatch-rate
            get-inactive-topic-policies get-max-consumers get-max-consumers-per-subscription
            get-max-message-size get-max-producers get-max-subscriptions
            get-max-unacked-messages-on-consumer get-max-unacked-messages-on-subscription
            get-max-unacked-messages-per-consumer get-max-unacked-messages-per-subscription
            get-maxProducers get-message-by-id get-message-id get-message-ttl
            get-offload-policies get-partitioned-topic-metadata get-persistence get-properties
            get-publish-rate get-replicated-subscription-status get-replication-clusters
            get-replicator-dispatch-rate get-retention get-schema-validation-enforce
            get-shadow-source get-shadow-topics get-subscribe-rate
            get-subscription-dispatch-rate get-subscription-properties
            get-subscription-types-enabled grant-permission info-internal last-message-id list
            list-partitioned-topics lookup offload offload-status partitioned-lookup
            partitioned-stats partitioned-stats-internal partitioned-terminate peek-messages
            permissions remove-backlog-quota remove-compaction-threshold remove-deduplication
            remove-deduplication-snapshot-interval remove-delayed-delivery
            remove-dispatch-rate remove-inactive-topic-policies remove-max-consumers
            remove-max-consumers-per-subscription remove-max-message-size remove-max-producers
            remove-max-subscriptions remove-max-unacked-messages-on-consumer
            remove-max-unacked-messages-on-subscription
            remove-max-unacked-messages-per-consumer
            remove-max-unacked-messages-per-subscription remove-maxProducers
            remove-message-ttl remove-offload-policies remove-persistence remove-properties
            remove-publish-rate remove-replication-clusters remove-replicator-dispatch-rate
            remove-retention remove-shadow-topics remove-subscribe-rate
            remove-subscription-dispatch-rate remove-subscription-types-enabled reset-cursor
            revoke-permission set-backlog-quota set-compaction-threshold set-deduplication
            set-deduplication-snapshot-interval set-delayed-delivery set-dispatch-rate
            set-inactive-topic-policies set-max-consumers set-max-consumers-per-subscription
            set-max-message-size set-max-producers set-max-subscriptions
            set-max-unacked-messages-on-consumer set-max-unacked-messages-on-subscription
            set-max-unacked-messages-per-consumer set-max-unacked-messages-per-subscription
            set-maxProducers set-message-ttl set-offload-policies set-persistence
            set-publish-rate set-replicated-subscription-status set-replication-clusters
            set-replicator-dispatch-rate set-retention set-schema-validation-enforce
            set-shadow-topics set-subscribe-rate set-subscription-dispatch-rate
            set-subscription-types-enabled skip stats stats-internal subscriptions terminate
            trim-topic truncate unload unsubscribe update-partitioned-topic update-properties
            update-subscription-properties""",
        "transactions": """
            abort-transaction buffer-snapshot-internal-stats coordinator-internal-stats
            coordinator-stats coordinators-list pending-ack-internal-stats pending-ack-stats
            position-stats-in-pending-ack scale-transactionCoordinators slow-transactions
            transaction-buffer-stats transaction-in-buffer-stats
            transaction-in-pending-ack-stats transaction-metadata""",
    }.items()
}
"""By group; a group that has none is a command itself."""


def missing_group(group: str, verb: str = "") -> str:
    """The error for a group that only ``pulsar-admin`` has, called with ``verb``; empty if it does
    not have it either."""
    if group not in PULSAR_VERBS:
        return ""
    return _sentence(group, verb if verb in PULSAR_VERBS[group] else "")


def missing_verb(group: str, verb: str, present: Iterable[str]) -> str:
    """The error for a verb that is not ``present`` in a group, if it is or resembles one that only
    ``pulsar-admin`` has. Otherwise empty: it resembles a verb that is present, or none."""
    verbs = PULSAR_VERBS.get(group, frozenset())
    if verb in verbs:
        return _sentence(group, verb)
    meant = closest_match(verb, sorted(verbs | set(present)))
    if meant is None or meant in present:
        return ""
    return f"No such command {verb!r}; did you mean {meant}? Headgate does not have that yet"


def _sentence(group: str, verb: str) -> str:
    return f"Headgate does not have this yet: {group} {verb}".rstrip()

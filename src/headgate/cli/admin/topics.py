"""The verbs of ``headgate admin topics``."""

from __future__ import annotations

from typing import Any, Final

from headgate.cli.admin import (
    messages,
    permissions,
    schemas,
    subscriptions,
    termination,
    topic_policies,
    topic_storage,
)
from headgate.cli.admin.command import VerbGroup
from headgate.cli.admin.errors import RefusedError
from headgate.cli.admin.output import as_lines, as_map
from headgate.cli.admin.values import int32, merged, pairs, topic_domain
from headgate.cli.admin.verbs import (
    NAMESPACE_NAME,
    TOPIC_NAME,
    TOPIC_PATH,
    Server,
    Values,
    Verb,
    echo,
    option,
    send,
    show,
    show_text,
    switch,
    target,
)

_LOOKUP: Final = "/lookup/v2/topic/{topicName}"
_PARTITIONS: Final = f"{TOPIC_PATH}/partitions"
_PARTITIONED_TYPE: Final = "application/vnd.partitioned-topic-metadata+json"
_DOMAINS: Final = {"persistent": "persistent", "non_persistent": "non-persistent"}

_FORCE: Final = switch("--force -f", "force", "Disconnect producers and consumers.")
_SYSTEM: Final = switch(
    "--include-system-topic -ist", "includeSystemTopic",
    "No effect: there are no system topics.",
)  # fmt: skip
_METADATA: Final = option(
    "--metadata -m", "metadata", pairs, "Properties, a=a,b=b; may be repeated.", multiple=True
)
_COUNT: Final = option(
    "--partitions -p", "numPartitions", int32, "Number of partitions.", required=True
)
_STATS: Final = (
    switch("--get-precise-backlog -gpb", "getPreciseBacklog",
           "No effect: backlogs are always precise."),
    switch("--get-subscription-backlog-size -sbs", "subscriptionBacklogSize",
           "Show -1 instead of the size of each backlog.", default=True, given=False),
    switch("--get-earliest-time-in-backlog -etb", "getEarliestTimeInBacklog",
           "Show the publish time of each backlog's oldest message."),
)  # fmt: skip
_STATS_QUERY: Final = (
    "getPreciseBacklog={getPreciseBacklog}",
    "subscriptionBacklogSize={subscriptionBacklogSize}",
    "getEarliestTimeInBacklog={getEarliestTimeInBacklog}",
    "excludePublishers=false",
    "excludeConsumers=false",
)


def list_topics(server: Server, values: Values) -> None:
    """Print the topics of one domain, or of both."""
    wanted = values["topicDomain"]
    domains = [_DOMAINS[wanted]] if wanted else list(_DOMAINS.values())
    query = ("bundle={bundle}", "includeSystemTopic={includeSystemTopic}")
    _list_all(server, [target(_in(domain, ""), values, query) for domain in domains])


def list_partitioned(server: Server, values: Values) -> None:
    """Print the partitioned topics of both domains."""
    query = ("includeSystemTopic={includeSystemTopic}",)
    paths = [_in(domain, "/partitioned") for domain in _DOMAINS.values()]
    _list_all(server, [target(path, values, query) for path in paths])


def create(server: Server, values: Values) -> None:
    """Create a topic without partitions."""
    server.ask("PUT", target(TOPIC_PATH, values), _properties(values))


def create_partitioned(server: Server, values: Values) -> None:
    """Create a topic with partitions; older brokers know the bare number alone."""
    path = target(_PARTITIONS, values, ("createLocalTopicOnly=false",))
    count, properties = values["numPartitions"], _properties(values)
    if properties:
        body = {"partitions": count, "deleted": False, "properties": properties}
        server.ask("PUT", path, body, _PARTITIONED_TYPE)
    else:
        server.ask("PUT", path, count)


def lookup(server: Server, values: Values) -> None:
    """Print the address of the broker that serves a topic."""
    echo(_broker(server, target(_LOOKUP, values)))


def partitioned_lookup(server: Server, values: Values) -> None:
    """Print the address of the broker that serves each partition."""
    topic = values["topicName"]
    count = (server.get(target(_PARTITIONS, values)) or {}).get("partitions", 0)
    if count <= 0:
        raise RefusedError(f"Topic {topic} is not a partitioned topic")
    # One by one: Pulsar does not limit the number that the owner of a topic gives it.
    parts = map(topic.partition_name, range(count))
    found = {part.full: _broker(server, target(_LOOKUP, {"topicName": part})) for part in parts}
    if not values["sortByBroker"]:
        echo(as_map(found))
        return
    by_broker: dict[str, list[str]] = {}
    for name, broker in found.items():
        by_broker.setdefault(broker, []).append(name)
    echo(as_map(by_broker))


def _in(domain: str, rest: str) -> str:
    return f"/admin/v2/{domain}/{{namespaceName}}{rest}"


def _list_all(server: Server, paths: list[str]) -> None:
    echo(as_lines([name for path in paths for name in server.get(path) or ()]))


def _properties(values: Values) -> dict[str, str]:
    return merged(values["metadata"])


def _broker(server: Server, path: str) -> str:
    answer: dict[str, Any] = server.get(path) or {}
    return str(answer.get("brokerUrl", ""))


_TOPICS: Final = (
    Verb(
        "list", "List a namespace's topics, one name for each partition.",
        (
            NAMESPACE_NAME,
            option("--topic-domain -td", "topicDomain", topic_domain, "Topics of this domain."),
            option("--bundle -b", "bundle", str, "Only topics of this hash range."),
            _SYSTEM,
        ),
        list_topics,
    ),
    Verb("list-partitioned-topics", "List a namespace's partitioned topics.",
         (NAMESPACE_NAME, _SYSTEM), list_partitioned),
    Verb("create", "Create a topic without partitions.", (TOPIC_NAME, _METADATA), create),
    Verb("create-partitioned-topic", "Create a topic with partitions.",
         (TOPIC_NAME, _COUNT, _METADATA), create_partitioned),
    Verb(
        "update-partitioned-topic", "Give a partitioned topic more partitions.",
        (
            TOPIC_NAME, _COUNT,
            switch("--update-local-only -ulo", "updateLocalOnly",
                   "No effect: there is one cluster."),
            switch("--force -f", "force", "No effect."),
        ),
        send("POST", _PARTITIONS, ("updateLocalTopicOnly={updateLocalOnly}", "force={force}"),
             lambda values: values["numPartitions"]),
    ),
    Verb("create-missed-partitions", "Create the missing partitions of a partitioned topic.",
         (TOPIC_NAME,), send("POST", f"{TOPIC_PATH}/createMissedPartitions")),
    Verb("get-partitioned-topic-metadata", "Show a topic's number of partitions.", (TOPIC_NAME,),
         show(_PARTITIONS)),
    Verb("delete", "Delete a topic that is not partitioned, or one partition.",
         (TOPIC_NAME, _FORCE), send("DELETE", TOPIC_PATH, ("force={force}", "deleteSchema=true"))),
    Verb("delete-partitioned-topic", "Delete a partitioned topic with its partitions.",
         (TOPIC_NAME, _FORCE), send("DELETE", _PARTITIONS, ("force={force}", "deleteSchema=true"))),
    Verb("unload", "Close a topic's connections and drop it from memory.", (TOPIC_NAME,),
         send("PUT", f"{TOPIC_PATH}/unload")),
    Verb("accept-damage", "Serve a damaged topic without the lost messages.", (TOPIC_NAME,),
         send("PUT", f"{TOPIC_PATH}/acceptDamage")),
    Verb("lookup", "Print the address of the broker that serves a topic.", (TOPIC_NAME,), lookup),
    Verb(
        "partitioned-lookup", "Print the address of the broker that serves each partition.",
        (TOPIC_NAME, switch("--sort-by-broker -s", "sortByBroker", "One line for each broker.")),
        partitioned_lookup,
    ),
    Verb("bundle-range", "Print the hash range of a topic.", (TOPIC_NAME,),
         show_text(f"{_LOOKUP}/bundle")),
)  # fmt: skip

_STATISTICS: Final = (
    Verb("stats", "Show a topic's statistics.", (TOPIC_NAME, *_STATS),
         show(f"{TOPIC_PATH}/stats", query=_STATS_QUERY)),
    Verb(
        "partitioned-stats", "Show a partitioned topic's statistics.",
        (TOPIC_NAME, switch("--per-partition", "perPartition", "Show each partition as well."),
         *_STATS),
        show(f"{TOPIC_PATH}/partitioned-stats",
             query=("perPartition={perPartition}", *_STATS_QUERY)),
    ),
    Verb(
        "stats-internal", "Show a topic's ledgers and cursors.",
        (TOPIC_NAME, switch("--metadata -m", "metadata", "Add each ledger's metadata.")),
        show(f"{TOPIC_PATH}/internalStats", query=("metadata={metadata}",)),
    ),
    Verb("partitioned-stats-internal", "Show a partitioned topic's ledgers and cursors.",
         (TOPIC_NAME,), show(f"{TOPIC_PATH}/partitioned-internalStats")),
)  # fmt: skip

GROUP: Final = VerbGroup(
    "topics",
    "Manage topics, subscriptions and messages.",
    (
        *_TOPICS, *termination.VERBS, *_STATISTICS, *subscriptions.VERBS, *messages.VERBS,
        *topic_storage.VERBS, *topic_policies.OLDER_VERBS, *permissions.TOPIC_VERBS,
        *schemas.TOPIC_VERBS,
    ),
)  # fmt: skip

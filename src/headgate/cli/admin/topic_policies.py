"""The verbs of ``headgate admin topicPolicies``, which ``topics`` has under older names too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from headgate.cli.admin import schemas
from headgate.cli.admin.command import VerbGroup
from headgate.cli.admin.ending_policies import (
    INACTIVE_OPTIONS,
    PERSISTENCE_OPTIONS,
    SUBSCRIPTION_CREATION_OPTIONS,
    TYPES_OPTION,
    inactive_body,
    persistence_body,
    subscription_creation_body,
    ttl_option,
    types_body,
)
from headgate.cli.admin.policies import (
    DEDUPLICATION_OPTIONS,
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
    older_quota_body,
    publish_rate_body,
    quota_body,
    rate_body,
    retention_body,
)
from headgate.cli.admin.producer_policies import message_size_verbs
from headgate.cli.admin.verbs import (
    TOPIC_NAME,
    TOPIC_PATH,
    Action,
    Parameter,
    Server,
    Values,
    Verb,
    option,
    send,
    show,
    switch,
)

APPLIED: Final = switch(
    "--applied -ap",
    "applied",
    "Show the value in force, not the one set here.",
)
OUR_APPLIED: Final = switch(
    "--applied -ap", "applied",
    "Show the value in force, not the one set here. Headgate only.",
    default=None,
)  # fmt: skip
"""Where Pulsar has no such option, it is sent only when it is given."""
GLOBAL: Final = switch(
    "--global -g", "isGlobal", "For all clusters; no effect, because there is one.",
    default=None,
)  # fmt: skip
SUBSCRIPTION: Final = option("--subscription -s", "subName", str, "Only this subscription.")

_PUBLISH_PATH: Final = f"{TOPIC_PATH}/publishRate"
_TOPIC_RATE: Final = "the dispatch limit of a topic"
_SUBSCRIPTION_RATE: Final = "the dispatch limit of each subscription of a topic"
_PUBLISH_RATE: Final = "the publish limit of a topic"
_DEDUPLICATION_PATH: Final = f"{TOPIC_PATH}/deduplicationEnabled"
_DEDUPLICATION: Final = "whether a topic stores no message twice"
_RETENTION: Final = "the retention of a topic's acknowledged messages"


def policy_verbs(
    name: str,
    path: str,
    body: Callable[[Values], Any],
    options: tuple[Parameter, ...],
    what: str,
    common: tuple[Parameter, ...] = (),
    applied: Parameter = APPLIED,
) -> tuple[Verb, ...]:
    """The three verbs of one policy of a topic; ``common`` are options that all three have,
    ``applied`` is one that only the first has."""
    query = ("isGlobal={isGlobal}",) if GLOBAL in common else ()
    get = show(path, query=(*query, "applied={applied}"))
    post, delete = send("POST", path, query, body), send("DELETE", path, query)
    return (
        Verb(f"get-{name}", f"Show {what}.", (TOPIC_NAME, applied, *common), get),
        Verb(f"set-{name}", f"Set {what}.", (TOPIC_NAME, *options, *common), post),
        Verb(f"remove-{name}", f"Remove {what}.", (TOPIC_NAME, *common), delete),
    )


def subscription_rate_verbs() -> tuple[Verb, ...]:
    """The verbs for all subscriptions of a topic, or for the one that ``--subscription`` names."""
    name, common = "subscription-dispatch-rate", (SUBSCRIPTION, GLOBAL)
    what = f"{_SUBSCRIPTION_RATE}, or of one"
    of_all, of_one = (
        policy_verbs(name, path, rate_body, RATE_OPTIONS, what, common)
        for path in (
            f"{TOPIC_PATH}/subscriptionDispatchRate",
            f"{TOPIC_PATH}/{{subName}}/dispatchRate",
        )
    )
    return tuple(
        Verb(all_.name, all_.summary, all_.parameters, _of_either(all_.run, one.run))
        for all_, one in zip(of_all, of_one, strict=True)
    )


def quota_verbs(
    get_name: str, body: Callable[[Values], Any], common: tuple[Parameter, ...] = ()
) -> tuple[Verb, ...]:
    """The three verbs of backlog quotas; ``common`` are options that all three have."""
    path = f"{TOPIC_PATH}/backlogQuota"
    query = ("isGlobal={isGlobal}",) if GLOBAL in common else ()
    of_type = (QUOTA_TYPE_QUERY, *query)
    get = show(f"{path}Map", as_quotas, (*query, "applied={applied}"))
    return (
        Verb(get_name, "Show a topic's backlog quotas.", (TOPIC_NAME, APPLIED, *common), get),
        Verb("set-backlog-quota", "Set a backlog quota of a topic.",
             (TOPIC_NAME, *QUOTA_OPTIONS, *common), send("POST", path, of_type, body)),
        Verb("remove-backlog-quota", "Remove a backlog quota of a topic.",
             (TOPIC_NAME, QUOTA_TYPE, *common), send("DELETE", path, of_type)),
    )  # fmt: skip


def count_verbs(names: Mapping[str, str], common: tuple[Parameter, ...] = ()) -> Iterator[Verb]:
    """The verbs of the limits on numbers. ``names`` are the policies, by the verbs' names for
    them; ``common`` are options that all verbs have."""
    for name, segment in names.items():
        options, what, applied = _COUNTS[segment]
        yield from policy_verbs(
            name, f"{TOPIC_PATH}/{segment}", count_body(segment),
            (count_option(options, segment, what),), f"the most {what}", common, applied,
        )  # fmt: skip


def number_verbs(
    name: str, segment: str, parameter: Parameter, what: str, common: tuple[Parameter, ...] = ()
) -> tuple[Verb, ...]:
    """The three verbs of a policy that is set by a query parameter instead of a body."""
    get, post, remove = policy_verbs(
        name, f"{TOPIC_PATH}/{segment}", _no_body, (parameter,), what, common
    )
    query = ("isGlobal={isGlobal}",) if GLOBAL in common else ()
    set_number = send(
        "POST", f"{TOPIC_PATH}/{segment}", (f"{segment}={{{parameter.label}}}", *query)
    )
    return get, Verb(post.name, post.summary, post.parameters, set_number), remove


def _no_body(_values: Values) -> None:
    return None


def _ending_verbs(common: tuple[Parameter, ...] = ()) -> Iterator[Verb]:
    """The verbs about what ends by itself, and about types of subscriptions and storing."""
    yield from number_verbs(
        "message-ttl", "messageTTL", ttl_option("--ttl -t"),
        "the age from which messages of a topic expire", common,
    )  # fmt: skip
    yield from policy_verbs(
        "inactive-topic-policies", f"{TOPIC_PATH}/inactiveTopicPolicies", inactive_body,
        INACTIVE_OPTIONS, "when a topic that is not used is deleted", common,
    )  # fmt: skip
    yield from policy_verbs(
        "subscription-types-enabled", f"{TOPIC_PATH}/subscriptionTypesEnabled", types_body,
        (TYPES_OPTION,), "the types of subscriptions that a topic may have", common, OUR_APPLIED,
    )  # fmt: skip
    yield from policy_verbs(
        "persistence", f"{TOPIC_PATH}/persistence", persistence_body, PERSISTENCE_OPTIONS,
        "how messages of a topic are stored", common,
    )  # fmt: skip


def _of_either(of_all: Action, of_one: Action) -> Action:
    def run(server: Server, values: Values) -> None:
        (of_one if values[SUBSCRIPTION.label] else of_all)(server, values)

    return run


_COUNTS: Final = MappingProxyType({
    "maxProducers": ("--max-producers -p", "producers of a topic", APPLIED),
    "maxConsumers": ("--max-consumers -c", "consumers of a topic", APPLIED),
    "maxConsumersPerSubscription": (
        "--max-consumers-per-subscription -c", "consumers of each subscription", OUR_APPLIED,
    ),
    "maxSubscriptionsPerTopic": (
        "--max-subscriptions-per-topic -s -m", "subscriptions of a topic", OUR_APPLIED,
    ),
    "maxUnackedMessagesOnConsumer": (
        "--maxNum -m", "unacknowledged messages of a shared consumer", APPLIED,
    ),
    "maxUnackedMessagesOnSubscription": (
        "--maxNum -m", "unacknowledged messages of a shared subscription", APPLIED,
    ),
})  # fmt: skip
"""Options, meaning and the switch for the value in force, by the policy in REST."""

OLDER_VERBS: Final = (
    *policy_verbs("dispatch-rate", f"{TOPIC_PATH}/dispatchRate", rate_body, RATE_OPTIONS,
                  _TOPIC_RATE),
    *policy_verbs("subscription-dispatch-rate", f"{TOPIC_PATH}/subscriptionDispatchRate",
                  rate_body, RATE_OPTIONS, _SUBSCRIPTION_RATE),
    *policy_verbs("publish-rate", _PUBLISH_PATH, publish_rate_body, PUBLISH_RATE_OPTIONS,
                  _PUBLISH_RATE, applied=OUR_APPLIED),
    *policy_verbs("retention", f"{TOPIC_PATH}/retention", retention_body, RETENTION_OPTIONS,
                  _RETENTION),
    *policy_verbs("deduplication", _DEDUPLICATION_PATH, deduplication_body, DEDUPLICATION_OPTIONS,
                  _DEDUPLICATION, applied=OUR_APPLIED),
    Verb("get-deduplication-enabled", f"Show {_DEDUPLICATION}; older name.", (TOPIC_NAME,),
         show(_DEDUPLICATION_PATH)),
    Verb("enable-deduplication", "Have a topic store no message twice; older name.", (TOPIC_NAME,),
         send("POST", _DEDUPLICATION_PATH, body=lambda _: True)),
    Verb("disable-deduplication", "Have a topic store every message; older name.", (TOPIC_NAME,),
         send("POST", _DEDUPLICATION_PATH, body=lambda _: False)),
    *quota_verbs("get-backlog-quotas", older_quota_body),
    *count_verbs({
        "maxProducers": "maxProducers",
        "max-producers": "maxProducers",
        "max-consumers": "maxConsumers",
        "max-consumers-per-subscription": "maxConsumersPerSubscription",
        "max-subscriptions": "maxSubscriptionsPerTopic",
        "max-unacked-messages-on-consumer": "maxUnackedMessagesOnConsumer",
        "max-unacked-messages-per-consumer": "maxUnackedMessagesOnConsumer",
        "max-unacked-messages-on-subscription": "maxUnackedMessagesOnSubscription",
        "max-unacked-messages-per-subscription": "maxUnackedMessagesOnSubscription",
    }),
    *_ending_verbs(),
    *message_size_verbs(),
)  # fmt: skip
"""As ``topics`` has them: without ``--global`` and ``--subscription``, and one other name."""

GROUP: Final = VerbGroup(
    "topicPolicies",
    "Manage policies of single topics. Those of a partitioned topic act on each partition.",
    (
        *policy_verbs("dispatch-rate", f"{TOPIC_PATH}/dispatchRate", rate_body, RATE_OPTIONS,
                      _TOPIC_RATE, (GLOBAL,)),
        *subscription_rate_verbs(),
        *policy_verbs("publish-rate", _PUBLISH_PATH, publish_rate_body, PUBLISH_RATE_OPTIONS,
                      _PUBLISH_RATE, (GLOBAL,), applied=OUR_APPLIED),
        *policy_verbs("retention", f"{TOPIC_PATH}/retention", retention_body, RETENTION_OPTIONS,
                      _RETENTION, (GLOBAL,)),
        *policy_verbs("deduplication", _DEDUPLICATION_PATH, deduplication_body,
                      DEDUPLICATION_OPTIONS, _DEDUPLICATION, (GLOBAL,)),
        *quota_verbs("get-backlog-quota", quota_body, (GLOBAL,)),
        *count_verbs({
            "max-producers": "maxProducers",
            "max-consumers": "maxConsumers",
            "max-consumers-per-subscription": "maxConsumersPerSubscription",
            "max-subscriptions-per-topic": "maxSubscriptionsPerTopic",
            "max-unacked-messages-per-consumer": "maxUnackedMessagesOnConsumer",
            "max-unacked-messages-per-subscription": "maxUnackedMessagesOnSubscription",
        }, (GLOBAL,)),
        *schemas.POLICY_VERBS,
        *_ending_verbs((GLOBAL,)),
        *policy_verbs("auto-subscription-creation", f"{TOPIC_PATH}/autoSubscriptionCreation",
                      subscription_creation_body, SUBSCRIPTION_CREATION_OPTIONS,
                      "whether a consumer creates its subscription", (GLOBAL,)),
        Verb("delete", "Remove all policies of a topic.", (TOPIC_NAME,),
             send("DELETE", f"{TOPIC_PATH}/policies")),
        *message_size_verbs((GLOBAL,)),
    ),
)  # fmt: skip

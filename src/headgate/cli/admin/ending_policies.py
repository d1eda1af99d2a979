"""Parameters of the policies about what ends by itself and what a client's use creates."""

from __future__ import annotations

from typing import Any, Final

import click

from headgate.cli.admin.errors import AdminUsageError
from headgate.cli.admin.values import int32, time_s
from headgate.cli.admin.verbs import Parameter, Values, option, switch

_MODES: Final = ("delete_when_no_subscriptions", "delete_when_subscriptions_caught_up")
_TOPIC_TYPES: Final = ("partitioned", "non-partitioned")
SUBSCRIPTION_TYPES: Final = ("Exclusive", "Shared", "Failover", "Key_Shared")


def ttl_option(names: str) -> Parameter:
    """The parameter of a message TTL."""
    return option(
        names, "messageTTL", time_s,
        "Age from which unacknowledged messages expire, such as 100m, 3h, 2d or 5w; a plain number "
        "is seconds. 0 is never.",
        required=True,
    )  # fmt: skip


EXPIRATION_OPTION: Final = option(
    "--time -t", "expirationTime", int32,
    "Minutes without a consumer after which a subscription is deleted; 0 is never.", required=True,
)  # fmt: skip


def delete_mode(text: str) -> str:
    """Which topics are inactive."""
    if text not in _MODES:
        raise click.BadParameter(f"delete mode can only be set to {' or '.join(_MODES)}")
    return text


INACTIVE_OPTIONS: Final = (
    switch("--enable-delete-while-inactive -e", "enableDeleteWhileInactive",
           "Delete inactive topics."),
    switch("--disable-delete-while-inactive -d", "disableDeleteWhileInactive",
           "Delete none."),
    option("--max-inactive-duration -t", "maxInactiveDuration", time_s,
           "How long a topic must be inactive, such as 10s, 1m, 5h or 3d; a plain number is "
           "seconds.", required=True),
    option("--delete-mode -m", "inactiveTopicDeleteMode", delete_mode,
           "delete_when_no_subscriptions: a topic with subscriptions is active; "
           "delete_when_subscriptions_caught_up: only one with a backlog.", required=True),
)  # fmt: skip
"""The parameters of the policies on inactive topics."""


def inactive_body(values: Values) -> dict[str, Any]:
    """The policies that ``INACTIVE_OPTIONS`` describe.

    Raises:
        AdminUsageError: neither or both of the switches are given.
    """
    enabled = _one_of_two(
        values["enableDeleteWhileInactive"], values["disableDeleteWhileInactive"],
        "Need to specify either enable-delete-while-inactive or disable-delete-while-inactive",
    )  # fmt: skip
    return {
        "inactiveTopicDeleteMode": values["inactiveTopicDeleteMode"],
        "maxInactiveDurationSeconds": values["maxInactiveDuration"],
        "deleteWhileInactive": enabled,
    }


def topic_type(text: str) -> str:
    """A type of topic."""
    if text.lower().strip() not in _TOPIC_TYPES:
        allowed = ", ".join(_TOPIC_TYPES)
        raise click.BadParameter(f"Topic type can only be one of: {allowed}")
    return text.lower().strip()


_ENABLE: Final = switch("--enable -e", "enable", "Allow it.")
_DISABLE: Final = switch("--disable -d", "disable", "Forbid it.")

TOPIC_CREATION_OPTIONS: Final = (
    _ENABLE,
    _DISABLE,
    option("--type -t", "type", topic_type, "partitioned or non-partitioned."),
    option("--num-partitions -n", "defaultNumPartitions", int32,
           "Partitions of a partitioned topic."),
)  # fmt: skip
"""The parameters of the policy on topics that a client's first use creates."""

SUBSCRIPTION_CREATION_OPTIONS: Final = (_ENABLE, _DISABLE)
"""The parameters of the policy on subscriptions that a consumer creates."""


def topic_creation_body(values: Values) -> dict[str, Any]:
    """The policy that ``TOPIC_CREATION_OPTIONS`` describe.

    Raises:
        AdminUsageError: what is given does not go together.
    """
    if not _allowed(values):
        return {"allowAutoTopicCreation": False}
    if values["type"] is None:
        raise AdminUsageError("Must specify type when auto-topic-creation is enabled")
    body = {"allowAutoTopicCreation": True, "topicType": values["type"]}
    partitions = values["defaultNumPartitions"]
    if values["type"] == "partitioned" and (partitions is None or partitions <= 0):
        raise AdminUsageError("Must specify num-partitions or num-partitions > 0 for partitioned "
                              "topic type.")  # fmt: skip
    if partitions is not None:
        body["defaultNumPartitions"] = partitions
    return body


def subscription_creation_body(values: Values) -> dict[str, Any]:
    """The policy that ``SUBSCRIPTION_CREATION_OPTIONS`` describe.

    Raises:
        AdminUsageError: neither or both of the switches are given.
    """
    return {"allowAutoSubscriptionCreation": _allowed(values)}


def subscription_types(text: str) -> list[str]:
    """Types of subscriptions, separated by commas."""
    found = [name.strip() for name in text.split(",")]
    for name in found:
        if name not in SUBSCRIPTION_TYPES:
            raise click.BadParameter(
                f"Illegal subscription type {name}. Possible values: "
                f"[{', '.join(SUBSCRIPTION_TYPES)}]."
            )
    return found


TYPES_OPTION: Final = option(
    "--types -t", "subTypes", subscription_types,
    f"Types that consumers may use, with commas between them: {', '.join(SUBSCRIPTION_TYPES)}.",
    required=True,
)  # fmt: skip


def types_body(values: Values) -> list[str]:
    """The types that ``TYPES_OPTION`` names."""
    return list(values["subTypes"])


def rate(text: str) -> float:
    """A number that is not below 0."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise click.BadParameter(f"'{text}' is not a number of 0 or more")
    return value


PERSISTENCE_OPTIONS: Final = (
    option("--bookkeeper-ensemble -e", "bookkeeperEnsemble", int32,
           "Bookies of a topic; only 1 is possible.", default="1"),
    option("--bookkeeper-write-quorum -w", "bookkeeperWriteQuorum", int32,
           "Copies of each entry; only 1 is possible.", default="1"),
    option("--bookkeeper-ack-quorum -a", "bookkeeperAckQuorum", int32,
           "Copies to wait for; only 1 is possible.", default="1"),
    option("--ml-mark-delete-max-rate -r", "managedLedgerMaxMarkDeleteRate", rate,
           "Most acknowledgement positions stored in a second; no effect, because each commit "
           "stores all.", default="0"),
)  # fmt: skip
"""The parameters of the policy on storing."""


def persistence_body(values: Values) -> dict[str, Any]:
    """The policy that ``PERSISTENCE_OPTIONS`` describe."""
    return {each.label: values[each.label] for each in PERSISTENCE_OPTIONS}


def _allowed(values: Values) -> bool:
    return _one_of_two(
        values["enable"], values["disable"], "Need to specify either enable or disable"
    )


def _one_of_two(first: bool, second: bool, problem: str) -> bool:
    if first == second:
        raise AdminUsageError(problem)
    return first

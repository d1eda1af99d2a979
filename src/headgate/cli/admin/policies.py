"""The policies that namespaces and topics have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from headgate.base.units import MIB, S_PER_MINUTE
from headgate.cli.admin.errors import AdminUsageError
from headgate.cli.admin.output import as_map, java_object
from headgate.cli.admin.values import int32, int64, size_bytes, time_s
from headgate.cli.admin.verbs import Parameter, Values, option, switch

NO_LIMIT: Final = -1
"""A rate that is not limited; a retention without end."""

QUOTA_TYPES: Final = ("destination_storage", "message_age")
QUOTA_POLICIES: Final = (
    "producer_request_hold", "producer_exception", "consumer_backlog_eviction",
)  # fmt: skip

SAYS_NOTHING: Final = (
    "Note: a policy without a rate above 0 has no effect, and the limit of the next level applies; "
    "--unlimited lifts that limit."
)

_UNLIMITED: Final = switch(
    "--unlimited", "unlimited",
    "Set no limit, even if the next level has one; takes no rates. Headgate only.",
)  # fmt: skip

RATE_OPTIONS: Final = (
    option(
        "--msg-dispatch-rate -md", "msgDispatchRate", int32,
        "Messages per period; -1 is no limit.", default=str(NO_LIMIT),
    ),
    option(
        "--byte-dispatch-rate -bd", "byteDispatchRate", int64,
        "Bytes per period, a plain number; -1 is no limit.", default=str(NO_LIMIT),
    ),
    option(
        "--dispatch-rate-period -dt", "dispatchRatePeriodSec", int32,
        "Length of a period in seconds.", default="1",
    ),
    switch(
        "--relative-to-publish-rate -rp", "relativeToPublishRate",
        "The limit is the publish rate plus these rates.",
    ),
    _UNLIMITED,
)  # fmt: skip
"""The parameters of a dispatch rate."""

PUBLISH_RATE_OPTIONS: Final = (
    option(
        "--msg-publish-rate -m", "msgPublishRate", int32,
        "Messages per second; -1 is no limit.", default=str(NO_LIMIT),
    ),
    option(
        "--byte-publish-rate -b", "bytePublishRate", int64,
        "Bytes per second, a plain number; -1 is no limit.", default=str(NO_LIMIT),
    ),
    _UNLIMITED,
)  # fmt: skip
"""The parameters of a publish rate."""

RETENTION_OPTIONS: Final = (
    option(
        "--time -t", "retentionTimeInSec", time_s,
        "How long to keep acknowledged messages, such as 100m, 3h, 2d or 5w; a plain number is "
        "seconds, rounded down to minutes. 0 keeps none, -1 keeps them for ever.",
        required=True,
    ),
    option(
        "--size -s", "sizeLimit", size_bytes,
        "How much of them to keep, such as 10M, 16G or 3T; a plain number is bytes, rounded down "
        "to MB. 0 keeps none, -1 keeps all.",
        required=True,
    ),
)  # fmt: skip
"""The parameters of a retention."""


def quota_policy(text: str) -> str:
    """The policies of a backlog quota, applied when it is exceeded."""
    return _one_of(text, QUOTA_POLICIES, "retention policy type")


def quota_type(text: str) -> str:
    """A type of backlog quota."""
    return _one_of(text, QUOTA_TYPES, "backlog quota type")


QUOTA_TYPE: Final = option(
    "--type -t", "backlogQuotaTypeStr", quota_type,
    "destination_storage limits the size of a backlog, message_age the age of its oldest message.",
    default=QUOTA_TYPES[0],
)  # fmt: skip
"""The type of backlog quota."""

QUOTA_TYPE_QUERY: Final = "backlogQuotaType={backlogQuotaTypeStr}"

QUOTA_OPTIONS: Final = (
    option("--limit -l", "limit", size_bytes,
           "Size limit, such as 10M or 16G; a plain number is bytes, a negative one no limit."),
    option("--limitTime -lt", "limitTimeInSec", time_s,
           "Age limit, such as 100m, 3h, 2d or 5w; a plain number is seconds, 0 or less no limit."),
    option("--policy -p", "policyStr", quota_policy,
           "Action at the limit: producer_request_hold, producer_exception or "
           "consumer_backlog_eviction.", required=True),
    QUOTA_TYPE,
)  # fmt: skip
"""The parameters of a backlog quota."""


DEDUPLICATION_OPTIONS: Final = (
    switch("--enable -e", "enable", "Store no message twice."),
    switch("--disable -d", "disable", "Store every message."),
)  # fmt: skip
"""The parameters of message deduplication."""


def deduplication_body(values: Values) -> bool:
    """What ``DEDUPLICATION_OPTIONS`` say.

    Raises:
        AdminUsageError: both or none of them is given.
    """
    if values["enable"] == values["disable"]:
        raise AdminUsageError("Need to specify either --enable or --disable")
    return bool(values["enable"])


def count_option(names: str, label: str, what: str) -> Parameter:
    """The parameter of a limit on a number of ``what``."""
    return option(names, label, int32, f"Number of {what}; 0 is no limit.", required=True)


def count_body(label: str) -> Callable[[Values], int]:
    """What makes a body of the parameter ``label``."""

    def body(values: Values) -> int:
        return int(values[label])

    return body


def rate_body(values: Values) -> dict[str, Any]:
    """The dispatch rate that ``RATE_OPTIONS`` describe.

    Raises:
        AdminUsageError: ``--unlimited`` together with a rate.
    """
    body = {
        "dispatchThrottlingRateInMsg": values["msgDispatchRate"],
        "dispatchThrottlingRateInByte": values["byteDispatchRate"],
        "relativeToPublishRate": values["relativeToPublishRate"],
        "ratePeriodInSecond": values["dispatchRatePeriodSec"],
    }
    rates = (values["msgDispatchRate"], values["byteDispatchRate"])
    excluded = "--msg-dispatch-rate, --byte-dispatch-rate and --relative-to-publish-rate"
    return _rates_or_unlimited(values, body, rates, excluded)


def publish_rate_body(values: Values) -> dict[str, Any]:
    """The publish rate that ``PUBLISH_RATE_OPTIONS`` describe.

    Raises:
        AdminUsageError: ``--unlimited`` together with a rate.
    """
    rates = (values["msgPublishRate"], values["bytePublishRate"])
    body = {"publishThrottlingRateInMsg": rates[0], "publishThrottlingRateInByte": rates[1]}
    return _rates_or_unlimited(values, body, rates, "--msg-publish-rate and --byte-publish-rate")


def retention_body(values: Values) -> dict[str, Any]:
    """The retention that ``RETENTION_OPTIONS`` describe, in whole minutes and megabytes."""
    age_s, limit_bytes = values["retentionTimeInSec"], values["sizeLimit"]
    return {
        "retentionTimeInMinutes": age_s if age_s == NO_LIMIT else age_s // S_PER_MINUTE,
        "retentionSizeInMB": limit_bytes if limit_bytes == NO_LIMIT else limit_bytes // MIB,
    }


def quota_body(values: Values) -> dict[str, Any]:
    """The backlog quota that ``QUOTA_OPTIONS`` describe: the limit of its type, and no other.

    Raises:
        AdminUsageError: that limit is missing.
    """
    size, age_s = values["limit"], values["limitTimeInSec"]
    if values["backlogQuotaTypeStr"] == "destination_storage":
        if size is None:
            raise AdminUsageError("Quota type of 'destination_storage' needs a size limit")
        return _quota(values, size, NO_LIMIT)
    if age_s is None:
        raise AdminUsageError("Quota type of 'message_age' needs a time limit")
    return _quota(values, NO_LIMIT, age_s)


def older_quota_body(values: Values) -> dict[str, Any]:
    """The same for the older verb, which sends both limits whatever the type."""
    limits = (values["limit"], values["limitTimeInSec"])
    return _quota(values, *(NO_LIMIT if limit is None else limit for limit in limits))


def as_quotas(value: Any) -> str:
    """Backlog quotas by their types as ``pulsar-admin`` prints them, one a line."""
    if not isinstance(value, dict):
        return as_map(value)
    return as_map({kind: java_object("BacklogQuotaImpl", one) for kind, one in value.items()})


def _rates_or_unlimited(
    values: Values, body: dict[str, Any], rates: tuple[int, int], excluded: str
) -> dict[str, Any]:
    """``body`` as it is sent; ``excluded`` are the options that --unlimited does not go with."""
    if not values["unlimited"]:
        if max(rates) <= 0:
            click.echo(SAYS_NOTHING, err=True)
        return body
    if rates != (NO_LIMIT, NO_LIMIT) or values.get("relativeToPublishRate"):
        raise AdminUsageError(f"--unlimited excludes {excluded}")
    # Pulsar does not know the field, so it is sent only when it has a value.
    return {**body, "unlimited": True}


def _quota(values: Values, size: int, age_s: int) -> dict[str, Any]:
    return {"limit": size, "limitSize": size, "limitTime": age_s, "policy": values["policyStr"]}


def _one_of(text: str, allowed: Sequence[str], what: str) -> str:
    if text not in allowed:
        options = ", ".join(allowed)
        raise AdminUsageError(f"Invalid {what} '{text}'. Valid options are: [{options}]")
    return text

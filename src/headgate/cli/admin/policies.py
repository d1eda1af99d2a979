"""The policies that namespaces and topics share: dispatch rates and retention."""

from __future__ import annotations

from typing import Any, Final

import click

from headgate.base.units import MIB, S_PER_MINUTE
from headgate.cli.admin.errors import AdminUsageError
from headgate.cli.admin.values import int32, int64, size_bytes, time_s
from headgate.cli.admin.verbs import Values, option, switch

NO_LIMIT: Final = -1
"""A rate that is not limited; a retention without end."""

SAYS_NOTHING: Final = (
    "Note: without a rate above 0 this limits nothing: the next wider level's limit applies; "
    "--unlimited is without limit."
)

RATE_OPTIONS: Final = (
    option(
        "--msg-dispatch-rate -md", "msgDispatchRate", int32,
        "Messages in a period; -1 does not limit them.", default=str(NO_LIMIT),
    ),
    option(
        "--byte-dispatch-rate -bd", "byteDispatchRate", int64,
        "Bytes in a period, a plain number; -1 does not limit them.", default=str(NO_LIMIT),
    ),
    option(
        "--dispatch-rate-period -dt", "dispatchRatePeriodSec", int32,
        "Length of a period in seconds.", default="1",
    ),
    switch(
        "--relative-to-publish-rate -rp", "relativeToPublishRate",
        "The limit is the publish rate plus these rates.",
    ),
    switch(
        "--unlimited", "unlimited",
        "No limit here, whatever wider levels say. Headgate's own; stands alone.",
    ),
)  # fmt: skip
"""What a dispatch rate is set with."""

RETENTION_OPTIONS: Final = (
    option(
        "--time -t", "retentionTimeInSec", time_s,
        "How long, such as 100m, 3h, 2d, 5w; seconds without a unit, whole minutes count. "
        "0: not at all, -1: without end.",
        required=True,
    ),
    option(
        "--size -s", "sizeLimit", size_bytes,
        "How much, such as 10M, 16G, 3T; bytes without a unit, whole MB count. "
        "0: nothing, -1: everything.",
        required=True,
    ),
)  # fmt: skip
"""What a retention is set with."""


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
    if not values["unlimited"]:
        if max(rates) <= 0:
            click.echo(SAYS_NOTHING, err=True)
        return body
    if rates != (NO_LIMIT, NO_LIMIT) or values["relativeToPublishRate"]:
        raise AdminUsageError(
            "--unlimited stands alone: without --msg-dispatch-rate, --byte-dispatch-rate and "
            "--relative-to-publish-rate"
        )
    # Pulsar does not know the field, so it is sent only when it says something.
    return {**body, "unlimited": True}


def retention_body(values: Values) -> dict[str, Any]:
    """The retention that ``RETENTION_OPTIONS`` describe, in whole minutes and megabytes."""
    age_s, limit_bytes = values["retentionTimeInSec"], values["sizeLimit"]
    return {
        "retentionTimeInMinutes": age_s if age_s == NO_LIMIT else age_s // S_PER_MINUTE,
        "retentionSizeInMB": limit_bytes if limit_bytes == NO_LIMIT else limit_bytes // MIB,
    }

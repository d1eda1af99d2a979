"""The verbs of ``headgate admin topics`` that act on subscriptions."""

from __future__ import annotations

import time
from typing import Any, Final

from headgate.base.units import MS_PER_S
from headgate.cli.admin.errors import AdminUsageError, RefusedError
from headgate.cli.admin.output import as_lines, as_map
from headgate.cli.admin.values import int64, merged, message_id, pairs, time_s
from headgate.cli.admin.verbs import (
    TOPIC_NAME,
    TOPIC_PATH,
    Server,
    Values,
    Verb,
    option,
    send,
    show,
    switch,
    target,
)

_PATH: Final = f"{TOPIC_PATH}/subscription/{{subName}}"
_NAME: Final = option("--subscription -s", "subName", str, "The subscription.", required=True)
_EXCLUDED: Final = switch(
    "--exclude-reset-position -e", "excludeResetPosition", "Begin after that message, not with it."
)
_AGE: Final = (
    "Age from which messages expire, such as 100m, 3h, 2d or 5w; a plain number is seconds."
)


def reset_cursor(server: Server, values: Values) -> None:
    """Move a subscription to a message, or back in time from now."""
    path = target(f"{_PATH}/resetcursor", values)
    if values["messageId"] is not None:
        body = place_body(values["messageId"], excluded=values["excludeResetPosition"])
        server.ask("POST", path, body)
    elif values["time"] is not None:
        at_ms = int(time.time() * MS_PER_S) - values["time"] * MS_PER_S
        server.ask("POST", f"{path}/{at_ms}")
    else:
        raise RefusedError(
            "Either Timestamp (--time) or messageId (--messageId) has to be provided to reset "
            "cursor"
        )


def expire_messages(server: Server, values: Values) -> None:
    """Expire messages by their age, or up to a message."""
    path = target(f"{_PATH}/expireMessages", values)
    age_s, place = values["expireTimeInSeconds"], values["messagePosition"]
    if age_s is not None and place is not None:
        raise AdminUsageError(
            "Can't expire message by time and by message position at the same time."
        )
    if age_s is not None:
        server.ask("POST", f"{path}/{age_s}")
    elif place is not None:
        partition = values["topicName"].partition
        server.ask(
            "POST", path, place_body(place, partition, excluded=values["excludeResetPosition"])
        )
    else:
        raise AdminUsageError(
            "Either time (--expireTime) or message position (--position) has to be provided to "
            "expire messages"
        )


def create_subscription(server: Server, values: Values) -> None:
    """Create a subscription at a message."""
    ledger_id, entry_id = values["messageId"]
    body: dict[str, Any] = {
        "ledgerId": ledger_id, "entryId": entry_id, "partitionIndex": -1, "batchIndex": -1,
        "batchSize": 0,
    }  # fmt: skip
    if values["property"]:
        properties = merged(values["property"])
        body = {**place_body(values["messageId"]), "properties": properties}
    server.ask("PUT", target(_PATH, values, ("replicated={replicated}",)), body)


def update_properties(server: Server, values: Values) -> None:
    """Replace the properties of a subscription, or remove them all."""
    properties = merged(values["properties"])
    if not properties and not values["clear"]:
        raise AdminUsageError("If you want to clear the properties you have to use --clear")
    if properties and values["clear"]:
        raise AdminUsageError("If you set --clear then you should not pass any property")
    server.ask("PUT", target(f"{_PATH}/properties", values), properties)


def set_replicated(server: Server, values: Values) -> None:
    """Switch the replication of a subscription on or off."""
    if values["enable"] == values["disable"]:
        raise AdminUsageError("Need to specify either --enable or --disable")
    path = target(f"{_PATH}/replicatedSubscriptionStatus", values)
    server.ask("POST", path, values["enable"])


def place_body(
    place: tuple[int, int], partition: int = -1, *, excluded: bool = False
) -> dict[str, Any]:
    """The JSON form of a position, with ledger and entry."""
    return {
        "ledgerId": place[0],
        "entryId": place[1],
        "partitionIndex": partition,
        "batchIndex": -1,
        "excluded": excluded,
    }


VERBS: Final = (
    Verb("subscriptions", "List a topic's subscriptions.", (TOPIC_NAME,),
         show(f"{TOPIC_PATH}/subscriptions", as_lines)),
    Verb(
        "create-subscription", "Create a subscription.",
        (
            TOPIC_NAME, _NAME,
            option("--messageId -m", "messageId", message_id,
                   "Where to begin: latest, earliest or ledgerId:entryId.", default="latest"),
            switch("--replicated -r", "replicated", "No effect: there is one cluster."),
            option("--property -p", "property", pairs, "A property, key=value; may be repeated.",
                   multiple=True),
        ),
        create_subscription,
    ),
    Verb("get-subscription-properties", "Show the properties of a subscription.",
         (TOPIC_NAME, _NAME), show(f"{_PATH}/properties")),
    Verb(
        "update-subscription-properties", "Replace the properties of a subscription.",
        (
            TOPIC_NAME, _NAME,
            option("--property -p", "properties", pairs, "A property, key=value; may be repeated.",
                   multiple=True),
            switch("--clear -c", "clear", "Remove all properties."),
        ),
        update_properties,
    ),
    Verb("get-replicated-subscription-status", "Show whether a subscription is replicated.",
         (TOPIC_NAME, _NAME), show(f"{_PATH}/replicatedSubscriptionStatus", as_map)),
    Verb(
        "set-replicated-subscription-status", "Switch the replication of a subscription off.",
        (
            TOPIC_NAME, _NAME,
            switch("--enable -e", "enable", "Refused: there is one cluster."),
            switch("--disable -d", "disable", "No replication."),
        ),
        set_replicated,
    ),
    Verb(
        "unsubscribe", "Delete a subscription without consumers.",
        (TOPIC_NAME, _NAME, switch("--force -f", "force", "Disconnect its consumers.")),
        send("DELETE", _PATH, ("force={force}",)),
    ),
    Verb(
        "skip", "Skip a number of messages.",
        (
            TOPIC_NAME, _NAME,
            option("--count -n", "numMessages", int64, "Number of messages.", required=True),
        ),
        send("POST", f"{_PATH}/skip/{{numMessages}}"),
    ),
    Verb("clear-backlog", "Skip the whole backlog.", (TOPIC_NAME, _NAME),
         send("POST", f"{_PATH}/skip_all")),
    Verb(
        "reset-cursor", "Move a subscription to a message, or back in time.",
        (
            TOPIC_NAME, _NAME,
            option("--time -t", "time", time_s,
                   "How far back from now, such as 100m, 3h, 2d or 5w; a plain number is seconds."),
            option("--messageId -m", "messageId", message_id,
                   "To this message: latest, earliest or ledgerId:entryId."),
            _EXCLUDED,
        ),
        reset_cursor,
    ),
    Verb(
        "expire-messages", "Expire messages by their age, or up to a message.",
        (
            TOPIC_NAME, _NAME,
            option("--expireTime -t", "expireTimeInSeconds", time_s, _AGE),
            option("--position -p", "messagePosition", message_id,
                   "Up to this message, ledgerId:entryId."),
            _EXCLUDED,
        ),
        expire_messages,
    ),
    Verb(
        "expire-messages-all-subscriptions", "Expire messages of all subscriptions by their age.",
        (
            TOPIC_NAME,
            option("--expireTime -t", "expireTimeInSeconds", time_s, _AGE, required=True),
        ),
        send("POST", f"{TOPIC_PATH}/all_subscription/expireMessages/{{expireTimeInSeconds}}"),
    ),
)  # fmt: skip
"""The verbs of ``topics`` for subscriptions."""

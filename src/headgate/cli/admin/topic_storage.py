"""The verbs of ``headgate admin topics`` about properties, and about what topics store."""

from __future__ import annotations

from typing import Any, Final

from headgate.cli.admin.output import as_lines, as_map
from headgate.cli.admin.subscriptions import place_body
from headgate.cli.admin.values import merged, message_id, names, pairs, size_bytes
from headgate.cli.admin.verbs import (
    TOPIC_NAME,
    TOPIC_PATH,
    Action,
    Server,
    Values,
    Verb,
    echo,
    option,
    send,
    show,
    switch,
    target,
)

_PROPERTIES: Final = f"{TOPIC_PATH}/properties"
_REPLICATION: Final = f"{TOPIC_PATH}/replication"
_SHADOW_PATH: Final = f"{TOPIC_PATH}/shadowTopics"
_WAIT: Final = switch("--wait-complete -w", "wait", "No effect: nothing runs.")


def backlog_size(server: Server, values: Values) -> None:
    """Print the bytes of a topic from a message on."""
    ledger_id, entry_id = values["messageId"]
    body = {"ledgerId": ledger_id, "entryId": entry_id, "partitionIndex": -1}
    echo(server.ask("PUT", target(f"{TOPIC_PATH}/backlogSize", values), body).text())


def analyze_backlog(server: Server, values: Values) -> None:
    """Print the counts of what a subscription has not acknowledged."""
    path = target(f"{TOPIC_PATH}/subscription/{{subName}}/analyzeBacklog", values)
    place = values["messagePosition"]
    body = None if place is None else place_body(place)
    answer = server.ask("POST", path, body)
    echo(as_map(answer.json()))


def status_of(segment: str, title: str) -> Action:
    """Print the state of a process of a topic in a sentence."""

    def run(server: Server, values: Values) -> None:
        status = (server.get(target(f"{TOPIC_PATH}/{segment}", values)) or {}).get("status")
        topic = values["topicName"]
        if status == "NOT_RUN":
            echo(f"{title} has not been run for {topic} since broker startup")
        else:
            echo(f"{title} of {topic}: {status}")

    return run


def _properties_body(values: Values) -> dict[str, Any]:
    return merged(values["property"])


VERBS: Final = (
    Verb("get-properties", "Show the properties of a topic.", (TOPIC_NAME,),
         show(_PROPERTIES)),
    Verb(
        "update-properties", "Add or replace properties of a topic.",
        (
            TOPIC_NAME,
            option("--property -p", "property", pairs, "A property, key=value; may be repeated.",
                   required=True, multiple=True),
        ),
        send("PUT", _PROPERTIES, body=_properties_body),
    ),
    Verb(
        "remove-properties", "Remove a property of a topic.",
        (TOPIC_NAME, option("--key -k", "key", str, "The property.", required=True)),
        send("DELETE", _PROPERTIES, ("key={key}",)),
    ),
    Verb(
        "get-backlog-size", "Print the bytes of a topic from a message on.",
        (
            TOPIC_NAME,
            option("--messageId -m", "messageId", message_id,
                   "The message, ledgerId:entryId; -1:-1 is the whole topic.", required=True),
        ),
        backlog_size,
    ),
    Verb(
        "analyze-backlog", "Count what a subscription has not acknowledged.",
        (
            TOPIC_NAME,
            option("--subscription -s", "subName", str, "The subscription.", required=True),
            option("--position -p", "messagePosition", message_id,
                   "Count from this message on: latest, earliest or ledgerId:entryId."),
        ),
        analyze_backlog,
    ),
    Verb("trim-topic", "Remove what neither a subscription nor retention needs.", (TOPIC_NAME,),
         send("POST", f"{TOPIC_PATH}/trim")),
    Verb("truncate", "Skip all messages of all subscriptions, and remove them.", (TOPIC_NAME,),
         send("DELETE", f"{TOPIC_PATH}/truncate")),
    Verb("info-internal", "Show a topic's ledgers and cursors as they are stored.", (TOPIC_NAME,),
         show(f"{TOPIC_PATH}/internal-info")),
    Verb("compact", "Always refused: there is no compaction.", (TOPIC_NAME,),
         send("PUT", f"{TOPIC_PATH}/compaction")),
    Verb("compaction-status", "Say that no compaction ran.", (TOPIC_NAME, _WAIT),
         status_of("compaction", "Compaction")),
    Verb(
        "offload", "Always refused: there is no offloading.",
        (
            TOPIC_NAME,
            option("--size-threshold -s", "sizeThreshold", size_bytes, "No effect."),
        ),
        send("PUT", f"{TOPIC_PATH}/offload"),
    ),
    Verb("offload-status", "Say that no offload ran.", (TOPIC_NAME, _WAIT),
         status_of("offload", "Offload")),
    Verb(
        "get-replication-clusters", "Show the clusters of a topic.",
        (TOPIC_NAME, switch("--applied -ap", "applied", "Those in force.")),
        show(_REPLICATION, as_lines, ("applied={applied}",)),
    ),
    Verb(
        "set-replication-clusters", "Set the clusters of a topic; only the broker's is accepted.",
        (TOPIC_NAME, option("--clusters -c", "clusters", names, "a,b", required=True)),
        send("POST", _REPLICATION, body=lambda values: values["clusters"]),
    ),
    Verb("remove-replication-clusters", "Remove the clusters of a topic; no effect.",
         (TOPIC_NAME,), send("DELETE", _REPLICATION)),
    Verb("get-shadow-topics", "Show a topic's shadow topics: none.", (TOPIC_NAME,),
         show(_SHADOW_PATH, as_lines)),
    Verb(
        "set-shadow-topics", "Always refused: there are no shadow topics.",
        (TOPIC_NAME, option("--topics -t", "topics", names, "a,b", required=True)),
        send("PUT", _SHADOW_PATH, body=lambda values: values["topics"]),
    ),
    Verb("remove-shadow-topics", "Remove a topic's shadow topics; no effect.", (TOPIC_NAME,),
         send("DELETE", _SHADOW_PATH)),
)  # fmt: skip
"""The verbs of ``topics`` for properties and storage."""

"""The verbs that terminate topics."""

from __future__ import annotations

from typing import Any, Final

from headgate.cli.admin.verbs import TOPIC_NAME, TOPIC_PATH, Server, Values, Verb, echo, target


def terminate(server: Server, values: Values) -> None:
    """Terminate a topic and print its last message id."""
    answer = server.ask("POST", target(f"{TOPIC_PATH}/terminate", values)).json() or {}
    echo(f"Topic successfully terminated at {_text(answer)}")


def partitioned_terminate(server: Server, values: Values) -> None:
    """Terminate all partitions of a topic and print the last message id of each."""
    answer = server.ask("POST", target(f"{TOPIC_PATH}/terminate/partitions", values)).json() or {}
    topic = values["topicName"]
    for index, last in answer.items():
        name = topic.partition_name(int(index)).full
        echo(f"Topic {name} is successfully terminated at {_text(last)}")


def _text(last: dict[str, Any]) -> str:
    return ":".join(str(last.get(key, -1)) for key in ("ledgerId", "entryId", "partitionIndex"))


VERBS: Final = (
    Verb("terminate", "Have a topic take no more messages, for good.", (TOPIC_NAME,), terminate),
    Verb("partitioned-terminate", "Have all partitions of a topic take no more messages, for good.",
         (TOPIC_NAME,), partitioned_terminate),
)  # fmt: skip

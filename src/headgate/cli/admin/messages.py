"""The verbs of ``headgate admin topics`` that show single messages."""

from __future__ import annotations

from typing import Final

from headgate.cli.admin.errors import RefusedError
from headgate.cli.admin.output import hex_dump
from headgate.cli.admin.values import instant_ms, int32, int64
from headgate.cli.admin.verbs import (
    TOPIC_NAME,
    TOPIC_PATH,
    Answer,
    Server,
    Values,
    Verb,
    echo,
    option,
    show,
    target,
)

_HEADER: Final = "x-pulsar-"
_NO_MORE: Final = "Message not found"
"""The broker's answer to a peek beyond the backlog."""
_RULE: Final = "-" * 73
_FIRST_LINES: Final = {"message-id": "Message ID", "publish-time": "Publish time"}


def get_message(server: Server, values: Values) -> None:
    """Print an entry: its id, its metadata and its bytes as the producer sent them."""
    path = target(f"{TOPIC_PATH}/ledger/{{ledgerId}}/entry/{{entryId}}", values)
    echo(_entry_text(server.ask("GET", path)))


def peek(server: Server, values: Values) -> None:
    """Print the oldest entries that a subscription has not acknowledged, up to a number."""
    path = f"{TOPIC_PATH}/subscription/{{subName}}/position/{{number}}"
    for number in range(1, values["numMessages"] + 1):
        try:
            answer = server.ask("GET", target(path, {**values, "number": number}))
        except RefusedError as refusal:
            if refusal.message != _NO_MORE:
                raise
            return
        if number > 1:
            echo(f"{_RULE}\n")
        echo(_entry_text(answer))


def examine(server: Server, values: Values) -> None:
    """Print one entry, counted from the first or the last one of a topic."""
    query = ("initialPosition={initialPosition}", "messagePosition={messagePosition}")
    path = target(f"{TOPIC_PATH}/examinemessage", values, query)
    echo(_entry_text(server.ask("GET", path)))


def _entry_text(answer: Answer) -> str:
    metadata = {
        name.lower().removeprefix(_HEADER): text
        for name, text in answer.headers.items()
        if name.lower().startswith(_HEADER)
    }
    lines = [f"{title}: {metadata.pop(name, '')}" for name, title in _FIRST_LINES.items()]
    lines += [f"{name}: {text}" for name, text in metadata.items()]
    return "\n".join([*lines, hex_dump(answer.body)])


VERBS: Final = (
    Verb("last-message-id", "Show the id of the last message.", (TOPIC_NAME,),
         show(f"{TOPIC_PATH}/lastMessageId")),
    Verb(
        "get-message-id", "Show the id of the first message since a time.",
        (
            TOPIC_NAME,
            option("--datetime -d", "datetime", instant_ms,
                   "The time, such as 2026-06-28T16:53:08Z.", required=True),
        ),
        show(f"{TOPIC_PATH}/messageid/{{datetime}}"),
    ),
    Verb(
        "get-message-by-id", "Show an entry, which may be a batch of messages.",
        (
            TOPIC_NAME,
            option("--ledgerId -l", "ledgerId", int64, "Its ledger.", required=True),
            option("--entryId -e", "entryId", int64, "Its number in the ledger.", required=True),
        ),
        get_message,
    ),
    Verb(
        "peek-messages", "Show the oldest entries of a subscription's backlog.",
        (
            TOPIC_NAME,
            option("--subscription -s", "subName", str, "The subscription.", required=True),
            option("--count -n", "numMessages", int32, "Number of entries.", default="1"),
        ),
        peek,
    ),
    Verb(
        "examine-messages", "Show an entry by its place in the topic.",
        (
            TOPIC_NAME,
            option("--initialPosition -i", "initialPosition", str,
                   "Where to count from: latest or earliest.", default="latest"),
            option("--messagePosition -m", "messagePosition", int64,
                   "Which entry from there, from 1 on.", default="1"),
        ),
        examine,
    ),
)  # fmt: skip
"""The verbs of ``topics`` for messages."""

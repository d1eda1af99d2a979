"""The verbs of ``headgate admin topics`` that show single messages."""

from __future__ import annotations

from typing import Final

from headgate.cli.admin.output import hex_dump
from headgate.cli.admin.values import instant_ms, int64
from headgate.cli.admin.verbs import (
    TOPIC_NAME,
    TOPIC_PATH,
    Server,
    Values,
    Verb,
    echo,
    option,
    show,
    target,
)

_HEADER: Final = "x-pulsar-"
_FIRST_LINES: Final = {"message-id": "Message ID", "publish-time": "Publish time"}


def get_message(server: Server, values: Values) -> None:
    """Print an entry: its id, its metadata and its bytes as the producer sent them."""
    answer = server.ask(
        "GET", target(f"{TOPIC_PATH}/ledger/{{ledgerId}}/entry/{{entryId}}", values)
    )
    metadata = {
        name.lower().removeprefix(_HEADER): text
        for name, text in answer.headers.items()
        if name.lower().startswith(_HEADER)
    }
    lines = [f"{title}: {metadata.pop(name, '')}" for name, title in _FIRST_LINES.items()]
    lines += [f"{name}: {text}" for name, text in metadata.items()]
    echo("\n".join([*lines, hex_dump(answer.body)]))


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
)  # fmt: skip
"""The verbs of ``topics`` for messages."""

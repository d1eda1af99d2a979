"""The verbs of the policies about what producers send."""

from __future__ import annotations

from typing import Any, Final

from headgate.cli.admin.errors import AdminUsageError
from headgate.cli.admin.values import int32
from headgate.cli.admin.verbs import (
    NAMESPACE_NAME,
    NAMESPACE_PATH,
    TOPIC_NAME,
    TOPIC_PATH,
    Parameter,
    Values,
    Verb,
    option,
    send,
    show,
    switch,
)


def _encryption(values: Values) -> Any:
    if values["enable"] == values["disable"]:
        raise AdminUsageError("Need to specify either enable or disable")
    return values["enable"]


_ENCRYPTION_PATH: Final = f"{NAMESPACE_PATH}/encryptionRequired"
_WHAT: Final = "whether producers of a namespace must encrypt messages"

NAMESPACE_VERBS: Final = (
    Verb("get-encryption-required", f"Show {_WHAT}.", (NAMESPACE_NAME,), show(_ENCRYPTION_PATH)),
    Verb(
        "set-encryption-required", f"Set {_WHAT}.",
        (
            NAMESPACE_NAME,
            switch("--disable -d", "disable", "They need not."),
            switch("--enable -e", "enable", "They must."),
        ),
        send("POST", _ENCRYPTION_PATH, body=_encryption),
    ),
)  # fmt: skip


def message_size_verbs(common: tuple[Parameter, ...] = ()) -> tuple[Verb, ...]:
    """The verbs of a topic's largest message; ``common`` are options that all of them have."""
    path, what = f"{TOPIC_PATH}/maxMessageSize", "the largest message of a topic"
    query = ("isGlobal={isGlobal}",) if common else ()
    size = option(
        "--max-message-size -m",
        "maxMessageSize",
        int32,
        "Bytes, metadata and payload; 0 is the broker's limit.",
        required=True,
    )
    return (
        Verb("get-max-message-size", f"Show {what}.", (TOPIC_NAME, *common),
             show(path, query=query)),
        Verb("set-max-message-size", f"Set {what}.", (TOPIC_NAME, size, *common),
             send("POST", path, query, lambda values: values["maxMessageSize"])),
        Verb("remove-max-message-size", f"Remove {what}.", (TOPIC_NAME, *common),
             send("DELETE", path, query)),
    )  # fmt: skip

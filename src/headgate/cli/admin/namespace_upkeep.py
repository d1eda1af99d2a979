"""The verbs of ``headgate admin namespaces`` about bundles, backlogs and properties."""

from __future__ import annotations

from typing import Any, Final

import click

from headgate.cli.admin.output import as_lines
from headgate.cli.admin.values import merged, names, pairs
from headgate.cli.admin.verbs import (
    NAMESPACE_NAME,
    NAMESPACE_PATH,
    Parameter,
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

_BUNDLE: Final = option("--bundle -b", "bundle", str, "Only this hash range, 0x..._0x...")
_NEEDED_BUNDLE: Final = option("--bundle -b", "bundle", str, "0x..._0x...", required=True)
_KEY: Final = option("--key -k", "key", str, "The property.", required=True)
_PROPERTIES: Final = f"{NAMESPACE_PATH}/properties"
_PROPERTY: Final = f"{NAMESPACE_PATH}/property/{{key}}"
_REPLICATION: Final = f"{NAMESPACE_PATH}/replication"


def _subscription(*, required: bool = False) -> Parameter:
    return option("--sub -s --subscription", "subscription", str, "Only this subscription.",
                  required=required)  # fmt: skip


def _within(values: Values, rest: str) -> str:
    """The path of a namespace, or of one bundle of it."""
    bundle = "/{bundle}" if values["bundle"] else ""
    return f"{NAMESPACE_PATH}{bundle}{rest}"


def unload(server: Server, values: Values) -> None:
    """Unload the topics of a namespace, or of one bundle."""
    query = ("destinationBroker={destinationBroker}",) if values["bundle"] else ()
    server.ask("PUT", target(_within(values, "/unload"), values, query))


def clear_backlog(server: Server, values: Values) -> None:
    """Skip backlogs, after a question."""
    if not values["force"]:
        click.confirm("Are you sure you want to clear the backlog?", abort=True)
    rest = "/clearBacklog/{subscription}" if values["subscription"] else "/clearBacklog"
    server.ask("POST", target(_within(values, rest), values))


def unsubscribe(server: Server, values: Values) -> None:
    """Delete a subscription of all topics."""
    server.ask("POST", target(_within(values, "/unsubscribe/{subscription}"), values))


def get_property(server: Server, values: Values) -> None:
    """Print the value of a property."""
    echo(server.ask("GET", target(_PROPERTY, values)).text() or "null")


def remove_property(server: Server, values: Values) -> None:
    """Remove a property and print its value."""
    echo(server.ask("DELETE", target(_PROPERTY, values)).text() or "null")


def _properties_body(values: Values) -> dict[str, Any]:
    return merged(values["properties"])


VERBS: Final = (
    Verb(
        "unload", "Close the topics of a namespace or of a hash range: clients reconnect.",
        (
            NAMESPACE_NAME, _BUNDLE,
            option("--destinationBroker -d", "destinationBroker", str, "Only this broker."),
        ),
        unload,
    ),
    Verb("split-bundle", "Always refused: one broker owns all hash ranges.",
         (NAMESPACE_NAME, _NEEDED_BUNDLE), send("PUT", f"{NAMESPACE_PATH}/{{bundle}}/split")),
    Verb(
        "clear-backlog", "Skip the backlogs of a namespace.",
        (
            NAMESPACE_NAME, _subscription(), _BUNDLE,
            switch("--force -force", "force", "Do not ask."),
        ),
        clear_backlog,
    ),
    Verb("unsubscribe", "Delete a subscription of all topics of a namespace.",
         (NAMESPACE_NAME, _subscription(required=True), _BUNDLE), unsubscribe),
    Verb("get-clusters", "Show the clusters of a namespace.", (NAMESPACE_NAME,),
         show(_REPLICATION, as_lines)),
    Verb(
        "set-clusters", "Set the clusters of a namespace; only the broker's is accepted.",
        (NAMESPACE_NAME, option("--clusters -c", "clusters", names, "a,b", required=True)),
        send("POST", _REPLICATION, body=lambda values: values["clusters"]),
    ),
    Verb("get-properties", "Show the properties of a namespace.", (NAMESPACE_NAME,),
         show(_PROPERTIES)),
    Verb(
        "set-properties", "Add or replace properties of a namespace.",
        (
            NAMESPACE_NAME,
            option("--properties -p", "properties", pairs, "Properties, a=a,b=b; may be repeated.",
                   required=True, multiple=True),
        ),
        send("PUT", _PROPERTIES, body=_properties_body),
    ),
    Verb("clear-properties", "Remove all properties of a namespace.", (NAMESPACE_NAME,),
         send("DELETE", _PROPERTIES)),
    Verb("get-property", "Show a property of a namespace.", (NAMESPACE_NAME, _KEY), get_property),
    Verb(
        "set-property", "Set a property of a namespace.",
        (NAMESPACE_NAME, _KEY, option("--value -v", "value", str, "Its value.", required=True)),
        send("PUT", f"{_PROPERTY}/{{value}}"),
    ),
    Verb("remove-property", "Remove a property of a namespace.", (NAMESPACE_NAME, _KEY),
         remove_property),
)  # fmt: skip
"""The verbs of ``namespaces`` for bundles, backlogs and properties."""

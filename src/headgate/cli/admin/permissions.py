"""Verbs about permissions: grants on namespaces and topics, and ``headgate admin permissions``."""

from __future__ import annotations

from typing import Final

import click

from headgate.cli.admin.command import VerbGroup
from headgate.cli.admin.output import as_map
from headgate.cli.admin.values import names
from headgate.cli.admin.verbs import (
    NAMESPACE_NAME,
    NAMESPACE_PATH,
    TOPIC_NAME,
    TOPIC_PATH,
    Parameter,
    Server,
    Values,
    Verb,
    argument,
    echo,
    option,
    send,
    show,
    target,
)

_ACTIONS: Final = ("produce", "consume", "functions", "sources", "sinks", "packages")
_MODES: Final = ("None", "Prefix")


def actions(text: str) -> list[str]:
    """Actions with commas between them."""
    found = names(text)
    for action in found:
        if action not in _ACTIONS:
            raise click.BadParameter(
                f"Illegal auth action '{action}'. Possible values: [{', '.join(_ACTIONS)}]"
            )
    return found


def auth_mode(text: str) -> str:
    """A mode of the names of subscriptions."""
    if text not in _MODES:
        raise click.BadParameter(f"'{text}' is not one of [{', '.join(_MODES)}]")
    return text


def _role_option(what: str) -> Parameter:
    return option("--role -r", "role", str, what, required=True)


_GRANTED: Final = (
    _role_option("Role to which permissions are granted."),
    option("--actions -a", "actions", actions, "What it may do: produce,consume.", required=True),
)
_REVOKED: Final = _role_option("Role whose permissions are revoked.")
_SUBSCRIPTION: Final = option(
    "--subscription -s", "subscription", str, "Name of the subscription.", required=True
)
_NAMESPACE: Final = f"{NAMESPACE_PATH}/permissions"
_TOPIC: Final = f"{TOPIC_PATH}/permissions"
_MODE: Final = f"{NAMESPACE_PATH}/subscriptionAuthMode"


NAMESPACE_VERBS: Final = (
    Verb("permissions", "Print the permissions granted on a namespace.", (NAMESPACE_NAME,),
         show(_NAMESPACE, as_map)),
    Verb("grant-permission", "Grant a role permissions on a namespace.",
         (NAMESPACE_NAME, *_GRANTED),
         send("POST", f"{_NAMESPACE}/{{role}}", body=lambda values: values["actions"])),
    Verb("revoke-permission", "Revoke the permissions of a role on a namespace.",
         (NAMESPACE_NAME, _REVOKED), send("DELETE", f"{_NAMESPACE}/{{role}}")),
    Verb("subscription-permission", "Print the roles that may use subscriptions of a namespace.",
         (NAMESPACE_NAME,), show(f"{_NAMESPACE}/subscription", as_map)),
    Verb("grant-subscription-permission", "Let only some roles use a subscription.",
         (
             NAMESPACE_NAME, _SUBSCRIPTION,
             option("--roles -rs", "roles", names, "Roles that may use it; a,b.", required=True),
         ),
         send("POST", f"{_NAMESPACE}/subscription/{{subscription}}",
              body=lambda values: values["roles"])),
    Verb("revoke-subscription-permission", "Remove one of the roles that may use a subscription.",
         (NAMESPACE_NAME, _SUBSCRIPTION, _role_option("Role that may use it no more.")),
         send("DELETE", f"{_NAMESPACE}/{{subscription}}/{{role}}")),
    Verb("get-subscription-auth-mode",
         "Show whether names of subscriptions must begin with a role.", (NAMESPACE_NAME,),
         show(_MODE)),
    Verb("set-subscription-auth-mode",
         "Set whether names of subscriptions must begin with the role of their consumers.",
         (
             NAMESPACE_NAME,
             option("--subscription-auth-mode -m", "authMode", auth_mode, "None or Prefix.",
                    required=True),
         ),
         send("POST", _MODE, body=lambda values: values["authMode"])),
)  # fmt: skip
"""Verbs of ``headgate admin namespaces``."""

TOPIC_VERBS: Final = (
    Verb("permissions", "Print the permissions granted on a topic and on its namespace.",
         (TOPIC_NAME,), show(_TOPIC, as_map)),
    Verb("grant-permission", "Grant a role permissions on a topic.", (TOPIC_NAME, *_GRANTED),
         send("POST", f"{_TOPIC}/{{role}}", body=lambda values: values["actions"])),
    Verb("revoke-permission", "Revoke the permissions of a role on a topic.",
         (TOPIC_NAME, _REVOKED), send("DELETE", f"{_TOPIC}/{{role}}")),
)  # fmt: skip
"""Verbs of ``headgate admin topics``."""


def check(server: Server, values: Values) -> None:
    """Print whether a role may perform an operation, and why."""
    query = tuple(
        f"{name}={{{label}}}"
        for name, label in (
            ("role", "role"), ("operation", "operation"), ("resource", "resource"),
            ("subscription", "subscription"), ("proxy", "proxy"),
        )
    )  # fmt: skip
    found = server.get(target("/admin/v2/headgate/permissions", values, query))
    if found:
        echo(f"{'allowed' if found['allowed'] else 'refused'}: {found['reason']}")


GROUP: Final = VerbGroup(
    "permissions",
    "Show what roles may do. Headgate's own.",
    (
        Verb(
            "check", "Show whether a role may perform an operation, and why.",
            (
                argument("role", str, "role of the client"),
                argument("operation", str, "an operation of docs/reference/permissions.md"),
                argument("resource", str, "persistent://tenant/namespace/topic, tenant/namespace, "
                         "a tenant, or '' for the broker"),
                option("--subscription -s", "subscription", str,
                       "Subscription that the operation concerns."),
                option("--proxy", "proxy", str, "Role of the proxy before the client."),
            ),
            check,
        ),
    ),
)  # fmt: skip

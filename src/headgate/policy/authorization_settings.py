"""The settings of authorization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headgate.policy.setting_info import setting

PROVIDER: Final = "org.apache.pulsar.broker.authorization.PulsarAuthorizationProvider"

EVERYBODY: Final = "*"
"""The role in a list of roles that stands for every client, also without credentials."""


@dataclass(slots=True)
class AuthorizationSettings:
    """Who may do what. The broker reads them when it starts."""

    authorizationEnabled: bool = setting(
        False,
        "Check for each command and request whether the client's role may do it. Needs "
        "authenticationEnabled. Without it every client may do everything.",
    )
    authorizationProvider: str = setting(
        PROVIDER, "Whose rules decide: those of Pulsar's own provider, which is the only one here."
    )
    superUserRoles: str = setting(
        "",
        "Roles that may do everything, with commas between them. Only they create tenants and "
        "change settings.",
    )
    authorizationAllowWildcardsMatching: bool = setting(
        False,
        "A granted role that begins or ends with * stands for every role that has its other part "
        "at the same end.",
    )
    allowAclChangesOnNonExistentTopics: bool = setting(
        False,
        "Permissions may be granted on a topic that does not exist, and stay when it is deleted.",
    )
    headgateMetricsRoles: str = setting(
        "",
        "Roles that may read /metrics beside the super users, with commas between them. The page "
        "names all topics. * is every client, also without credentials.",
    )


def roles_of(text: str) -> frozenset[str]:
    """The roles in a list with commas; blanks around them do not count."""
    return frozenset(filter(None, (role.strip() for role in text.split(","))))


def authorization_problems(
    settings: AuthorizationSettings, *, authentication_enabled: bool
) -> list[str]:
    """A sentence for each reason for which a broker must not start."""
    problems = []
    if settings.authorizationEnabled and not authentication_enabled:
        problems.append(
            "authorizationEnabled=true is not allowed without authenticationEnabled=true: without "
            "authentication no client has a role"
        )
    if settings.authorizationEnabled and settings.authorizationProvider != PROVIDER:
        problems.append(
            f"authorizationProvider={settings.authorizationProvider!r} is not allowed; use "
            f"{PROVIDER}: the broker has no other rules"
        )
    return problems


def authorization_warning(settings: AuthorizationSettings, *, authentication_enabled: bool) -> str:
    """What the operator must know about a broker that starts; empty if there is nothing."""
    if authentication_enabled and not settings.authorizationEnabled:
        return (
            "authenticationEnabled=true without authorizationEnabled=true: every client with valid "
            "credentials may do everything, also delete all topics"
        )
    if settings.authorizationEnabled and not roles_of(settings.superUserRoles):
        return (
            "authorizationEnabled=true without superUserRoles: no client may create tenants, "
            "change settings or read the health of the broker"
        )
    return ""

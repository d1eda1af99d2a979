"""The settings of authorization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headgate.policy.authentication_settings import AuthenticationSettings
from headgate.policy.setting_info import names_of, setting

PROVIDER: Final = "org.apache.pulsar.broker.authorization.PulsarAuthorizationProvider"

EVERYBODY: Final = "*"
"""The role in a list of roles that stands for every client, also without credentials."""


@dataclass(slots=True)
class AuthorizationSettings(AuthenticationSettings):
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


def authorization_problems(settings: AuthorizationSettings) -> list[str]:
    """A sentence for each reason for which a broker must not start."""
    problems = []
    if settings.authorizationEnabled and not settings.authenticationEnabled:
        problems.append(
            "authorizationEnabled=true is not allowed without authenticationEnabled=true: without "
            "authentication no client has a role"
        )
    if settings.authorizationEnabled and settings.authorizationProvider != PROVIDER:
        problems.append(
            f"authorizationProvider={settings.authorizationProvider!r} is not allowed; use "
            f"{PROVIDER}: the broker has no other rules"
        )
    if settings.anonymousUserRole in names_of(settings.superUserRoles):
        problems.append(
            f"anonymousUserRole={settings.anonymousUserRole!r} is one of superUserRoles: a client "
            "without credentials could do everything"
        )
    return problems


def everybody_may_do_everything(settings: AuthorizationSettings) -> bool:
    """Whether a client without credentials is served, and nothing asks what it may do."""
    is_served = not settings.authenticationEnabled or bool(settings.anonymousUserRole)
    return is_served and not settings.authorizationEnabled


def authorization_warning(settings: AuthorizationSettings) -> str:
    """What the operator must know about a broker that starts; empty if there is nothing."""
    if settings.authenticationEnabled and everybody_may_do_everything(settings):
        return (
            f"anonymousUserRole={settings.anonymousUserRole!r} without authorizationEnabled=true: "
            "every client, also without credentials, may do everything"
        )
    if settings.authenticationEnabled and not settings.authorizationEnabled:
        return (
            "authenticationEnabled=true without authorizationEnabled=true: every client with valid "
            "credentials may do everything, also delete all topics"
        )
    if settings.authorizationEnabled and not names_of(settings.superUserRoles):
        return (
            "authorizationEnabled=true without superUserRoles: no client may create tenants, "
            "change settings or read the health of the broker"
        )
    return ""

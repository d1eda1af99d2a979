"""Settings of authorization."""

from __future__ import annotations

from headgate.policy.authorization_settings import (
    authorization_problems,
    authorization_warning,
    everybody_may_do_everything,
)
from headgate.policy.settings import SETTINGS, Settings


def test_they_are_settings_of_the_broker_and_off_by_default() -> None:
    settings = Settings()
    assert not settings.authorizationEnabled
    assert settings.superUserRoles == ""
    assert not SETTINGS["superUserRoles"].dynamic
    settings.set("authorizationAllowWildcardsMatching", "true")
    assert settings.authorizationAllowWildcardsMatching


def test_authorization_without_authentication_is_a_problem() -> None:
    settings = Settings(authorizationEnabled=True)
    (problem,) = authorization_problems(settings)
    assert "without authenticationEnabled=true" in problem
    settings.authenticationEnabled = True
    assert authorization_problems(settings) == []
    assert authorization_problems(Settings()) == []


def test_the_rules_of_another_provider_are_a_problem_if_they_should_decide() -> None:
    settings = Settings(authenticationEnabled=True, authorizationProvider="com.example.Mine")
    assert authorization_problems(settings) == []
    settings.authorizationEnabled = True
    (problem,) = authorization_problems(settings)
    assert "authorizationProvider='com.example.Mine' is not allowed; use org.apache" in problem


def test_a_client_without_credentials_may_not_be_a_super_user() -> None:
    (problem,) = authorization_problems(
        Settings(superUserRoles="root, any", anonymousUserRole="any")
    )
    assert "anonymousUserRole='any' is one of superUserRoles" in problem
    assert authorization_problems(Settings(superUserRoles="root")) == []


def test_what_is_open_or_closed_by_mistake_has_a_warning() -> None:
    assert "may do everything" in authorization_warning(Settings(authenticationEnabled=True))
    assert authorization_warning(Settings()) == ""
    anonymous = Settings(authenticationEnabled=True, anonymousUserRole="guest")
    assert "also without credentials, may do everything" in authorization_warning(anonymous)
    alone = Settings(authenticationEnabled=True, authorizationEnabled=True)
    assert "without superUserRoles" in authorization_warning(alone)
    alone.superUserRoles = "root"
    assert authorization_warning(alone) == ""


def test_an_anonymous_role_without_authorization_is_as_no_authentication() -> None:
    """A request without credentials created a tenant, and the broker listened on all addresses."""
    assert everybody_may_do_everything(Settings())
    guest = Settings(authenticationEnabled=True, anonymousUserRole="guest")
    assert everybody_may_do_everything(guest)
    guest.authorizationEnabled = True
    assert not everybody_may_do_everything(guest)
    assert not everybody_may_do_everything(Settings(authenticationEnabled=True))

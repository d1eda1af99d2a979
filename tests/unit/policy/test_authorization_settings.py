"""Settings of authorization."""

from __future__ import annotations

from headgate.policy.authorization_settings import (
    authorization_problems,
    authorization_warning,
    roles_of,
)
from headgate.policy.settings import SETTINGS, Settings


def test_they_are_settings_of_the_broker_and_off_by_default() -> None:
    settings = Settings()
    assert not settings.authorizationEnabled
    assert settings.superUserRoles == ""
    assert not SETTINGS["superUserRoles"].dynamic
    settings.set("authorizationAllowWildcardsMatching", "true")
    assert settings.authorizationAllowWildcardsMatching


def test_roles_are_separated_by_commas() -> None:
    assert roles_of(" a , b,,c d ") == {"a", "b", "c d"}
    assert roles_of("") == frozenset()


def test_authorization_without_authentication_is_a_problem() -> None:
    settings = Settings(authorizationEnabled=True)
    (problem,) = authorization_problems(settings, authentication_enabled=False)
    assert "without authenticationEnabled=true" in problem
    assert authorization_problems(settings, authentication_enabled=True) == []
    assert authorization_problems(Settings(), authentication_enabled=False) == []


def test_the_rules_of_another_provider_are_a_problem_if_they_should_decide() -> None:
    settings = Settings(authorizationProvider="com.example.Mine")
    assert authorization_problems(settings, authentication_enabled=True) == []
    settings.authorizationEnabled = True
    (problem,) = authorization_problems(settings, authentication_enabled=True)
    assert "authorizationProvider='com.example.Mine' is not allowed; use org.apache" in problem


def test_what_is_open_or_closed_by_mistake_has_a_warning() -> None:
    assert "may do everything" in authorization_warning(Settings(), authentication_enabled=True)
    assert authorization_warning(Settings(), authentication_enabled=False) == ""
    alone = Settings(authorizationEnabled=True)
    assert "without superUserRoles" in authorization_warning(alone, authentication_enabled=True)
    alone.superUserRoles = "root"
    assert authorization_warning(alone, authentication_enabled=True) == ""

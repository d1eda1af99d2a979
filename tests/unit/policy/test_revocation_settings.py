"""Settings that revoke: they need somebody to be revoked."""

from __future__ import annotations

import pytest

from headgate.policy.revocation_settings import revocation_problems
from headgate.policy.settings import Settings, inconsistencies


@pytest.mark.parametrize(
    "name", ["headgateRevokedRoles", "headgateRevokedTokenIds", "headgateRevocationFile"]
)
def test_a_revocation_needs_authentication(name: str) -> None:
    (problem,) = revocation_problems(Settings(**{name: "a"}))
    assert problem.startswith(f"{name} needs authenticationEnabled=true")
    assert problem in inconsistencies(Settings(**{name: "a"}))
    assert not revocation_problems(Settings(**{name: "a"}, authenticationEnabled=True))
    assert not revocation_problems(Settings())

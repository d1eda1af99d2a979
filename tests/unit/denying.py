"""An authorizer that says no, and knows what it was asked."""

from __future__ import annotations

from headgate.base.identity import Identity
from headgate.policy.access_law import Decision


class Deny:
    """Allows nothing and remembers what it was asked: role, operation, resource, subscription."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str, str]] = []

    def decide(
        self, identity: Identity, operation: str, resource: str, subscription: str = ""
    ) -> Decision:
        self.asked.append((identity.text, operation, resource, subscription))
        return Decision(False, "this test allows nothing")

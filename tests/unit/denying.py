"""An authorizer that says no, and knows what it was asked."""

from __future__ import annotations


class Deny:
    """Allows nothing and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []

    def allows(self, role: str, operation: str, resource: str) -> bool:
        self.asked.append((role, operation, resource))
        return False

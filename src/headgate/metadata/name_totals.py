"""Counts what the names in grants and policies take, by tenant, and bounds it.

These are roles, and subscriptions with roles or dispatch rates of their own. Each row has a bound,
but a tenant has tens of thousands of rows, and a short role takes ten times its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from headgate.base.units import MIB
from headgate.metadata.grants import NamespaceGrants, SubscriptionGrants, TopicGrants
from headgate.metadata.policies import TopicPolicies
from headgate.metadata.rows import Row
from headgate.metadata.tenant_totals import TenantTotals

NAMES_OF_TENANT_BYTES_MAX: Final = 64 * MIB
"""The names in all grants and policies of a tenant: 300,000 short roles."""

NAME_BYTES: Final = 200
"""What a name takes beside its characters, at most: its object, its place in a table, and what is
granted to it, or its rate."""

ROW_BYTES: Final = 600
"""What a row with grants takes beside its key and its names."""

_WIDE_CHARACTER_BYTES: Final = 8
"""A character of a text that is not ASCII takes up to 4 bytes, and as many in its UTF-8, which is
kept, too. Its own width is not worth a look: there are thousands in a row."""


class NameTotals(TenantTotals):
    """Bytes of names by tenant."""

    what: ClassVar = "The roles and subscriptions in the grants and policies"

    @property
    def bytes_max(self) -> int:
        return NAMES_OF_TENANT_BYTES_MAX

    def bytes_of(self, key: str, row: Row | None) -> int:
        if isinstance(row, NamespaceGrants | TopicGrants | SubscriptionGrants):
            return ROW_BYTES + _text_bytes(key) + _names_bytes(row.roles)
        if isinstance(row, TopicPolicies) and row.dispatch_rate_by_subscription:
            return _names_bytes(row.dispatch_rate_by_subscription)
        return 0


def _names_bytes(names: Iterable[str]) -> int:
    return sum([NAME_BYTES + _text_bytes(name) for name in names])


def _text_bytes(text: str) -> int:
    return len(text) if text.isascii() else _WIDE_CHARACTER_BYTES * len(text)

"""What takes a right away from a role, and what the right allowed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from tests.sim.rightsim.stage import NAMESPACE, OTHER, PROXY, ROLE, TOKEN_ID


class Part(Enum):
    """A part of what a right allows."""

    SUBSCRIPTIONS = auto()
    """To consume, and to change subscriptions."""
    PUBLISHING = auto()
    """To produce, and to change schemas."""
    TOPICS = auto()
    """To create topics."""


ALL: Final = frozenset(Part)
BASE: Final = f"/admin/v2/namespaces/{NAMESPACE}"
NAMES: Final = ("s", "t", "u")
"""The subscriptions."""


@dataclass(frozen=True)
class Verb:
    """A request that takes a right away."""

    name: str
    method: str
    path: str
    body: object = None
    lost: frozenset[Part] = ALL
    subscriptions: tuple[str, ...] = NAMES
    """The right to use these ends, if that of subscriptions does."""
    behind: str = ""
    """The proxy behind which the role is."""
    is_admin: bool = False
    """The role is an administrator, and has no grant."""
    ends_connections: bool = False
    """It is in force for commands when it has ended the connections of the role."""


VERBS: Final = (
    Verb("a grant is revoked", "DELETE", f"{BASE}/permissions/{ROLE}"),
    Verb("an administrator is dismissed", "POST", "/admin/v2/tenants/acme",
         {"adminRoles": [], "allowedClusters": ["standalone"]}, is_admin=True),
    Verb("a token is revoked", "POST",
         f"/admin/v2/brokers/configuration/headgateRevokedTokenIds/{TOKEN_ID}",
         ends_connections=True),
    Verb("a proxy's grant is revoked", "DELETE", f"{BASE}/permissions/{PROXY}", behind=PROXY),
    Verb("a grant loses an action", "POST", f"{BASE}/permissions/{ROLE}", ["produce"],
         frozenset({Part.SUBSCRIPTIONS})),
    Verb("a grant loses the other action", "POST", f"{BASE}/permissions/{ROLE}", ["consume"],
         frozenset({Part.PUBLISHING})),
    Verb("a subscription is given to others", "POST", f"{BASE}/permissions/subscription/s",
         [OTHER], frozenset({Part.SUBSCRIPTIONS}), subscriptions=("s",)),
    Verb("subscriptions need the prefix of their role", "POST", f"{BASE}/subscriptionAuthMode",
         "Prefix", frozenset({Part.SUBSCRIPTIONS})),
)  # fmt: skip

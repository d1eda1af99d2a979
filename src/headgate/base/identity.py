"""Who asks for something: the role that authentication found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Identity:
    """A client, as authorization and the audit log know it."""

    role: str
    """The role of the client's own credentials; empty without authentication."""
    original_role: str = ""
    """For whom a proxy with ``role`` asks (``original_principal``); empty if it is no proxy."""

    @property
    def text(self) -> str:
        """The client in a log line or a sentence."""
        return f"{self.original_role} through {self.role}" if self.original_role else self.role


NOBODY = Identity("")
"""A client without authentication."""


SCOPE_KEY: Final = "headgate.identity"
"""Where the scope of an HTTP request (ASGI) has the :class:`Identity` of its client."""


LAPSE_KEY: Final = "headgate.why_lapsed"
"""Where the scope of a request has what tells why its client's credentials do not count any more;
empty if they do."""


def identity_of(scope: Mapping[str, Any]) -> Identity:
    """Who sent an HTTP request; nobody unless an authentication before found somebody."""
    found: Identity = scope.get(SCOPE_KEY, NOBODY)
    return found


def client_host(scope: Mapping[str, Any]) -> str:
    """The address from which an HTTP request came; empty if it is unknown."""
    return str((scope.get("client") or ("",))[0])


def why_lapsed(scope: Mapping[str, Any]) -> str:
    """Why the credentials of a request, which were good when its head came, do not count any more:
    they have expired, or were revoked. Empty if they do, or none were asked for."""
    found: Callable[[], str] = scope.get(LAPSE_KEY, _never)
    return found()


def _never() -> str:
    return ""

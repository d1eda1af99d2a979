"""What a client presents, who it is by that, and the protocol of what finds it out."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client presents in CONNECT or with a request."""

    method: str
    """Pulsar's name of the method (``auth_method_name``): ``token``, ``basic``, ``tls``."""
    data: bytes = field(default=b"", repr=False)
    """``auth_data``: the token, or ``user:password``."""
    certificate: Mapping[str, Any] | None = None
    """The client's certificate, verified by TLS, as :meth:`ssl.SSLSocket.getpeercert` gives it."""
    address: str = ""
    """The client's address without its port; for logs and for the limit of failed attempts."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who a client is, by its credentials."""

    role: str
    expires_s: float | None = None
    """When the credentials lapse, in seconds since the epoch; None: never."""
    token_id: str = ""
    """The claim ``jti`` of a token; empty without one."""


ROLE_CHARACTERS_MAX: Final = 1_000


def is_role(text: str) -> bool:
    """Whether a text may be a role: it is not empty, each character is visible or a space, and no
    space is at an end. So a role stays within its line of a log, and can be written into a list of
    revocations, whose names have none there."""
    is_trimmed = bool(text) and text == text.strip()
    return is_trimmed and len(text) <= ROLE_CHARACTERS_MAX and text.isprintable()


class Provider(Protocol):
    """One way to authenticate, of Pulsar's ``authenticationProviders``."""

    method: str
    """The method of the credentials that it takes."""

    def principal(self, credentials: Credentials, now_s: float) -> Principal | Awaitable[Principal]:
        """Who presents ``credentials`` at ``now_s``, in seconds since the epoch; an awaitable only
        if that takes long or needs another server.

        Raises:
            CredentialsError: nobody, with the reason for the operator.
        """

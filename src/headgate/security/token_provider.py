"""Authentication by tokens, as Pulsar's ``AuthenticationProviderToken``."""

from __future__ import annotations

from headgate.security.provider import Credentials, Principal
from headgate.security.tokens import TokenVerifier


class TokenProvider:
    """Takes the token that a client sends as it is."""

    def __init__(self, verifier: TokenVerifier) -> None:
        self.method = "token"
        self._verifier = verifier

    def principal(self, credentials: Credentials, now_s: float) -> Principal:
        return self._verifier.principal(credentials.data, now_s)

"""Tokens of tests, and a provider that takes them."""

from __future__ import annotations

from typing import Any

from headgate.security.token_keys import secret_key
from headgate.security.token_provider import TokenProvider
from headgate.security.tokens import TokenVerifier, new_token

KEY = secret_key(b"0123456789abcdef" * 2, "k")


def token_of(role: str, expires_s: float | None = None, **claims: Any) -> bytes:
    """A token for ``role`` that lapses at ``expires_s``."""
    lapses = {} if expires_s is None else {"exp": expires_s}
    return new_token(KEY, {"sub": role, **lapses, **claims}, {}).encode()


def token_provider() -> TokenProvider:
    """Takes such tokens."""
    return TokenProvider(TokenVerifier([KEY]))

"""The provider of tokens."""

from __future__ import annotations

import pytest

from headgate.security.errors import CredentialsError
from headgate.security.provider import Credentials, Principal
from headgate.security.token_keys import secret_key
from headgate.security.token_provider import TokenProvider
from headgate.security.tokens import TokenVerifier, new_token

KEY = secret_key(b"0123456789abcdef" * 2, "k")
NOW_S = 1_800_000_000.0


def test_it_takes_what_its_verifier_takes() -> None:
    provider = TokenProvider(TokenVerifier([KEY]))
    assert provider.method == "token"
    token = new_token(KEY, {"sub": "ann", "exp": NOW_S + 5, "jti": "7"}, {}).encode()
    found = provider.principal(Credentials("token", token), NOW_S)
    assert found == Principal("ann", NOW_S + 5, "7")
    with pytest.raises(CredentialsError, match="expired"):
        provider.principal(Credentials("token", token), NOW_S + 5)

"""Why a key or a credential is not accepted. No text repeats a secret."""

from __future__ import annotations

from headgate.base.errors import HeadgateError, InputError


class InvalidKeyError(InputError):
    """A key cannot be read or must not be used: the text names the setting or option."""


class CredentialsError(HeadgateError):
    """A client's credentials are not accepted. The text is for the operator: a client must not
    learn from it what is right about its guess."""


class UncheckedCredentialsError(CredentialsError):
    """They were not checked, because too many others are or because too many failed before. They
    may be good: the client should try again later."""


class OriginalPrincipalError(CredentialsError):
    """A client speaks for another one and may not, or is a proxy and does not say for whom. The
    text has roles only, so the client may see it."""

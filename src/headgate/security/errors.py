"""Why a key or a credential is not accepted. No text repeats a secret."""

from __future__ import annotations

from headgate.base.errors import HeadgateError, InputError


class InvalidKeyError(InputError):
    """A key cannot be read or must not be used: the text names the setting or option."""


class InvalidCertificateError(InputError):
    """A certificate or its file cannot be used: the text names the setting or option."""


class CredentialsError(HeadgateError):
    """A client's credentials are not accepted. The text is for the operator: a client must not
    learn from it what is right about its guess."""

"""Files of passwords as ``htpasswd`` writes them, with bcrypt or ``$apr1$``.

They are what Pulsar's ``AuthenticationProviderBasic`` reads. A password is checked in about 50 ms
with bcrypt: call :meth:`PasswordFile.principal` from another thread than the event loop's.
"""

from __future__ import annotations

import hmac
from typing import Final

import bcrypt

from headgate.security.apr1 import PREFIX, apr1
from headgate.security.errors import CredentialsError, InvalidKeyError
from headgate.security.provider import Principal, is_role

CREDENTIALS_BYTES_MAX: Final = 1_024
BCRYPT_BYTES_MAX: Final = 72
"""bcrypt looks at no more bytes of a password, and newer versions refuse longer ones."""

_BCRYPT: Final = ("$2y$", "$2a$", "$2b$")
_NOBODY: Final = bcrypt.hashpw(b"nobody", bcrypt.gensalt(4))


class PasswordFile:
    """Names with the hashes of their passwords."""

    def __init__(self, hashes: dict[str, str]) -> None:
        self._hashes = hashes
        # An unknown name takes as long as a known one: the cost of some entry stands for it.
        known = next((h for h in hashes.values() if h.startswith(_BCRYPT)), None)
        self._stand_in = known or next(iter(hashes.values()), _NOBODY.decode())

    def __len__(self) -> int:
        return len(self._hashes)

    @classmethod
    def parsed(cls, text: str, what: str) -> PasswordFile:
        """The content of a file; ``what`` names the setting in errors.

        Raises:
            InvalidKeyError: a line is no ``name:hash``, or has a hash of another scheme.
        """
        hashes: dict[str, str] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            name, colon, hashed = line.strip().partition(":")
            if not colon or not name:
                raise InvalidKeyError(f"{what}: line {number} is no name:hash")
            if not is_role(name):
                raise InvalidKeyError(f"{what}: the name in line {number} is no role")
            if not (_is_bcrypt(hashed) or _is_apr1(hashed)):
                raise InvalidKeyError(
                    f"{what}: line {number} has neither bcrypt nor $apr1$: make it with htpasswd -B"
                )
            if name in hashes:
                raise InvalidKeyError(f"{what}: line {number} names {name!r} a second time")
            hashes[name] = hashed
        return cls(hashes)

    def principal(self, credentials: bytes) -> Principal:
        """Who ``name:password`` is.

        Raises:
            CredentialsError: there is no such name with that password.
        """
        if len(credentials) > CREDENTIALS_BYTES_MAX:
            raise CredentialsError(f"the credentials have {len(credentials):,} bytes")
        name_bytes, colon, password = credentials.partition(b":")
        try:
            name = name_bytes.decode()
        except UnicodeDecodeError:
            name = ""
        if not colon or not name:
            raise CredentialsError("the credentials are no name:password")
        is_right = _matches(password, self._hashes.get(name, self._stand_in))
        if not is_right or name not in self._hashes:
            raise CredentialsError("there is no such name with that password")
        return Principal(name)


def _is_bcrypt(hashed: str) -> bool:
    return len(hashed) == 60 and hashed.startswith(_BCRYPT) and hashed.isascii()


def _is_apr1(hashed: str) -> bool:
    parts = hashed.split("$")
    return hashed.startswith(PREFIX) and len(parts) == 4 and len(parts[3]) == 22


def _matches(password: bytes, hashed: str) -> bool:
    if hashed.startswith(PREFIX):
        return hmac.compare_digest(apr1(password, hashed.split("$")[2]), hashed)
    if len(password) > BCRYPT_BYTES_MAX or b"\0" in password:
        return False
    try:
        return bcrypt.checkpw(password, hashed.encode())
    except ValueError:
        return False

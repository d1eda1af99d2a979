"""The credentials of ``headgate demo --secured``: the key of one run, and a token for each role.

All of them are files that only their owner may read, in the folder that the demo removes at its
end. The tokens do not lapse: the brokers that know the key end with the demo. Other processes read
them from the files, which their arguments name.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from headgate.app.key_files import write_secret
from headgate.base.names import parse_topic
from headgate.demo.admin import HttpCall
from headgate.demo.scenes import NAMESPACE
from headgate.pipeline.options import TELEMETRY_TOPIC
from headgate.security.token_keys import SECRET_BYTES_MIN, secret_key
from headgate.security.tokens import new_token

ADMIN: Final = "admin"
"""The role that may do everything."""
PRODUCER: Final = "producer"
CONSUMER: Final = "consumer"
PIPELINE: Final = "pipeline"

GRANTS: Final[Mapping[str, tuple[str, str]]] = {
    PRODUCER: (NAMESPACE, "produce"),
    CONSUMER: (NAMESPACE, "consume"),
    PIPELINE: (str(parse_topic(TELEMETRY_TOPIC).namespace), "consume"),
}
"""The one right of each role but :data:`ADMIN`: a namespace, and what it may do there."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What the brokers of a run ask for, and what its clients present; by default nothing."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of every broker."""
    token_paths: Mapping[str, str] = field(default_factory=dict)
    """The file of each role's token."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Of a request of :data:`ADMIN`."""
    header_path: str = ""
    """A file with the same, as curl takes it."""
    config_path: str = ""
    """A ``client.conf`` of :data:`ADMIN`, without URLs."""

    @property
    def is_secured(self) -> bool:
        """Whether there are any."""
        return bool(self.token_paths)

    def token_path(self, role: str) -> str:
        """The file of a role's token; empty without credentials."""
        return self.token_paths.get(role, "")

    def grant_calls(self, *roles: str) -> list[HttpCall]:
        """The requests that give ``roles`` their rights on a broker."""
        if not self.is_secured:
            return []
        return [
            HttpCall("POST", f"/admin/v2/namespaces/{namespace}/permissions/{role}", [action])
            for role, (namespace, action) in GRANTS.items()
            if role in roles
        ]


UNSECURED: Final = Credentials()
"""The brokers ask for nothing."""


def new_credentials(folder: Path) -> Credentials:
    """Make a key and the tokens, in files of a new folder.

    Raises:
        OSError: the folder exists, or cannot be made.
        InvalidKeyError: a file cannot be written.
    """
    folder.mkdir(mode=0o700)
    secret = secrets.token_bytes(SECRET_BYTES_MIN["HS256"])
    key_path = _written(folder / "secret.key", secret)
    key = secret_key(secret, "the demo's key")
    tokens = {role: new_token(key, {"sub": role}, {}) for role in (ADMIN, *GRANTS)}
    paths = {
        role: _written(folder / f"{role}.token", f"{token}\n".encode())
        for role, token in tokens.items()
    }
    bearer = f"Bearer {tokens[ADMIN]}"
    config = f"authPlugin=token\nauthParams={Path(paths[ADMIN]).as_uri()}\n"
    return Credentials(
        settings={
            "authenticationEnabled": "true",
            "authenticationProviders": "token",
            "tokenSecretKey": Path(key_path).as_uri(),
            "authorizationEnabled": "true",
            "superUserRoles": ADMIN,
        },
        token_paths=paths,
        headers={"Authorization": bearer},
        header_path=_written(folder / "admin.header", f"Authorization: {bearer}\n".encode()),
        config_path=_written(folder / "client-admin.conf", config.encode()),
    )


def _written(path: Path, data: bytes) -> str:
    write_secret(str(path), data)
    return str(path)

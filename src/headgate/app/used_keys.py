"""Warns when a file of keys or passwords has changed since the start that read it.

Token keys and passwords come into force at a start. Whoever takes a password out of its file, or
replaces a leaked key, must not believe that this was all. The secret of the sign-in is not among
them: it is read for each sign-in.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from headgate.app.key_files import is_literal, read_key
from headgate.app.repeated_look import RepeatedLook
from headgate.policy.settings import Settings
from headgate.security.errors import InvalidKeyError
from headgate.storage.lanes import Lane, run_on

logger = logging.getLogger("headgate.authentication")

PERIOD_S: Final = 5.0
"""Seconds between two looks at the files."""

_SECRETS: Final = ("tokenSecretKey", "headgateTokenSecretKeyOther", "basicAuthConf")
_PUBLIC: Final = ("tokenPublicKey", "headgateTokenPublicKeyOther")


class KeyFile(NamedTuple):
    """A file of keys or passwords."""

    setting: str
    source: str
    """The value of the setting."""
    is_secret: bool


def key_files(values: Mapping[str, str]) -> list[KeyFile]:
    """The files among the values of settings: those with a key in themselves have none."""
    return [
        KeyFile(name, source, name in _SECRETS)
        for name in (*_SECRETS, *_PUBLIC)
        if (source := values.get(name, "")) and not is_literal(source)
    ]


def key_files_of(settings: Settings) -> list[KeyFile]:
    """The files that a broker reads at its start to authenticate clients."""
    if not settings.authenticationEnabled:
        return []
    return key_files({name: getattr(settings, name) for name in (*_SECRETS, *_PUBLIC)})


class UsedKeys(RepeatedLook):
    """The files that were read at the start, and whether they are still what they were."""

    def __init__(self, files: Iterable[KeyFile], lane: Lane) -> None:
        """Remember what is in the files. Blocks. Make it before they are read for use: a change
        between the two is then a change. Later looks run on ``lane``."""
        super().__init__(lane, PERIOD_S, "changed keys", logger)
        self._files = {file: found for file in files if (found := _digest_or_none(file))}
        self._told: dict[KeyFile, str] = {}
        """What was logged last of each file that is not as it was."""

    async def look(self) -> None:
        """Look once, and log what is new."""
        found = await run_on(self._lane, self._problems)
        for file, problem in found.items():
            if problem == self._told.get(file, ""):
                continue
            self._told[file] = problem
            if problem:
                logger.warning("%s", problem)
            else:
                logger.warning("%s is again what it was at the start", file.setting)

    def _problems(self) -> dict[KeyFile, str]:
        """What is to say of each file; empty if it is as it was."""
        return {file: _problem(file, used) for file, used in self._files.items()}


def _problem(file: KeyFile, used: bytes) -> str:
    try:
        if _digest(file) == used:
            return ""
    except InvalidKeyError as error:
        return (
            f"{error}. What was read from it at the start stays in force, and the next start would "
            "be refused"
        )
    return (
        f"{file.setting}: the file has changed, and what was read from it at the start stays in "
        "force until a restart"
    )


def _digest(file: KeyFile) -> bytes:
    data = read_key(file.source, file.setting, is_secret=file.is_secret)
    return hashlib.sha256(data).digest()


def _digest_or_none(file: KeyFile) -> bytes | None:
    """None if it cannot be read: whoever needs it says so."""
    try:
        return _digest(file)
    except InvalidKeyError:
        return None

"""Revoked roles and tokens: the lists as operators write them, and the law that reads them.

An entry is a name, or ``NAME until 2026-12-31T00:00:00Z``. After that instant it says nothing any
more: a token needs an entry only until it expires. Names are compared letter by letter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from headgate.base.errors import InputError
from headgate.base.instants import seconds_of
from headgate.base.units import KIB
from headgate.security.provider import Principal

SETTING_CHARACTERS_MAX: Final = 16 * KIB
"""Of one list in a setting: some 400 token ids. A request's head has room for it."""

FILE_ENTRIES_MAX: Final = 100_000
NAME_CHARACTERS_MAX: Final = 1_000
_SHOWN_MAX: Final = 80
_UNTIL: Final = " until "
_ROLE, _TOKEN = "role", "token"

Names = Mapping[str, float]
"""Each name with the instant at which its entry lapses, in seconds since the epoch; infinite if it
never does."""


@dataclass(frozen=True, slots=True)
class Revocations:
    """Who may not connect any more."""

    roles: Names = field(default_factory=dict, repr=False)
    token_ids: Names = field(default_factory=dict, repr=False)
    """By the claim ``jti``."""

    @property
    def count(self) -> int:
        """How many entries there are, lapsed ones too."""
        return len(self.roles) + len(self.token_ids)


NO_REVOCATIONS: Final = Revocations()


def revoked(
    principal: Principal, original_role: str, revocations: Revocations, now_s: float
) -> str:
    """Why a client may not be connected; empty if it may.

    ``original_role`` is that of the client behind a proxy, whose own role is the principal's.
    """
    for role in (principal.role, original_role):
        if now_s < revocations.roles.get(role, 0.0):
            return f"the role {role!r} is revoked"
    if now_s < revocations.token_ids.get(principal.token_id, 0.0):
        return f"the token {principal.token_id!r} of the role {principal.role!r} is revoked"
    return ""


def names_of_setting(text: str) -> dict[str, float]:
    """The entries of a setting, with commas between them.

    Raises:
        InputError: the text is too long, or an entry is none.
    """
    if len(text) > SETTING_CHARACTERS_MAX:
        raise InputError(
            f"{len(text):,} characters: {SETTING_CHARACTERS_MAX:,} at most; "
            "headgateRevocationFile has room for more"
        )
    found: dict[str, float] = {}
    for part in text.split(","):
        if part.strip():
            _add(found, part.strip())
    return found


def problem_of_setting(text: str) -> str:
    """What is wrong with the text of a setting; empty if nothing is."""
    try:
        names_of_setting(text)
    except InputError as error:
        return str(error)
    return ""


def revocations_of_file(text: str, what: str) -> Revocations:
    """The entries of a file: ``role NAME`` or ``token ID`` in each line, both perhaps with
    ``until``. Empty lines and those that begin with ``#`` say nothing. ``what`` names the setting
    and the file in errors.

    Raises:
        InputError: a line is no entry, or there are too many.
    """
    found: dict[str, dict[str, float]] = {_ROLE: {}, _TOKEN: {}}
    count = 0
    for number, line in enumerate(text.splitlines(), 1):
        kind, _, entry = line.strip().partition(" ")
        if not kind or kind.startswith("#"):
            continue
        count += 1
        if count > FILE_ENTRIES_MAX:
            raise InputError(f"{what} has more than {FILE_ENTRIES_MAX:,} entries")
        try:
            if kind not in found:
                raise InputError(f"{kind[:_SHOWN_MAX]!r} is neither role nor token")
            _add(found[kind], entry.strip())
        except InputError as error:
            raise InputError(f"{what}: line {number}: {error}") from None
    return Revocations(found[_ROLE], found[_TOKEN])


def _add(found: dict[str, float], entry: str) -> None:
    """Add an entry; of two for one name the later instant counts."""
    name, until, instant = entry.rpartition(_UNTIL)
    name = (name if until else entry).strip()
    is_name = 0 < len(name) <= NAME_CHARACTERS_MAX and name.isprintable()
    if not is_name or name.startswith(_UNTIL.lstrip()):
        raise InputError(f"{entry[:_SHOWN_MAX]!r} is no name of a role or a token")
    lapses_s = _lapse(instant.strip(), entry) if until else math.inf
    found[name] = max(found.get(name, 0.0), lapses_s)


def _lapse(instant: str, entry: str) -> float:
    try:
        return seconds_of(instant)
    except ValueError:
        raise InputError(
            f"{entry[:_SHOWN_MAX]!r} has no instant after until: 2026-12-31T00:00:00Z is one"
        ) from None

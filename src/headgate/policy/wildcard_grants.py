"""Finds the granted roles with ``*`` that stand for a role, without a look at each of them.

A row has up to 1,000 roles, and a list of topics asks about each of its topics. So the patterns of
a row are sorted when it is first asked about, and kept as long as the row itself. A pattern that
begins with another one is left out, because whatever it matches the shorter one matches, too. Of
those that are left at most one can match, and a bisection finds it.
"""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Final

from headgate.metadata.grants import Action, NamespaceGrants, TopicGrants

GrantsRow = NamespaceGrants | TopicGrants

WILDCARD: Final = "*"


class WildcardGrants:
    """The wildcards of rows, by the identity of each row: a change makes a new one."""

    def __init__(self) -> None:
        self._by_row: dict[int, tuple[weakref.ref[GrantsRow], dict[Action, _Patterns]]] = {}

    @property
    def rows_count(self) -> int:
        """Rows that were asked about and exist."""
        return len(self._by_row)

    def find(self, row: GrantsRow, role: str, action: Action) -> str:
        """The granted role with ``*`` that gives ``role`` that action; empty if none does."""
        known = self._of(row)
        patterns = known.get(action)
        if patterns is None:
            granted = (each for each, actions in row.roles.items() if action in actions)
            patterns = known[action] = _Patterns(granted)
        return patterns.find(role)

    def _of(self, row: GrantsRow) -> dict[Action, _Patterns]:
        key = id(row)
        known = self._by_row.get(key)
        if known is not None:
            return known[1]
        forget, found = self._by_row.pop, dict[Action, _Patterns]()
        self._by_row[key] = weakref.ref(row, lambda _: forget(key, None)), found
        return found


_BEFORE: Final = itemgetter(slice(None, -1))
"""What is before the ``*`` at the end of a role."""

_BEHIND: Final = itemgetter(slice(None, 0, -1))
"""What is behind the ``*`` at the beginning of a role, backwards."""


class _Patterns:
    """Roles with ``*`` at their end or beginning: those of the row, and no copies of their parts,
    which would take several times the memory that a tenant is charged with."""

    __slots__ = ("_beginnings", "_endings")

    def __init__(self, roles: Iterable[str]) -> None:
        roles = list(roles)
        beginnings = (role for role in roles if role.endswith(WILDCARD))
        self._beginnings = _shortest(beginnings, _BEFORE)
        self._endings = _shortest((role for role in roles if role.startswith(WILDCARD)), _BEHIND)

    def find(self, role: str) -> str:
        """A pattern that stands for ``role``; empty if none does."""
        found = _found(role, self._beginnings, _BEFORE)
        return found or _found(role[::-1], self._endings, _BEHIND)


def _shortest(roles: Iterable[str], part: Callable[[str], str]) -> list[str]:
    """The roles whose ``part`` begins with that of no other one, in the order of these parts."""
    found: list[str] = []
    for role in sorted(roles, key=part):
        if not found or not part(role).startswith(part(found[-1])):
            found.append(role)
    return found


def _found(text: str, roles: list[str], part: Callable[[str], str]) -> str:
    """The one of ``roles`` with whose ``part`` a text begins; empty if there is none."""
    index = bisect_right(roles, text, key=part)
    if index and text.startswith(part(roles[index - 1])):
        return roles[index - 1]
    return ""

"""Finds the granted roles with ``*`` that stand for a role, without a look at each of them.

A row has up to 1,000 roles, and a list of topics asks about each of its topics. So the patterns of
a row are sorted when it is first asked about, and kept as long as the row itself. A pattern that
begins with another one is left out, because whatever it matches the shorter one matches, too. Of
those that are left at most one can match, and a bisection finds it.
"""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections.abc import Iterable
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
        patterns = self._of(row).get(action)
        return "" if patterns is None else patterns.find(role)

    def _of(self, row: GrantsRow) -> dict[Action, _Patterns]:
        key = id(row)
        known = self._by_row.get(key)
        if known is not None:
            return known[1]
        granted: dict[Action, list[str]] = {}
        for role, actions in row.roles.items():
            if role.startswith(WILDCARD) or role.endswith(WILDCARD):
                for action in actions:
                    granted.setdefault(action, []).append(role)
        found = {action: _Patterns(roles) for action, roles in granted.items()}
        forget = self._by_row.pop
        self._by_row[key] = weakref.ref(row, lambda _: forget(key, None)), found
        return found


class _Patterns:
    """Roles with ``*`` at their end or beginning."""

    __slots__ = ("_beginnings", "_endings")

    def __init__(self, roles: Iterable[str]) -> None:
        roles = list(roles)
        self._beginnings = _shortest(role[:-1] for role in roles if role.endswith(WILDCARD))
        self._endings = _shortest(role[:0:-1] for role in roles if role.startswith(WILDCARD))

    def find(self, role: str) -> str:
        """A pattern that stands for ``role``; empty if none does."""
        beginning = _beginning_of(role, self._beginnings)
        if beginning is not None:
            return beginning + WILDCARD
        ending = _beginning_of(role[::-1], self._endings)
        return "" if ending is None else WILDCARD + ending[::-1]


def _shortest(texts: Iterable[str]) -> list[str]:
    """The sorted texts that begin with no other one of them."""
    found: list[str] = []
    for text in sorted(texts):
        if not found or not text.startswith(found[-1]):
            found.append(text)
    return found


def _beginning_of(text: str, beginnings: list[str]) -> str | None:
    """The one of ``beginnings`` with which ``text`` begins."""
    index = bisect_right(beginnings, text)
    if index and text.startswith(beginnings[index - 1]):
        return beginnings[index - 1]
    return None

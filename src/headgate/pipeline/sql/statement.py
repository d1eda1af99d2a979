"""A user's SQL query, looked at before Spark starts: whether it only reads, and what it names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from headgate.base.errors import InputError

_SKIPPED: Final = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:\\.|''|[^'\\])*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL
)
"""Comments and texts, which name nothing."""
WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A name or a keyword."""

READING: Final = (
    "select", "with", "from", "table", "values", "show", "describe", "desc", "explain",
)  # fmt: skip
"""First words of statements that only read."""
_WRITING: Final = frozenset({"insert", "merge", "update", "delete", "overwrite"})
"""Words that make a statement write behind a WITH or FROM."""


def checked_statement(text: str) -> str:
    """The statement without the semicolon at its end.

    Raises:
        InputError: it is empty, has more than one statement, or does more than read.
    """
    statement = text.strip().removesuffix(";").rstrip()
    plain = _SKIPPED.sub(" ", statement)
    words = [word.lower() for word in WORD.findall(plain)]
    if not words:
        raise InputError("the query is empty; one such as SELECT * FROM attribution is allowed")
    if ";" in plain:
        raise InputError("the query has several statements; one is allowed")
    written = _WRITING.intersection(words)
    if words[0] not in READING or written:
        word = words[0] if words[0] not in READING else min(written)
        raise InputError(
            f"{word.upper()} is not for this command, which only reads: a query that begins with "
            f"{', '.join(each.upper() for each in READING[:-1])} or {READING[-1].upper()} is "
            "allowed"
        )
    return statement


def named_in(statement: str, names: Iterable[str]) -> list[str]:
    """Those of ``names`` that stand in a statement, in any case; SHOW may list all."""
    words = {word.lower() for word in WORD.findall(_SKIPPED.sub(" ", statement))}
    return [name for name in names if name in words or "show" in words]

"""The syntax of Java's property files, in which Pulsar has its settings.

It is ``key=value`` (also ``key: value`` and ``key value``). ``#`` and ``!`` begin comments, a
backslash at a line's end continues the line, and blanks around a value do not count. The escapes
are ``\\t \\n \\r \\f \\\\ \\uXXXX``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from headgate.base.errors import InputError

_SEPARATOR = re.compile(r"(?<!\\)(?:\\\\)*(?P<gap>[ \t\f]*[=:][ \t\f]*|[ \t\f]+)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True, slots=True)
class Assignment:
    """One key with its value as text, and where it was written."""

    key: str
    value: str
    where: str
    """Put before an error, as in ``broker.conf:12``."""


def parse_properties(text: str, source: str) -> list[Assignment]:
    """The assignments of a property file, in order; ``source`` is its name in errors.

    Raises:
        InputError: a ``\\u`` escape without four hexadecimal digits.
    """
    found = []
    # Editors put a byte order mark before the first key, which would be an unknown one then.
    for number, line in _logical_lines(text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")):
        match = _SEPARATOR.search(line)
        key, value = (line, "") if match is None else _split(line, match)
        where = f"{source}:{number}"
        found.append(Assignment(_unescape(key, where), _unescape(value, where).strip(), where))
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with continuations joined, without comments; numbered by where they begin."""
    parts: list[str] = []
    begin = 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = raw.lstrip(" \t\f")
        if not parts:
            if not line or line[0] in "#!":
                continue
            begin = number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            parts.append(line[:-1])
            continue
        yield begin, "".join([*parts, line])
        parts = []
    if parts:
        yield begin, "".join(parts)


def _split(line: str, match: re.Match[str]) -> tuple[str, str]:
    return line[: match.start("gap")], line[match.end() :]


def _unescape(text: str, where: str) -> str:
    def replace(match: re.Match[str]) -> str:
        code = match[1]
        if code == "u":
            raise InputError(f"{where}: \\u is not followed by four hexadecimal digits")
        if len(code) > 1:
            return chr(int(code[1:], 16))
        return _CONTROL.get(code, code)

    return _ESCAPE.sub(replace, text)

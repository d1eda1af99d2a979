"""The definition of one setting: its default, its range and its meaning."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from headgate.base.errors import InputError
from headgate.base.units import INT32_MAX

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
"""No setting may have more than nineteen digits."""
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}(\.[0-9]{1,19})?([eE][+-]?[0-9]{1,2})?")

MASK: Final = "*****"
"""What stands for a secret where settings are shown."""


class SettingError(InputError):
    """A setting's value is not allowed; the text names the setting, the value and the range."""


@dataclass(frozen=True, slots=True)
class TextRule:
    """What a text must be."""

    allowed: str
    """In words."""
    problem: Callable[[str], str]
    """What is wrong with a text; empty if nothing is."""


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """One setting without its value."""

    name: str
    default: bool | int | float | str
    dynamic: bool
    minimum: int | None
    maximum: int | None
    excluded: tuple[int, ...]
    """Ends of the range that do not belong to it: none, the lower one, or both."""
    choices: tuple[str, ...]
    rule: TextRule | None
    doc: str
    is_secret: bool = False
    """Whether the value may be a secret, or name the file that has it."""
    empty: int | None = None
    """What an empty value in a file means; None if it means that the setting is not set."""

    @property
    def allowed(self) -> str:
        """The allowed values, in words."""
        if isinstance(self.default, bool):
            return "true or false"
        if isinstance(self.default, int):
            return f"an integer from {self.minimum} to {self.maximum}"
        if isinstance(self.default, float):
            if self.minimum not in self.excluded:
                return f"a number from {self.minimum} to {self.maximum}"
            upper = "below" if self.maximum in self.excluded else "up to"
            return f"a number above {self.minimum} and {upper} {self.maximum}"
        if self.rule is not None:
            return self.rule.allowed
        return " or ".join(self.choices) if self.choices else "any text"

    def shown(self, text: str) -> str:
        """A value as clients of the admin API see it: of a secret only the URL of its file."""
        return MASK if self.is_secret and text and not text.startswith("file:") else text

    def parse(self, text: str) -> bool | int | float | str:
        """Read a value as written in ``broker.conf``.

        Raises:
            SettingError: it is not what :attr:`allowed` says.
        """
        value = text.strip()
        if isinstance(self.default, bool):
            if value.lower() in ("true", "false"):
                return value.lower() == "true"
        elif isinstance(self.default, int | float):
            # Python's int() alone would also accept 1_000, and the digits of any script.
            is_whole = isinstance(self.default, int)
            if (_INTEGER if is_whole else _NUMBER).fullmatch(value):
                number = int(value) if is_whole else float(value)
                is_inside = (self.minimum or 0) <= number <= (self.maximum or 0)
                if is_inside and number not in self.excluded:
                    return number
        elif self.rule is not None:
            if problem := self.rule.problem(value):
                raise SettingError(f"{self.name} is not allowed: {problem}; use {self.allowed}")
            return value
        elif not self.choices or value in self.choices:
            return value
        # A client of the admin API may send a value of any length.
        raise SettingError(f"{self.name}={text[:80]!r} is not allowed; use {self.allowed}")


@lru_cache(maxsize=64)
def names_of(text: str) -> tuple[str, ...]:
    """The names in a setting that has several, with commas between."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def setting(
    default: bool | int | float | str,
    doc: str,
    *,
    dynamic: bool = False,
    minimum: int = 0,
    maximum: int = INT32_MAX,
    excluded: tuple[int, ...] = (),
    choices: tuple[str, ...] = (),
    is_secret: bool = False,
    empty: int | None = None,
    rule: TextRule | None = None,
) -> Any:
    """A field of :class:`headgate.policy.settings.Settings`. Numbers are from ``minimum`` to
    ``maximum``; what ``is_secret`` is not shown."""
    is_number = isinstance(default, int | float) and not isinstance(default, bool)
    return field(
        default=default,
        metadata={
            "dynamic": dynamic,
            "minimum": minimum if is_number else None,
            "maximum": maximum if is_number else None,
            "excluded": excluded,
            "choices": choices,
            "rule": rule,
            "doc": doc,
            "is_secret": is_secret,
            "empty": empty,
        },
    )


NO_PORT = -1
"""The value of a port's setting for which the broker does not listen."""


def port_setting(default: int, doc: str) -> Any:
    """A field for a port; :data:`NO_PORT`, or an empty value as in Pulsar, is none."""
    return setting(default, doc, minimum=NO_PORT, maximum=65_535, empty=NO_PORT)


def rate_setting(doc: str, *, maximum: int = INT32_MAX) -> Any:
    """A field for a dynamic rate limit; 0 and -1 are no limit."""
    return setting(0, doc, dynamic=True, minimum=-1, maximum=maximum)


def share_setting(default: float, doc: str, *, excluded: tuple[int, ...] = (0,)) -> Any:
    """A field for a dynamic share from 0 to 1, without the ``excluded`` ends."""
    return setting(default, doc, dynamic=True, maximum=1, excluded=excluded)


def count_setting(doc: str) -> Any:
    """A field for a dynamic limit on a number; 0 and -1 are no limit."""
    return setting(0, doc, dynamic=True, minimum=-1)

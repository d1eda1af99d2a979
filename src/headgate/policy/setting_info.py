"""The definition of one setting: its default, its range and its meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from headgate.base.errors import InputError
from headgate.base.units import INT32_MAX

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
"""No setting may have more than nineteen digits."""
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}(\.[0-9]{1,19})?([eE][+-]?[0-9]{1,2})?")


class SettingError(InputError):
    """A setting's value is not allowed; the text names the setting, the value and the range."""


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
    doc: str

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
        return " or ".join(self.choices) if self.choices else "any text"

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
        elif not self.choices or value in self.choices:
            return value
        # A client of the admin API may send a value of any length.
        raise SettingError(f"{self.name}={text[:80]!r} is not allowed; use {self.allowed}")


def setting(
    default: bool | int | float | str,
    doc: str,
    *,
    dynamic: bool = False,
    minimum: int = 0,
    maximum: int = INT32_MAX,
    excluded: tuple[int, ...] = (),
    choices: tuple[str, ...] = (),
) -> Any:
    """A field of :class:`headgate.policy.settings.Settings`. Numbers are from ``minimum`` to
    ``maximum``."""
    is_number = isinstance(default, int | float) and not isinstance(default, bool)
    return field(
        default=default,
        metadata={
            "dynamic": dynamic,
            "minimum": minimum if is_number else None,
            "maximum": maximum if is_number else None,
            "excluded": excluded,
            "choices": choices,
            "doc": doc,
        },
    )


def rate_setting(doc: str, *, maximum: int = INT32_MAX) -> Any:
    """A field for a dynamic rate limit; 0 and -1 are no limit."""
    return setting(0, doc, dynamic=True, minimum=-1, maximum=maximum)


def share_setting(default: float, doc: str, *, excluded: tuple[int, ...] = (0,)) -> Any:
    """A field for a dynamic share from 0 to 1, without the ``excluded`` ends."""
    return setting(default, doc, dynamic=True, maximum=1, excluded=excluded)


def count_setting(doc: str) -> Any:
    """A field for a dynamic limit on a number; 0 and -1 are no limit."""
    return setting(0, doc, dynamic=True, minimum=-1)

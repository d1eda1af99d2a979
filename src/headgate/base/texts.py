"""Figures as text: numbers, shares, sizes and times, as all sentences and tables show them; and
what others say, as it may be shown.

Sizes are in binary units everywhere, because quotas and settings are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from headgate.base.units import KIB, S_PER_DAY, S_PER_HOUR, S_PER_MINUTE

_LARGER_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")


def number(value: float) -> str:
    """A figure with separated thousands, and with a decimal only below 100."""
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}".removesuffix(".0")


def percent(share: float) -> str:
    """A share as ``97 %``."""
    return f"{100 * share:.0f} %"


def size_text(size_bytes: float) -> str:
    """An amount of data in binary units: ``900 B``, ``1.5 MiB``, ``10 GiB``."""
    value, unit = float(size_bytes), "B"
    for larger in _LARGER_UNITS:
        # What would round to 1,024 of a unit is 1 of the next.
        if abs(value) < KIB - 0.5:
            break
        value, unit = value / KIB, larger
    return f"{number(value)} {unit}"


def duration(seconds: float) -> str:
    """A length of time in seconds, minutes or hours: ``45 s``, ``26 min``, ``3 h``."""
    if seconds < 2 * S_PER_MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * S_PER_HOUR:
        return f"{seconds / S_PER_MINUTE:.0f} min"
    return f"{seconds / S_PER_HOUR:.0f} h"


def about_text(seconds: float) -> str:
    """An approximate length of time in one unit: ``45 s``, ``26 min``, ``1.5 h``."""
    if round(seconds) < 2 * S_PER_MINUTE:
        return f"{round(seconds)} s"
    minutes = round(seconds / S_PER_MINUTE)
    return f"{minutes} min" if minutes < 90 else f"{number(seconds / S_PER_HOUR)} h"


def time_text(seconds: float) -> str:
    """A length of time in at most two units: ``45 s``, ``26 min``, ``2 h 4 min``, ``3 d 4 h``."""
    whole_s = round(seconds)
    if whole_s < 2 * S_PER_MINUTE:
        return f"{whole_s} s"
    minutes = round(seconds / S_PER_MINUTE)
    if minutes < 60:
        return f"{minutes} min"
    if whole_s < 2 * S_PER_DAY:
        hours, rest = divmod(minutes, 60)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, rest = divmod(round(seconds / S_PER_HOUR), 24)
    return f"{days} d {rest} h" if rest else f"{days} d"


def printable(text: str) -> str:
    """Text without control characters of a terminal: clients choose the names of topics."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c
        for c in text
    )


def encodable(text: str) -> str:
    """Text that UTF-8 has. JSON may have halves of surrogate pairs, which it has not: whoever sends
    or prints such a text would fail."""
    return text.encode(errors="replace").decode()


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """What a server or its proxy said, which may repeat what it was sent. Upper and lower case are
    alike: a host's name is shown in lower case."""
    # The longest first: a short password may be a part of its base64.
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = re.sub(re.escape(secret), "***", text, flags=re.IGNORECASE)
    return text


def label_value(text: str) -> str:
    """A label's value as Prometheus's text format wants it between quotes."""
    if "\\" in text or '"' in text or "\n" in text:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text

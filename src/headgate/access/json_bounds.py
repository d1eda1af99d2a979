"""JSON of an admin API, which may be any server.

Decoded, JSON takes up to thirty times its bytes, and what is asked may have 150 MB. So the number
of its values has a bound, too.
"""

from __future__ import annotations

import json
from typing import Any, Final

SEPARATORS_MAX: Final = 30_000_000
"""Most commas, colons and open brackets of an answer: a value takes up to 64 bytes for each, so all
together 2 GB. The survey of a broker with 100,000 topics has about half of them."""
REASON_BYTES_MAX: Final = 64 * 1024
"""Longest answer with a reason."""


def decoded(body: bytes | bytearray) -> Any:
    """The value that an answer encodes.

    Raises:
        ValueError: it is no JSON, is nested too deeply, or has more than :data:`SEPARATORS_MAX`.
    """
    # Each value but the first one follows one of these. Those within texts count, too.
    if sum(map(body.count, (b",", b"[", b"{", b":"))) > SEPARATORS_MAX:
        raise ValueError(f"more than {SEPARATORS_MAX:,} values")
    try:
        return json.loads(body)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error

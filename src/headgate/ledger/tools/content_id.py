"""The identity of a sealed segment's content, from its header and its footer alone.

Two files with the same identity hold the same records at the same offsets, except where holes were
punched into one of them, which no topic needs. The number in the file's name is not enough:
rewriting puts another content under it.
"""

from __future__ import annotations

import hashlib
from typing import Final

from headgate.base.errors import CorruptionError
from headgate.fs.api import File
from headgate.ledger.format.records import SEGMENT_HEADER_BYTES
from headgate.ledger.index.footer import read_footer

CONTENT_ID_DIGITS: Final = 32


def content_id(file: File, segment: int, size_bytes: int) -> str | None:
    """The identity in hexadecimal digits; None if the segment has no sound footer. Blocks.

    Raises :class:`OSError`.
    """
    try:
        footer = read_footer(file, segment, size_bytes)
    except CorruptionError:
        return None
    if footer is None:
        return None
    digest = hashlib.sha256(file.read_at(0, SEGMENT_HEADER_BYTES))
    digest.update(size_bytes.to_bytes(8, "little"))
    digest.update(file.read_at(footer.data_end, size_bytes - footer.data_end))
    return digest.hexdigest()[:CONTENT_ID_DIGITS]

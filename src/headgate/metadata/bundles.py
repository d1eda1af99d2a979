"""Bundles: the hash ranges of a namespace.

One broker owns every range, so bundles decide nothing here; clients, ``lookup`` and admin tools ask
for them. The CRC-32 of a topic's name selects its range, as in Pulsar.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise
from zlib import crc32

from headgate.metadata.errors import RefusalError
from headgate.metadata.rows import Bundles

BUNDLES_MAX = 1_024
"""Most bundles of a new namespace (Pulsar allows 2^32)."""

_HASH_END = 1 << 32
_LAST = "0xffffffff"
_BOUNDARY = re.compile(r"^0x[0-9a-f]{8}$")


def split_bundles(count: int) -> Bundles:
    """``count`` ranges of equal size.

    Raises:
        RefusalError: 400 unless ``count`` is between 1 and ``BUNDLES_MAX``.
    """
    if not 1 <= count <= BUNDLES_MAX:
        raise RefusalError(
            400,
            "Invalid number of bundles. Number of numBundles has to be in the range of "
            f"[1, {BUNDLES_MAX}].",
        )
    size = _HASH_END // count
    return Bundles((*(f"0x{size * index:08x}" for index in range(count)), _LAST), count)


def check_boundaries(boundaries: tuple[str, ...]) -> Bundles:
    """The ranges between given boundaries.

    Raises:
        RefusalError: 400 unless they ascend from 0x00000000 to 0xffffffff.
    """
    ascending = all(a < b for a, b in pairwise(boundaries))
    if (
        not 2 <= len(boundaries) <= BUNDLES_MAX + 1
        or not all(_BOUNDARY.match(text) for text in boundaries)
        or not ascending
        or boundaries[0] != "0x00000000"
        or boundaries[-1] != _LAST
    ):
        raise RefusalError(
            400,
            "Invalid bundle boundaries: ascending texts like 0x40000000, from 0x00000000 to "
            "0xffffffff, are allowed",
        )
    return Bundles(boundaries, len(boundaries) - 1)


def bundle_of(bundles: Bundles, topic_full_name: str) -> str:
    """The range ``0x..._0x...`` of a topic."""
    return bundle_finder(bundles)(topic_full_name)


def bundle_finder(bundles: Bundles) -> Callable[[str], str]:
    """Gives the range of each of many topics by its full name."""
    ranges = ranges_of(bundles)
    starts = [int(text, 16) for text in bundles.boundaries[:-1]]
    return lambda topic: ranges[bisect_right(starts, crc32(topic.encode())) - 1]


def ranges_of(bundles: Bundles) -> list[str]:
    """The ranges ``0x..._0x...`` in their order."""
    return [f"{low}_{high}" for low, high in pairwise(bundles.boundaries)]
